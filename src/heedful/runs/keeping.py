"""Writing what a user keeps of a run: its bundle."""

import json
from dataclasses import replace
from pathlib import Path

from heedful.data.prepare import TrainingData
from heedful.runs.config import RunConfig
from heedful.tasks import Evaluation, Task, write_bundle
from heedful.tasks.bundle import CARD, CONFIG, METRICS
from heedful.tasks.bundle import WEIGHTS as WEIGHTS_FILE
from heedful.tasks.card import write_card
from heedful.tasks.weights import save_weights


class BundleWriter:
    """Writes the bundle of one run, again and again.

    Args:
        config: of the run.
        data: what it trains on.
    """

    def __init__(self, config: RunConfig, data: TrainingData) -> None:
        self.config = config
        self.files = [f"{Path(path).name} (sha256 {digest})" for path, digest in data.digests.items()]
        self.name = config.task.data.name
        self.licence = config.task.data.licence

    def write(self, task: Task, path: Path, evaluation: Evaluation) -> None:
        """Write the bundle in place of what stands at the path.

        Args:
            task: whose model is written as it stands; with its own configuration, which a pruned one has changed.
            path: where the bundle goes.
            evaluation: what was found on the dev data.
        """

        def fill(folder: Path) -> None:
            save_weights(task.model, folder / WEIGHTS_FILE)
            task.save_text(folder)
            (folder / CONFIG).write_text(replace(self.config, task=task.config).toml(), "utf-8")
            metrics = {"dev": evaluation.metrics(), "data": self.files}
            (folder / METRICS).write_text(json.dumps(metrics, indent=2, ensure_ascii=False) + "\n", "utf-8")
            (folder / CARD).write_text(self._card(task, evaluation), "utf-8")

        write_bundle(path, fill)

    def _card(self, task: Task, evaluation: Evaluation) -> str:
        data = [f"- {each}" for each in self.files]
        if self.name:
            data.insert(0, f"{self.name}\n")
        data.append(f"\nLicence of the data: {self.licence or 'not stated'}")
        return write_card(task.config, task.num_parameters, evaluation, data)
