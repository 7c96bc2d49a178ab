"""Products, convolutions and attention on a CPU, each recorded, and what PyTorch's own counter counts for each.

python torch_products.py OUT        writes OUT/NAME/rank-0.json.gz and OUT/counted.json; needs a Python with PyTorch
"""

from __future__ import annotations

import importlib.util
import json
import sys
import types
from collections.abc import Callable
from pathlib import Path

if importlib.util.find_spec("lazy_loader") is None:  # the recorder alone
    package = types.ModuleType("htagraph")
    package.__path__ = [str(Path(__file__).parents[2] / "htagraph")]
    sys.modules["htagraph"] = package
sys.path.insert(0, str(Path(__file__).parents[2]))

import torch
from torch import nn
from torch.utils import flop_counter

from htagraph.trace.recording import profile

PRODUCTS: dict[str, Callable[[], torch.Tensor]] = {
    "mm": lambda: torch.randn(5, 7) @ torch.randn(7, 3),
    "bmm": lambda: torch.bmm(torch.randn(2, 5, 7), torch.randn(2, 7, 3)),
    "baddbmm": lambda: torch.baddbmm(torch.randn(2, 5, 3), torch.randn(2, 5, 7), torch.randn(2, 7, 3)),
    "linear": lambda: nn.Linear(7, 3)(torch.randn(2, 5, 7, requires_grad=True)),
    "linear without bias": lambda: nn.Linear(7, 3, bias=False)(torch.randn(2, 5, 7)),
}
CONVOLUTIONS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "convolution": (nn.Conv2d(6, 8, 3, stride=2, padding=1), (2, 6, 11, 9)),
    "grouped": (nn.Conv2d(6, 8, 3, groups=2, dilation=2), (2, 6, 11, 9)),
    "depthwise": (nn.Conv1d(6, 6, 3, groups=6), (2, 6, 11)),
    "transposed": (nn.ConvTranspose2d(6, 8, 3, stride=2, groups=2), (2, 6, 5, 4)),
}
ATTENTION = {  # queries, keys, heads of keys, whether causal
    "all": (24, 24, 4, False),
    "causal": (24, 24, 4, True),
    "causal, fewer keys": (24, 10, 4, True),
    "causal, more keys": (10, 24, 4, True),
    "heads share keys": (24, 24, 2, True),
}


def counted(run: Callable[[], torch.Tensor]) -> int:
    """Return what PyTorch's counter counts, with the backward where there is one."""
    with flop_counter.FlopCounterMode(display=False) as counter:
        result = run()
        if result.requires_grad:
            result.sum().backward()
    return counter.get_total_flops()


def convolution(made: nn.Module, shape: tuple[int, ...]) -> tuple[Callable[[], torch.Tensor], int]:
    """Return a convolution, and three times its forward: PyTorch counts the backward of groups too high."""
    with torch.no_grad():
        forward = counted(lambda: made(torch.randn(shape)))
    return lambda: made(torch.randn(shape, requires_grad=True)), 3 * forward


def attention(queries: int, keys: int, heads: int, causal: bool) -> tuple[Callable[[], torch.Tensor], int]:  # noqa: FBT001
    """Return attention, and PyTorch's count of all pairs times the share that the mask leaves."""
    query, key = (2, 4, queries, 16), (2, heads, keys, 16)
    each = (2, 4, keys, 16)  # older releases count no heads that are shared
    pairs = flop_counter.sdpa_flop_count(query, each, each) + flop_counter.sdpa_backward_flop_count(
        query, query, each, each
    )
    mask = torch.ones(queries, keys).tril() if causal else torch.ones(queries, keys)
    inputs = [torch.randn(shape, requires_grad=True) for shape in (query, key, key)]
    options = {"is_causal": causal, "enable_gqa": heads != 4}
    run = lambda: nn.functional.scaled_dot_product_attention(*inputs, **options)  # noqa: E731 - as the others
    return run, pairs * int(mask.sum()) // mask.numel()


def main(out: Path) -> None:
    """Record each alone."""
    torch.set_num_threads(1)
    runs = {name: (run, counted(run)) for name, run in PRODUCTS.items()}
    runs |= {name: convolution(*given) for name, given in CONVOLUTIONS.items()}
    runs |= {name: attention(*given) for name, given in ATTENTION.items()}
    for name, (run, _) in runs.items():
        with profile(steps="1", out=out / name, warmup=1) as prof:
            prof.step()
            result = run()
            if result.requires_grad:
                result.sum().backward()
            prof.step()
    (out / "counted.json").write_text(json.dumps({name: flop for name, (_, flop) in runs.items()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
