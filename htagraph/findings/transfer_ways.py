"""Facts of a recording that show slow ways of reducing gradients: behind the backward pass, and in wide numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from htagraph.core.arrays import Ints
from htagraph.core.kinds import COMMUNICATION, ActivityKind, of_kinds
from htagraph.core.naming import collective_op, is_of_ddp, names_that
from htagraph.core.statistics import MOST
from htagraph.findings.change import Gain
from htagraph.findings.phrases import time_text
from htagraph.findings.way_facts import WayFact, named_as
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.accumulation import are_behind_backward, passes_of

if TYPE_CHECKING:
    from htagraph.queries.late_reductions import LateReductions

__all__ = [
    "at_most_overlap",
    "beside_backward",
    "how_to_overlap",
    "how_to_send_narrow",
    "whole_reductions",
    "wide_gradients",
]

_HALF: Final = 0.5
"""The share of the bytes that stays when numbers of 32 bits are sent in 16 bits. It follows from the formats."""
_SMALLEST_BUCKET_BYTES: Final = 2**20
"""Bytes of the smallest bucket of DistributedDataParallel by default. Source: torch.nn.parallel.distributed. Doubled,
reductions of 2 MB that are one bucket are not split."""
_REDUCED: Final = {"all_reduce": "all-reduced", "reduce_scatter": "reduced"}
"""The participle for gradients, by the operation."""


def beside_backward(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield the reductions of gradients that begin behind the backward pass, and beside which nothing of it runs.

    Example:
        >>> import htagraph as hg
        >>> list(beside_backward(hg.load("data/demo")))
        []
    """
    late = _late_reductions(graph)
    if late is None or (_has_ddp(graph) and _are_small(graph, late.activity)):
        return
    rows = late.activity
    op = "reduce_scatter" if _scatters(graph) else collective_op(graph.names[graph.activities.name[rows[0]]])
    verb = _REDUCED.get(op, "reduced")
    yield (
        f"Gradients are {verb} when the backward pass is over ({_mean_text(graph, rows)} each time), and not beside it",
        (("--perfect-overlap", ""),),
        rows,
    )


def at_most_overlap(graph: DependencyGraph, gain: Gain) -> Gain:
    """Return the gain of overlap, without a sure part where the replay moves other communication, too."""
    late = _late_reductions(graph)
    is_exact = late is not None and late.is_all
    return gain if is_exact else replace(gain, low_us=min(gain.low_us, 0.0))


def _late_reductions(graph: DependencyGraph) -> LateReductions | None:
    """Return the reductions of gradients that begin behind the backward pass; None for a job without communication."""
    if not of_kinds(graph.activities.kind, COMMUNICATION).any():
        return None
    from htagraph.queries.late_reductions import late_reductions  # jobs without communication do without

    return late_reductions(graph)


def how_to_overlap(graph: DependencyGraph) -> str:
    """Return how reductions of gradients come to run beside the backward pass, by the code that reduces gradients."""
    each_gradient = "reduce each gradient once it is ready (register_post_accumulate_grad_hook)"
    if _has_ddp(graph):
        return "make the buckets of DistributedDataParallel smaller (bucket_cap_mb)"
    if _scatters(graph):
        return f"{each_gradient}, or use fully_shard"
    late = _late_reductions(graph)
    if late and _are_small(graph, late.activity):  # one bucket, by default
        return each_gradient
    return "wrap the model in DistributedDataParallel (bucket_cap_mb sets how much it reduces at once)"


def how_to_send_narrow(graph: DependencyGraph) -> str:
    """Return how gradients are sent in 16 bits, by the code that reduces gradients."""
    if _has_ddp(graph):
        return "model.register_comm_hook(None, default_hooks.bf16_compress_hook)"
    if _scatters(graph):
        return "convert to bfloat16 before reduce_scatter, and back after it"
    return "convert to bfloat16 before all_reduce, and back after it"


def wide_gradients(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield the all-reduces of gradients, each as a whole, whose names stand for little else.

    Example:
        >>> import htagraph as hg
        >>> list(wide_gradients(hg.load("data/gloo_ddp")))[0][1]
        (('--scale', 'kind=host_communication,name=gloo:all_reduce:0.5'),)
    """
    acts = graph.activities
    rows = np.zeros(0, np.int64)
    for rank in graph.ranks:
        passes = passes_of(graph, rank)
        is_behind = are_behind_backward(passes.asked, passes)
        rows = np.append(rows, passes.reductions[is_behind])
    if not len(rows):
        return
    names = np.unique(acts.name[rows]).tolist()
    has_name = np.flatnonzero(np.isin(acts.name, names) & of_kinds(acts.kind, COMMUNICATION))
    if len(rows) <= MOST * len(has_name):  # most of the name are for something else
        return
    kind = "communication" if acts.on_device[rows].all() else "host_communication"
    yield (
        f"All-reduces of gradients take {_mean_text(graph, rows)} each",
        _halved(graph, kind, names),
        rows,
    )


def whole_reductions(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield the reduce-scatters that a backend of hosts runs as all-reduces, as gloo does.

    An all-reduce sends all sums to all ranks: twice the bytes of a reduce-scatter.

    Example:
        >>> import htagraph as hg
        >>> list(whole_reductions(hg.load("data/gloo_ddp")))
        []
    """
    acts = graph.activities
    waits = graph.waits
    if not _scatters(graph) or graph.matches is None:
        return
    is_scatter = np.array(
        [op == "reduce_scatter" for op in graph.matches.op],
        np.bool_,
    )
    is_asked = waits.collective >= 0
    is_asked &= acts.kind[waits.activity] == ActivityKind.HOST_COMMUNICATION
    is_asked &= is_scatter[waits.collective]
    asked = waits.activity[is_asked]
    is_whole = names_that(lambda name: collective_op(name, host=True) == "all_reduce", graph.names)
    rows = asked[is_whole[acts.name[asked]]]
    if not len(rows):
        return
    names = np.unique(acts.name[rows]).tolist()
    has_name = np.flatnonzero(np.isin(acts.name, names) & (acts.kind == ActivityKind.HOST_COMMUNICATION))
    if len(rows) <= MOST * len(has_name):  # most of the name are all-reduces indeed
        return
    yield (
        f"Reduce-scatters run as all-reduces, which send twice the bytes ({_mean_text(graph, rows)} each)",
        _halved(graph, "host_communication", names),
        rows,
    )


def _mean_text(graph: DependencyGraph, rows: Ints) -> str:
    """Return the mean duration of some activities, in words."""
    mean_ns = float(graph.activities.duration[rows].mean())
    return time_text(mean_ns / 1000)


def _are_small(graph: DependencyGraph, rows: Ints) -> bool:
    """Return whether each of some reductions was recorded with less than the smallest bucket of its job."""
    waits = graph.waits
    bytes_of = np.zeros(len(graph.activities), np.int64)
    bytes_of[waits.activity] = waits.bytes
    largest = int(bytes_of[rows].max())
    return 0 < largest <= _SMALLEST_BUCKET_BYTES


def _halved(graph: DependencyGraph, kind: str, names: Sequence[int]) -> tuple[tuple[str, str], ...]:
    """Return the changes by which communication takes half of its time.

    Args:
        graph: the job.
        kind: the kind of the communication, as an option of the command line has it.
        names: its names, indices into `graph.names`.
    """
    selections = [f"kind={kind},{named_as(graph, name)}" for name in names]
    return tuple(("--scale", f"{selection}:{_HALF}") for selection in selections)


def _has_ddp(graph: DependencyGraph) -> bool:
    """Return whether gradients are reduced by DistributedDataParallel."""
    used = np.unique(graph.activities.name)
    return bool(names_that(is_of_ddp, graph.names)[used].any())


def _scatters(graph: DependencyGraph) -> bool:
    """Return whether some collective of the job is a reduce-scatter, by its calls."""
    matches = graph.matches
    return matches is not None and "reduce_scatter" in matches.op
