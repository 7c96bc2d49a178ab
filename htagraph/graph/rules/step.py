"""STEP: end of a step's annotation, and of its last work on each stream → the step's BOUNDARY. Lag 0, by definition."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob

__all__ = ["step"]


def step(job: RecordedJob) -> Edges:
    """Return the edges into each BOUNDARY: a step ends when its annotation and all work launched in it have ended.

    The BOUNDARY is added by the graph, not recorded in a file, so that the end of a step, device work included, is a
    vertex.
    """
    acts = job.activities
    ends = np.flatnonzero(acts.kind == ActivityKind.BOUNDARY)
    boundary_of = {(int(acts.rank[end]), int(acts.step[end])): int(end) for end in ends}
    marks = np.flatnonzero(acts.kind == ActivityKind.STEP)
    last = _last_on_streams(job)
    source = np.concatenate((marks, last))
    target = np.array([boundary_of[int(acts.rank[row]), int(acts.step[row])] for row in source], np.int64)
    arrivals = Edges.of(2 * source + 1, 2 * target, 0, EdgeKind.STEP, Provenance.ORDER)
    body = Edges.of(2 * ends, 2 * ends + 1, 0, EdgeKind.BODY, Provenance.ORDER, activity=ends)
    return Edges.concatenate([arrivals, body])


def _last_on_streams(job: RecordedJob) -> np.ndarray:
    """Return the kernel or copy that ends last on each stream in each step."""
    acts = job.activities
    rows = np.flatnonzero(acts.on_device & (acts.step >= 0))
    order = rows[np.lexsort((acts.end[rows], acts.step[rows], acts.lane[rows]))]
    if not len(order):
        return order
    lane, number = acts.lane[order], acts.step[order]
    is_last = np.concatenate(((lane[1:] != lane[:-1]) | (number[1:] != number[:-1]), [True]))
    return order[is_last]
