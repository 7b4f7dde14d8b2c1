"""What layers cost on this machine: the classic table counted and timed, at two widths, alone and sixteen at a time.

Writes results/cost.{json,md} and the tutorial's picture. Wants an idle machine; about ten minutes on one core.

    python benchmarks/cost.py
    python benchmarks/cost.py --only "128 wide" --try
"""

import argparse
import sys
from typing import Any

from heedful import runs
from heedful.analysis.cost_report import CostReport
from heedful.analysis.cost_text import cost_tables, crossing_sentence, machine_sentence
from record import ROOT, environment, footer, read_results, table, write_results

SETTINGS: dict[str, dict[str, int]] = {
    "128 wide": {"width": 128},
    "512 wide": {"width": 512},
    "128 wide, 16 at a time": {"width": 128, "rows": 16},
}
PICTURED = "128 wide"


def page(name: str, report: CostReport) -> str:
    """Return one setting's part of the page of results."""
    parts = [f"## {name}\n"]
    for title, header, rows in cost_tables(report):
        parts += [f"{title}.\n", table(header, [list(row) for row in rows])]
    parts += [f"- {crossing_sentence(each)}" for each in report.crossings]
    parts.append(f"- {machine_sentence(report)}\n")
    return "\n".join(parts)


def render(values: dict[str, Any]) -> str:
    """Return the page of results."""
    parts = ["# What layers cost\n"]
    for name in SETTINGS:
        if name in values["rows"]:
            row = values["rows"][name]
            parts += [row["page"], f"Threads: {row['threads']}.", footer(row)]
    parts.append("![The costs of layers, drawn](../../docs/images/cost.svg)\n")
    return "\n".join(parts)


def main() -> None:
    """Fill ``results/cost`` setting by setting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(SETTINGS), default=list(SETTINGS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--try", dest="is_try", action="store_true", help="a glance; print it, write nothing")
    arguments = parser.parse_args()
    values = read_results("cost") or {"rows": {}}
    for name in arguments.only:
        report = runs.cost(**SETTINGS[name], threads=arguments.threads, is_quick=arguments.is_try)
        print(runs.cost_to_text(report), file=sys.stderr, flush=True)
        if report.is_disturbed and not arguments.is_try:
            sys.exit("Nothing is written: these times would mislead.")
        if arguments.is_try:
            continue
        measured = report.to_values()
        values["rows"][name] = {
            "page": page(name, report),
            "threads": report.threads,
            "measured": measured,
            **environment(),
        }
        write_results("cost", values, render(values))
        if name == PICTURED:
            runs.draw_cost(report, ROOT / "docs" / "images" / "cost.svg")


if __name__ == "__main__":
    main()
