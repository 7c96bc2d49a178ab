"""Floating-point operations and bytes of an operator, from the shapes of its inputs.

Formulas follow `torch.utils.flop_counter`: two operations per multiply-add; attention's backward with the
scores computed again. Two differ: under a causal mask or in a window, attention computes only the pairs that these
leave; and torch multiplies the backward of a grouped convolution by the number of groups once too often.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, Literal, TypeAlias

from htagraph.core.naming import LINEAR, matches

__all__ = [
    "DRAM_BYTES",
    "DRAM_PARTS",
    "cost_of",
    "element_bytes",
    "elements",
    "flop_formula",
    "flop_per_count",
    "is_complex",
    "labelled_cost",
    "moves_nothing",
    "numbers_per_element",
]

_Mask: TypeAlias = Literal["from start", "to end", "window", "computed"]
"""Where the diagonal of a causal mask lies if there are more keys than queries, or fewer: query 0 sees key 0 and no
further, or the last query the last key; a window lies as the latter. Masks that are computed leave no pair out."""
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
    at_most: bool = False
    """Whether `flop` is the most it can be, as what leaves out a part of it (a causal mask, offsets) is not known."""


def cost_of(formula: str, shapes: Any, values: Any = None) -> Cost | None:  # noqa: ANN401 - whatever a file says
    """Return the cost of an operator, or None if its shapes do not fit the formula.

    Inputs that are not tensors have an empty shape, and their value as a text in the same position.

    Example:
        >>> cost_of("mm", [[2, 3], [3, 4]])
        Cost(flop=48, read=(0, 1), written=8, at_most=False)
    """
    try:
        sizes: Any = [_shape(shape) for shape in shapes]  # a None fails in the formula that uses it
        cost = _FORMULAS[formula][1](sizes, values or ())
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None
    possible = all(isinstance(count, int) and 0 <= count < _MAX_COUNT for count in (cost.flop, cost.written))
    return cost if possible and all(sizes[i] is not None for i in cost.read) else None


def _shape(value: Any) -> list[int] | None:  # noqa: ANN401 - whatever a file says
    """Return a tensor's shape as a list; None for a list of tensors, or for anything that is not a shape."""
    fits = (
        isinstance(value, list | tuple)
        and len(value) <= 64  # PyTorch has no more dimensions, and a product of millions of sizes takes long
        and all(type(size) is int and size >= 0 for size in value)
    )
    return list(value) if fits and prod(value) < _MAX_COUNT else None


def _refuse(unfit: object) -> None:
    """Raise the error that `cost_of` takes for an operator without a cost."""
    if unfit:
        msg = "the inputs are not those of the formula"
        raise ValueError(msg)


def _product(a: list[int], b: list[int]) -> tuple[int, int]:
    """Return (operations, elements of the result) of a matrix product, batched or not."""
    *batch, m, k = a
    *other, k2, n = b
    _refuse(batch != other or k != k2)
    return 2 * prod(batch) * m * k * n, prod(batch) * m * n


def _mm(shapes: list[list[int]], _: Sequence[str]) -> Cost:
    flop, written = _product(shapes[0], shapes[1])
    return Cost(flop, (0, 1), written)


def _addmm(shapes: list[list[int]], _: Sequence[str]) -> Cost:
    flop, written = _product(shapes[1], shapes[2])
    return Cost(flop, (0, 1, 2), written)


def _linear(shapes: list[list[int]], _: Sequence[str]) -> Cost:
    (*rows, k), (n, k2) = shapes[0], shapes[1]
    _refuse(k != k2)
    return Cost(2 * prod(rows) * k * n, (0, 1, 2) if len(shapes) > 2 and shapes[2] else (0, 1), prod(rows) * n)


def _convolution(shapes: list[list[int]], values: Sequence[str]) -> Cost:
    """Inputs: input, weight, bias, stride, padding, dilation, transposed, output padding, groups."""
    (batch, _, *inside), (c_first, c_second, *kernel) = shapes[0], shapes[1]
    stride, padding, dilation, beyond = (_spread(values[i], len(kernel)) for i in (3, 4, 5, 7))
    transposed = values[6] == "True"
    groups = int(values[8])
    _refuse(len(inside) != len(kernel) or not kernel)
    over = zip(inside, kernel, stride, padding, dilation, beyond, strict=True)
    if transposed:
        outside = [(x - 1) * s - 2 * p + d * (k - 1) + more + 1 for x, k, s, p, d, more in over]
    else:
        outside = [(x + 2 * p - d * (k - 1) - 1) // s + 1 for x, k, s, p, d, _ in over]
    _refuse(min(outside) < 0)
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


def _grouped(shapes: list[list[int]], _: Sequence[str]) -> Cost:
    """Inputs: two stacks of matrices, or one matrix whose rows or columns offsets divide among the groups.

    Rows that the last offset leaves out are not computed, and offsets are not recorded.
    """
    first = shapes[0]
    second = shapes[1]
    if len(first) == len(second) == 3:
        return _mm(shapes, ())
    _refuse((len(first), len(second)) not in ((2, 3), (3, 2), (2, 2)) or first[-1] != second[-2])
    rows = first[-2]
    columns = second[-1]
    return Cost(2 * rows * first[-1] * columns, (0, 1), rows * columns, at_most=True)


def _attention(shapes: list[list[int]], values: Sequence[str], *, mask: _Mask) -> Cost:
    """Inputs: query, key and value, each of shape `(batch, heads, length, width)`; heads of queries may share keys."""
    pairs, width, out, at_most = _pairs(shapes[:3], values, mask)
    (batch, heads, queries, _) = shapes[0]
    return Cost(2 * pairs * (width + out), (0, 1, 2), batch * heads * queries * out, at_most)


def _attention_backward(shapes: list[list[int]], values: Sequence[str], *, mask: _Mask) -> Cost:
    """Inputs: output gradient, query, key and value, shaped as in `_attention`, and further on the output."""
    pairs, width, out, at_most = _pairs(shapes[1:4], values, mask)
    output = [i for i in range(4, len(shapes)) if shapes[i] == shapes[0]][:1]
    written = sum(map(prod, shapes[1:4]))
    return Cost(2 * pairs * (3 * width + 2 * out), (0, 1, 2, 3, *output), written, at_most)


def _flash_attn(shapes: list[list[int]], values: Sequence[str], *, backward: bool) -> Cost:
    """Inputs as in both, but those of the package flash-attn: each of shape `(batch, length, heads, width)`."""
    heads_first = [[batch, heads, length, width] for batch, length, heads, width in shapes[: 5 if backward else 3]]
    return (_attention_backward if backward else _attention)(heads_first, values, mask="window")


def _pairs(shapes: list[list[int]], values: Sequence[str], mask: _Mask) -> tuple[int, int, int, bool]:
    """Return (pairs of queries and keys, width of a key, width of a value, whether there may be fewer pairs)."""
    (batch, heads, queries, width), (batch_2, heads_2, keys, width_2), (batch_3, heads_3, keys_2, out) = shapes
    _refuse((batch, batch, width, keys, heads_2) != (batch_2, batch_3, width_2, keys_2, heads_3) or heads % heads_2)
    if mask == "computed":  # the scores are computed in full, and masked afterwards
        return batch * heads * queries * keys, width, out, False
    causal, left, right = _masked(values)
    shift = keys - queries if mask != "from start" else 0
    first = None if left is None or mask != "window" else shift - left
    last = shift if causal else None if right is None or mask != "window" else shift + right
    return batch * heads * attended_pairs(queries, keys, first=first, last=last), width, out, causal is None


def _masked(values: Sequence[str]) -> tuple[bool | None, int | None, int | None]:
    """Return whether attention is causal, None if that was not recorded, and its window to the left and to the right.

    In the signatures of all these operators and their backward, in all versions, the probability of dropout is the
    first floating-point number, and the next flag says whether attention is causal; in those of the package flash-attn
    the window follows.
    """
    numbers = (i for i, text in enumerate(values) if re.fullmatch(r"\d+\.\d*(e-?\d+)?|\d+e-\d+", text))
    dropout = next(numbers, len(values))
    flag = next((i for i in range(dropout, len(values)) if values[i] in ("True", "False")), None)
    if flag is None:
        return None, None, None
    sides = [int(text) if re.fullmatch(r"\d{1,18}", text) else None for text in values[flag + 1 : flag + 3]]
    left, right = [*sides, None, None][:2]
    return values[flag] == "True", left, right


def _spread(value: str, dimensions: int) -> list[Any]:
    """Return one number per dimension; a list of one number applies to all dimensions."""
    numbers = json.loads(value)
    return numbers * dimensions if len(numbers) == 1 else numbers


_FORMULAS: dict[str, tuple[str, Callable[[list[list[int]], Sequence[str]], Cost]]] = {
    "mm": (r"aten::(mm|_scaled_mm(_v2)?|_int_mm)", _mm),
    "addmm": (r"aten::(addmm_?|_addmm_activation)", _addmm),
    "bmm": (r"aten::bmm", _mm),
    "baddbmm": (r"aten::baddbmm_?", _addmm),
    "linear": (LINEAR, _linear),
    "convolution": (r"aten::_?convolution", _convolution),
    "convolution_backward": (r"aten::convolution_backward", _convolution_backward),
    "grouped_mm": (r"aten::(_scaled)?_?grouped_mm(_v2)?", _grouped),
    "attention_in_full": (r"aten::_scaled_dot_product_attention_math\w*", partial(_attention, mask="computed")),
    "attention_to_end": (r"aten::_scaled_dot_product_flash_attention", partial(_attention, mask="to end")),
    "attention_to_end_backward": (
        r"aten::_scaled_dot_product_flash_attention_backward", partial(_attention_backward, mask="to end"),
    ),
    "attention_backward": (
        r"aten::_scaled_dot_product_\w*attention\w*_backward", partial(_attention_backward, mask="from start"),
    ),
    "attention": (
        r"aten::(_scaled_dot_product_\w*attention\w*|scaled_dot_product_attention)",
        partial(_attention, mask="from start"),
    ),
    "flash_attn": (r"flash_?attn::_flash_attn_forward", partial(_flash_attn, backward=False)),
    "flash_attn_backward": (r"flash_?attn::_flash_attn_backward", partial(_flash_attn, backward=True)),
}  # fmt: skip
"""By its name, the operators that a formula is of, by the first pattern that fits a whole name, and the formula."""


def attended_pairs(queries: int, keys: int, *, first: int | None = None, last: int | None = None) -> int:
    """Return the number of pairs of a query and a key that are compared.

    Query `i` sees the keys from ``i + first`` to ``i + last``, those of them that there are. None as the first or last
    key means that there is no limit.

    Example:
        >>> attended_pairs(3, 3), attended_pairs(3, 3, last=0)  # without a mask; causal
        (9, 6)
    """
    begun = queries * keys if last is None else _sum_of_ramp(queries, keys, last + 1)
    return begun - (0 if first is None else _sum_of_ramp(queries, keys, first))


def _sum_of_ramp(count: int, most: int, begin: int) -> int:
    """Return the sum of `begin`, `begin` + 1, … (`count` numbers), each between 0 and `most` at least and at most."""
    low = min(max(-begin, 0), count)
    high = min(max(most - begin, low), count)
    rising = (high - low) * (2 * begin + low + high - 1) // 2
    return rising + (count - high) * most


_VIEWS = (
    r"^aten::(_?reshape(_alias)?|(_unsafe_)?view(_as)?|t|transpose|permute|numpy_T|as_strided|expand(_as)?|(un)?squeeze|"
    r"select|slice|narrow|(unsafe_)?split(_with_sizes)?|chunk|unbind|unfold|detach|alias|lift_fresh|resolve_(conj|neg)|"
    r"result_type|item|is_nonzero|empty\w*|resize\w*|set|contiguous)_?$"
    r"|^autograd::|^torch::autograd::|(?-i:Backward\d*$)"
)


def moves_nothing(name: str) -> bool:
    """Return whether an operator only looks at its inputs otherwise, makes room, or calls others.

    Example:
        >>> moves_nothing("aten::as_strided_"), moves_nothing("MmBackward0"), moves_nothing("aten::sum")
        (True, True, False)
    """
    return matches(_VIEWS, name)


def flop_formula(name: str) -> str:
    """Return the name of the formula for an operator's floating-point operations, or ``""`` if there is none.

    Example:
        >>> flop_formula("aten::addmm"), flop_formula("aten::relu")
        ('addmm', '')
    """
    return next((formula for formula, (pattern, _) in _FORMULAS.items() if re.fullmatch(pattern, name)), "")


_ELEMENT_BYTES = {  # by the name that a trace has in "Input type", in lower case
    "double": 8, "float": 4, "c10::half": 2, "c10::bfloat16": 2, "long long": 8, "long int": 8, "long": 8, "int": 4,
    "short int": 2, "short": 2, "signed char": 1, "unsigned char": 1, "bool": 1, "c10::complex<float>": 8,
    "c10::complex<double>": 16,
}  # fmt: skip


def element_bytes(type_name: str) -> int:
    """Return the size of one tensor element, bytes, by the name of its type in the trace; 0 if it is unknown.

    Example:
        >>> element_bytes("c10::BFloat16"), element_bytes("float"), element_bytes("c10::Float8_e4m3fn")
        (2, 4, 1)
    """
    return 1 if type_name.startswith("c10::Float8") else _ELEMENT_BYTES.get(type_name.lower(), 0)


def is_complex(type_name: object) -> bool:
    """Return True for the name of a type of complex numbers, of which products have formulas of their own.

    Example:
        >>> is_complex("c10::complex<float>"), is_complex("float")
        (True, False)
    """
    return isinstance(type_name, str) and type_name.startswith("c10::complex<")


def numbers_per_element(type_name: str) -> int:
    """Return how many numbers an element of a tensor holds: 2 of those of 4 bits, which are packed in pairs.

    Example:
        >>> numbers_per_element("c10::Float4_e2m1fn_x2"), numbers_per_element("c10::Float8_e4m3fn")
        (2, 1)
    """
    return 2 if type_name.startswith("c10::Float4") and type_name.endswith("_x2") else 1


def elements(shapes: Sequence[Any]) -> int:
    """Return how many elements tensors of some shapes have together; texts that are no shape have none.

    Example:
        >>> elements([[2, 3], [4], "mine", []])
        10
    """
    return sum(prod(shape) for shape in map(_shape, shapes) if shape)


def labelled_cost(inputs: Any, output: Any) -> tuple[int, int, int] | None:  # noqa: ANN401 - whatever a user says
    """Return (operations, elements of the result, elements moved) of a product by its shapes, None if they do not fit.

    The last two inputs are multiplied. A single input is multiplied with a weight that makes the output of it.

    Example:
        >>> labelled_cost([[8, 2, 3], [8, 3, 4]], None), labelled_cost([[8, 3]], [8, 5])
        ((384, 64, 208), (240, 40, 79))
    """
    tensors = [shape for shape in map(_shape, inputs or ()) if shape and len(shape) > 1]
    result = _shape(output) or []
    if len(tensors) > 1 and tensors[-2][-1] == tensors[-1][-2]:
        second, written = tensors[-1], prod(tensors[-2][:-1]) * tensors[-1][-1]
    elif tensors and result and len(tensors) == 1:
        second, written = [tensors[0][-1], result[-1]], prod(tensors[0][:-1]) * result[-1]
    else:
        return None
    first = tensors[max(len(tensors) - 2, 0)]
    return 2 * written * first[-1], written, prod(first) + prod(second) + written


_FLOP_COUNTER = re.compile(r"smsp__sass_thread_inst_executed_op_([hfd])(fma|mul|add)_pred_on\.sum")


def flop_per_count(counter: str) -> int:
    """Return the floating-point operations that one count of a hardware counter stands for: 2, 1, or 0 (not FLOP).

    Example:
        >>> flop_per_count("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"), flop_per_count("dram__bytes.sum")
        (2, 0)
    """
    match = _FLOP_COUNTER.fullmatch(counter)
    return 0 if match is None else 2 if match[2] == "fma" else 1


DRAM_BYTES = "dram__bytes.sum"
"""The hardware counter of all bytes that a kernel moved to or from device memory."""
DRAM_PARTS = ("dram__bytes_read.sum", "dram__bytes_write.sum")
"""The hardware counters of the bytes that a kernel read from device memory, and wrote to it."""
