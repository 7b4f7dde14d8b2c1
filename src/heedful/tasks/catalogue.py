"""The tasks by kind. A new one is one file and one line here."""

from heedful.tasks.bundle import Bundle
from heedful.tasks.classification import Classification
from heedful.tasks.config import TaskConfig
from heedful.tasks.language_modelling import LanguageModelling
from heedful.tasks.task import Task
from heedful.tasks.translation import Translation
from heedful.tasks.weights import load_weights

TASKS: dict[str, type[Task]] = {
    "translation": Translation,
    "classification": Classification,
    "language_modelling": LanguageModelling,
}
"""The class of each ``task``."""


def task_class(config: TaskConfig) -> type[Task]:
    """Return the class that a configuration belongs to."""
    return next(each for each in TASKS.values() if isinstance(config, each.config_class))


def restore_task(config: TaskConfig, bundle: Bundle) -> Task:
    """Return the task of a bundle: its tokenizers, and its model with its weights.

    Args:
        config: the bundle's configuration, checked; text and model must be as they were.
        bundle: verified.

    Raises:
        BundleError: the files do not fit together.
    """
    task = task_class(config).from_folder(config, bundle.path)
    load_weights(task.model, bundle.weights)
    return task
