"""Looking inside: what a trained model attended to as it answered a line, as a value with many ways out."""

import html
import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console

from heedful.analysis import draw_text, read_lines
from heedful.analysis.figure import PictureForm
from heedful.analysis.lens import Lens, LensHead, LensSilence, LensView
from heedful.analysis.lens_causes import answer_log_probs, silence
from heedful.analysis.lens_page import lens_page
from heedful.analysis.lens_picture import Drawing, draw_heads, draw_lines, draw_matrix, save_picture
from heedful.analysis.lens_selection import Selected, Selection, select, select_heads
from heedful.analysis.lens_view import view_of
from heedful.analysis.reading import Reading
from heedful.analysis.render import printable
from heedful.core.errors import ConfigError, HeedfulError, RequestError
from heedful.core.storage import write_whole
from heedful.runs.head_names import parse_heads
from heedful.runs.loaded import LoadedModel, load
from heedful.tasks.bundle import version
from heedful.text.unread import Unread
from heedful.training import run_of_checkpoint

NUM_SILENCED = 6
"""Heads that are silenced without being asked for: of each word the one that did most for it, the strongest first; each
alone, then all together."""

MOST_SHOWN = 60
"""Rows and columns that a terminal shows."""

FRAME_HEIGHT = 760

WITH_ATTENTION = {
    "classification": '`model.pooling="attention"`',
    "language_modelling": '`model.kind="transformer_language_model"`',
    "translation": '`model.attention.kind="additive"`, or `model.kind="transformer"`',
}
"""For each task what makes a model attend."""


@dataclass(frozen=True, repr=False)
class Inspection:
    """One line, looked into; in a notebook it shows itself.

    Attributes:
        lens: all that is shown.
        models: of each view, for silencing heads while one looks.
        readings: of each view.
        num_asked: answers with silent heads that were asked for; they come first.
    """

    lens: Lens
    models: tuple[LoadedModel, ...]
    readings: tuple[Reading, ...]
    num_asked: int = 0

    @property
    def text(self) -> str:
        """The target, given or the model's own."""
        return self.lens.views[0].target_text

    def select(self, selection: Selection | None = None) -> Selected:
        """Return one matrix of the first view."""
        return select(self.lens.views[0], selection or Selection())

    def print(self, selection: Selection | None = None, file: Any = None) -> None:
        """Print the line, the answer, one matrix, and the answers with silent heads."""
        view = self.lens.views[0]
        console = Console(file=file, highlight=False, markup=False, soft_wrap=True)
        if view.source_text is not None:
            console.print(printable(view.source_text), end=" → ")
        console.print(printable(view.target_text))
        selected = self.select(selection)
        console.print(f"{selected.title}\n", style="dim")
        queries, keys = selected.queries[:MOST_SHOWN], selected.keys[:MOST_SHOWN]
        console.print(draw_text(selected.values[: len(queries), : len(keys)], queries, keys), end="")
        if max(selected.values.shape) > MOST_SHOWN:
            rows, columns = selected.values.shape
            console.print(f"The first {MOST_SHOWN} of {rows} rows and {columns} columns; a page (--html) shows all.")
        for each in view.silenced[: self.num_asked]:
            names = ", ".join(f"{head.path}:{head.head}" for head in each.heads)
            console.print(f"without {names}: {printable(each.text)}")

    def silence(self, heads: Sequence[tuple[str, int]], view: int = 0) -> LensSilence:
        """Return what a view's model writes while heads, each a path and a number, are silent.

        Raises:
            ConfigError: there is no such head.
        """
        names = [f"{path}:{head}" for path, head in heads]
        model = self.models[view]
        checked = parse_heads(",".join(names), model.model.attention_sites()) if names else []
        return silenced(model, self.readings[view], checked)

    def to_html(self) -> str:
        """Return the lens as one page that needs nothing else."""
        return lens_page(self.lens)

    def save_html(self, path: Path | str) -> None:
        """Write the page.

        Raises:
            HeedfulError: the file cannot be written; one that was there is untouched.
        """
        _write(Path(path), self.to_html().encode("utf-8"))

    def save_json(self, path: Path | str) -> None:
        """Write the values, which `heedful.analysis.lens.Lens.from_values` reads back.

        Raises:
            HeedfulError: the file cannot be written; one that was there is untouched.
        """
        _write(Path(path), (self.lens.to_json() + "\n").encode("ascii"))

    def save_picture(
        self,
        path: Path | str,
        form: PictureForm,
        selection: Selection | None = None,
        drawing: Drawing = "matrix",
    ) -> None:
        """Write a picture of the first view as SVG or PNG.

        Args:
            path: of the file.
            form: of the file.
            selection: which matrix; of ``heads``, which kind, layer and measure.
            drawing: ``matrix``, ``lines`` between its words, or all ``heads`` of a kind or layer.

        Raises:
            ConfigError: the view has no such attention, head or measure.
            HeedfulError: the file cannot be written; one that was there is untouched.
        """
        draw = self.drawing(selection, drawing)
        try:
            save_picture(draw, Path(path), form)
        except OSError as error:
            raise HeedfulError(f"{path}: cannot be written: {error.strerror}.") from None

    def drawing(self, selection: Selection | None, drawing: Drawing) -> Callable[[], Figure]:
        """Return what draws a picture; what is asked wrongly shows at once.

        Raises:
            ConfigError: the view has no such attention, head or measure.
        """
        if drawing == "heads":
            return partial(draw_heads, select_heads(self.lens.views[0], selection or Selection()))
        return partial({"matrix": draw_matrix, "lines": draw_lines}[drawing], self.select(selection))

    def widget(self) -> Any:
        """Return the lens as a notebook's widget, in which heads are silenced while one looks.

        Raises:
            ConfigError: the extra ``notebook`` is not installed.
        """
        if importlib.util.find_spec("anywidget") is None:
            raise ConfigError("A live lens needs the package `anywidget`. Try `pip install 'heedful[notebook]'`.")
        from heedful.runs.notebook import LensWidget

        return LensWidget(self.lens, self.silence)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        if importlib.util.find_spec("anywidget") is None:
            return {"text/plain": repr(self), "text/html": self._repr_html_()}
        return self.widget()._repr_mimebundle_(include=include, exclude=exclude)

    def __repr__(self) -> str:
        view = self.lens.views[0]
        return f"Inspection({view.source_text!r} -> {view.target_text!r}, {len(view.sites)} attentions)"

    def _repr_html_(self) -> str:
        # A frame of its own, for a notebook lets no module run in its page.
        page = html.escape(self.to_html(), quote=True)
        return (
            f'<iframe title="Attention of {html.escape(printable(self.text), quote=True)}" sandbox="allow-scripts" '
            f'style="width:100%;height:{FRAME_HEIGHT}px;border:0" srcdoc="{page}"></iframe>'
        )


def inspect(
    model: LoadedModel | Path | str,
    source: str,
    target: str | None = None,
    *,
    other: LoadedModel | Path | str | None = None,
    silent: Iterable[str] = (),
    with_causes: bool = True,
) -> Inspection:
    """Look into a model while it answers a line.

    Args:
        model: a model, or the path of a run, of a bundle, or of a checkpoint, ``RUN/checkpoints/step-00001000``.
        source: the line; a language model reads it as its text.
        target: what it should have written (or the label it should have given); absent means its own answer.
        other: a second model to stand beside it.
        silent: heads to be silenced, each time with a new answer: ``cross.1:2`` (kind, layer, head) or a path and a
            head; several at once between commas.
        with_causes: measure what each head did for each word, and silence those that did most.

    Raises:
        RequestError: a blank line, or a model that attends to nothing.
        ConfigError: no such head.
        BundleError: what stands at a path cannot be used.
    """
    models = [each if isinstance(each, LoadedModel) else load(each) for each in (model, other) if each is not None]
    if not source.strip():
        raise RequestError("The source is blank, and a blank line never meets a model. Give it at least a word.")
    if len({_kind(each) for each in models}) > 1:
        raise RequestError("Two models stand side by side only where their task is one and the same.")
    wanted = [parse_heads(text, models[0].model.attention_sites()) for text in silent]
    readings = [_read(each, source, target) for each in models]
    views: list[LensView] = []
    for index, (each, (reading, notes)) in enumerate(zip(models, readings, strict=True)):
        name = _name(each)
        name += " (2)" if views and views[0].name == name else ""
        view = view_of(each.task, reading, name, notes=notes, with_causes=with_causes)
        chosen = list(wanted) if index == 0 else []
        chosen += [heads for heads in _most_responsible(view) if heads not in chosen]
        views.append(view.model_copy(update={"silenced": tuple(silenced(each, reading, heads) for heads in chosen)}))
    lens = Lens(heedful=version(), views=tuple(views))
    return Inspection(lens, tuple(models), tuple(reading for reading, _ in readings), len(wanted))


def _kind(model: LoadedModel) -> str:
    return str(model.config.task.model_dump()["task"])


def _name(model: LoadedModel) -> str:
    """Return what a person calls the bundle: the last parts of its path that say anything."""
    if (run := run_of_checkpoint(model.path)) is not None:
        return f"{run.name} {model.path.name}"
    path = model.path.resolve()
    return path.parent.name if path.name == "bundle" else path.name


def _read(model: LoadedModel, source: str, target: str | None) -> tuple[Reading, list[str]]:
    task = model.task
    sites = model.model.attention_sites()
    if sites and not any(site.num_heads for site in sites):
        raise RequestError(f"{model.path}: every head was pruned away. Look into the model as it was before.")
    if not sites:
        raise RequestError(
            f"{model.path}: this model attends to nothing, so there is nothing to look into. Its kind is "
            f"`{task.config.model.kind}`; train one that attends: {WITH_ATTENTION[_kind(model)]}."
        )
    pair: tuple[str | None, str | None] = (source, target)
    if task.codec.source is None:
        pair = (None, source + (target or ""))
    unread = Unread()
    (reading,) = read_lines(task, [pair], pattern="*", unread=unread)
    notes = [told] if (told := unread.summary()) else []
    for each in notes:
        print(f"heedful: {each}", file=sys.stderr)
    return reading, notes


def silenced(model: LoadedModel, reading: Reading, heads: Sequence[tuple[str, int]]) -> LensSilence:
    """Return what a model answers while heads are silent, and how probable its former answer is then."""
    task = model.task
    gates = silence(model.model.attention_sites(), heads)
    with task.inference():
        log_prob = float(answer_log_probs(task.model, reading.recording.batch, gates).sum())
    text = reading.target_text
    if reading.source_text is not None:
        with task.bound(gates=gates):
            (prediction,) = task.predict([reading.source_text])
        text = prediction.text
    names = tuple(LensHead(path=path, head=head) for path, head in heads)
    return LensSilence(heads=names, text=text, words=tuple(text.split()), log_prob=log_prob)


def _most_responsible(view: LensView) -> list[list[tuple[str, int]]]:
    """Return of each word the head that did most for it, the strongest first, each once."""
    if view.causes is None or view.source_text is None or not view.causes.heads:
        return []
    strongest = view.causes.losses.unpack().max(dim=0)
    order = strongest.values.argsort(descending=True).tolist()
    indices = dict.fromkeys(int(strongest.indices[place]) for place in order if strongest.values[place] > 0)
    names = [(view.causes.heads[index].path, view.causes.heads[index].head) for index in indices][:NUM_SILENCED]
    return [[each] for each in names] + ([names] if len(names) > 1 else [])


def _write(path: Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise HeedfulError(f"{path}: cannot be written: {error.strerror}.") from None
