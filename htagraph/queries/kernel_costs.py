"""What kernels, and operators on hosts without a device, compute and move: by the shapes of their operators' inputs."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from htagraph.core.arrays import Array, Ints, marked
from htagraph.core.computing import once
from htagraph.core.flops import cost_of, element_bytes, flop_formula, is_complex, moves_nothing, numbers_per_element
from htagraph.core.kernels import kernel_kind, kernel_library
from htagraph.core.kinds import COMMUNICATION, ActivityKind, EdgeKind, KernelKind, of_kinds
from htagraph.core.naming import COPY, is_optimizer, names_that
from htagraph.core.parents import nearest
from htagraph.core.statistics import MOST
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import only_with_device
from htagraph.graph.measures.own_time import timed_work
from htagraph.queries.arguments import argument_texts

__all__ = [
    "Call", "CallCost", "ShapedCalls", "cost_of_call", "device_name", "kernel_costs", "operator_costs", "shaped_calls",
    "tensors_of", "used_device",
]  # fmt: skip

TABLE = Table(
    "What kernels compute and move",
    Col("activity", "int64", "the kernel, copy or memset; on a rank without a device, the operator"),
    Col("time_us", doc="duration; of an operator, its own time"),
    Col("kind", "int8", "`KernelKind`"),
    Col("flop", doc="floating-point operations; 0 for what computes no product, NaN if unknown"),
    Col("bytes", doc="bytes read and written if each input is read once and each output written once; NaN if unknown"),
    Col("element_bytes", "int64", "bytes of an element of the first input; 0 if unknown"),
    Col("operator", "int64", "the activity whose shapes say so; -1 for none"),
    Col("backward", "bool", "the shapes are those of the forward operator, as the backward operator has none"),
    Col("library", "str", "family of libraries, where the name shows it"),
)

_decoded = msgspec.json.Decoder().decode
_DIMS, _OLD_DIMS, _TYPES, _VALUES = "Input Dims", "Input dims", "Input type", "Concrete Inputs"
_BACKWARD_WORK = 2
"""How many times the work of a forward operator its backward has: a gradient for the input and one for the weight, each
a product as large as that of the forward. Doubled, rates of backward kernels without shapes of their own double."""


class Call(NamedTuple):
    """An operator as it was called: equal calls cost the same."""

    name: str
    dims: Any
    """A shape per input; a list of shapes for a list of tensors."""
    types: Any
    values: Any


class ShapedCalls(NamedTuple):
    """The operators whose inputs were recorded."""

    activity: Ints
    """The operators, ascending."""
    number: Ints
    """Per operator: its call, an index into `calls`."""
    calls: list[Call]
    """The calls that differ."""


class CallCost(NamedTuple):
    """What a call computes and moves."""

    flop: float
    """NaN where no formula says."""
    bytes: float
    element_bytes: int
    depth: float = 0.0
    """Length of the sums of a product: operations of an element of the result / 2; 0 for other operators."""


@once
def shaped_calls(graph: DependencyGraph) -> ShapedCalls:
    """Return the operators of a job whose inputs have recorded shapes, with equal calls numbered alike."""
    acts = graph.activities
    chosen = np.flatnonzero(acts.kind == ActivityKind.OP)
    texts = argument_texts(graph, [_DIMS, _OLD_DIMS, _TYPES, _VALUES], chosen)
    known: dict[Any, int] = {}
    calls: list[Call] = []
    number = np.full(len(chosen), -1, np.int64)
    rows = zip(acts.name[chosen].tolist(), *texts.values(), strict=True)
    for row, (name, dims, old, types, values) in enumerate(rows):
        if (key := (name, dims or old, types, values)) not in known:
            known[key] = len(calls)
            calls.append(Call(graph.names[name], *(None if text is None else _decoded(text) for text in key[1:])))
        number[row] = known[key]
    shaped = np.array([bool(call.dims) for call in calls], np.bool_)[number]
    return ShapedCalls(chosen[shaped], number[shaped], calls)


def tensors_of(call: Call) -> Iterator[tuple[tuple[int, ...], int]]:
    """Yield (shape, bytes of an element) of each tensor among the inputs, those in lists of tensors too.

    Example:
        >>> list(tensors_of(Call("aten::cat", [[[2, 3], [4, 3]], []], ["TensorList", "Scalar"], None)))
        [((2, 3), 4), ((4, 3), 4)]
    """
    types = call.types if isinstance(call.types, list) else []
    for place, shape in enumerate(call.dims if isinstance(call.dims, list) else ()):
        size = element_bytes(str(types[place])) if place < len(types) else 0
        inner = shape if isinstance(shape, list) and shape and isinstance(shape[0], list) else [shape]
        for each in inner:
            if isinstance(each, list) and each and all(type(length) is int and length >= 0 for length in each):
                yield tuple(each), size or 4 * (place >= len(types) or inner is shape)


def cost_of_call(call: Call) -> CallCost | None:
    """Return what a call computes and moves, None where its inputs hold no tensor, or it looks at them otherwise only.

    Products of matrices, convolutions and attention have the operations of `htagraph.core.flops`. All others read their
    inputs once and write as much as their largest input has; operators that look up rows read and write these only.

    Example:
        >>> cost_of_call(Call("aten::add", [[2, 3], [3], []], ["float", "float", "Scalar"], None))
        CallCost(flop=0.0, bytes=60.0, element_bytes=4, depth=0.0)
    """
    counted = _counted(flop_formula(call.name), call)
    if isinstance(counted, tuple):
        _, size, read, flop, written, _ = counted
        return CallCost(flop, read + written * size, size, flop / (2 * written) if written else 0.0)
    tensors = list(tensors_of(call))
    if not tensors or moves_nothing(call.name):
        return None
    sizes = [prod(shape) * size for shape, size in tensors]
    kind, element = kernel_kind(call.name), next((size for _, size in tensors if size), 0)
    moved = float(sum(sizes) + max(sizes))
    if kind is KernelKind.INDEX and len(tensors) > 1:
        (table, width), (index, _) = tensors[0], min(tensors[1:], key=lambda each: prod(each[0]))
        moved = min(moved, float(2 * prod(index) * prod(table[1:]) * width + sizes[1]))
    elif kind in (KernelKind.OPTIMIZER, KernelKind.MEMSET) or call.name == COPY:
        moved = float(sum(sizes))
    return CallCost(np.nan if kind.is_product else 0.0, moved, element)


def operator_costs(graph: DependencyGraph) -> tuple[pd.DataFrame, int]:
    """Return (the operators whose operations a formula counts, of nested ones the innermost; how many have odd shapes).

    The frame has the columns ``activity``, ``shapes``, ``element_bytes``, ``flop``, ``at_most``, ``bytes``.
    """
    acts, shaped = graph.activities, shaped_calls(graph)
    formulas = [flop_formula(call.name) for call in shaped.calls]
    known = [_counted(formula, call) for formula, call in zip(formulas, shaped.calls, strict=True)]
    chosen = zip(shaped.activity.tolist(), shaped.number.tolist(), strict=True)
    rows, odd = [], []
    for activity, number in chosen:
        cost = known[number]
        if isinstance(cost, tuple):
            rows.append((activity, *cost))
        elif cost:
            odd.append(activity)
    table = pd.DataFrame(rows, columns=["activity", "shapes", "element_bytes", "read", "flop", "written", "at_most"])
    counted = table["activity"].to_numpy(np.int64)
    is_counted = marked(counted, len(acts))
    around = graph.tree.around(is_counted)
    left_out = int((~(around | graph.tree.inside(is_counted))[np.array(odd, np.int64)]).sum())
    table = table[~around[counted]]
    moved = (table["read"] + table["written"] * table["element_bytes"]).where(table["element_bytes"] > 0)
    table = table[["activity", "shapes", "element_bytes", "flop", "at_most"]].assign(bytes=moved.astype("float64"))
    return table, left_out


def _counted(formula: str, call: Call) -> tuple[Any, ...] | bool:
    """Return (shapes, element_bytes, read, flop, written, at_most) of a call; else whether it has odd shapes."""
    cost = cost_of(formula, call.dims or (), call.values) if formula else None
    kinds = call.types if isinstance(call.types, list) else []
    if cost is None or any(is_complex(kind) for kind in kinds):
        return bool(formula and call.dims)
    names = [str(kinds[i]) if i < len(kinds) else "" for i in cost.read]
    flop = float(cost.flop * numbers_per_element(names[0]))  # a packed dimension is the one that products sum over
    sizes, shapes = [element_bytes(name) for name in names], [call.dims[i] for i in cost.read]
    read = float(sum(prod(shape) * size for shape, size in zip(shapes, sizes, strict=True)))
    text = ", ".join("x".join(map(str, shape)) for shape in shapes)
    return text, sizes[0] or max(sizes), read, flop, float(cost.written), cost.at_most


@described(TABLE)
def kernel_costs(graph: DependencyGraph) -> pd.DataFrame:
    """Return what each kernel computes and moves, with the kind of its work.

    The kind is that of the kernel's name, and of the operator around it where the kernel's name shows none; inside an
    optimizer's step, it is an update of parameters. The operations of a product (of matrices, a convolution, attention)
    go to its kernels of such kinds, in proportion to their times; other kernels, such as those that lay out its inputs,
    have the bytes of their own innermost operator with shapes, and kernels of one operator share by time. Kernels of
    a backward operator without shapes have twice the work of the forward operator with the same sequence number.

    Args:
        graph: the job, recorded with ``record_shapes=True``; without shapes, only copies and collectives have bytes.

    Returns:
        One row per kernel, copy and memset, and per operator of ranks without a device, by activity: {columns}.

    Raises:
        TraceError: a file is gone or was changed since it was loaded.

    Example:
        >>> import htagraph as hg
        >>> table = kernel_costs(hg.load("data/gloo_ddp", ranks=[0]))
        >>> bool((table.loc[table["kind"] == KernelKind.GEMM, "flop"] > 0).any())
        True

    Source: torch.utils.flop_counter.
    """
    acts = graph.activities
    rows, took = timed_work(graph)
    operator, backward, beside = _operators(graph, rows)
    kind = _kinds(graph, rows, operator)
    shaped = shaped_calls(graph)
    costs = [(cost_of_call(call) or (np.nan, np.nan, 0))[:3] for call in shaped.calls]
    by_call = np.array(costs or [(np.nan, np.nan, 0)], np.float64)
    known = operator >= 0
    call = shaped.number[np.searchsorted(shaped.activity, operator[known])]
    values = np.full((len(rows), 3), np.nan)
    values[known] = by_call[call]
    values[:, :2] *= np.where(backward, _BACKWARD_WORK, 1)[:, None]
    part = _parts(np.where(beside, -2 - operator, operator), took, known)
    flop, moved = np.where(beside, 0, values[:, 0]) * part, values[:, 1] * part
    _say_sizes(graph, rows, moved)
    library = np.array([kernel_library(name) for name in graph.names], object)
    return TABLE.frame({
        "activity": rows, "time_us": took / 1000, "kind": kind, "flop": flop, "bytes": moved,
        "element_bytes": np.nan_to_num(values[:, 2]).astype(np.int64), "operator": operator, "backward": backward,
        "library": library[acts.name[rows]],
    })  # fmt: skip


def _operators(graph: DependencyGraph, rows: Ints) -> tuple[Ints, Array, Array]:
    """Return (the operator whose shapes say what each row computes, or -1; whether it is the forward's; beside)."""
    # `beside` a product if other kernels compute the product, such as a memset for parts of sums
    acts, shaped, tree = graph.activities, shaped_calls(graph), graph.tree
    by_call = np.array([cost.bytes if (cost := cost_of_call(call)) else 0.0 for call in shaped.calls], np.float64)
    moved = np.zeros(len(acts))
    moved[shaped.activity] = by_call[shaped.number]
    has = moved > 0
    inner = tree.nearest(has, rows)
    counted = marked(operator_costs(graph)[0]["activity"].to_numpy(np.int64), len(acts))
    product = tree.nearest(counted, rows)
    main = np.array([kernel_kind(name).is_product for name in graph.names], np.bool_)[acts.name[rows]]
    of_product = marked(product[main & (product >= 0)], len(acts) + 1)
    unnamed = (product >= 0) & ~of_product[product]  # where no kernel of a product is known by name, all are its own
    operator = np.where((product >= 0) & (main | unnamed), product, inner)
    host = acts.kind[rows] == ActivityKind.OP
    operator[host & (operator != rows) & ~main] = -1  # an operator on the host without shapes is no part of another
    inner_moved, ops = np.zeros(len(acts)), np.flatnonzero((acts.kind == ActivityKind.OP) & (acts.parent >= 0))
    np.maximum.at(inner_moved, acts.parent[ops], moved[ops])
    operator[host & ~counted[rows] & (inner_moved[rows] >= MOST * moved[rows])] = -1  # others do its work
    lacks = (operator < 0) & ~host
    above = tree.parent.copy()
    edges = graph.edges.kind == EdgeKind.AUTOGRAD
    above[graph.edges.target[edges] >> 1] = graph.edges.source[edges] >> 1
    backward = lacks & edges.any()
    operator[backward] = nearest(above, has, rows[backward])
    return operator, backward & (operator >= 0), ~main & ~unnamed & (operator == product) & (product >= 0)


def _kinds(graph: DependencyGraph, rows: Ints, operator: Ints) -> Array:
    acts = graph.activities
    by_name = np.array([kernel_kind(name) for name in graph.names], np.int8)
    kind = by_name[acts.name[rows]]
    vague = (kind == KernelKind.OTHER) & (operator >= 0)
    kind[vague] = by_name[acts.name[operator[vague]]]
    updates = names_that(is_optimizer, graph.names)[acts.name]
    if updates.any():
        inside = (updates | graph.tree.inside(updates))[rows]
        kind[inside & (kind != KernelKind.COPY)] = KernelKind.OPTIMIZER
    kind[of_kinds(acts.kind[rows], COMMUNICATION)] = KernelKind.COLLECTIVE
    return kind


def _parts(operator: Ints, took: Ints, known: Array) -> Array:
    """Return the share of each row in the work of its operator: by time."""
    part = np.ones(len(operator))
    owners, number = np.unique(operator[known], return_inverse=True)
    total = np.bincount(number, np.maximum(took[known], 1), len(owners))
    part[known] = np.maximum(took[known], 1) / total[number]
    return part


def _say_sizes(graph: DependencyGraph, rows: Ints, moved: Array) -> None:
    """Write the bytes that were recorded: those of copies and memsets, and of collectives."""
    size = graph.activities.arg("bytes")[rows]
    memory = (graph.activities.kind[rows] == ActivityKind.MEMORY) & (size >= 0)
    moved[memory] = size[memory]
    if graph.matches is not None and len(graph.matches.activity):
        whole = np.full(len(graph.activities), -1, np.int64)
        whole[graph.matches.activity] = graph.matches.bytes
        moved[whole[rows] >= 0] = whole[rows][whole[rows] >= 0]


def device_name(graph: DependencyGraph, rank: int) -> str:
    """Return the name of the device that a rank used; empty if unknown or unused.

    Where its number is not listed (AMD's files number devices of the host, and list those that the process sees), it is
    the kind of all listed devices, if they are of one kind.
    """
    trace, acts = graph.traces.get(rank), graph.activities
    of_rank = acts.of_rank(rank)
    said = acts.arg("device_name")[of_rank] if trace is None else np.zeros(0, np.int64)
    if (said >= 0).any():  # of a user's own frame
        return graph.names[int(said.max())]
    used = {graph.lanes[lane].device for lane in np.unique(acts.lane[of_rank][acts.on_device[of_rank]]).tolist()}
    if trace is None or not used:
        return ""
    named = [(each.id, each.name) for each in trace.facts.devices if each.name]
    kinds = {name for _, name in named}
    only = named[0][1] if len(kinds) == 1 else ""
    return next((name for number, name in named if number in used), only)


def used_device(graph: DependencyGraph) -> bool:
    """Return whether a job used a device, recorded or not: its work, a launch, an operator that only devices have."""
    acts = graph.activities
    named = only_with_device(graph, slice(0, len(acts)))
    return bool((acts.on_device | (acts.kind == ActivityKind.LAUNCH) | named).any())
