"""Drawings say what the numbers say, and no word can break out of them."""

import io
from xml.etree import ElementTree

import pytest
import torch
from rich.console import Console

from heedful.analysis.render import draw_svg, draw_text, printable

WEIGHTS = torch.tensor([[0.8, 0.2, 0.0], [0.1, 0.39, 0.51]])
QUERIES, KEYS = ["die", "Katze"], ["the", "cat", "</s>"]


def test_text_by_hand() -> None:
    assert draw_text(WEIGHTS, QUERIES, KEYS).plain.split("\n") == [
        "           <",
        "       t c /",
        "       h a s",
        "       e t >",
        "  die ▏██░░  ▕",
        "Katze ▏░░▒▒▓▓▕",
        "       ░ 0.20 … █ 0.80",
        "",
    ]


def test_text_without_a_terminal_has_no_escapes() -> None:
    file = io.StringIO()
    Console(file=file, width=200).print(draw_text(WEIGHTS, QUERIES, KEYS), end="")
    assert "\x1b" not in file.getvalue() and "██░░" in file.getvalue()


def test_wide_and_combining_letters_keep_the_columns() -> None:
    lines = draw_text(WEIGHTS, ["猫", "e\u0301te\u0301"], ["猫", "a\u0301b", ""]).plain.split("\n")
    assert lines[0] == "       a\u0301" and lines[1] == "     猫b"
    assert lines[2].startswith(" 猫 ▏") and lines[3].startswith("e\u0301te\u0301 ▏")


def test_steering_characters_are_escaped() -> None:
    nasty = ["\x1b[2J", "a\nb\u2028c", "\u202ereversed"]
    assert printable(nasty[0]) == "\\x1b[2J"
    plain = draw_text(WEIGHTS, ["x", "y"], nasty).plain
    assert not {"\x1b", "\u2028", "\u202e"} & set(plain)
    assert plain.count("\n") == draw_text(WEIGHTS, ["x", "y"], [printable(each) for each in nasty]).plain.count("\n")
    svg = draw_svg(WEIGHTS, ["x", "y"], nasty, title="\x00")
    assert not {"\x1b", "\u2028", "\u202e", "\x00"} & set(svg)


def test_svg_is_well_formed_and_escaped() -> None:
    svg = draw_svg(WEIGHTS, ["<script>alert(1)</script>", '" onload="x'], ["&", "\ud800", "x" * 99], title="a<b")
    root = ElementTree.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    assert not root.findall(f".//{space}script")
    cells = root.findall(f".//{space}rect[@class='cell']")
    assert [float(each.attrib["fill-opacity"]) for each in cells] == [1.0, 0.25, 0.0, 0.125, 0.487, 0.637]
    titles = [each.findtext(f"{space}title") for each in cells]
    assert titles[0] == "<script>alert(1)</script> → &: 0.800"
    labels = [each.text for each in root.findall(f"{space}text")]
    assert "&" in labels and any(each.endswith("…") and len(each) == 24 for each in labels)
    assert "prefers-color-scheme:dark" in svg


def test_numbers_that_are_none_are_blank() -> None:
    weights = torch.tensor([[float("nan"), 1.0], [float("inf"), -1.0]])
    assert draw_text(weights, ["a", "b"], ["c", "d"]).plain.split("\n")[1:3] == ["a ▏  ██▕", "b ▏    ▕"]
    ElementTree.fromstring(draw_svg(weights, ["a", "b"], ["c", "d"]))


def test_an_empty_matrix_is_drawn() -> None:
    empty = torch.zeros(0, 0)
    assert draw_text(empty, [], []).plain.endswith("0.00\n")
    ElementTree.fromstring(draw_svg(empty, [], []))


def test_words_must_fit_the_weights() -> None:
    with pytest.raises(ValueError, match="2 x 2 words"):
        draw_text(WEIGHTS, QUERIES, KEYS[:2])
