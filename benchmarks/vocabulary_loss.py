"""The vocabulary loss, forward and backward, beside its three matrix products and torch's own functions.

``python benchmarks/vocabulary_loss.py [threads]`` writes results/vocabulary_loss.md.
"""

import sys

import torch
from torch.nn import functional

from heedful.losses import cross_entropy
from record import environment, footer, table, write_results
from stopwatch import best_ms

NUM_ROWS, VOCABULARY = 3000, 8000


def measure(dtype: torch.dtype, model_dim: int) -> dict[str, float]:
    """Return milliseconds by way."""
    hidden = torch.randn(NUM_ROWS, model_dim, dtype=dtype, requires_grad=True)
    weight = (torch.randn(VOCABULARY, model_dim) * 0.1).to(dtype).requires_grad_()
    bias = torch.zeros(VOCABULARY, dtype=dtype, requires_grad=True)
    targets = torch.randint(VOCABULARY, (NUM_ROWS,))
    rows, matrix, logits = hidden.detach()[:1000], weight.detach(), torch.empty(1000, VOCABULARY, dtype=dtype)

    def products() -> None:
        for _ in range(NUM_ROWS // 1000):
            torch.mm(rows, matrix.T, out=logits)
            torch.mm(logits, matrix)
            torch.mm(logits.T, rows)

    def plain() -> None:
        scores = functional.linear(hidden, weight, bias).float()
        functional.cross_entropy(scores, targets, label_smoothing=0.1).backward()

    def ours() -> None:
        loss = cross_entropy(hidden, weight, bias, targets, label_smoothing=0.1)
        (loss.total / loss.count).backward()

    return best_ms({"products": products, "torch": plain, "heedful": ours}, rounds=20, budget_s=10)


def main() -> None:
    """Measure everything and write the table."""
    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
    rows = [
        [str(dtype).removeprefix("torch."), model_dim, *measure(dtype, model_dim).values()]
        for dtype in (torch.bfloat16, torch.float32)
        for model_dim in (128, 256, 512)
    ]
    about = environment()
    head = (
        f"# Vocabulary loss\n\n{NUM_ROWS} rows, {VOCABULARY} symbols, label smoothing, forward and backward, "
        f"{torch.get_num_threads()} threads, best of 20.\n\n"
    )
    header = ["type", "width", "its three products, ms", "torch, ms", "heedful, ms"]
    write_results("vocabulary_loss", {**about, "rows": rows}, head + table(header, rows) + footer(about))


if __name__ == "__main__":
    main()
