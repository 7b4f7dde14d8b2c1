import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from heedful.attention import AttentionMask, Tap, attend, padding_keep, scope_tap, window_keep
from heedful.attention.window import attend_in_window

B, H, E = 2, 3, 5


@pytest.mark.parametrize(("before", "after"), [(2, 0), (0, 3), (3, 2), (0, 0), (50, 50)])
@pytest.mark.parametrize("length", [1, 6, 7, 23])
@pytest.mark.parametrize("padded", [True, False])
def test_equals_the_masked_full_attention(before: int, after: int, length: int, padded: bool) -> None:
    torch.manual_seed(3)
    query, keys, values = torch.randn(3, B, H, length, E, dtype=torch.float64).requires_grad_().unbind(0)
    keep = padding_keep(torch.tensor([length, length // 2]), length) if padded else None
    window = AttentionMask(keep=window_keep(length, length, before=before, after=after)[None])
    mask = window if keep is None else window & AttentionMask.padding(keep)
    full = attend(query, keys, values, mask=mask)
    local = attend_in_window(query, keys, values, before=before, after=after, keep=keep)
    torch.testing.assert_close(local, full)
    weights = torch.randn_like(full)
    for mine, theirs in zip(
        torch.autograd.grad((local * weights).sum(), (query, keys, values)),
        torch.autograd.grad((full * weights).sum(), (query, keys, values)),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs)


class Sizes(Tap):
    """Counts the elements of the weights."""

    elements = 0

    def wants(self, point: str) -> bool:
        return point.endswith("weights")

    def visit(self, point: str, value: torch.Tensor) -> torch.Tensor:
        self.elements += value.numel()
        return value


def test_cost_is_linear_in_the_length() -> None:
    sizes, flops = [], []
    for length in (64, 128, 256, 512):
        sequence, tap = torch.randn(1, 1, length, 4), Sizes()
        with FlopCounterMode(display=False) as counter:
            attend_in_window(sequence, sequence, sequence, before=4, after=4, tap=scope_tap(tap, "here"))
        sizes.append(tap.elements)
        flops.append(counter.get_total_flops())
    assert sizes == [sizes[0] * factor for factor in (1, 2, 4, 8)]
    assert flops[0] > 0 and flops == [flops[0] * factor for factor in (1, 2, 4, 8)]
    assert sizes[-1] < 512 * 512 / 10
