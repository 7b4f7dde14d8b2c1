"""What a bundle keeps of how its model aligns words: the choice of heads and, where it was learnt, a lexicon."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

from heedful.analysis.alignment_choice import AlignmentChoice, default_choice
from heedful.analysis.alignment_model import AlignmentModel
from heedful.analysis.alignment_model_file import from_bytes, to_bytes
from heedful.analysis.word_weights import cross_sites
from heedful.core.config import parse_config
from heedful.core.errors import BundleError, ConfigError, did_you_mean
from heedful.runs.loaded import LoadedModel
from heedful.runs.training_run import RUN_LOCK
from heedful.tasks import Bundle, Task, amend_bundle, find_bundle, open_bundle
from heedful.tasks.bundle import ALIGNMENT, LEXICON
from heedful.training import RunFolder, run_of_checkpoint


def save_choice(
    model: LoadedModel, choice: AlignmentChoice, chosen_by: dict[str, Any], *, learnt: AlignmentModel | None = None
) -> None:
    """Keep a choice in the model's bundle, whose manifest then names it; all of it is written, or nothing.

    Args:
        model: whose bundle.
        choice: that was made.
        chosen_by: what is told of how it was made, as plain values.
        learnt: over the heads of this choice; absent removes what was learnt over others, which is told on stderr.

    Raises:
        BundleError: the disk is full, a training writes there, or the bundle has other weights by now.
    """
    values = {"choice": choice.model_dump(mode="json"), "chosen_by": chosen_by}
    files = {
        ALIGNMENT: json.dumps(values, indent=2).encode() + b"\n",
        LEXICON: None if learnt is None else to_bytes(learnt),
    }
    with _bundle(model) as bundle:
        amend_bundle(bundle, files)
        if learnt is None and LEXICON in bundle.manifest["files"]:
            print(
                f"heedful: {bundle.path}: the lexicon was learnt over other heads, so it was removed. Learn again with "
                f"`heedful align {model.path} --learn`.",
                file=sys.stderr,
            )


def check_keeping(model: LoadedModel) -> None:
    """See that a choice could be kept, before minutes are spent on making it.

    Raises:
        BundleError: it is a checkpoint, a training writes there, the bundle has other weights by now, or its place
            cannot be written.
    """
    with _bundle(model) as bundle:
        if not os.access(bundle.path.parent, os.W_OK):
            raise BundleError(
                f"{bundle.path.parent}: not writable, so nothing can be kept in the bundle. Copy it first."
            )


@contextlib.contextmanager
def _bundle(model: LoadedModel) -> Iterator[Bundle]:
    """Give the model's bundle while no training writes there."""
    path = find_bundle(model.path)
    run = RunFolder(path.parent)
    is_in_run = path == run.bundle and run.checkpoints.is_dir()
    with run.lock(RUN_LOCK) if is_in_run else contextlib.nullcontext():
        bundle = open_bundle(path)
        if bundle.weights_sha256() != model.weights_sha256:
            raise BundleError(f"{path}: has other weights than when it was loaded. Load it again, and choose again.")
        yield bundle


def saved_lexicon(model: LoadedModel) -> AlignmentModel:
    """Return what was learnt over the heads of the saved choice.

    Raises:
        BundleError: nothing was, or it is damaged.
    """
    file = find_bundle(model.path) / LEXICON
    remedy = f"Learn again with `heedful align {model.path} --learn`."
    try:
        return from_bytes(file.read_bytes())
    except FileNotFoundError:
        raise BundleError(f"{file}: missing. {remedy}") from None
    except OSError as error:
        raise BundleError(f"{file}: cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise BundleError(f"{file}: damaged: {error}. {remedy}") from None


def saved_choice(model: LoadedModel) -> AlignmentChoice | None:
    """Return the choice that the model's bundle holds; None if none was made, as for a checkpoint's weights.

    Raises:
        BundleError: it is damaged.
    """
    saved = _saved(model)
    return None if saved is None else saved[0]


def saved_reasons(model: LoadedModel) -> dict[str, Any]:
    """Return what the bundle tells of how its choice was made; nothing where none was.

    Raises:
        BundleError: it is damaged.
    """
    saved = _saved(model)
    return {} if saved is None else saved[1]


def _saved(model: LoadedModel) -> tuple[AlignmentChoice, dict[str, Any]] | None:
    if run_of_checkpoint(model.path) is not None:
        return None
    file = find_bundle(model.path) / ALIGNMENT
    if not file.is_file():
        return None
    try:
        values: Any = json.loads(file.read_bytes())
        return parse_config(AlignmentChoice, values["choice"]), dict(values["chosen_by"])
    except (ValueError, TypeError, KeyError, RecursionError, ConfigError) as error:
        reason = " ".join(str(error).split("\n")).rstrip(".")
        raise BundleError(f"{file}: damaged: {reason}. Choose again with `heedful align --choose`.") from None


def choice_of(model: LoadedModel) -> AlignmentChoice:
    """Return the saved choice, or what usually does well, which is told on stderr."""
    saved = saved_choice(model)
    if saved is not None:
        return saved
    sites = cross_sites(model.task)
    has_self_attention = any(each.kind == "decoder" for each in model.model.attention_sites())
    choice = default_choice(sites, is_recurrent=not has_self_attention)
    print(
        f"heedful: {model.path}: no way to align was chosen for it; taking what usually does well "
        f"({choice.describe()}). `heedful align RUN --choose GOLD` finds the best on gold alignments, `heedful align "
        "RUN SOURCE TARGET --agree` a good one without; `heedful align RUN --learn` learns from the training pairs.",
        file=sys.stderr,
    )
    return choice


def check_choice(choice: AlignmentChoice, task: Task) -> None:
    """See that the model has the heads of a choice.

    Raises:
        ConfigError: it lacks one.
    """
    sites = {each.path: each.num_heads for each in cross_sites(task)}
    for each in choice.heads:
        if each.site not in sites:
            raise ConfigError(f"The model has no attention `{each.site}`. {did_you_mean(each.site, sites)}")
        if each.head >= sites[each.site]:
            raise ConfigError(f"`{each.site}` has {sites[each.site]} heads, counted from 0, so none is {each.head}.")
