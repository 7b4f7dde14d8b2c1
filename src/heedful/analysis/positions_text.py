"""Positions in a terminal: characters alone, which go through pipes and into files."""

import math

from jaxtyping import Float
from torch import Tensor

from heedful.analysis.positions_counter import bits_of
from heedful.analysis.positions_probe import ProbeScores
from heedful.analysis.positions_report import Counter, PositionsReport, Turning
from heedful.analysis.positions_rotation import pair_turn, paired_rows
from heedful.analysis.positions_table import PositionTable
from heedful.analysis.render import SHADES, printable

_COLUMNS = 64
_LINES = 16
_BAR = 40
_COUNTED = 16
_DISTANCES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


def positions_text(report: PositionsReport) -> str:
    """Return all of a report as text."""
    table = report.table
    parts = [
        f"{printable(table.name)}: {table.kind} positions, {table.rows.shape[0]} x {table.rows.shape[1]}",
        _pattern(table.rows),
        _similarity(report),
    ]
    if report.turning is not None:
        parts.append(_turning(table, report.turning))
    if report.counter is not None:
        parts.append(_counter(table, report.counter))
    parts += [_probe(report), _order(report)]
    return "\n\n".join(parts) + "\n"


def _shade(value: float, largest: float) -> str:
    """Return the shade of a number from ``-largest`` to ``largest``."""
    level = (value / largest + 1) / 2 if largest > 0 else 0.5
    return SHADES[min(len(SHADES) - 1, max(0, math.floor(level * (len(SHADES) - 1) + 0.5)))]


def _spread(count: int, most: int) -> list[int]:
    """Return at most so many indices below ``count``, evenly spread, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return [round(index * (count - 1) / (most - 1)) for index in range(most)]


def _pattern(rows: Float[Tensor, "T D"]) -> str:
    places, dims = _spread(rows.shape[0], _COLUMNS), _spread(rows.shape[1], _LINES)
    values = rows[places][:, dims].T.tolist()
    largest = max(abs(each) for row in values for each in row)
    width = len(str(dims[-1]))
    lines = [
        f"{dim:>{width + 2}} ▏{''.join(_shade(each, largest) for each in row)}▕"
        for dim, row in zip(dims, values, strict=True)
    ]
    scale = f"blank {-largest:.2g} to █ {largest:.2g}"
    head = f"The pattern: dimensions downwards, positions 0 to {places[-1]} across, {scale}"
    return "\n".join([head, *lines])


def _similarity(report: PositionsReport) -> str:
    lines = ["Similarity by distance: cosine of positions p and p + k, mean over p (least to largest)"]
    for each in [report.similarity[k] for k in _DISTANCES if k < len(report.similarity)]:
        bar = "█" * max(0, round(each.mean * _BAR))
        span = f"({each.least:+.3f} to {each.largest:+.3f})"
        lines.append(f"{each.distance:>6}  {each.mean:+.3f}  {span}  {bar}".rstrip())
    return "\n".join(lines)


def _turning(table: PositionTable, turning: Turning) -> str:
    order = "(sin, cos)" if table.kind == "sinusoidal" else "(cos, sin)"
    lines = [f"A step is a turn: PE(p + {turning.steps}) = M PE(p) for every p. Blocks of M, for pairs {order}:"]
    assert table.frequencies is not None
    for pair in _spread(len(table.frequencies), 4):
        (a, b), (c, d) = pair_turn(table, pair, turning.steps).tolist()
        degrees = math.degrees(float(table.frequencies[pair]) * turning.steps)
        lines += [
            f"  dimensions {2 * pair:>3}, {2 * pair + 1:>3}   [{a:+.4f} {b:+.4f}]   {degrees:.4g} degrees",
            f"                       [{c:+.4f} {d:+.4f}]",
        ]
    lines.append("M is these blocks along the diagonal and 0 elsewhere. Checked, PE(p + k) against M_k PE(p):")
    lines += [
        f"  k = {each.steps:<5} {each.num_positions:>5} positions, largest error {each.largest_error:.1e}"
        for each in turning.checks
    ]
    return "\n".join(lines)


def _counter(table: PositionTable, counter: Counter) -> str:
    num_bits = len(counter.pairs)
    hands = list(dict.fromkeys(counter.pairs))
    bits = bits_of(min(2**num_bits, len(table.rows)))[:_COUNTED, :num_bits].tolist()
    rows = paired_rows(table)[: len(bits), [2 * pair for pair in hands]].tolist()
    names = " ".join(f"{2**bit:>2}" for bit in range(num_bits))
    dims = " ".join(f"{2 * pair:>3}" for pair in hands)
    lines = ["A counter beside the dimensions: bits (1s, 2s, 4s ...) and dimensions whose wavelengths are like theirs"]
    lines.append(f"position   bits {names}   dimensions {dims}")
    for position, (digits, values) in enumerate(zip(bits, rows, strict=True)):
        left = " ".join(f"{digit:>2}" for digit in digits)
        right = " ".join(f" {2 * _shade(value, 1.0)}" for value in values)
        lines.append(f"{position:>8}        {left}              {right}".rstrip())
    return "\n".join([*lines, *_shares(counter)])


def _shares(counter: Counter) -> list[str]:
    bits = ", ".join(f"{each:.0%}" for each in counter.bit_shares)
    total, needed = 0.0, 0
    for share in counter.pair_shares:
        total, needed = total + share, needed + 1
        if total >= 0.9:
            break
    return [
        f"Share in the changes of a counter, from the lowest bit: {bits}.",
        f"Share in the squared change from p to p + 1: dimensions 0 to {2 * needed - 1} of "
        f"{2 * len(counter.pair_shares)} carry {total:.0%}. The fast ones have the low indices.",
    ]


def _probe(report: PositionsReport) -> str:
    probe = report.probe
    if probe is None:
        return "A linear probe needs 10 positions or more, to hold some out."
    rows = [
        ("this table", *_read(probe.scores)),
        ("random table", *_read(probe.random)),
        ("chance", probe.chance_error, 0.0, probe.chance_accuracy, probe.chance_accuracy),
    ]
    lines = [
        "What a linear probe reads, on positions held out (Wang and Chen 2020)",
        f"{'':14}{'position, mean error':>22}{'R2':>8}{'order of two':>14}{'of near ones':>14}",
    ]
    for name, error, explained, order, near in rows:
        lines.append(f"{name:14}{error:>22.2f}{explained:>8.2f}{order:>13.1%} {near:>13.1%}")
    return "\n".join(lines)


def _read(scores: ProbeScores) -> tuple[float, float, float, float]:
    return scores.position_error, scores.position_r2, scores.order_accuracy, scores.near_accuracy


def _order(report: PositionsReport) -> str:
    lines = [
        'Does order count? "The cat chased the mouse" and "The mouse chased the cat", read by a fresh encoder:',
        f"{'positions':14}{'same word, largest difference':>30}{'cat':>10}{'sentence mean':>16}",
    ]
    for each in report.order:
        lines.append(f"{each.kind:14}{each.words:>30.2g}{each.cat:>10.2g}{each.sentence:>16.2g}")
    return "\n".join([*lines, "Without positions self-attention only permutes with its input: the sentences are one."])
