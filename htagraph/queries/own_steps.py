"""How long each rank takes for each step by itself, without waiting for others.

Recorded steps are equally long on all ranks that synchronize: who is fast waits for who is slow. So the job is replayed
with every rank on its own: a collective begins when this rank arrives, and takes what its transfer took. What is left
is what the rank does itself, untraced host time included, and nothing in it depends on another rank or on clocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, marked
from htagraph.core.computing import once
from htagraph.core.kinds import TRANSFERS, ActivityKind, EdgeKind, of_kinds
from htagraph.core.statistics import middles
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.replay import predict
from htagraph.queries.weights import NEVER

__all__ = ["OwnSteps", "own_steps", "times_alone"]


@dataclass(frozen=True, eq=False)
class OwnSteps:
    """The own time of each rank in each step, and how long the step lasted."""

    steps: npt.NDArray[np.int64]
    """Numbers of the steps; -1 alone for a job without steps, whose recording counts as one."""
    own: npt.NDArray[np.float64]
    """ns, by rank and step: from one step's last arrival at a collective to the next one's, the rank on its own; NaN
    where a rank has no matched collective in the step."""
    work: npt.NDArray[np.float64]
    """The same if transfers take no time, ns: what the rank does, apart from how long its network takes."""
    lasted: npt.NDArray[np.float64]
    """The same as recorded, others waited for, ns."""


@once
def own_steps(graph: DependencyGraph) -> OwnSteps:
    """Return how long each rank takes for each step by itself, without waiting for others.

    A step ends for a rank when it arrives at its last collective there; the first one begins with the step itself. In a
    job without steps the recording counts as one step, from a rank's first arrival to its last. Where only some ranks
    recorded steps, a collective of the others is in the step that it is in there.

    The transfer of a collective is the median of its members', as a wrong clock makes it longer on one and shorter on
    another. Of an unmatched one nobody knows how much is waiting: the shortest of its kind counts.
    """
    waits = graph.waits
    recorded = graph.time - graph.origin_ns  # small numbers, which floats hold exactly
    alone, working = times_alone(graph)
    met = waits.collective >= 0
    activity = waits.activity[met]
    place = np.searchsorted(graph.ranks, waits.rank[met])
    step = _step_of(graph, activity, place, waits.collective[met])
    times = (alone, working, recorded)
    if not (step >= 0).any():
        return OwnSteps(np.full(1, -1), *(_between(time, activity, place, len(graph.ranks)) for time in times))
    activity, place, step = activity[step >= 0], place[step >= 0], step[step >= 0]
    steps, at = np.unique(step, return_inverse=True)
    shape = (len(graph.ranks), len(steps))
    cell = place * shape[1] + at.ravel()
    begin = _begin_of_step(graph, int(steps[0]))
    latest = (_latest(time[2 * activity], cell, shape) for time in times)
    # the time from one column to the next; the first one counts from `begin`
    return OwnSteps(steps, *(np.diff(np.concatenate([begin[:, None], each], axis=1), axis=1) for each in latest))


def times_alone(graph: DependencyGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the moment of each vertex if every rank is on its own, ns since the origin; the same without transfers."""
    waits = graph.waits
    transfer = np.zeros(len(graph.activities), np.int64)
    transfer[waits.activity] = waits.pure
    met = waits.collective >= 0
    low, high = middles(waits.transfer[met], waits.collective[met])
    transfer[waits.activity[met]] = (low + high) // 2
    gap = graph.gap.copy()
    gap[_released(graph)[waits.activity]] = 0  # unexplained time at the end of a transfer is no work
    alone, working = (
        predict(graph, lag=_lags_alone(graph, each), gap=gap) - graph.origin_ns
        for each in (transfer, np.zeros_like(transfer))
    )
    return alone, working


def _lags_alone(graph: DependencyGraph, transfer: Array) -> npt.NDArray[np.int64]:
    """Return the lags of all edges where no end waits for another rank, ns."""
    edges = graph.edges
    lag = graph.edges.lag.copy()
    lag[_arriving(graph)] = NEVER
    released = _released(graph)
    transfer = transfer - graph.time[2 * np.arange(len(transfer)) + 1] + graph.time[released]  # what follows takes time
    member = np.full(graph.vertex_count, -1, np.int64)
    member[released[graph.waits.activity]] = graph.waits.activity
    last = np.flatnonzero(of_kinds(edges.kind, (EdgeKind.BODY, EdgeKind.HOST_ORDER)) & (member[edges.target] >= 0))
    owner = member[edges.target[last]]
    lag[last] = np.maximum(transfer[owner] - (graph.time[edges.source[last]] - graph.time[2 * owner]), 0)
    return lag


def _arriving(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return the edges by which a transfer ends on a rank."""
    edges = graph.edges
    return np.flatnonzero(of_kinds(edges.kind, TRANSFERS) & (edges.activity >= 0))


def _released(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return, for each activity, the vertex that its transfer releases: its end, if it has none."""
    edges, ends = graph.edges, _arriving(graph)
    released = 2 * np.arange(len(graph.activities)) + 1
    released[edges.activity[ends]] = edges.target[ends]
    return released


def _step_of(graph: DependencyGraph, activity: Array, place: Array, collective: Array) -> npt.NDArray[np.int64]:
    """Return the step of each member; of a rank that recorded none, the step of the same collective on other ranks."""
    step = graph.activities.step[activity].astype(np.int64)
    has = marked(place[step >= 0], len(graph.ranks))
    shared = np.full(int(collective.max(initial=-1)) + 1, -1, np.int64)
    np.maximum.at(shared, collective, step)
    return np.where(has[place], step, shared[collective])


def _begin_of_step(graph: DependencyGraph, step: int) -> npt.NDArray[np.float64]:
    """Return when a step begins on each rank, ns; NaN where it does not."""
    acts = graph.activities
    rows = np.flatnonzero((acts.kind == ActivityKind.STEP) & (acts.step == step))
    begin = np.full(len(graph.ranks), np.inf)
    np.minimum.at(
        begin,
        np.searchsorted(graph.ranks, acts.rank[rows]),
        (graph.time[2 * rows] - graph.origin_ns).astype(np.float64),
    )
    begin[np.isinf(begin)] = np.nan
    return begin


def _latest(time: Array, cell: Array, shape: tuple[int, int]) -> npt.NDArray[np.float64]:
    """Return the latest time by cell of a table; NaN for cells without any."""
    latest = np.full(shape[0] * shape[1], -np.inf)
    np.maximum.at(latest, cell, time.astype(np.float64))
    latest[np.isinf(latest)] = np.nan
    return latest.reshape(shape)


def _between(time: Array, activity: Array, place: Array, ranks: int) -> npt.NDArray[np.float64]:
    """Return the time from the first to the last arrival of each rank, as a column; NaN without two arrivals."""
    at = time[2 * activity].astype(np.float64)
    first, last = np.full(ranks, np.inf), np.full(ranks, -np.inf)
    np.minimum.at(first, place, at)
    np.maximum.at(last, place, at)
    own = last - first
    own[~(own > 0)] = np.nan
    return own[:, None]
