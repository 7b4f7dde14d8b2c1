"""What a user does, once for Python and command line alike: train, predict, score, evaluate, inspect, prune ..."""

import importlib
from typing import Any

_HOMES = {
    "HeadsData": "heads_input",
    "Inspection": "inspection",
    "LoadedModel": "loaded",
    "Pruning": "pruning_report",
    "RunConfig": "config",
    "RunOutcome": "training_run",
    "agree": "agreement",
    "align": "alignments",
    "align_predictions": "alignments",
    "check_keeping": "alignment_kept",
    "check_outputs": "outputs",
    "check_stdin": "streams",
    "choose_alignment": "alignment_choices",
    "choose_unsupervised": "alignment_choices",
    "cost": "cost_measuring",
    "cost_to_text": "cost_measuring",
    "demo": "spelling_demo",
    "describe_heads": "heads",
    "draw_cost": "cost_page",
    "draw_positions": "positions_page",
    "evaluate_alignments": "alignments",
    "explain": "explanation",
    "format_links": "alignments",
    "format_predictions": "streams",
    "heads_json": "heads",
    "heads_text": "heads",
    "info": "facts",
    "inspect": "inspection",
    "is_first_process": "training_run",
    "learn_alignment": "learnt_alignment",
    "list_recipes": "recipes",
    "load": "loaded",
    "open_lines": "streams",
    "positions": "position_tables",
    "positions_to_text": "position_tables",
    "prune": "pruning_run",
    "read_gold": "alignments",
    "read_pairs": "streams",
    "read_run": "config",
    "resume": "training_run",
    "save_choice": "alignment_kept",
    "split_pairs": "streams",
    "to_json_line": "streams",
    "train": "training_run",
    "write_cost_page": "cost_page",
    "write_heads_json": "heads",
    "write_heads_page": "heads_page",
    "write_positions_page": "positions_page",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
