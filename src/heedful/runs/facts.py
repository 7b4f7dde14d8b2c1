"""What is in a run or bundle, read without building its model."""

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.core.errors import BundleError
from heedful.tasks.bundle import CONFIG, METRICS, Bundle, open_bundle


@dataclass(frozen=True)
class RunFacts:
    """What a person wants to know of a bundle.

    Attributes:
        path: of the bundle.
        task: its kind.
        description: one line.
        model: kind of model.
        num_parameters: shared ones counted once.
        size_bytes: all files.
        scores: metric to ``{"value", "signature"}`` on the dev data.
        data: what it was trained on.
        created: when the bundle was written.
        heedful: the version that wrote it.
        config: the whole configuration.
    """

    path: str
    task: str
    description: str
    model: str
    num_parameters: int
    size_bytes: int
    scores: dict[str, Any]
    data: list[str]
    created: str
    heedful: str
    config: dict[str, Any]

    def to_values(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dict(vars(self))

    def to_text(self) -> str:
        """Return a few lines for people."""
        scores = ", ".join(f"{name} {entry['value']:.4g}" for name, entry in self.scores.items()) or "none"
        training = self.config.get("training", {})
        limits = ", ".join(f"{key} {value}" for key, value in training.items() if key.startswith("max_"))
        rows = [
            ("bundle", self.path),
            ("task", f"{self.task}: {self.description}" if self.description else self.task),
            ("model", f"{self.model}, {self.num_parameters:,} parameters"),
            ("size", f"{self.size_bytes / 1e6:.1f} MB"),
            ("validated", f"{scores} (on dev data, as `validation` says, while training)"),
            ("trained on", "; ".join(self.data) or "not recorded"),
            ("training", limits or "no limit"),
            ("made", f"{self.created} by Heedful {self.heedful}"),
        ]
        return "\n".join(f"{name:11} {text}" for name, text in rows)


def info(path: Path | str) -> RunFacts:
    """Verify a run's bundle and tell what is in it.

    Raises:
        BundleError: nothing there, or a file is missing or damaged.
    """
    bundle = open_bundle(Path(path))
    config, metrics = bundle.config(), bundle.metrics()
    remedy = "Copy the bundle again from its run."
    tables = (config.get("model"), config.get("training", {}))
    if not isinstance(config.get("task"), str) or not all(isinstance(each, dict) for each in tables):
        raise BundleError(f"{bundle.path / CONFIG}: damaged: it names no task, model or training. {remedy}")
    if not _are_scores(metrics.get("dev", {})) or not isinstance(metrics.get("data", []), list):
        raise BundleError(f"{bundle.path / METRICS}: damaged: it holds no scores by name. {remedy}")
    return RunFacts(
        path=str(bundle.path),
        task=config["task"],
        description=config.get("description", ""),
        model=config["model"].get("kind", "?"),
        num_parameters=count_parameters(bundle),
        size_bytes=bundle.size_bytes(),
        scores=metrics.get("dev", {}),
        data=[str(each) for each in metrics.get("data", [])],
        created=bundle.manifest.get("created", "?"),
        heedful=bundle.manifest.get("heedful", "?"),
        config=config,
    )


def _are_scores(values: Any) -> bool:
    return isinstance(values, dict) and all(
        isinstance(each, dict) and isinstance(each.get("value"), int | float) for each in values.values()
    )


def count_parameters(bundle: Bundle) -> int:
    """Return the number of weights, as the header of the file has it: 8 bytes of length, then JSON.

    Raises:
        BundleError: the file is damaged.
    """
    content = bundle.weights.stat().st_size
    try:
        with bundle.weights.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(length, content)))
        shapes = [entry["shape"] for name, entry in header.items() if name != "__metadata__"]
        return sum(math.prod(shape) for shape in shapes)
    except (struct.error, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise BundleError(f"{bundle.weights}: damaged: no safetensors. Copy the bundle again from its run.") from None
