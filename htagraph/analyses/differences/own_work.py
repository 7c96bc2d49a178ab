"""The own time of a job's activities as a difference compares it: whose it is, and how much of it is waiting."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.analyses.differences.compared_parts import ComparedPart
from htagraph.core.arrays import Array, marked
from htagraph.core.kinds import COMMUNICATION, ActivityKind, EdgeKind, GapKind, of_kinds
from htagraph.core.naming import is_poll, names_that
from htagraph.core.statistics import MOST, SEVERAL
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import OwnTime, State, initial, own_time

__all__ = ["BEFORE", "SELF", "WAIT", "OwnWork", "awaited", "polled"]

SELF, BEFORE, WAIT = range(3)
"""Time in the activity; of host code before it, outside every region; waiting in it for communication or a device."""
_MAX_LEFT_SHARE = 0.1
"""How much of own time may come after the end of the communication that it waited for, as a share of it.

Chosen: a thread goes on at once when what it waits for ends. An end falls in there by chance one time in ten. Doubled,
one in five."""


@dataclass(frozen=True, eq=False)
class OwnWork:
    """The own time of activities in the compared part of a job."""

    state: State
    where: OwnTime
    """Edges, then gaps."""
    time: Array
    """Own time of each edge and gap, ns; of a batch that workers of a data loader made, how long they took."""
    shown: Array
    """The same, each moment of an activity once; of such a batch only how long the thread waited for it, ns."""
    whose: Array
    """The activity that each belongs to."""
    part: Array
    """What each is: `SELF`, `BEFORE` or `WAIT`."""
    awaited: Array
    """The communication or device work that each waits for; -1 for none."""

    @staticmethod
    def of(part: ComparedPart, path: Array) -> OwnWork:
        """Return that of the compared part of a job."""
        graph, edges = part.graph, part.graph.edges
        inside = marked(part.activities, len(graph.activities)) & graph.awake  # nothing waits for a monitor
        state = initial(graph)
        every = own_time(state, {}, loader=True)
        owner = edges.activity[graph.binding[every.gaps]].astype(np.int64)
        whose = np.where(owner >= 0, owner, every.gaps >> 1)
        on_edge, at_gap = inside[edges.activity[every.edges]], inside[whose]
        where = OwnTime(every.edges[on_edge], every.fixed[on_edge], every.gaps[at_gap])
        whose = np.concatenate([edges.activity[where.edges], whose[at_gap]])
        times = np.maximum(0, np.concatenate([edges.lag[where.edges] - where.fixed, graph.gap[where.gaps]]))
        until = np.concatenate([
            graph.time[edges.source[where.edges]] + edges.lag[where.edges], graph.time[where.gaps]
        ])  # fmt: skip
        waits = awaited(graph, whose, until - times, until, path[whose])
        ending = where.gaps >> 1  # a pause up to the end of communication is part of it, whatever it was called in
        transfers = (where.gaps % 2 == 1) & of_kinds(graph.activities.kind[ending], COMMUNICATION)
        waits[len(where.edges) :][transfers] = ending[transfers]
        waits = np.where(waits >= 0, waits, polled(graph, whose, until - times, until))
        between = np.concatenate([np.zeros(len(where.edges), np.bool_), owner[at_gap] < 0])
        kind = np.where(waits >= 0, WAIT, np.where(between, BEFORE, SELF))
        once = _once(graph, where, whose, until - times, until.copy())
        return OwnWork(state, where, times, _shown(graph, where, times, once, whose), whose, kind, waits)


def _once(graph: DependencyGraph, where: OwnTime, whose: Array, begin: Array, end: Array) -> Array:
    """Return how much of each own time lies within its activity and in no earlier one of it, ns.

    A call has several edges for one time: its body, one to what it launched, one from each kernel that it may have
    waited for. Each counts in a replay, as the largest binds; together they last no longer than the call.
    """
    edges = graph.edges
    size, once = len(where.edges), end - begin
    rows = np.flatnonzero(np.append(edges.kind[where.edges] != EdgeKind.DATALOADER, np.ones(len(where.gaps), np.bool_)))
    on_edge = rows[rows < size]  # a batch is made before it is fetched, all else that an edge stands for is in its call
    begin[on_edge] = np.maximum(begin[on_edge], graph.time[2 * whose[on_edge]])
    end[on_edge] = np.minimum(end[on_edge], graph.time[2 * whose[on_edge] + 1])
    rows = rows[np.lexsort((begin[rows], whose[rows]))]
    reached = pd.Series(end[rows]).groupby(whose[rows]).cummax()
    before = reached.groupby(whose[rows]).shift(fill_value=np.iinfo(np.int64).min).to_numpy()
    once[rows] = np.clip(end[rows] - np.maximum(before, begin[rows]), 0, None)
    return once


def _shown(graph: DependencyGraph, where: OwnTime, time: Array, once: Array, whose: Array) -> Array:
    """Return own times, each moment once, and how long a thread waited for batches, not how long workers took for them.

    What another thread (one that pins batches) waits for the same workers is not added.
    """
    edges = graph.edges
    load = np.flatnonzero(edges.kind[where.edges] == EdgeKind.DATALOADER)
    batch = edges.activity[where.edges[load]]
    begin = graph.time[2 * batch]
    made = graph.time[edges.source[where.edges[load]]] < begin  # since the batch before, by workers
    shown = once
    fetched = np.bincount(batch[~made], time[load[~made]], len(graph.activities))[batch[made]]
    shown[load[made]] = np.clip(graph.time[edges.target[where.edges[load[made]]]] - begin[made] - fetched, 0, None)
    lane, gaps = graph.activities.lane, where.gaps
    beside = (graph.gap_kind[gaps] == GapKind.DATA_WAIT) & (lane[gaps >> 1] != lane[whose[len(where.edges) :]])
    shown[len(where.edges) :][beside] = 0
    return shown


def awaited(graph: DependencyGraph, whose: Array, begin: Array, end: Array, path: Array) -> npt.NDArray[np.int64]:
    """Return the communication on host threads that each piece of own time waits for; -1 where it does not wait.

    ``work.wait()`` leaves no event of its own: it is own time of whatever calls it, an operator, a step or a Python
    function, that ends when communication on another thread of the rank does. A thread that works all the time ends at
    other moments. So a call path waits if most of its own time ends just after communication that ran meanwhile. Each
    piece has an activity (`whose`), a begin and an end, ns on the common clock, and a call path.
    """
    acts = graph.activities
    waits = np.full(len(whose), -1, np.int64)
    talks = np.flatnonzero(acts.kind == ActivityKind.HOST_COMMUNICATION)
    if not len(talks) or not len(whose):
        return waits
    ends = graph.time[2 * talks + 1]
    host = ~acts.on_device[whose] & ~of_kinds(acts.kind[whose], COMMUNICATION)
    for rank in np.unique(acts.rank[talks]).tolist():
        here = acts.rank[talks] == rank
        order = np.argsort(ends[here], kind="stable")
        those, until = talks[here][order], ends[here][order]
        rows = np.flatnonzero(host & (acts.rank[whose] == rank))
        at = np.searchsorted(until, end[rows], side="right") - 1
        last = those[np.maximum(at, 0)]
        late = end[rows] - until[np.maximum(at, 0)]
        meets = (at >= 0) & (late < _MAX_LEFT_SHARE * (end[rows] - begin[rows]))
        waits[rows[meets]] = last[meets]
    count = int(path.max(initial=-1)) + 1
    length = (end - begin).astype(np.float64)
    whole = np.bincount(path[host], length[host], count)
    waiting = np.bincount(path[waits >= 0], length[waits >= 0], count)
    waits[(waiting < MOST * whole)[path]] = -1
    return waits


def polled(graph: DependencyGraph, whose: Array, begin: Array, end: Array) -> npt.NDArray[np.int64]:
    """Return the device work that each piece of own time waits for in a loop of queries; -1 where there is none.

    A loop that asks a device again and again whether it is done, by ``cudaEventQuery`` or ``cudaStreamQuery``, waits
    for it: the number of its rounds is how long the device takes. It ends when device work of the rank does, between
    the last two queries.
    """
    acts, time = graph.activities, graph.time
    waits = np.full(len(whose), -1, np.int64)
    device = np.flatnonzero(acts.on_device)
    for first, before_last, last in _loops(graph):
        work = device[acts.rank[device] == acts.rank[first]]
        done = time[2 * work + 1]
        work = work[(done > time[2 * before_last]) & (done <= time[2 * last + 1])]
        if len(work):
            inside = (begin >= time[2 * first]) & (end <= time[2 * last + 1]) & ~acts.on_device[whose]
            inside &= acts.lane[whose] == acts.lane[first]
            waits[inside] = work[np.argmax(time[2 * work + 1])]
    return waits


def _loops(graph: DependencyGraph) -> list[tuple[int, int, int]]:
    """Return the (first, second last, last) query of each loop of queries with nothing else called in between."""
    acts = graph.activities
    asks = names_that(is_poll, graph.names)[acts.name]
    if not asks.any():
        return []
    encloses = (ActivityKind.STEP, ActivityKind.ANNOTATION, ActivityKind.PYTHON, ActivityKind.BOUNDARY)
    rows = np.flatnonzero((acts.lane >= 0) & ~acts.on_device & ~of_kinds(acts.kind, encloses))
    rows = rows[np.lexsort((graph.time[2 * rows], acts.lane[rows]))]
    bounds = np.flatnonzero(np.diff(asks[rows].astype(np.int8)) | np.diff(acts.lane[rows])) + 1
    runs = [run for run in np.split(rows, bounds) if len(run) >= SEVERAL and asks[run[0]]]
    return [(int(run[0]), int(run[-2]), int(run[-1])) for run in runs]
