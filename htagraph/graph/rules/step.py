"""STEP: a step is over when its annotation and all the work launched in it are over."""

from __future__ import annotations

import numpy as np

from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import Job

__all__ = ["step"]


def step(job: Job) -> Edges:
    """Return edges to each BOUNDARY from the end of its step's annotation and of the last work on each stream.

    The boundary is a moment that no file recorded: it makes a step's end, device work included, a vertex.
    """
    acts = job.activities
    ends = np.flatnonzero(acts.kind == ActivityKind.BOUNDARY)
    boundary_of = {(int(acts.rank[end]), int(acts.step[end])): int(end) for end in ends}
    marks = np.flatnonzero(acts.kind == ActivityKind.STEP)
    last = _last_works(job)
    source = np.concatenate((marks, last))
    target = np.array([boundary_of[int(acts.rank[row]), int(acts.step[row])] for row in source], np.int64)
    arrivals = Edges.of(2 * source + 1, 2 * target, 0, EdgeKind.STEP, Provenance.ORDER)
    body = Edges.of(2 * ends, 2 * ends + 1, 0, EdgeKind.BODY, Provenance.ORDER, activity=ends)
    return Edges.concatenate([arrivals, body])


def _last_works(job: Job) -> np.ndarray:
    """Return the last work to end on each stream in each step."""
    acts = job.activities
    rows = np.flatnonzero(acts.on_device & (acts.step >= 0))
    order = rows[np.lexsort((acts.end[rows], acts.step[rows], acts.lane[rows]))]
    if not len(order):
        return order
    lane, number = acts.lane[order], acts.step[order]
    is_last = np.concatenate(((lane[1:] != lane[:-1]) | (number[1:] != number[:-1]), [True]))
    return order[is_last]
