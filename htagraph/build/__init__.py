"""Traces → DependencyGraph: the activities, then one edge rule after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from htagraph.activities import Edges
from htagraph.build.activities import Job, RankPart, join, prepare
from htagraph.build.acyclic import acyclic
from htagraph.build.autograd import autograd
from htagraph.build.body import body
from htagraph.build.dataloader import dataloader
from htagraph.build.fit import fit
from htagraph.build.graph import graph
from htagraph.build.host_order import host_order
from htagraph.build.launch import launch
from htagraph.build.settle import settle
from htagraph.build.step import step
from htagraph.build.stream import stream
from htagraph.build.thread import thread
from htagraph.graph import DependencyGraph

__all__ = ["RULES", "RankPart", "build", "prepare"]

RULES: tuple[Callable[[Job], Edges], ...] = (
    host_order, dataloader, body, launch, graph, stream, autograd, step, thread,
)  # fmt: skip
"""The edge rules, in the order in which they run; of equal parallel edges the earlier rule's stays."""


def build(parts: Sequence[RankPart]) -> DependencyGraph:
    """Return the dependency graph of a job from its ranks' parts."""
    job = join(list(parts))
    edges, refused = fit(job, Edges.concatenate([rule(job) for rule in RULES]))
    edges, dropped = acyclic(job, edges)
    edges = settle(job, edges)
    return DependencyGraph.build(
        job.activities,
        edges,
        names=job.names,
        lanes=job.lanes,
        traces=job.traces,
        issues=job.issues + refused + dropped,
    )
