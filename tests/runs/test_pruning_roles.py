"""Who survives: the roles of heads in the report of a pruning."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.runs.pruning_samples import prune

from heedful import runs
from heedful.analysis import heads_card
from heedful.core.errors import ConfigError
from heedful.runs.pruning_roles import HeadRoles, read_roles, survey_roles

pytestmark = pytest.mark.usefixtures("quick_measuring")


def test_roles_are_those_of_a_survey_over_the_dev_data(
    reverser: Path, pruned: tuple[Path, runs.Pruning], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert pruned[1].roles_from == "40 lines of the dev data"
    assert sum(each["after"] for each in pruned[1].survivors.values()) >= 3
    monkeypatch.setattr(heads_card, "POSITIONAL_FROM", 0.2)  # so small a model has no clearer roles
    rows = [line.split("\t") for line in (reverser.parent / "test.tsv").read_text().splitlines()[1:]]
    for name, column in (("source", 0), ("target", 1)):
        (tmp_path / name).write_text("".join(f"{row[column]}\n" for row in rows))
    data = runs.HeadsData(text=tmp_path / "source", targets=(tmp_path / "target",))
    (report,) = runs.describe_heads([reverser], data)
    whole = runs.load(reverser)
    roles = survey_roles(whole, whole.config.task.data)
    assert {(card.site, card.head): list(card.roles) for card in report.cards} == {
        key: roles.names(*key) for key in roles.of
    }
    assert len(roles.of) == 6 and any(roles.of.values())
    runs.write_heads_json([report], tmp_path / "heads.json")
    assert read_roles(tmp_path / "heads.json", whole).of == roles.of


def test_survivors_are_counted_by_family() -> None:
    back, ahead, rare = {"one back": "positional"}, {"one ahead": "positional"}, {"rare token": "rare"}
    roles = HeadRoles("", {("a", 0): back, ("a", 1): back | rare, ("b", 0): ahead, ("b", 1): {}, ("c", 0): {}})
    assert roles.survivors({"a": (1,), "b": ()}) == {
        "positional": {"before": 3, "after": 1},
        "rare token": {"before": 1, "after": 1},
        "without a role": {"before": 2, "after": 1},  # nothing was removed from c
    }


def heads_file(file: Path, model: Path, *bundles: dict[str, Any]) -> Path:
    """Write what ``heedful heads --json`` does of models, as far as it counts; each as the given one but for some."""
    sites = runs.load(model).model.attention_sites()
    names = [(site.path, head) for site in sites for head in range(site.num_heads)]
    scores = [{"name": "one back", "family": "positional"}, {"name": "nsubj", "family": "syntactic"}]
    roles = [[], ["nsubj"], ["one back"], ["one back", "nsubj"], ["nsubj"], []]
    heads = [
        {"site": site, "head": head, "roles": own, "scores": scores}
        for (site, head), own in zip(names, roles, strict=True)
    ]
    own = {"path": str(model), "bundle": model.name, "heads": heads}
    file.write_text(json.dumps({"bundles": [own | each for each in bundles]}))
    return file


def test_roles_come_from_what_was_written_of_the_same_model(reverser: Path, tmp_path: Path) -> None:
    whole, file = runs.load(reverser), tmp_path / "heads.json"
    other = {"path": "runs/other", "bundle": "other", "heads": []}
    roles = read_roles(heads_file(file, reverser, other, {}), whole)
    assert [list(each) for each in roles.of.values()] == [
        [],
        ["nsubj"],
        ["one back"],
        ["one back", "nsubj"],
        ["nsubj"],
        [],
    ]
    found = prune(reverser, tmp_path / "run", keep=1, kinds=["cross"], method="random", roles=file)
    (left,) = found.heads["decoder.layers.0.cross_attention"]["kept"]
    values = json.loads((tmp_path / "run" / "pruning.json").read_text())
    assert [each["roles"] for each in values["heads"].values()] == [
        [[], ["nsubj"]],
        [["one back"], ["one back", "nsubj"]],
        [["nsubj"], []],
    ]
    syntactic, without = (3, 1) if left == 0 else (2, 2)
    assert values["survivors"] == {
        "positional": {"before": 2, "after": 2},
        "syntactic": {"before": 3, "after": syntactic},
        "without a role": {"before": 2, "after": without},
    }
    told = f"survived: 2 of 2 positional, {syntactic} of 3 syntactic, {without} of 2 without a role\n"
    assert told in found.to_text() and found.roles_from == str(file)
    page = (tmp_path / "run" / "report.html").read_text()
    gone = ["0: nsubj", "1: none"][1 - left]
    assert "<h2>Who survived</h2>" in page and f"<td>{gone}</td>" in page
    assert "<td>0: one back; 1: one back, nsubj</td>" in page
    assert read_roles(heads_file(file, reverser, {"path": f"{reverser}/bundle"}), runs.load(reverser / "bundle")).of
    assert read_roles(heads_file(file, reverser, {"path": "elsewhere/run"}), whole).of
    remedy = r"Make it with `heedful heads .* --json FILE`, or leave out `--roles`"
    for bundles, message in (
        ([other], r"heads\.json: of other models than `run`, namely `other`\."),
        ([other, {**other, "bundle": "more"}], r"of other models than `run`, namely `other`, `more`\."),
        ([{"heads": []}], r"heads\.json: it tells of 0 heads that are not the 6 of `run`\."),
        ([], r"heads\.json: not what `heedful heads --json FILE` writes\."),
    ):
        with pytest.raises(ConfigError, match=f"{message} {remedy}"):
            prune(reverser, tmp_path / "out", keep=1, roles=heads_file(file, reverser, *bundles))
    file.write_text("[]")
    with pytest.raises(ConfigError, match=r"heads\.json: not what `heedful heads --json FILE` writes"):
        prune(reverser, tmp_path / "out", keep=1, roles=file)
    with pytest.raises(ConfigError, match=r"none\.json: cannot be read: No such file"):
        prune(reverser, tmp_path / "out", keep=1, roles=tmp_path / "none.json")
    assert not (tmp_path / "out").exists()
