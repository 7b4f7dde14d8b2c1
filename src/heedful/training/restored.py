"""A model as a checkpoint of a run has it, for use rather than for going on."""

from pathlib import Path

from torch import nn

from heedful.core.errors import BundleError
from heedful.training.averaging import AnyAveragingConfig, build_averaging
from heedful.training.checkpoint import CHECKPOINT_NAME, Checkpoints, load_model_tensors, read_checkpoint
from heedful.training.folder import RunFolder


def run_of_checkpoint(path: Path) -> Path | None:
    """Return the run's folder if the path is that of one of its checkpoints, there or not; else None."""
    whole = path.absolute()
    run = whole.parent.parent
    is_checkpoint = CHECKPOINT_NAME.fullmatch(whole.name) and whole.parent == RunFolder(run).checkpoints
    return run if is_checkpoint else None


def load_averaged(model: nn.Module, path: Path, config: AnyAveragingConfig) -> None:
    """Put a checkpoint's weights into a model: the averaged ones, as a validation at that step would have them.

    Args:
        model: of the run.
        path: the checkpoint.
        config: how the run averages.

    Raises:
        BundleError: there is no such checkpoint, or it is damaged, of another model or of another way to average.
    """
    if not path.is_dir():
        kept = ", ".join(each.name for each in Checkpoints(path.parent).list()) or "none"
        raise BundleError(f"{path}: no such checkpoint. Those that the run kept: {kept}.")
    checkpoint = read_checkpoint(path)
    try:
        load_model_tensors(model, checkpoint.model)
        averaging = build_averaging(model, config)
        averaging.load(checkpoint.averages)
        for name, average in averaging.average().items():
            averaging.parameters[name].data.copy_(average)
    except BundleError as error:
        raise BundleError(f"{path}: {error} The run's bundle was written by another training.") from None
    except (KeyError, ValueError, RuntimeError) as error:
        raise BundleError(
            f"{path}: the averages of this checkpoint are not those of `training.averaging` ({error}). "
            """For the weights of its last update alone say `--set 'training.averaging={kind="none"}'`."""
        ) from None
    for name, tensor in model.named_parameters():
        if not bool(tensor.isfinite().all()):
            raise BundleError(f"{path}: damaged: `{name}` holds numbers that are not finite. Name another checkpoint.")
