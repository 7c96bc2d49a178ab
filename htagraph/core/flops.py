"""Floating-point operations and bytes of an operator, from the shapes of its inputs.

The formulas are those of `torch.utils.flop_counter`: two operations per multiply-add; attention as if it had no causal
mask; its backward with the scores computed again. One formula differs: torch multiplies the backward of a grouped
convolution by the number of groups once too often.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

__all__ = ["Cost", "cost_of"]


_MAX_COUNT = 2**900
"""Largest count of elements or operations taken for real. Chosen: larger ones come from damaged shapes, and sums of
numbers below it still fit into a float64 (up to 2**1024). Doubling it changes nothing for real shapes."""


@dataclass(frozen=True)
class Cost:
    """The operations that an operator computes, and which memory it reads and writes."""

    flop: int
    """Floating-point operations."""
    read: tuple[int, ...]
    """Positions of the inputs that it reads completely."""
    written: int
    """Elements that it writes."""


def cost_of(formula: str, shapes: Any, values: Any = None) -> Cost | None:  # noqa: ANN401 - whatever a file says
    """Return the cost of an operator, or None if its shapes do not fit the formula.

    Args:
        formula: the formula's name, from `htagraph.core.naming.flop_formula`.
        shapes: the shape of each input; empty for an input that is not a tensor.
        values: the value of each input that is not a tensor, as text, in the same positions.

    Example:
        >>> cost_of("mm", [[2, 3], [3, 4]])
        Cost(flop=48, read=(0, 1), written=8)
    """
    try:
        sizes: Any = [_shape(shape) for shape in shapes]  # a None fails in the formula that uses it
        cost = _FORMULAS[formula](sizes, values or ())
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None
    possible = all(isinstance(count, int) and 0 <= count < _MAX_COUNT for count in (cost.flop, cost.written))
    return cost if possible and all(sizes[i] is not None for i in cost.read) else None


def _shape(value: Any) -> list[int] | None:  # noqa: ANN401 - whatever a file says
    """Return a tensor's shape as a list; None for a list of tensors, or for anything that is not a shape."""
    fits = isinstance(value, list | tuple) and all(type(size) is int and size >= 0 for size in value)
    return list(value) if fits and prod(value) < _MAX_COUNT else None


def _product(a: list[int], b: list[int]) -> tuple[int, int]:
    """Return (operations, elements of the result) of a matrix product, batched or not."""
    (*batch, m, k), (*other, k2, n) = a, b
    if batch != other or k != k2:
        msg = "the shapes are not those of a matrix product"
        raise ValueError(msg)
    return 2 * prod(batch) * m * k * n, prod(batch) * m * n


def _mm(shapes: list[list[int]], _: Sequence[str]) -> Cost:
    flop, written = _product(shapes[0], shapes[1])
    return Cost(flop, (0, 1), written)


def _addmm(shapes: list[list[int]], _: Sequence[str]) -> Cost:
    flop, written = _product(shapes[1], shapes[2])
    return Cost(flop, (0, 1, 2), written)


def _linear(shapes: list[list[int]], _: Sequence[str]) -> Cost:
    (*rows, k), (n, k2) = shapes[0], shapes[1]
    if k != k2:
        msg = "the shapes are not those of a linear layer"
        raise ValueError(msg)
    return Cost(2 * prod(rows) * k * n, (0, 1, 2) if len(shapes) > 2 and shapes[2] else (0, 1), prod(rows) * n)


def _convolution(shapes: list[list[int]], values: Sequence[str]) -> Cost:
    """Inputs: input, weight, bias, stride, padding, dilation, transposed, output padding, groups."""
    (batch, _, *inside), (c_first, c_second, *kernel) = shapes[0], shapes[1]
    stride, padding, dilation, beyond = (_spread(values[i], len(kernel)) for i in (3, 4, 5, 7))
    transposed, groups = values[6] == "True", int(values[8])
    if len(inside) != len(kernel) or not kernel:
        msg = "the inputs are not those of a convolution"
        raise ValueError(msg)
    over = zip(inside, kernel, stride, padding, dilation, beyond, strict=True)
    if transposed:
        outside = [(x - 1) * s - 2 * p + d * (k - 1) + more + 1 for x, k, s, p, d, more in over]
    else:
        outside = [(x + 2 * p - d * (k - 1) - 1) // s + 1 for x, k, s, p, d, _ in over]
    if min(outside) < 0:
        msg = "the inputs are not those of a convolution"
        raise ValueError(msg)
    channels = c_second * groups if transposed else c_first
    flop = 2 * batch * prod(inside if transposed else outside) * prod(shapes[1])
    read = (0, 1, 2) if shapes[2] else (0, 1)
    return Cost(flop, read, batch * channels * prod(outside))


def _convolution_backward(shapes: list[list[int]], values: Sequence[str]) -> Cost:
    """Inputs: output gradient, input, weight, bias sizes, stride, padding, dilation, transposed, …, output mask."""
    (batch, _, *outside), (_, _, *inside), weight = shapes[0], shapes[1], shapes[2]
    to_input, to_weight = ({True: 1, False: 0}[wanted] for wanted in json.loads(values[10].lower())[:2])
    once = 2 * batch * prod(inside if values[7] == "True" else outside) * prod(weight)
    written = to_input * prod(shapes[1]) + to_weight * prod(weight)
    return Cost(once * (to_input + to_weight), (0, 1, 2), written)


def _attention(shapes: list[list[int]], _: Sequence[str]) -> Cost:
    """Inputs: query, key and value, each of shape `(batch, heads, length, width)`."""
    (batch, heads, queries, width), keys, out = shapes[0], shapes[1][2], shapes[2][-1]
    pairs = batch * heads * queries * keys
    return Cost(2 * pairs * (width + out), (0, 1, 2), batch * heads * queries * out)


def _attention_backward(shapes: list[list[int]], _: Sequence[str]) -> Cost:
    """Inputs: output gradient, query, key and value, shaped as in `_attention`."""
    (batch, heads, queries, width), keys, out = shapes[1], shapes[2][2], shapes[3][-1]
    pairs = batch * heads * queries * keys
    return Cost(2 * pairs * (3 * width + 2 * out), (0, 1, 2, 3), sum(map(prod, shapes[1:4])))


def _spread(value: str, dimensions: int) -> list[Any]:
    """Return one number per dimension; a list of one number applies to all dimensions."""
    numbers = json.loads(value)
    return numbers * dimensions if len(numbers) == 1 else numbers


_FORMULAS = {
    "mm": _mm,
    "bmm": _mm,
    "addmm": _addmm,
    "baddbmm": _addmm,
    "linear": _linear,
    "convolution": _convolution,
    "convolution_backward": _convolution_backward,
    "attention": _attention,
    "attention_backward": _attention_backward,
}
