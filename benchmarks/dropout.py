"""Time dropout, forward and backward, against torch's own: ``python benchmarks/dropout.py``.

Best of 30, milliseconds, 2 threads of an AVX-512 server CPU (torch 2.13):

=============  ==============  ======  =======
type           size            torch   heedful
=============  ==============  ======  =======
bfloat16          512 x 256     0.64     0.13
bfloat16         2048 x 256     2.60     0.33
bfloat16        12800 x 25      1.60     0.21
float32           512 x 256     0.63     0.15
float32          2048 x 256     2.63     0.48
float32         12800 x 25      1.55     0.28
=============  ==============  ======  =======
"""

import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from heedful.attention import Dropout


def best_ms(work: Callable[[], object], repeats: int = 30) -> float:
    """Return the shortest of several times, after warming up."""
    times = []
    for _ in range(repeats + 3):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times[3:])


def main() -> None:
    """Print the table."""
    torch.set_num_threads(2)
    ours = Dropout(0.1)
    for dtype in (torch.bfloat16, torch.float32):
        for size in ((512, 256), (2048, 256), (512 * 25, 25)):
            values = torch.randn(size, dtype=dtype, requires_grad=True)
            gradient = torch.ones_like(values)

            def both(dropout: Callable[[Tensor], Tensor], values: Tensor = values, gradient: Tensor = gradient) -> None:
                dropout(values).backward(gradient)

            torch_ms, heedful_ms = (
                best_ms(lambda: both(lambda each: functional.dropout(each, 0.1))),
                best_ms(lambda: both(ours)),
            )
            print(f"{str(dtype)[6:]:<13}  {size[0]:>6} x {size[1]:<5}  {torch_ms:>6.2f}  {heedful_ms:>7.2f}")


if __name__ == "__main__":
    main()
