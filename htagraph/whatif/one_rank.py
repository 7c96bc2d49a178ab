"""More ranks from a recording of one, which has no collectives: what data, tensor and pipeline parallel ranks add."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import log2, prod
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import SelectionError
from htagraph.core.flops import element_bytes
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance, of_kinds
from htagraph.core.naming import is_gradient_ready, is_optimizer, names_that
from htagraph.graph.activities import Edges
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import step_lengths
from htagraph.queries.arguments import argument_texts
from htagraph.queries.weights import State, Unsure, checked
from htagraph.whatif.growth import expected_last, on_one_host
from htagraph.whatif.layout import works_of
from htagraph.whatif.links import link_share
from htagraph.whatif.rewire import with_other_edges

__all__ = ["with_activations_exchanged", "with_gradients_exchanged", "with_stages_of_one"]

_decoded = msgspec.json.Decoder().decode

_LINKS: Final = {"A100": 190.0, "H100": 358.0}
"""What a link moves in an all-reduce of 2 to 8 devices of one node, 10^9 bytes/s. Source: NCCL over NVLink on A100,
173 to 209 (vidur, 7d47513), and on 8 H100 (autoparallel, a54c252)."""
_SLOWEST_LINK = 8.0
"""How many times as slow the link between devices of that name may be. Source: four A100 that NVLink connects in pairs
move 24 10^9 bytes/s (vidur). Doubled, from one device most predictions say that the recording cannot tell."""
_LINK_ERROR = 0.15
"""Relative error of transfers where their bandwidth is given; see `htagraph.whatif.growth`."""
_LATENCY_NS: Final = (24_000, 40_000)
"""What an all-reduce takes besides its bytes, ns: among devices, times log2 of their number (vidur: 47, 71 and 127 µs
for 2, 4 and 8), and on hosts in each turn of a ring (measured with gloo). Doubled, only tiny models notice."""
_FIRST_BUCKET, _BUCKET = 1 << 20, 25 << 20
"""Bytes at which DistributedDataParallel closes its first and its other buckets. Source: PyTorch's defaults."""
_LATE: Final = (0.0, 1.5)
"""Ends of how much later the last rank is, of what is expected from how steps of one rank differ: all ranks may be late
in the same steps. Doubled, jobs with uneven steps have wider intervals."""
_STAGE_ERROR = 0.15
"""Relative error of the time for which a stage waits. Chosen: stages of equally many layers differ, as the first
has the embedding and the last one the head. Doubled, such intervals are twice as wide."""
_FEW_STEPS = 3
"""How many steps say how much steps differ. Chosen: two have one difference. Doubled, short recordings say nothing."""


class _End(NamedTuple):
    """Where a step needs its gradients."""

    limit_ns: int
    """Gradients that are ready before are of this step."""
    vertex: int
    """The optimizer's begin, or its first kernel's; where none was recorded, the last moment of the step."""
    optimizer: bool = False


def with_gradients_exchanged(state: State, ranks: int, gb_s: float | None, gradients_mb: float | None) -> State:
    """Return the state in which so many ranks all-reduce their gradients, in buckets beside backward.

    The optimizer's step waits for the last bucket: the operator on hosts, its first kernel on devices. Gradients and
    their sizes are those of the operators that accumulate them.

    Args:
        state: the weights of a job of one rank.
        ranks: how many there are then.
        gb_s: what moves between two ranks, 10^9 bytes/s, or through the network of the one host that all ranks share;
            None for devices whose NVLink is known.
        gradients_mb: 10^6 bytes of gradients per step; None where the recording shows their shapes.

    Raises:
        SelectionError: sizes or the bandwidth are not known.
    """
    graph = state.graph
    if ranks == 1:
        return state
    rate, slowest, link = _link(graph, gb_s)
    rows, size = _gradients(graph)
    ends = _ends(graph)
    if gradients_mb is not None:
        each = checked(gradients_mb, "gradients_mb", above=True) * 1e6
        rows, size = _last_of_each(graph, rows, ends), np.full(len(ends), each)
    elif not len(rows):
        msg = (
            "no collective is matched in the recording of one rank, and no shapes of gradients are recorded; "
            "record with record_shapes=True, record two ranks, or give gradients_mb="
        )
        raise SelectionError(msg)
    transfers = partial(_transfer_ns, ranks=ranks, rate=rate, on_host=on_one_host(state))
    state = _exchanged(state, (rows, size), ends, transfers, slowest)
    mb = size.sum() / max(len(ends), 1) / 1e6
    return _with_late_ranks(state, ranks).with_note(
        f"extrapolation: 1 rank → {ranks}, which all-reduce {mb:,.3g} MB of gradients per step at {link}"
    )


def with_activations_exchanged(state: State, ranks: int, gb_s: float | None, activations_mb: float | None) -> State:
    """Return the state in which so many tensor parallel ranks all-reduce their activations, beside nothing else.

    Args:
        state: the weights of a job of one rank.
        ranks: how many there are then.
        gb_s: what moves between two ranks, 10^9 bytes/s; None for devices whose NVLink is known.
        activations_mb: 10^6 bytes that are all-reduced per step; for a transformer, 4 x layers x tokens x width x
            bytes of an element.

    Raises:
        SelectionError: the bytes or the bandwidth are not known.
    """
    if activations_mb is None:
        msg = (
            "tensor=: the recording of one rank does not show what tensor parallel ranks send; give activations_mb=, "
            "for a transformer 4 x layers x tokens x width x bytes of an element, or record two ranks"
        )
        raise SelectionError(msg)
    rate, slowest, link = _link(state.graph, gb_s)
    size = checked(activations_mb, "activations_mb", above=True) * 1e6
    took = _transfer_ns(size, ranks=ranks, rate=rate, on_host=on_one_host(state))
    note = f"extrapolation: tensor parallel in {ranks}, which all-reduce {size / 1e6:,.3g} MB per step at {link}"
    return _later_ends(state, took, slowest).with_note(note)


def with_stages_of_one(state: State, stages: int, share: float, microbatches: int | None) -> State:
    """Return the state of one of so many stages of a pipeline, with a `share` of the work of a step.

    A step of m micro-batches takes m + p - 1 turns of a stage. What stages send is small, and left out.

    Raises:
        SelectionError: the number of micro-batches is not given.
    """
    if microbatches is None:
        msg = "pipeline=: a recording of one rank shows no micro-batches; give microbatches=, or record two stages"
        raise SelectionError(msg)
    graph = state.graph
    rows = graph.tree.outermost(works_of(graph, optimizer=True)[:-1])
    work = share * float(graph.activities.duration[rows].sum()) / max(len(_ends(graph)), 1)
    idle = (stages - 1) * work / checked(microbatches, "microbatches", least=1)
    note = f"extrapolation: one of {stages} stages of equal work, {microbatches} micro-batches"
    return _later_ends(state, idle, (1 / (1 + _STAGE_ERROR), 1 + _STAGE_ERROR)).with_note(note)


def _later_ends(state: State, more_ns: float, off: tuple[float, float]) -> State:
    """Return the state in which each step's optimizer, or its end, is later by so much, and how far that may be off."""
    vertices, gap = np.array([each.vertex for each in _ends(state.graph)], np.int64), state.gap.copy()
    before = gap[vertices]
    gap[vertices] += round(more_ns)
    low, high = ((before + each * more_ns) / np.maximum(gap[vertices], 1) for each in off)
    return replace(state, gap=gap, unsure=(*state.unsure, Unsure(vertices[:0], low, high, vertices)))


def _link(graph: DependencyGraph, gb_s: float | None) -> tuple[float, tuple[float, float], str]:
    """Return (bytes per ns, ends of the time of transfers over the predicted one, what the note says of the link)."""
    if gb_s is not None:
        off = 1 + _LINK_ERROR
        return checked(gb_s, "bandwidth_gb_s", above=True), (1 / off, off), f"{gb_s:g} GB/s"
    names = {each.name or "" for trace in graph.traces.values() for each in trace.facts.devices}
    known = [each for each in _LINKS if any(each in name for name in names)]
    if len(known) != 1 or not graph.activities.on_device.any():
        msg = "no collective of one rank shows its network; give bandwidth_gb_s=, or record two ranks"
        raise SelectionError(msg)
    rate = _LINKS[known[0]]
    return rate, (1 / (1 + _LINK_ERROR), _SLOWEST_LINK), f"{rate:g} GB/s, as NVLink between {known[0]}; bandwidth_gb_s="


def _gradients(graph: DependencyGraph) -> tuple[Array, Array]:
    """Return (the operators that complete gradients, in order of time; bytes of each); none if some have no shapes."""
    acts = graph.activities
    rows = np.flatnonzero((acts.kind == ActivityKind.OP) & names_that(is_gradient_ready, graph.names)[acts.name])
    rows = rows[np.argsort(graph.time[2 * rows + 1], kind="stable")]
    texts = argument_texts(graph, ["Input Dims", "Input type"], rows)
    size = [_bytes(*each) for each in zip(texts["Input Dims"], texts["Input type"], strict=True)]
    known = np.array([each > 0 for each in size], np.bool_)
    return rows[known], np.array(size, np.float64)[known]


def _bytes(dims: bytes | None, types: bytes | None) -> float:
    shapes: Any = _decoded(dims) if dims else []
    kinds: Any = _decoded(types) if types else []
    if not shapes or not isinstance(shapes[0], list) or not all(isinstance(each, int) for each in shapes[0]):
        return 0.0
    return float(prod(shapes[0]) * (element_bytes(str(kinds[0])) if kinds else 0))


def _ends(graph: DependencyGraph) -> list[_End]:
    """Return where each step needs its gradients."""
    acts, time = graph.activities, graph.time
    steps = graph.tree.outermost(names_that(is_optimizer, graph.names)[acts.name])
    begins = np.sort(time[2 * steps])
    if not len(begins):
        last = graph.step_spans.end if len(graph.step_spans) else np.array([2 * int(np.argmax(time[1::2])) + 1])
        return [_End(int(time[each]), int(each)) for each in last]
    kernels = np.flatnonzero((acts.kind == ActivityKind.COMPUTATION) & (acts.cause >= 0))
    if not len(kernels):
        return [_End(int(time[2 * each]), 2 * int(each), optimizer=True) for each in steps[np.argsort(time[2 * steps])]]
    launched = time[2 * acts.cause[kernels]]
    kernels, launched = kernels[np.argsort(launched)], np.sort(launched)
    at = np.searchsorted(launched, begins)
    return [
        _End(int(begin), 2 * int(kernels[place]), optimizer=True)
        for begin, place in zip(begins, at, strict=True) if place < len(kernels)
    ]  # fmt: skip


def _last_of_each(graph: DependencyGraph, rows: Array, ends: list[_End]) -> Array:
    """Return, per step, the last gradient before its end, or the last work at all where no gradient is known."""
    acts, time = graph.activities, graph.time
    if not len(rows):
        rows = np.flatnonzero(of_kinds(acts.kind, (ActivityKind.OP, ActivityKind.COMPUTATION)))
        rows = rows[np.argsort(time[2 * rows + 1], kind="stable")]
    at = np.searchsorted(time[2 * rows + 1], [each.limit_ns for each in ends], side="right") - 1
    return rows[np.maximum(at, 0)]


def _transfer_ns(size: float, *, ranks: int, rate: float, on_host: bool) -> float:
    """Return how long an all-reduce of so many bytes takes, ns; `rate` in bytes per ns."""
    if on_host:
        return 2 * (ranks - 1) * (size / rate + _LATENCY_NS[1])
    return float(link_share("all_reduce", ranks)) * size / rate + _LATENCY_NS[0] * log2(ranks)


def _exchanged(
    state: State, gradients: tuple[Array, Array], ends: list[_End], transfer: Callable[[float], float],
    off: tuple[float, float],
) -> State:  # fmt: skip
    """Return the state in which each step's end waits for its buckets, one of which is transferred after the other."""
    rows, size = gradients
    ready = _ready(state.graph, rows)
    source, target, lag, owner, gap = [], [], [], [], state.gap.copy()
    first, of_step = 0, np.searchsorted([each.limit_ns for each in ends], state.graph.time[2 * rows + 1])
    for number, end in enumerate(ends):
        last = int(np.searchsorted(of_step, number, side="right"))
        buckets = _buckets(size[first:last])
        left = np.cumsum([transfer(each) for _, each in buckets][::-1])[::-1]
        at = [first + each for each, _ in buckets]
        first = last
        if end.optimizer:
            source += [int(ready[each]) for each in at]
            target += [end.vertex] * len(at)
            lag += left.tolist()
            owner += [int(rows[each]) for each in at]
        elif at:
            over = max(int(state.graph.time[ready[each]]) + more for each, more in zip(at, left, strict=True))
            gap[end.vertex] += max(0, round(over - int(state.graph.time[end.vertex])))
    state = replace(state, gap=gap)
    vertices = np.array([each.vertex for each in ends if not each.optimizer], np.int64)
    if source:
        lags = np.rint(np.array(lag)).astype(np.int64)
        new = Edges.of(np.array(source), np.array(target), lags, EdgeKind.COLLECTIVE, Provenance.INFERRED,
                       activity=np.array(owner))  # fmt: skip
        state = with_other_edges(state, None, new, "scale_ranks")
    activities = np.unique(np.array(owner, np.int64))
    count = len(activities) + len(vertices)
    ends_of = Unsure(activities, np.full(count, off[0]), np.full(count, off[1]), vertices)
    return replace(state, unsure=(*state.unsure, ends_of))


def _ready(graph: DependencyGraph, rows: Array) -> Array:
    """Return the vertex at which each gradient is ready: the end of its operator, or of the last kernel before that."""
    acts, time = graph.activities, graph.time
    kernels = np.flatnonzero((acts.kind == ActivityKind.COMPUTATION) & (acts.cause >= 0))
    if not len(kernels):
        return 2 * rows + 1
    launched = time[2 * acts.cause[kernels]]
    order = np.argsort(launched, kind="stable")
    at = np.searchsorted(launched[order], time[2 * rows + 1]) - 1
    return np.where(at >= 0, 2 * kernels[order][np.maximum(at, 0)] + 1, 2 * rows + 1)


def _buckets(size: Array) -> list[tuple[int, float]]:
    """Return (the place of the last gradient, bytes) of each bucket.

    Example:
        >>> _buckets(np.array([1e6, 1e6, 1e7]))
        [(1, 2000000.0), (2, 10000000.0)]
    """
    made: list[tuple[int, float]] = []
    full = 0.0
    for place, each in enumerate(size.tolist()):
        full += each
        if full >= (_BUCKET if made else _FIRST_BUCKET) or place == len(size) - 1:
            made.append((place, full))
            full = 0.0
    return made


def _with_late_ranks(state: State, ranks: int) -> State:
    """Return the state in which each step waits for the latest of as many ranks, whose steps differ as recorded."""
    steps = step_lengths(state.graph, state.graph.time, ends=True)[1]
    if len(steps) < _FEW_STEPS:
        return state
    return _later_ends(state, expected_last(ranks) * float(np.std(steps, ddof=1)), _LATE)
