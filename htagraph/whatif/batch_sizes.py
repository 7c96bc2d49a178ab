"""Which dimensions of a job's tensors are the batch: by shapes, consistently through the job.

A tensor of the model's parameters has no batch; parameters are where operators take weights, where gradients are
accumulated, and where optimizers write. Every other tensor has one dimension that is the batch, or a multiple of it
(batch × sequence, batch × heads): that which is exactly the batch, or else the outermost one of a tensor that holds as
many elements as one with the batch itself (a view), or else one whose size other tensors have as their batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from htagraph.core.flops import flop_formula
from htagraph.core.kinds import KernelKind
from htagraph.core.naming import kernel_kind, parameter_positions
from htagraph.queries.kernel_costs import Call, tensors_of

__all__ = ["BatchLayout", "layout_of", "recorded_batch", "resized_calls"]

_EXPLAINED = 0.98
"""A batch explains shapes as well as another one does if this share of the time is in tensors that it explains. Chosen:
the rest are masks and tables of positions. Doubled, no batch would be found."""
_MAX_CANDIDATES = 24
"""How many outermost sizes are tried as the batch, the most frequent first. Chosen: jobs have a handful. Doubled, the
same batch is found."""
_MOSTLY = 0.6
"""The batch is 1 if the tensors of three dimensions or more in this share of the time begin with 1. Chosen: masks and
tables of positions begin with 1 as well. Doubled, no job has a batch of 1."""
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
    calls = list(calls)
    parameters = _parameters(calls)
    shapes = {shape for call in calls for shape, _ in tensors_of(call)} - parameters
    shapes |= {shape for call in calls for shape in _beside_parameters(call)}
    own = {shape for shape in shapes if batch in shape[:_OUTER] and len(shape) > 1}
    views = frozenset(prod(shape) for shape in own)
    sizes = {shape[0] for shape in shapes if len(shape) > 1 and _is_view(shape, batch) and prod(shape) in views}
    return BatchLayout(batch, parameters, views, frozenset(sizes | {batch}))


def recorded_batch(weights: Iterable[tuple[Call, float]]) -> list[int]:
    """Return the batch sizes that explain the shapes of a job about equally well, the best first; none for no shapes.

    Args:
        weights: calls with the time that they take.

    Example:
        >>> calls = [(Call("aten::linear", [[128, 64], [64, 64]], ["float"] * 2, None), 2.0)]
        >>> recorded_batch([*calls, (Call("aten::gelu", [[8, 16, 64]], ["float"], None), 1.0)])
        [8]
    """
    given = [(call, weight) for call, weight in weights if weight > 0]
    parameters = _parameters(call for call, _ in given)
    shaped = [(shape, weight) for call, weight in given for shape, _ in tensors_of(call)]
    used = [(shape, weight) for shape, weight in shaped if shape not in parameters and len(shape) > 1]
    deep = [(shape[0] == 1, weight) for shape, weight in used if len(shape) > 2]
    if sum(weight for is_one, weight in deep if is_one) > _MOSTLY * sum(weight for _, weight in deep):
        return [1]
    outer: dict[int, float] = defaultdict(float)
    for shape, weight in used:
        for size in set(shape[:_OUTER]) if len(shape) > 2 else {shape[0]}:
            outer[size] += weight
    shares = {}
    explained: dict[int | None, float] = {0: 1.0, 1: 0.5}  # by the dimension that a layout takes for the batch
    for size in sorted(outer, key=lambda each: -outer[each])[:_MAX_CANDIDATES]:
        if size > 1:
            layout = layout_of((call for call, _ in given), size)
            shares[size] = sum(weight * explained.get(layout.batch_dimension(shape), 0.0) for shape, weight in used)
    best = max(shares.values(), default=0.0)
    good = [size for size, share in shares.items() if share >= _EXPLAINED * best > 0]
    first = [size for size in good if any(shape[0] == size and len(shape) > 1 for shape, _ in used)]
    return sorted(first or good, key=lambda size: (-outer[size], -size))


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
