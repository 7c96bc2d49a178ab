"""Regions of a job that follow a region named after a warm-up: the measured part of the job."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import marked
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import is_warm_up, names_that
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["WarmRegion", "warm_region"]


class WarmRegion(NamedTuple):
    """A region of a job that begins when the warm-up is over."""

    activity: int
    name: str
    begin_us: float
    """Since the job's first activity, µs."""
    end_us: float
    """Since the job's first activity, µs."""


def warm_region(graph: DependencyGraph, rank: int) -> WarmRegion | None:
    """Return the last region of a rank that launches work after all its warm-ups; None without a named warm-up.

    Of regions inside one another, the innermost counts: regions around may prepare the measured work.

    Example:
        >>> import htagraph as hg
        >>> warm_region(hg.load("data/demo"), 0) is None
        True
    """
    acts = graph.activities
    is_region = (acts.kind == ActivityKind.ANNOTATION) & (acts.rank == rank)
    warm_ups = is_region & names_that(is_warm_up, graph.names)[acts.name]
    if not warm_ups.any():
        return None
    launched = acts.cause[acts.on_device & (acts.cause >= 0)]
    launches = marked(launched, len(acts))
    begins_later = acts.start >= acts.end[warm_ups].max()
    after = is_region & begins_later & graph.tree.around(launches)
    innermost = np.flatnonzero(after & ~graph.tree.around(after))
    if not len(innermost):
        return None
    last = int(innermost[acts.start[innermost].argmax()])
    begin_ns, end_ns = (int(graph.time[vertex]) - graph.origin_ns for vertex in (2 * last, 2 * last + 1))
    return WarmRegion(last, graph.names[acts.name[last]], begin_ns / 1000, end_ns / 1000)
