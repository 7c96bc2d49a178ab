"""Floating-point operations and bytes of an operator, from the shapes of its inputs.

The formulas are those of `torch.utils.flop_counter`: two operations per multiply-add, attention without the saving of a
causal mask, its backward with the scores computed again. Only the backward of a grouped convolution differs, which
torch counts once per group too often.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

__all__ = ["Cost", "cost_of"]


_MOST = 2**900  # of elements, bytes, operations: sums of such numbers are floats


@dataclass(frozen=True)
class Cost:
    """What an operator computes and moves."""

    flop: int
    """Floating-point operations."""
    read: tuple[int, ...]
    """Positions of the inputs that it reads."""
    written: int
    """Elements that it writes."""


def cost_of(formula: str, shapes: Any, values: Any = None) -> Cost | None:  # noqa: ANN401 - whatever a file says
    """Return the cost of an operator, None where its shapes do not fit the formula, or are none.

    Args:
        formula: as `htagraph.core.naming.flop_formula` names it.
        shapes: of all inputs, empty for what is no tensor.
        values: of the inputs that are no tensors, as text, in the same positions.

    Example:
        >>> cost_of("mm", [[2, 3], [3, 4]])
        Cost(flop=48, read=(0, 1), written=8)
    """
    try:
        known: Any = [_shape(each) for each in shapes]  # what is None fails where a formula uses it
        cost = _FORMULAS[formula](known, values or ())
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None
    possible = all(isinstance(each, int) and 0 <= each < _MOST for each in (cost.flop, cost.written))
    return cost if possible and all(known[i] is not None for i in cost.read) else None


def _shape(value: Any) -> list[int] | None:  # noqa: ANN401 - whatever a file says
    """Return the sizes of a tensor; None for a list of tensors, and what is no shape."""
    fits = isinstance(value, list | tuple) and all(type(size) is int and size >= 0 for size in value)
    return list(value) if fits and prod(value) < _MOST else None


def _product(a: list[int], b: list[int]) -> tuple[int, int]:
    """Return (operations, elements of the result) of a product of matrices, or of equally many."""
    (*batch, m, k), (*other, k2, n) = a, b
    if batch != other or k != k2:
        msg = "no product of matrices"
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
        msg = "no linear layer"
        raise ValueError(msg)
    return Cost(2 * prod(rows) * k * n, (0, 1, 2) if len(shapes) > 2 and shapes[2] else (0, 1), prod(rows) * n)


def _convolution(shapes: list[list[int]], values: Sequence[str]) -> Cost:
    """Of input, weight, bias, stride, padding, dilation, transposed, output padding, groups."""
    (batch, _, *inside), (c_first, c_second, *kernel) = shapes[0], shapes[1]
    stride, padding, dilation, beyond = (_spread(values[i], len(kernel)) for i in (3, 4, 5, 7))
    transposed, groups = values[6] == "True", int(values[8])
    if len(inside) != len(kernel) or not kernel:
        msg = "no convolution"
        raise ValueError(msg)
    over = zip(inside, kernel, stride, padding, dilation, beyond, strict=True)
    if transposed:
        outside = [(x - 1) * s - 2 * p + d * (k - 1) + more + 1 for x, k, s, p, d, more in over]
    else:
        outside = [(x + 2 * p - d * (k - 1) - 1) // s + 1 for x, k, s, p, d, _ in over]
    if min(outside) < 0:
        msg = "no convolution"
        raise ValueError(msg)
    channels = c_second * groups if transposed else c_first
    flop = 2 * batch * prod(inside if transposed else outside) * prod(shapes[1])
    read = (0, 1, 2) if shapes[2] else (0, 1)
    return Cost(flop, read, batch * channels * prod(outside))


def _convolution_backward(shapes: list[list[int]], values: Sequence[str]) -> Cost:
    """Of the gradient, input, weight, bias sizes, stride, padding, dilation, transposed, …, which gradients to make."""
    (batch, _, *outside), (_, _, *inside), weight = shapes[0], shapes[1], shapes[2]
    to_input, to_weight = ({True: 1, False: 0}[each] for each in json.loads(values[10].lower())[:2])
    once = 2 * batch * prod(inside if values[7] == "True" else outside) * prod(weight)
    written = to_input * prod(shapes[1]) + to_weight * prod(weight)
    return Cost(once * (to_input + to_weight), (0, 1, 2), written)


def _attention(shapes: list[list[int]], _: Sequence[str]) -> Cost:
    """Of query, key, value, each (batch, heads, length, width)."""
    (batch, heads, queries, width), keys, out = shapes[0], shapes[1][2], shapes[2][-1]
    pairs = batch * heads * queries * keys
    return Cost(2 * pairs * (width + out), (0, 1, 2), batch * heads * queries * out)


def _attention_backward(shapes: list[list[int]], _: Sequence[str]) -> Cost:
    """Of the gradient, query, key, value."""
    (batch, heads, queries, width), keys, out = shapes[1], shapes[2][2], shapes[3][-1]
    pairs = batch * heads * queries * keys
    return Cost(2 * pairs * (3 * width + 2 * out), (0, 1, 2, 3), sum(map(prod, shapes[1:4])))


def _spread(value: str, dimensions: int) -> list[Any]:
    """Return a list of numbers; one number stands for all dimensions."""
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
