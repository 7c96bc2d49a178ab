"""Facts of a recording that show slow ways of reducing gradients: behind the backward pass, and in wide numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from htagraph.core.kinds import COMMUNICATION, ActivityKind, of_kinds
from htagraph.core.naming import collective_op, is_of_ddp, names_that
from htagraph.core.statistics import MOST
from htagraph.findings.change import Gain
from htagraph.findings.phrases import time_text
from htagraph.findings.way_facts import WayFact, named_as
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.accumulation import are_behind_backward, passes_of
from htagraph.queries.late_reductions import late_reductions

__all__ = ["at_most_overlap", "beside_backward", "how_to_overlap", "whole_reductions", "wide_gradients"]

_HALF: Final = 0.5
"""The share of the bytes that stays when numbers of 32 bits are sent in 16 bits. It follows from the formats."""
_REDUCED: Final = {"all_reduce": "all-reduced", "reduce_scatter": "reduced"}
"""What happens to gradients, by the operation."""


def beside_backward(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield the reductions of gradients that begin behind the backward pass, and beside which nothing of it runs.

    Example:
        >>> import htagraph as hg
        >>> list(beside_backward(hg.load("data/demo")))
        []
    """
    late = late_reductions(graph)
    if late is None:
        return
    rows = late.activity
    op = "reduce_scatter" if _scatters(graph) else collective_op(graph.names[graph.activities.name[rows[0]]])
    mean_us = float(graph.activities.duration[rows].mean()) / 1000
    verb = _REDUCED.get(op, "reduced")
    text = f"Gradients are {verb} when the backward pass is over ({time_text(mean_us)} each time), and not beside it"
    yield text, (("--perfect-overlap", ""),), rows


def at_most_overlap(graph: DependencyGraph, gain: Gain) -> Gain:
    """Return the gain of overlap, without a sure part where the replay moves other communication, too."""
    late = late_reductions(graph)
    is_exact = late is not None and late.is_all
    return gain if is_exact else replace(gain, low_us=min(gain.low_us, 0.0))


def how_to_overlap(graph: DependencyGraph) -> str:
    """Return how reductions of gradients come to run beside the backward pass, by what reduces them."""
    if _has_ddp(graph):
        return "make the buckets of DistributedDataParallel smaller (bucket_cap_mb)"
    late = late_reductions(graph)
    names = np.unique(graph.activities.name[late.activity]).tolist() if late else []
    is_sharded = any(collective_op(graph.names[name]) == "reduce_scatter" for name in names) or _scatters(graph)
    if is_sharded:
        return "reduce each gradient once it is ready (register_post_accumulate_grad_hook), or use fully_shard"
    return "wrap the model in DistributedDataParallel (bucket_cap_mb sets how much it reduces at once)"


def wide_gradients(graph: DependencyGraph) -> Iterator[WayFact]:
    """Yield the all-reduces of gradients, each as a whole, whose names stand for little else.

    Example:
        >>> import htagraph as hg
        >>> list(wide_gradients(hg.load("data/gloo_ddp")))[0][1]
        (('--scale', 'kind=host_communication,name=gloo:all_reduce:0.5'),)
    """
    acts = graph.activities
    passes = [passes_of(graph, rank) for rank in graph.ranks]
    parts = [each.reductions[are_behind_backward(each.asked, each)] for each in passes]
    rows = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    if not len(rows):
        return
    names = np.unique(acts.name[rows]).tolist()
    has_name = np.flatnonzero(np.isin(acts.name, names) & of_kinds(acts.kind, COMMUNICATION))
    if len(rows) <= MOST * len(has_name):  # most of the name are for something else
        return
    kind = "communication" if acts.on_device[rows].all() else "host_communication"
    mean_us = float(acts.duration[rows].mean()) / 1000
    text = f"All-reduces of gradients take {time_text(mean_us)} each"
    yield text, tuple(("--scale", f"kind={kind},{named_as(graph, name)}:{_HALF}") for name in names), rows


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
    is_scatter = np.array([op == "reduce_scatter" for op in graph.matches.op], np.bool_)
    on_host = acts.kind[waits.activity] == ActivityKind.HOST_COMMUNICATION
    asked = waits.activity[(waits.collective >= 0) & on_host & is_scatter[waits.collective]]
    is_whole = names_that(lambda name: collective_op(name, host=True) == "all_reduce", graph.names)
    rows = asked[is_whole[acts.name[asked]]]
    if not len(rows):
        return
    names = np.unique(acts.name[rows]).tolist()
    has_name = np.flatnonzero(np.isin(acts.name, names) & (acts.kind == ActivityKind.HOST_COMMUNICATION))
    if len(rows) <= MOST * len(has_name):  # most of the name are all-reduces indeed
        return
    mean_us = float(acts.duration[rows].mean()) / 1000
    text = f"Reduce-scatters run as all-reduces, which send twice the bytes ({time_text(mean_us)} each)"
    yield text, tuple(("--scale", f"kind=host_communication,{named_as(graph, name)}:{_HALF}") for name in names), rows


def _has_ddp(graph: DependencyGraph) -> bool:
    """Return whether gradients are reduced by DistributedDataParallel."""
    used = np.unique(graph.activities.name)
    return bool(names_that(is_of_ddp, graph.names)[used].any())


def _scatters(graph: DependencyGraph) -> bool:
    """Return whether some collective of the job is a reduce-scatter, by its calls."""
    matches = graph.matches
    return matches is not None and "reduce_scatter" in matches.op
