"""The waits between kernels and copies of CUDA graphs, where the recording has them by ids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, joined, looked_up
from htagraph.graph.activities import Activities
from htagraph.graph.evidence.job import RecordedJob
from htagraph.trace.columns import NodeDependencies

__all__ = ["NodeWaits", "node_waits"]


class NodeWaits(NamedTuple):
    """Waits between nodes of one launch of a CUDA graph; activities, one row per wait."""

    source: Ints
    """The kernel or copy that was waited for."""
    target: Ints
    """The kernel or copy that waited."""


def node_waits(job: RecordedJob) -> NodeWaits:
    """Return the waits between nodes of CUDA graphs that the traces of all ranks record."""
    recorded = [(rank, trace.dependencies) for rank, trace in job.traces.items() if len(trace.dependencies)]
    waits_of_ranks = [_of_rank(job.activities, rank, waits) for rank, waits in recorded]
    source, target = joined(waits_of_ranks, 2)
    return NodeWaits(source, target)


def _of_rank(acts: Activities, rank: int, waits: NodeDependencies) -> tuple[Array, Array]:
    """Return (source, target) as activities; a wait is left out if a window of the recording lacks one of the two."""
    of_rank = acts.of_rank(rank)
    rows = of_rank.start + np.flatnonzero(acts.on_device[of_rank])
    order = rows[np.argsort(acts.event[rows], kind="stable")]
    events = acts.event[order]
    source = looked_up(events, order, waits.source)
    target = looked_up(events, order, waits.target)
    are_kept = (source >= 0) & (target >= 0)
    return source[are_kept], target[are_kept]
