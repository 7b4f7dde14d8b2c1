"""Training: the loop, and what it needs to be stopped, resumed, watched and spread over processes.

It knows a task only as a `heedful.core.types.Trainable`.
"""

from heedful.training.config import TrainingConfig
from heedful.training.folder import RunFolder
from heedful.training.history import read_history
from heedful.training.loop import Outcome, resume, train
from heedful.training.progress import ConsoleReporter, Reporter, SilentReporter

__all__ = [
    "ConsoleReporter",
    "Outcome",
    "Reporter",
    "RunFolder",
    "SilentReporter",
    "TrainingConfig",
    "read_history",
    "resume",
    "train",
]
