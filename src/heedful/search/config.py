"""How a search goes, as a user writes it: greedy, beam or sampling, with limits common to all."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from heedful.core.config import Config


class LimitsConfig(Config):
    """What every search obeys. Lengths count the target's symbols without BOS and EOS, a forced prefix included.

    Attributes:
        min_length: EOS is not chosen before so many symbols.
        max_length: after so many symbols the only choice is EOS.
        max_length_ratio: the limit is also ``max_length_ratio x source length + max_length_extra`` where the source's
            length is known; a ratio of 0 leaves `max_length` alone.
        max_length_extra: the constant in that limit.
        no_repeat_ngram: no n-gram of this size comes twice in a hypothesis; 0 allows all.
        repetition_penalty: log-probabilities of symbols that the hypothesis already holds are multiplied by this
            (Keskar et al. 2019, section 4.1, on log-probabilities); 1 changes nothing. Scores then are no longer
            those of the model alone.
    """

    min_length: int = Field(0, ge=0)
    max_length: int = Field(256, ge=1)
    max_length_ratio: float = Field(2.0, ge=0)
    max_length_extra: int = Field(30, ge=0)
    no_repeat_ngram: int = Field(0, ge=0)
    repetition_penalty: float = Field(1.0, ge=1)

    @model_validator(mode="after")
    def _check_lengths(self) -> "LimitsConfig":
        if self.min_length > self.max_length:
            raise ValueError(
                f"`min_length` must not exceed `max_length` ({self.max_length}), but is {self.min_length}."
            )
        return self


class GreedyConfig(LimitsConfig):
    """The most probable symbol at each step."""

    kind: Literal["greedy"] = "greedy"
    num_best: ClassVar[int] = 1


class BeamConfig(LimitsConfig):
    """Beam search.

    Attributes:
        beam_size: places for hypotheses of a sentence. A finished hypothesis keeps its place, so that the search ends
            at the latest when `beam_size` have finished.
        num_best: how many hypotheses are given back, at most `beam_size`.
        length_penalty: what the summed log-probability is divided by, with L symbols (EOS counted): ``gnmt`` is
            ``((5 + L) / 6) ** length_alpha`` (Wu et al. 2016, equation 14), ``average`` is ``L ** length_alpha``,
            ``none`` is 1.
        length_alpha: the exponent; 0 leaves log-probabilities as they are.
        coverage_penalty: beta of Wu et al. 2016, equation 14, weight of the penalty for source positions that little
            attention went to; above 0 the step function must give attention, and the search the source's lengths.
        early_stop: when a sentence is over although places are free. ``certain``: no open hypothesis can still be among
            the `num_best`, however long it grows. ``likely``: none would be among them if one more symbol and the end
            came for free, so a hypothesis that only gains by growing much longer is given up: quicker, and few outputs
            change. ``never``: places alone decide.
    """

    kind: Literal["beam"] = "beam"
    beam_size: int = Field(5, ge=1)
    num_best: int = Field(1, ge=1)
    length_penalty: Literal["none", "average", "gnmt"] = "gnmt"
    length_alpha: float = Field(0.6, ge=0)
    coverage_penalty: float = Field(0.0, ge=0)
    early_stop: Literal["certain", "likely", "never"] = "certain"

    @model_validator(mode="after")
    def _check_num_best(self) -> "BeamConfig":
        if self.num_best > self.beam_size:
            raise ValueError(f"`num_best` must not exceed `beam_size` ({self.beam_size}), but is {self.num_best}.")
        return self


class SamplingConfig(LimitsConfig):
    """Symbols drawn from the distribution, each line with its own stream of random numbers.

    Attributes:
        temperature: logits are divided by this before drawing; near 0 it becomes greedy.
        top_k: draw among the k most probable symbols; 0 means all.
        top_p: draw among the fewest most probable symbols that together have at least this probability (Holtzman et
            al. 2020, section 3.1); 1 means all. Applied after temperature and `top_k`.
        num_best: samples for each line, given back with the most probable first; two may be equal.
    """

    kind: Literal["sampling"] = "sampling"
    temperature: float = Field(1.0, gt=0)
    top_k: int = Field(0, ge=0)
    top_p: float = Field(1.0, gt=0, le=1)
    num_best: int = Field(1, ge=1)


AnySearchConfig = Annotated[GreedyConfig | BeamConfig | SamplingConfig, Field(discriminator="kind")]
