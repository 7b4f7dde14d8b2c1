"""Training: the loop, and what it needs to be stopped, resumed, watched, told about and spread over processes.

It knows a task only as a `heedful.core.types.Trainable`.
"""

from heedful.training.config import TrainingConfig
from heedful.training.folder import RunFolder
from heedful.training.history import read_history
from heedful.training.loop import Outcome, resume, train
from heedful.training.markup import escape
from heedful.training.processes import is_first_process
from heedful.training.progress import ConsoleReporter, Reporter, SilentReporter
from heedful.training.report import (
    Section,
    config_section,
    curves_section,
    samples_section,
    table,
    table_section,
    write_report,
)
from heedful.training.restored import load_averaged, run_of_checkpoint

__all__ = [
    "ConsoleReporter",
    "Outcome",
    "Reporter",
    "RunFolder",
    "Section",
    "SilentReporter",
    "TrainingConfig",
    "config_section",
    "curves_section",
    "escape",
    "is_first_process",
    "load_averaged",
    "read_history",
    "resume",
    "run_of_checkpoint",
    "samples_section",
    "table",
    "table_section",
    "train",
    "write_report",
]
