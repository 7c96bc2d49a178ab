"""The own time of a job's activities as a difference compares it: whose it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from htagraph.analyses.differences.compared_parts import ComparedPart
from htagraph.core.arrays import Array, Mask, marked
from htagraph.core.intervals import union
from htagraph.core.kinds import COMMUNICATION, FETCHES, OPERATORS, ActivityKind, GapKind, of_kinds
from htagraph.core.statistics import MOST
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import OwnTime, State, initial, own_time

__all__ = ["OwnWork"]


@dataclass(frozen=True, eq=False)
class OwnWork:
    """The own time of activities in the compared part of a job."""

    state: State
    where: OwnTime
    """Edges, then gaps."""
    time: Array
    """Own time of each edge and gap, ns; of a batch that was made elsewhere, how long that took.

    Time between operators that may be a wait for communication of its rank is none."""
    shown: Array
    """The same, each moment of an activity once; of such a batch only how long the thread waited for it, ns."""
    whose: Array
    """The activity that each belongs to."""
    before: Mask
    """Which is time of host code before it, outside every region, not time in it."""

    @staticmethod
    def of(part: ComparedPart) -> OwnWork:
        """Return that of the compared part of a job."""
        graph, edges = part.graph, part.graph.edges
        inside = marked(part.activities, len(graph.activities)) & graph.awake  # nothing waits for a monitor
        state = initial(graph)
        every = own_time(state, {}, loader=True)
        owner = edges.activity[graph.binding[every.gaps]].astype(np.int64)
        whose = np.where(owner >= 0, owner, every.gaps >> 1)
        on_edge, at_gap = inside[edges.activity[every.edges]], inside[whose]
        where = OwnTime(every.edges[on_edge], every.fixed[on_edge], every.gaps[at_gap])
        whose = np.concatenate([_innermost(graph, where.edges), whose[at_gap]])
        times = np.maximum(0, np.concatenate([edges.lag[where.edges] - where.fixed, graph.gap[where.gaps]]))
        until = np.concatenate([graph.time[edges.source[where.edges]] + edges.lag[where.edges], graph.time[where.gaps]])
        before = np.concatenate([np.zeros(len(where.edges), np.bool_), owner[at_gap] < 0])
        once = _once(graph, where, whose, until - times, until.copy())
        shown = _shown(graph, where, times, once, whose)
        waits = _beside_communication(graph, whose, until - times, until)
        waits &= before | (graph.activities.kind[whose] == ActivityKind.STEP)
        return OwnWork(state, where, np.where(waits, 0, times), np.where(waits, 0, shown), whose, before)


def _beside_communication(graph: DependencyGraph, whose: Array, begin: Array, end: Array) -> Mask:
    """Return which stretches lie mostly beside communication on a host of their rank, and so may be a wait for it."""
    acts, out = graph.activities, np.zeros(len(whose), np.bool_)
    meets = np.flatnonzero(of_kinds(acts.kind, COMMUNICATION) & ~acts.on_device)
    for rank in np.unique(acts.rank[meets]).tolist():
        rows, own = meets[acts.rank[meets] == rank], acts.rank[whose] == rank
        marks = np.stack(union(graph.time[2 * rows], graph.time[2 * rows + 1]), axis=1).ravel()
        spent = np.cumsum(np.diff(marks, prepend=marks[0]) * (np.arange(len(marks)) % 2))
        busy = np.diff(np.interp(np.stack((begin[own], end[own])) - marks[0], marks - marks[0], spent), axis=0)[0]
        out[own] = busy > MOST * (end[own] - begin[own])
    return out


def _innermost(graph: DependencyGraph, edges: Array) -> Array:
    """Return whose time each edge stands for: the annotation in an operator, not the operator around the annotation."""
    kind, target, owner = graph.activities.kind, graph.edges.target[edges], graph.edges.activity[edges]
    inner = np.where(target & 1, target >> 1, graph.tree.parent[target >> 1])
    nested = (inner >= 0) & (kind[inner] == ActivityKind.ANNOTATION) & of_kinds(kind[owner], OPERATORS)
    nested &= graph.time[2 * inner] >= graph.time[2 * owner]
    nested &= graph.time[2 * inner + 1] <= graph.time[2 * owner + 1]
    nested &= graph.activities.lane[inner] == graph.activities.lane[owner]
    return np.asarray(np.where(nested, inner, owner))


def _once(graph: DependencyGraph, where: OwnTime, whose: Array, begin: Array, end: Array) -> Array:
    """Return how much of each own time lies within its activity and in no earlier one of it, ns.

    A call has several edges for one time: its body, one to what it launched, one from each kernel that it may have
    waited for. Each counts in a replay, as the largest binds; together they last no longer than the call.
    """
    edges = graph.edges
    size, once = len(where.edges), end - begin
    rows = np.flatnonzero(np.append(~of_kinds(edges.kind[where.edges], FETCHES), np.ones(len(where.gaps), np.bool_)))
    on_edge = rows[rows < size]  # a batch is made before it is fetched, all else that an edge stands for is in its call
    begin[on_edge] = np.maximum(begin[on_edge], graph.time[2 * whose[on_edge]])
    end[on_edge] = np.minimum(end[on_edge], graph.time[2 * whose[on_edge] + 1])
    rows = rows[np.lexsort((begin[rows], whose[rows]))]
    reached = pd.Series(end[rows]).groupby(whose[rows]).cummax()
    before = reached.groupby(whose[rows]).shift(fill_value=np.iinfo(np.int64).min).to_numpy()
    once[rows] = np.clip(end[rows] - np.maximum(before, begin[rows]), 0, None)
    return once


def _shown(graph: DependencyGraph, where: OwnTime, time: Array, once: Array, whose: Array) -> Array:
    """Return own times, each moment once, and how long a thread waited for batches, not how long workers took."""
    # what another thread (one that pins batches) waits for the same workers is not added
    edges = graph.edges
    load = np.flatnonzero(of_kinds(edges.kind[where.edges], FETCHES))
    batch = edges.activity[where.edges[load]]
    begin = graph.time[2 * batch]
    made = graph.time[edges.source[where.edges[load]]] < begin  # since the batch before, by workers
    shown = once
    fetched = np.bincount(batch[~made], time[load[~made]], len(graph.activities))[batch[made]]
    until, last = graph.time[edges.target[where.edges[load[made]]]], np.full(len(graph.activities), -1)
    order = np.argsort(until, kind="stable")
    last[batch[made][order]] = order  # of what one call waits for in turn, the last thing ends its wait
    waited = np.clip(until - begin[made] - fetched, 0, None)
    shown[load[made]] = np.where(last[batch[made]] == np.arange(len(until)), waited, 0)
    lane, gaps = graph.activities.lane, where.gaps
    beside = (graph.gap_kind[gaps] == GapKind.DATA_WAIT) & (lane[gaps >> 1] != lane[whose[len(where.edges) :]])
    shown[len(where.edges) :][beside] = 0
    return shown
