"""What the configurations of all tasks have in common."""

from pydantic import Field

from heedful.core.config import Config
from heedful.data.config import DataConfig
from heedful.models.catalogue import AnyModelConfig
from heedful.search import AnySearchConfig
from heedful.text.codec import TextConfig


class LossConfig(Config):
    """How the training loss is computed.

    Attributes:
        label_smoothing: share of each target's probability that is spread evenly over all symbols or classes
            (Szegedy et al. 2016, section 7). Held-out losses are always computed without it.
    """

    label_smoothing: float = Field(0.0, ge=0, lt=1)


class ValidationConfig(Config):
    """What is looked at during training.

    Attributes:
        max_lines: the first so many inputs of the dev data.
        num_samples: predictions kept to be read by a person.
        search: how outputs are searched; absent means as in prediction.
    """

    max_lines: int = Field(2000, ge=1)
    num_samples: int = Field(8, ge=0)
    search: AnySearchConfig | None = None


class TaskConfig(Config):
    """Keys of every task.

    Attributes:
        description: one line, for people.
        data: where examples come from.
        text: how text becomes symbols.
        model: of a kind that the task can use.
        loss: how the training loss is computed.
        validation: what is looked at during training.
    """

    description: str = ""
    data: DataConfig
    text: TextConfig = TextConfig()
    model: AnyModelConfig
    loss: LossConfig = LossConfig()
    validation: ValidationConfig = ValidationConfig()
