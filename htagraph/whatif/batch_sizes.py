"""Which dimensions of a job's tensors are the batch: by shapes, consistently through the job.

A tensor of the model's parameters has no batch; parameters are where operators take weights, where gradients are
accumulated, and where optimizers write. Every other tensor has one dimension that is the batch, or a multiple of it
(batch × sequence, batch × heads): that which is exactly the batch, or else the outermost one of a tensor that holds as
many elements as one with the batch itself (a view), or else one whose size other tensors have as their batch.

The recorded batch is the size that explains most tensors so. A sequence explains as many: attention compares it with
itself (scores end in it twice), and the batch is the outermost dimension of attention's inputs and of tables of tokens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from htagraph.core.flops import flop_formula
from htagraph.core.kernels import kernel_kind
from htagraph.core.kinds import KernelKind
from htagraph.core.naming import parameter_positions
from htagraph.queries.kernel_costs import Call, tensors_of

__all__ = ["BatchLayout", "layout_of", "recorded_batch", "resized_calls"]

_EXPLAINED = 0.98
"""A size explains shapes as well as another one does if it explains this share of as many. Chosen: the rest are masks
and tables of positions. Doubled, no batch would be found."""
_MOSTLY = 0.6
"""A batch explains this share of a job's tensors, and of what the best size explains where attention says which; it is
1 if as many deep ones begin with 1. Chosen: masks and positions do so, too. Doubled, no job has a batch."""
_OUTER = 2
"""The batch is one of so many outermost dimensions: batch first, or sequence first. Doubled, images' heights count."""
Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class BatchLayout:
    """Where the batch is."""

    batch: int
    parameters: frozenset[Shape]
    views: frozenset[int]
    """Numbers of elements of the tensors that have the batch itself as a dimension."""
    sizes: frozenset[int]
    """Sizes of dimensions that are the batch or a multiple of it."""

    def batch_dimension(self, shape: Shape, *, activation: bool = False) -> int | None:
        """Return which dimension of a tensor is the batch; None if none is, as in one that may be a parameter."""
        if not shape or (shape in self.parameters and not activation):
            return None
        if len(shape) == 2 and shape[0] in self.sizes:
            return 0  # a width that equals the batch is none
        exact = [at for at, size in enumerate(shape[:_OUTER]) if size == self.batch]
        if exact:
            return exact[0]
        if _is_view(shape, self.batch) and prod(shape) in self.views:
            return 0
        return next((at for at, size in enumerate(shape) if size in self.sizes), None)


def _is_view(shape: Shape, batch: int) -> bool:
    return bool(shape) and shape[0] > batch and shape[0] % batch == 0


def _parameters(calls: Iterable[Call]) -> frozenset[Shape]:
    """Return the shapes of all parameters, also transposed."""
    found: set[Shape] = set()
    for call in calls:
        places = parameter_positions(call.name)
        if places and isinstance(call.dims, list):
            weights = [call.dims[place] for place in places if place < len(call.dims)]
            found.update(tuple(each) for each in weights if each and not isinstance(each[0], list))
        elif kernel_kind(call.name) is KernelKind.OPTIMIZER:
            found.update(shape for shape, _ in tensors_of(call))
    return frozenset(found | {shape[::-1] for shape in found if len(shape) == 2})


def _beside_parameters(call: Call) -> Iterator[Shape]:
    """Yield the shapes of what an operator with parameters takes beside these: no parameters, whatever their shapes."""
    places = parameter_positions(call.name)
    if places and places != (0,) and isinstance(call.dims, list):
        for place, shape in enumerate(call.dims):
            if place not in places and isinstance(shape, list) and shape and not isinstance(shape[0], list):
                yield tuple(shape)


def layout_of(calls: Iterable[Call], batch: int) -> BatchLayout:
    """Return where the batch of some size is in the tensors of a job.

    Example:
        >>> calls = [Call("aten::add", [[8, 16, 64]], [], None), Call("aten::linear", [[128, 64], [64, 64]], [], None)]
        >>> layout = layout_of(calls, 8)
        >>> [layout.batch_dimension(shape) for shape in ((8, 16, 64), (128, 64), (64, 64), (128,))]
        [0, 0, None, 0]
    """
    parameters = _parameters(calls := [*calls])
    return _layout(_activations(calls, parameters), parameters, batch)


def _activations(calls: Iterable[Call], parameters: frozenset[Shape]) -> set[Shape]:
    shapes = {shape for call in calls for shape, _ in tensors_of(call)} - parameters
    return shapes | {shape for call in calls for shape in _beside_parameters(call)}


def _layout(shapes: Iterable[Shape], parameters: frozenset[Shape], batch: int) -> BatchLayout:
    """Return where the batch is; its multiples are products of dimensions side by side (but the last) in views."""
    own = {shape for shape in shapes if batch in shape[:_OUTER] and len(shape) > 1}
    views = frozenset(prod(shape) for shape in own)
    ends = [(shape, first, shape.index(batch) + 1) for shape in own for first in range(shape.index(batch) + 1)]
    products = {(prod(shape), prod(shape[first:end])) for shape, first, at in ends for end in range(at, len(shape))}
    sizes = {shape[0] for shape in shapes if len(shape) > 1 and (prod(shape), shape[0]) in products}
    return BatchLayout(batch, parameters, views, frozenset(sizes | {batch}))


def recorded_batch(counts: Iterable[tuple[Call, int]]) -> list[int]:
    """Return the batch that the shapes of a job show; several where nothing says which it is, none for no batch.

    Args:
        counts: calls, and how much each counts. By time, or by how often it runs, a loop would outvote the model. A
            call that counts 0 is a view, which shows what is a product of dimensions.

    Example:
        >>> calls = [(Call("aten::linear", [[128, 64], [64, 64]], ["float"] * 2, None), 2)]
        >>> recorded_batch([*calls, (Call("aten::gelu", [[8, 16, 64]], ["float"], None), 1)])
        [8]
    """
    given = list(counts)
    calls = [call for call, _ in given]
    parameters = _parameters(calls)
    shapes, used, outer = _activations(calls, parameters), defaultdict[Shape, int](int), defaultdict[int, int](int)
    for call, count in given:
        for shape in [shape for shape, _ in tensors_of(call) if count and len(shape) > 1 and shape not in parameters]:
            used[shape] += count
            for size in set(shape[:_OUTER]) if len(shape) > _OUTER else {shape[0]}:
                outer[size] += count
    deep = {shape: count for shape, count in used.items() if len(shape) > _OUTER}
    if sum(count for shape, count in deep.items() if shape[0] == 1) > _MOSTLY * sum(deep.values()):
        return [1]
    shares, first = {}, {}
    for size in [each for each in outer if each > 1 and outer[each] > (1 - _EXPLAINED) * sum(used.values())]:
        layout = _layout(shapes, parameters, size)
        at = {shape: layout.batch_dimension(shape) for shape in used}
        first[size] = sum(count for shape, count in used.items() if at[shape] == 0)
        shares[size] = first[size] + sum(count for shape, count in used.items() if shape in deep and at[shape] == 1)
    if max(shares.values(), default=0) < _MOSTLY * sum(used.values()):
        return []
    sizes = _best(_by_use(_best([*shares], shares, _MOSTLY), calls, deep), shares)
    read = {size for size in sizes for call in calls if _reads(call, size, sizes)}
    return sorted(read or _best(sizes, first))


def _best(sizes: list[int], shares: dict[int, int], part: float = _EXPLAINED) -> list[int]:
    return [size for size in sizes if shares[size] >= part * max(shares[each] for each in sizes)]


def _by_use(sizes: list[int], calls: list[Call], deep: Iterable[Shape]) -> list[int]:
    """Return which of some sizes may be the batch, by what attention does with tensors; all where it says nothing."""
    inputs = (shape for call in calls if "att" in flop_formula(call.name) for shape, _ in tensors_of(call))
    attended = {shape[0] for shape in inputs if len(shape) > 3}
    compared = {shape[-1] for shape in deep if shape[-1] == shape[-2] != shape[0]}
    return [size for size in sizes if size in attended] or [size for size in sizes if size not in compared] or sizes


def _reads(call: Call, size: int, sizes: list[int]) -> bool:
    """Return whether an input is a table of integers, such as tokens, of one size by another."""
    inputs = zip(call.dims or (), call.types or (), strict=False)
    return any(str(of).startswith(("long", "int")) and dims in [[size, each] for each in sizes] for dims, of in inputs)


def resized_calls(call: Call, layout: BatchLayout, after: int) -> tuple[Call, bool]:
    """Return (a call with another batch, whether a dimension may be the batch or not).

    Of a product of two tensors without a parameter, the dimension that both share is the batch if its size is one.

    Example:
        >>> layout = BatchLayout(8, frozenset({(64, 32)}), frozenset({8 * 16 * 64}), frozenset({8, 128}))
        >>> resized_calls(Call("aten::mm", [[64, 128], [128, 32]], [], None), layout, 16)[0].dims
        [[64, 256], [256, 32]]
        >>> resized_calls(Call("aten::mm", [[128, 64], [64, 32]], [], None), layout, 16)[0].dims
        [[256, 64], [64, 32]]
    """
    if not isinstance(call.dims, list):
        return call, False
    fixed = parameter_positions(call.name)
    shared = _shared(call, layout)
    doubts: list[bool] = []

    def resize(shape: object, place: int) -> object:
        if isinstance(shape, list) and shape and isinstance(shape[0], list):
            return [resize(each, place) for each in shape]
        if not isinstance(shape, list) or not shape or place in fixed:
            return shape
        at = shared.get(place, layout.batch_dimension(tuple(shape), activation=bool(fixed)))
        if at is None:
            return shape
        size = shape[at]
        doubts.append(size != layout.batch and prod(shape) not in layout.views)
        return [*shape[:at], size * after // layout.batch, *shape[at + 1 :]]

    if kernel_kind(call.name) is KernelKind.OPTIMIZER:
        return call, False
    dims = [resize(shape, place) for place, shape in enumerate(call.dims)]
    return call._replace(dims=dims), bool(doubts) and all(doubts)


def _shared(call: Call, layout: BatchLayout) -> dict[int, int | None]:  # noqa: PLR0911 - a return per kind of product
    """Return the batch dimension by position of the factors of a product of matrices; empty for other calls."""
    if flop_formula(call.name) not in ("mm", "addmm", "bmm", "baddbmm"):
        return {}
    first = 1 if "add" in flop_formula(call.name) else 0
    try:
        a, b = (tuple(call.dims[place]) for place in (first, first + 1))
        (*batch, rows, depth), (*_, depth_2, columns) = a, b
    except (TypeError, ValueError, IndexError):
        return {}
    if batch or depth != depth_2:
        return {}
    ends = {first: 0, first + 1: None} if rows in layout.sizes else {}
    if (b in layout.parameters or first + 1 in parameter_positions(call.name)) and rows in layout.sizes:
        return {**ends, **({0: 0} if first and len(call.dims[0]) > 1 else {})}
    if a in layout.parameters and columns in layout.sizes:
        return {first: None, first + 1: 1}
    if depth in layout.sizes:
        return {first: 1, first + 1: 0, **({0: None} if first else {})}
    return ends
