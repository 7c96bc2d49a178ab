"""Traces → DependencyGraph: the activities, then one edge rule after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from htagraph.graph.activities import Edges
from htagraph.graph.evidence.activities import Job, RankPart, join, prepare
from htagraph.graph.construction.acyclic import acyclic
from htagraph.graph.rules.autograd import autograd
from htagraph.graph.rules.body import body
from htagraph.graph.rules.collective import collective
from htagraph.graph.rules.dataloader import dataloader
from htagraph.graph.rules.event_wait import event_wait
from htagraph.graph.construction.fit import fit
from htagraph.graph.rules.cuda_graph import graph
from htagraph.graph.rules.host_order import host_order
from htagraph.graph.rules.host_sync import host_sync
from htagraph.graph.construction.latency import latency
from htagraph.graph.rules.launch import launch
from htagraph.graph.evidence.matching import match
from htagraph.graph.rules.memcpy_sync import memcpy_sync
from htagraph.graph.rules.p2p import p2p
from htagraph.graph.rules.queue_full import queue_full
from htagraph.graph.construction.settle import settle
from htagraph.graph.rules.step import step
from htagraph.graph.rules.stream import stream
from htagraph.graph.rules.thread import thread
from htagraph.graph.clocks import estimate_clocks
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.matches import with_joins
from htagraph.core.naming import DEFAULT_NAMING, Naming

__all__ = ["RULES", "RankPart", "build", "prepare"]

RULES: tuple[Callable[[Job], Edges], ...] = (
    host_order, dataloader, body, launch, graph, stream, autograd, step, thread, event_wait, host_sync, memcpy_sync,
    queue_full, collective, p2p,
)  # fmt: skip
"""The edge rules, in the order in which they run; of equal parallel edges the earlier rule's stays."""


def build(parts: Sequence[RankPart], naming: Naming = DEFAULT_NAMING) -> DependencyGraph:
    """Return the dependency graph of a job from its ranks' parts."""
    job = _together(join(list(parts), naming))
    edges, refused = fit(job, Edges.concatenate([rule(job) for rule in RULES]))
    edges, dropped = acyclic(job, edges)
    edges = settle(job, latency(job, edges))
    refused += tuple(issue for issues in job.refused.values() for issue in issues)
    return DependencyGraph.build(
        job.activities, edges, names=job.names, lanes=job.lanes, traces=job.traces,
        issues=job.issues + refused + dropped, clocks=job.clocks, matches=job.matches,
    )  # fmt: skip


def _together(job: Job) -> Job:
    """Return the job with its ranks' collectives matched and their clocks compared."""
    found = match(job.activities, job.names, job.lanes, job.traces, job.naming)
    clocks = estimate_clocks(list(job.traces), job.activities, found)
    activities, matches = with_joins(job.activities, found, clocks)
    return replace(job, activities=activities, clocks=clocks, matches=matches, issues=job.issues + found.issues)
