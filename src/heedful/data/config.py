"""The data of a task: where train, dev and test come from, how they are cleaned and batched."""

from pydantic import Field, model_validator

from heedful.core.config import Config
from heedful.data.batching import BatchingConfig
from heedful.data.cleaning import CleaningConfig
from heedful.data.opening import STDIN
from heedful.data.readers import AnySourceConfig, data_paths, is_stream, sides_of


class DataConfig(Config):
    """The data of a task.

    Attributes:
        train: the training data.
        dev: data to validate on during training; absent holds out some of the training data. Like `test` it is read
            more than once, so that it cannot be standard input, and a stream where `train` is one.
        test: data for the final evaluation.
        dev_share: without `dev`, the share of distinct training sources held out for it, chosen by hash.
        dev_rows: and how many rows that may be at most.
        cleaning: what is dropped from the training data.
        batching: how many rows go together.
        group_references: in dev and test, rows with equal sources become one, with all their targets as references.
        name: of the data, for the model card.
        licence: of the data, for the model card.
    """

    train: AnySourceConfig
    dev: AnySourceConfig | None = None
    test: AnySourceConfig | None = None
    dev_share: float = Field(default=0.05, gt=0, lt=1)
    dev_rows: int = Field(default=1000, ge=1)
    cleaning: CleaningConfig = CleaningConfig()
    batching: BatchingConfig = BatchingConfig()
    group_references: bool = False
    name: str | None = None
    licence: str | None = None

    @model_validator(mode="after")
    def _fit(self) -> "DataConfig":
        unit = "stream" if is_stream(self.train) else "line"
        for name, source in (("dev", self.dev), ("test", self.test)):
            if source is None:
                continue
            if STDIN in data_paths(source):
                raise ValueError(
                    f"`data.{name}` is read more than once, which standard input (`-`) cannot be. Save it as a file."
                )
            given, wanted = (" and ".join(sides_of(each)) for each in (source, self.train))
            if given != wanted:
                raise ValueError(
                    f"`data.{name}` gives {given}, but `data.train` gives {wanted}. Name the same of `source`, "
                    "`target` and `label` for both."
                )
            if is_stream(source) != is_stream(self.train):
                raise ValueError(
                    f"`data.{name}` must be read as `data.train` is, one as a stream and the other by lines give "
                    f'scores that mean nothing. Set `data.{name}.unit = "{unit}"`, or change `data.train.unit`.'
                )
        return self
