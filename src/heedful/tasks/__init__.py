"""Tasks bind data, model, loss, search and metrics: what is trained, kept in a bundle, and used."""

from heedful.tasks.bundle import Bundle, amend_bundle, find_bundle, open_bundle, write_bundle
from heedful.tasks.catalogue import TASKS, restore_task, task_class
from heedful.tasks.classification import Classification, ClassificationConfig
from heedful.tasks.config import LossConfig, TaskConfig, ValidationConfig
from heedful.tasks.fitting import Fitting
from heedful.tasks.language_modelling import LanguageModelling, LanguageModellingConfig
from heedful.tasks.outcome import Candidate, Evaluation, Measured, Prediction, TargetScore, WordScore
from heedful.tasks.task import Task
from heedful.tasks.teaching import TaughtBatches, Teacher, TeacherConfig
from heedful.tasks.translation import Translation, TranslationConfig
from heedful.tasks.writing import WritingTask

__all__ = [
    "TASKS",
    "Bundle",
    "Candidate",
    "Classification",
    "ClassificationConfig",
    "Evaluation",
    "Fitting",
    "LanguageModelling",
    "LanguageModellingConfig",
    "LossConfig",
    "Measured",
    "Prediction",
    "TargetScore",
    "Task",
    "TaskConfig",
    "TaughtBatches",
    "Teacher",
    "TeacherConfig",
    "Translation",
    "TranslationConfig",
    "ValidationConfig",
    "WordScore",
    "WritingTask",
    "amend_bundle",
    "find_bundle",
    "open_bundle",
    "restore_task",
    "task_class",
    "write_bundle",
]
