"""Data, tensor and pipeline parallel ranks, added to a recording that shows no collectives of their groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from math import prod
from typing import Final

import msgspec
import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import SelectionError
from htagraph.core.flops import element_bytes
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.core.naming import is_gradient_ready, is_optimizer, names_that
from htagraph.core.statistics import SEVERAL
from htagraph.graph.activities import Edges
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import step_lengths
from htagraph.queries.arguments import argument_texts
from htagraph.queries.weights import State, Unsure, checked
from htagraph.trace.readers import setting_for
from htagraph.whatif.growth import (
    SLOWEST_LINK,
    TRANSFER_ERROR,
    device_names,
    expected_last,
    on_one_host,
    with_unknown_links,
)
from htagraph.whatif.layout import STAGE_ERROR, works_of
from htagraph.whatif.links import link_share
from htagraph.whatif.rewire import with_other_edges

__all__ = ["with_activations_exchanged", "with_gradients_exchanged", "with_stages_of_one"]

_LINKS: Final = {"PCI": 24.0, "A100": 190.0, "H100": 358.0}
"""Rate of a link in an all-reduce of 2 to 8 devices of one node, 10^9 bytes/s, by the first text in the device's name.
Source: NCCL on four A100 cards whose NVLinks connect pairs, so that pairs meet over PCIe, and over NVLink on A100, 173
to 209 (vidur, 7d47513), and on 8 H100 (autoparallel, a54c252)."""
_LATENCY_NS: Final = (60_000, 40_000)
"""The fixed part of an all-reduce, ns: among devices of one host, however many (vidur: 47 to 74 µs for 2, 4 and 8),
and on hosts in each turn of a ring (measured with gloo). Doubled, only tiny models notice."""
_FIRST_BUCKET, _BUCKET = 1 << 20, 25 << 20
"""Bytes at which DistributedDataParallel closes its first and its other buckets. Source: PyTorch's defaults."""
_LATE: Final = (0.0, 1.5)
"""Ends of how much later the last rank is, of the time expected from how steps of a rank differ: all ranks may be late
in the same steps. Doubled, jobs with uneven steps have wider intervals."""


def with_gradients_exchanged(state: State, ranks: int, gb_s: float | None, gradients_mb: float | None) -> State:
    """Return the state in which so many ranks, or replicas of all, all-reduce gradients, in buckets beside backward.

    The optimizer's step waits for the last bucket: the operator on hosts, its first kernel on devices. Gradients and
    their sizes are taken from the operators that accumulate them.

    Args:
        state: the weights of a job whose ranks exchange no gradients.
        ranks: how many there are then of each.
        gb_s: what moves between two ranks, 10^9 bytes/s, or through the network of the one host that all ranks share;
            None for devices whose NVLink is known.
        gradients_mb: 10^6 bytes of gradients per step, 0 without training; None where the recording shows their shapes.

    Raises:
        SelectionError: sizes or the bandwidth are not known.
    """
    if gradients_mb == 0:
        return state.with_note(f"extrapolation: {ranks} data parallel ranks exchange nothing, as gradients_mb=0 says")
    state, rate, off, link = _link(state, gb_s, ranks)
    transfer = partial(_transfer_ns, ranks=ranks, rate=rate, on_host=on_one_host(state))
    if gradients_mb is not None:
        size = checked(gradients_mb, "gradients_mb", above=True) * 1e6
        state = _later_ends(state, transfer(size), (0.0, off[1]))
    else:
        state, size = _exchanged(state, transfer, off)
    return _with_late_ranks(state, ranks).with_note(
        f"extrapolation: {ranks} data parallel ranks all-reduce {size / 1e6:,.3g} MB of gradients per step at {link}"
    )


def with_activations_exchanged(state: State, ranks: int, gb_s: float | None, activations_mb: float | None) -> State:
    """Return the state in which so many tensor parallel ranks all-reduce their activations, beside nothing else.

    Raises:
        SelectionError: the bytes or the bandwidth are not known.
    """
    if activations_mb is None:
        msg = (
            "tensor=: the recording of one rank does not show what tensor parallel ranks send; give activations_mb=, "
            "for a transformer 4 x layers x tokens x width x bytes of an element, or record two ranks"
        )
        raise SelectionError(msg)
    state, rate, off, link = _link(state, gb_s, ranks)
    size = checked(activations_mb, "activations_mb", above=True) * 1e6
    took = _transfer_ns(size, ranks=ranks, rate=rate, on_host=on_one_host(state))
    note = f"extrapolation: tensor parallel in {ranks}, which all-reduce {size / 1e6:,.3g} MB per step at {link}"
    return _later_ends(state, took, off).with_note(note)


def with_stages_of_one(state: State, stages: int, share: float, microbatches: int | None) -> State:
    """Return the state of one of so many stages of a pipeline, with a `share` of the work of a step.

    A step of m micro-batches takes m + p - 1 turns of a stage. Messages of stages are small, and left out.

    Raises:
        SelectionError: the number of micro-batches is not given.
    """
    if microbatches is None:
        msg = "pipeline=: a recording of one rank shows no micro-batches; give microbatches=, or record two stages"
        raise SelectionError(msg)
    graph = state.graph
    rows = graph.tree.outermost(works_of(graph, optimizer=True)[:-1])
    work = share * float(graph.activities.duration[rows].sum()) / max(len(graph.step_spans), 1)
    idle = (stages - 1) * work / checked(microbatches, "microbatches", least=1)
    note = f"extrapolation: one of {stages} stages of equal work, {microbatches} micro-batches"
    return _later_ends(state, idle, (1 / (1 + STAGE_ERROR), 1 + STAGE_ERROR)).with_note(note)


def _later_ends(state: State, more_ns: float, off: tuple[float, float]) -> State:
    """Return the state in which each step's optimizer, or its end, is later by so much, and how far that may be off."""
    graph = state.graph
    gap = state.gap.copy()
    of_ranks = [_optimizers(graph, rank)[1] for rank in graph.ranks]
    vertices = np.unique(np.concatenate(of_ranks))
    if not len(vertices):
        last_end = 2 * np.argmax(graph.time[1::2], keepdims=True) + 1
        vertices = graph.step_spans.end if len(graph.step_spans) else last_end
    before = gap[vertices]
    gap[vertices] += round(more_ns)
    predicted = np.maximum(gap[vertices], 1)
    low = (before + off[0] * more_ns) / predicted
    high = (before + off[1] * more_ns) / predicted
    return replace(state, gap=gap, unsure=(*state.unsure, Unsure(vertices[:0], low, high, vertices)))


def _link(state: State, gb_s: float | None, ranks: int) -> tuple[State, float, tuple[float, float], str]:
    """Return (the state with what is not known, bytes per ns, ends of transfers' times over these, the link's name)."""
    graph, off = state.graph, 1 + TRANSFER_ERROR
    if gb_s is not None:
        return state, checked(gb_s, "bandwidth_gb_s", above=True), (1 / off, off), f"{gb_s:g} GB/s"
    names = device_names(graph)
    links = {next((link for link in _LINKS if link in name), "") for name in names} - {""}
    if len(links) != 1 or not graph.activities.on_device.any():
        msg = "no collective shows the network of gradients; give bandwidth_gb_s=, or record two ranks"
        raise SelectionError(msg)
    (link,) = links
    rate = _LINKS[link]
    least = 1 / SLOWEST_LINK if link == "PCI" else 1 / off
    said = f"{rate:g} GB/s, as {'PCIe' if link == 'PCI' else f'NVLink between {link}'} (bandwidth_gb_s= says another)"
    state, slower = with_unknown_links(state, ranks * len(graph.ranks))
    return state, rate, (least, max(SLOWEST_LINK, slower)), said


def _gradients(graph: DependencyGraph) -> tuple[Array, Array]:
    """Return (the operators that complete gradients, in order of time; bytes of each); none if some have no shapes."""
    acts = graph.activities
    ready = (acts.kind == ActivityKind.OP) & names_that(is_gradient_ready, graph.names)[acts.name]
    rows = np.flatnonzero(ready & ~graph.tree.around(ready))  # not the engine's operators around them
    rows = rows[np.argsort(graph.time[2 * rows + 1], kind="stable")]
    texts = argument_texts(graph, ["Input Dims", "Input type"], rows)
    size = [_bytes(*each) for each in zip(texts["Input Dims"], texts["Input type"], strict=True)]
    kept = slice(None if all(size) else 0)
    return rows[kept], np.array(size, np.float64)[kept]


def _bytes(dims: bytes | None, types: bytes | None) -> float:
    shapes, kinds = (msgspec.json.decode(text) if text else [] for text in (dims, types))
    if not shapes or not isinstance(shapes[0], list) or not all(isinstance(each, int) for each in shapes[0]):
        return 0.0
    return float(prod(shapes[0]) * (element_bytes(str(kinds[0])) if kinds else 0))


def _optimizers(graph: DependencyGraph, rank: int) -> tuple[Array, Array]:
    """Return (when each step asks for its gradients, what needs them: the optimizer, its first kernel on devices)."""
    asks = graph.tree.outermost(names_that(is_optimizer, graph.names)[graph.activities.name])
    asks = asks[graph.activities.rank[asks] == rank]
    begins, (kernels, launched) = np.sort(graph.time[2 * asks]), _launched(graph, rank)
    if not len(kernels):
        return begins, 2 * asks[np.argsort(graph.time[2 * asks])]
    place = np.searchsorted(launched, begins)
    kept = place < len(kernels)
    return begins[kept], 2 * kernels[place[kept]]


def _launched(graph: DependencyGraph, rank: int) -> tuple[Array, Array]:
    """Return (kernels of a rank, when each was launched), in that order."""
    acts = graph.activities
    kernels = np.flatnonzero((acts.kind == ActivityKind.COMPUTATION) & (acts.cause >= 0) & (acts.rank == rank))
    launched = graph.time[2 * acts.cause[kernels]]
    order = np.argsort(launched, kind="stable")
    return kernels[order], launched[order]


def _transfer_ns(size: float, *, ranks: int, rate: float, on_host: bool) -> float:
    """Return how long an all-reduce of so many bytes takes, ns; `rate` in bytes per ns."""
    if on_host:
        return 2 * (ranks - 1) * (size / rate + _LATENCY_NS[1])
    return float(link_share("all_reduce", ranks)) * size / rate + _LATENCY_NS[0]


def _exchanged(state: State, transfer: Callable[[float], float], off: tuple[float, float]) -> tuple[State, float]:
    """Return the state in which each step's end waits for its buckets, one transferred after the other, and bytes."""
    graph, edges, (every, sizes) = state.graph, list[tuple[int, int, float, int]](), _gradients(state.graph)
    for rank in graph.ranks:
        own = graph.activities.rank[every] == rank
        rows, size = every[own], sizes[own]
        begins, vertices = _optimizers(graph, rank)
        if not len(rows) or not len(begins):
            shapes = setting_for(graph.traces.values(), "shapes")
            msg = (
                "no all-reduce of gradients was recorded, nor gradients with shapes and an optimizer; "
                f"record with {shapes}, record two data parallel ranks, or give gradients_mb= "
                "(0 if nothing is trained)"
            )
            raise SelectionError(msg)
        kernels, launched = _launched(graph, rank)
        ended = graph.time[2 * rows + 1]
        last = np.searchsorted(launched, ended) - 1  # the last kernel that was launched for a gradient
        ready = np.where(last >= 0, 2 * kernels[last] + 1, 2 * rows + 1) if len(kernels) else 2 * rows + 1
        bounds = [0, *np.searchsorted(ended, begins, side="right").tolist()]
        for (first, end), vertex in zip(pairwise(bounds), vertices.tolist(), strict=True):
            left = 0.0
            for place, each in reversed(_buckets(size[first:end])):
                left += transfer(each)
                edges.append((int(ready[first + place]), vertex, left, int(rows[first + place])))
    source, target, lag, owner = (np.array(each) for each in zip(*edges, strict=True))
    new = Edges.of(source, target, np.rint(lag).astype(np.int64), EdgeKind.COLLECTIVE, Provenance.INFERRED,
                   activity=owner)  # fmt: skip
    state = with_other_edges(state, None, new, "scale_ranks")
    unsure = Unsure(owner, np.full(len(owner), off[0]), np.full(len(owner), off[1]))
    return replace(state, unsure=(*state.unsure, unsure)), float(size[: bounds[-1]].sum()) / len(begins)  # last rank's


def _buckets(size: Array) -> list[tuple[int, float]]:
    """Return (the place of the last gradient, bytes) of each bucket."""
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
    if len(steps) < SEVERAL:
        return state
    return _later_ends(state, expected_last(ranks) * float(np.std(steps, ddof=1)), _LATE)
