"""Other ways to read a recording: waits that may not exist, waits that it does not show, and times that it hides.

Each gives weights by which the recording itself is reproduced as exactly as before, so that the same changes can be
replayed on it: how far the predictions differ is how much the doubt matters. A data loader whose workers had each batch
ready, and a message that was there before its receiver asked, took some time that the recording does not show. It shows
how long they took at most, because they were over.

A reading is a function from a state, and its weights as parts, to the parts of other weights: once written, it serves
a replay (`under`), whose weights belong to no class of time, and skeletons (`contracted_readings`) alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np

from htagraph.core.arrays import Array, coded, distinct, joined, marked
from htagraph.core.computing import once
from htagraph.core.kinds import (
    FETCHES,
    TRANSFERS,
    UNCERTAIN,
    UNEXPLAINED,
    ActivityKind,
    EdgeKind,
    GapKind,
    Provenance,
    of_kinds,
)
from htagraph.core.naming import (
    has_loader_workers,
    is_asking,
    is_collective_call,
    is_data_loader,
    is_optimizer,
    names_that,
    transfer_direction,
)
from htagraph.core.statistics import least_of, middles
from htagraph.graph.activities import Edges, lane_moments
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.threads import may_keep_pace
from htagraph.graph.measures.waits import lacks_members
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.time_classes import ClassParts, Parts, class_parts
from htagraph.queries.weights import NEVER, State, edges_into, edges_of, of_kind, released
from htagraph.whatif.first_answers import first_answers, taken
from htagraph.whatif.interval_cause import IntervalCause
from htagraph.whatif.last_parts import last_parts
from htagraph.whatif.links import transfer_edges, without_core
from htagraph.whatif.meets import meets
from htagraph.whatif.polls import poll_loops
from htagraph.whatif.rewire import waits_for, with_waits
from htagraph.whatif.unknown_layout import counted, opens_layout

if TYPE_CHECKING:
    from htagraph.core.runs import Runs

__all__ = [
    "DOUBTS", "Doubt", "Length", "Lengths", "in_runs", "runs_of_state", "runs_with", "under",
    "without_unexplained_pauses",
]  # fmt: skip

_SHARE = 0.9
"""What took an unknown part of a time is taken to have taken this share of it. Source: nine of ten values that are
evenly spread from 0 to 1 are less. It cannot be doubled; at 1, each change of a job whose loader has workers might
gain nothing."""

_QUICK: Final = 2 * (1 - _SHARE)
"""The other end, as a share of half of the time: a message that nobody waited for is taken to have taken that half."""

Doubt: TypeAlias = Callable[[State, Callable[[], ClassParts]], ClassParts | None]
"""From a state, and a function that gives its weights as parts, to the parts of other weights; None where there is no
doubt."""


class Lengths(NamedTuple):
    """How long a job takes, ns."""

    makespan: float
    """From the first recorded moment to the last end."""
    steps: Array
    """The time of each step that follows another one."""
    usual_step: float
    """The mean of the steps that are regular as recorded, as reports print it."""


_Measured = TypeVar("_Measured")
Length: TypeAlias = Callable[..., Lengths]
"""From a graph, moments, and the last end if moments are known of steps alone, to the lengths of the job."""


def under(doubt: Doubt, state: State) -> State | None:
    """Return the state under a reading for a replay; None if there is no doubt, or if two waits exclude each other."""
    parts = doubt(state, lambda: class_parts(state, {}))
    if parts is None:
        return None
    lag, gap = parts.lag.rest, parts.gap.rest
    if parts.waits is None and np.array_equal(lag, state.lag) and np.array_equal(gap, state.gap):
        return None
    other = replace(state, lag=lag, gap=gap)
    return other if parts.waits is None else with_waits(other, parts.waits, parts.added[0], "another reading")


def in_runs(
    state: State, length: Callable[..., _Measured], runs: Runs | None = None
) -> Callable[[Doubt], tuple[bool, _Measured | None]]:
    """Return a function of a reading: whether the job's runs tell how long it is then, and how long; None for no doubt.

    A reading changes little, and is replayed without a pass over all edges.
    """
    graph, runs, time = state.graph, runs or runs_of_state(state), np.zeros(state.graph.vertex_count, np.int64)
    marks = np.concatenate((graph.step_spans.start, graph.step_spans.end))
    places, (lag, gap) = runs.place[marks], (Parts.of(each, classed=False) for each in (state.lag, state.gap))

    def of(doubt: Doubt) -> tuple[bool, _Measured | None]:
        parts = doubt(state, lambda: ClassParts(graph.edges.source, graph.edges.target, lag, gap, gap, ()))
        if parts is None:
            return True, None
        (edges, lags), (vertices, gaps) = lag.restored(state.lag), gap.restored(state.gap)
        same = np.array_equal(lags, state.lag[edges]) and np.array_equal(gaps, state.gap[vertices])
        if same and parts.waits is None:
            return True, None
        waits = None if parts.waits is None else (parts.waits.source, parts.waits.target, parts.added[0])
        moments = runs.moments(edges, lags, vertices, gaps, waits)
        if moments is None:
            return False, None
        time[marks] = moments[places]
        return True, length(graph, time, int(moments[runs.last].max()))

    return of


def runs_of_state(state: State) -> Runs:
    """Return a job in runs, in which something takes part; see `_recorded_runs`."""
    weights = state.lag, state.gap, state.head
    return _recorded_runs(state.graph).reweighted(*weights) or runs_with(state.graph, *weights)


@once
def _recorded_runs(graph: DependencyGraph) -> Runs:
    return runs_with(graph, graph.edges.lag, graph.gap, graph.time)


def runs_with(graph: DependencyGraph, lag: Array, gap: Array, head: Array) -> Runs:
    """Return a job in runs, given its weights; begins and ends of steps, and what readings let wait, are joins."""
    from htagraph.core.runs import runs_of  # numba takes a moment to load

    ends, edges = np.zeros(graph.vertex_count, np.bool_), graph.edges
    ends[1::2] = graph.awake
    spans = graph.step_spans
    waits = _outside_pauses, _slow_loaders, _ready_answers, _slow_messages, meets, first_answers, poll_loops, last_parts
    kept = np.concatenate((spans.start, spans.end, *(each for of in waits for each in of(graph)[:2])))
    certain = np.where(edges.confidence < UNCERTAIN, NEVER, lag)  # so that no end is left out for what may not exist
    made = runs_of(
        graph.replay_order, graph.in_offsets, graph.in_edges, graph.out_offsets, edges.source, edges.target,
        certain, gap, head, ends, kept,
    ).reweighted(lag, gap, head)  # fmt: skip
    assert made is not None  # certain lags are the same
    return made


def _with_edges(parts: ClassParts, waits: Edges, *lag: Array) -> ClassParts:
    """Return the weights with more edges; their lags are the first columns of `Parts`, ns."""
    columns = [*lag, *[np.zeros(len(waits), np.int64)] * (3 - len(lag))]
    return replace(parts, waits=waits, added=(columns[0], columns[1], columns[2]))


def _waits(source: Array, target: Array, lag: Array, activity: Array | int = -1) -> Edges:
    return Edges.of(source, target, lag, EdgeKind.THREAD, Provenance.INFERRED, confidence=1, activity=activity)


def without_doubtful_waits(state: State, parts_of: Callable[[], ClassParts]) -> ClassParts | None:
    """Let uncertain dependencies not exist.

    What they explained in the recording stays as a pause of the same length, which belongs to no class.
    """
    graph, edges = state.graph, state.graph.edges
    rows = np.flatnonzero((edges.confidence < UNCERTAIN) & (state.lag > NEVER))
    if not len(rows):
        return None
    doubtful = marked(rows, len(edges))
    vertices = distinct(edges.target[rows], graph.vertex_count)
    into = edges_into(graph, vertices)
    into = into[state.lag[into] > NEVER]
    target, allowed = np.searchsorted(vertices, edges.target[into]), graph.time[edges.source[into]] + edges.lag[into]
    with_all, without = np.full((2, len(vertices)), NEVER)
    for latest, keep in ((with_all, slice(None)), (without, ~doubtful[into])):
        np.maximum.at(latest, target[keep], allowed[keep])
    left, parts = without > NEVER, parts_of()
    parts.gap.let(vertices[left], parts.gap.rest[vertices[left]] + np.maximum(with_all - without, 0)[left])
    doubtful[into] &= left[target]
    parts.lag.fix(doubtful, released(state, doubtful).lag[doubtful])
    return parts


def without_needs(state: State, parts_of: Callable[[], ClassParts]) -> ClassParts | None:
    """Let nothing but the optimizer's next step need communication that a change lets begin sooner."""
    graph, acts, edges = state.graph, state.graph.activities, state.graph.edges
    waits = waits_for(graph, np.concatenate(state.sooner)) if state.sooner else np.zeros(0, np.bool_)
    if not waits.any():
        return None
    parts, source, target = parts_of(), edges.source[waits], edges.target[waits]
    parts.lag.fix(waits, released(state, waits).lag[waits])
    steps = np.flatnonzero(names_that(is_optimizer, graph.names)[acts.name])
    begins, asked = (lane_moments(acts, at >> 1, acts.moment(at)) for at in (2 * steps, target))
    order = np.argsort(begins)
    behind = np.append(steps[order], -1)[np.searchsorted(begins[order], asked)]
    known = (behind >= 0) & (acts.lane[behind] == acts.lane[target >> 1])
    source, begin = source[known], 2 * behind[known]
    return _with_edges(parts, _waits(source, begin, np.minimum(0, graph.time[begin] - graph.time[source])))


def with_waits_for_absent_ranks(state: State, parts_of: Callable[[], ClassParts]) -> ClassParts | None:
    """Let all that looks like transfer be waiting for ranks that were not recorded: it keeps its recorded time.

    Where members of a group were not recorded, nothing tells which of the two it is.
    """
    recorded, (rows, ends) = state.graph, _at_absent_members(state.graph)
    rows = rows[state.lag[rows] > NEVER]
    if not len(rows) and not len(ends):
        return None
    parts = parts_of()
    parts.lag.fix(rows, recorded.edges.lag[rows])
    parts.gap.fix(ends, recorded.gap[ends])
    return parts


def without_unexplained_pauses(state: State, parts_of: Callable[[], ClassParts]) -> ClassParts:
    """Let pauses that nothing explains vanish."""
    parts = parts_of()
    parts.gap.fix(np.flatnonzero(of_kinds(state.graph.gap_kind, UNEXPLAINED)), 0)
    return parts


@once
def _at_absent_members(graph: DependencyGraph) -> tuple[Array, Array]:
    """Return the edges and the vertices of communication whose group is not in the graph on all its ranks."""
    lacks = np.append(lacks_members(graph), [False])
    rows = np.flatnonzero(lacks)
    return np.flatnonzero(lacks[graph.edges.activity]), np.concatenate((2 * rows, 2 * rows + 1))


def with_waits_for_outside(state: State, parts_of: Callable[[], ClassParts]) -> ClassParts | None:
    """Let recurring pauses of host threads wait for something outside the recording.

    A process or thread that was not recorded then keeps its pace, whatever else becomes faster. If a change scales such
    a pause, it scales the pace.
    """
    graph, (source, target, own) = state.graph, _outside_pauses(state.graph)
    if not len(target):
        return None
    parts, inside, lasts = parts_of(), own >= 0, graph.time[target] - graph.time[source]
    share = lasts / np.where(inside, graph.edges.lag[own], graph.gap[target])
    pauses, bodies = target[~inside], own[inside]

    def now(of_gap: Array, of_lag: Array) -> Array:
        return np.where(inside, np.maximum(of_lag[own], 0), np.maximum(of_gap[target], 0))

    rest, amount = now(parts.gap.rest, parts.lag.rest), now(parts.gap.amount, parts.lag.amount)
    mask = now(parts.gap.mask, parts.lag.mask)
    rest, amount = (np.rint(share * each).astype(np.int64) for each in (rest, amount))
    parts = _with_edges(parts, _waits(source, target, lasts), rest, mask, amount)
    parts.gap.fix(pauses, 0)
    parts.lag.fix(bodies, np.minimum(parts.lag.rest[bodies], 0))
    return parts


@once
def _outside_pauses(graph: DependencyGraph) -> tuple[Array, Array, Array]:
    """Return (the vertex behind the pause before, the vertex behind a pause, its edge or -1) of recurring pauses.

    Before the first one lies what its thread recorded first.

    These are long stretches of host threads between the same two activities in which nothing was recorded: unexplained
    gaps, or own time of a region or a frame, which is an edge. The pauses of a site recur, and take together a fifth of
    the job, or a share that matters, where the times rather speak for a pace: shorter ones are mostly Python.
    """
    acts, edges = graph.activities, graph.edges
    gaps = np.flatnonzero((graph.gap >= 2 * LIMITS.turn_ns) & (graph.gap_kind == GapKind.HOST_UNTRACED))
    before = np.full(graph.vertex_count, -1, np.int64)
    order = np.flatnonzero(of_kind(graph, EdgeKind.HOST_ORDER))
    before[edges.target[order]] = edges.source[order]
    gaps = gaps[before[gaps] >= 0]
    own = np.flatnonzero(of_kind(graph, EdgeKind.BODY) & (edges.lag >= 2 * LIMITS.turn_ns))
    own = own[of_kinds(acts.kind[edges.activity[own]], (ActivityKind.ANNOTATION, ActivityKind.PYTHON))]
    around = edges.activity[own]
    while (of_python := (around >= 0) & (acts.kind[around] == ActivityKind.PYTHON)).any():
        around = np.where(of_python, acts.parent[around], around)
    own = own[(around < 0) | (acts.kind[around] != ActivityKind.OP)]  # what an operator does is work
    paused, last = np.concatenate((gaps, edges.target[own])), np.concatenate((before[gaps], edges.source[own]))
    took, row = np.concatenate((graph.gap[gaps], edges.lag[own])), np.concatenate((np.full(len(gaps), -1), own))
    in_time = np.argsort(graph.time[paused], kind="stable")
    paused, last, took, row = (each[in_time] for each in (paused, last, took, row))
    name = np.where(acts.kind == ActivityKind.STEP, -1, acts.name)  # which has a number in it
    site = coded(acts.lane[paused >> 1], name[paused >> 1], name[last >> 1], paused & 1, last & 1)
    makespan = graph.time.max(initial=0) - graph.origin_ns
    total = np.bincount(site, took)
    recurs = (np.bincount(site) >= LIMITS.often) & (total >= LIMITS.small * makespan)
    sites = [np.flatnonzero(site == each) for each in np.flatnonzero(recurs).tolist()]
    is_long = total >= (1 - LIMITS.typical) * makespan
    parts = [rows for rows in sites if is_long[site[rows[0]]] or may_keep_pace(took[rows], graph.time[paused[rows]])]
    begins = [2 * int(np.flatnonzero(acts.lane == acts.lane[paused[part[0]] >> 1])[0]) for part in parts]
    sources = (np.concatenate(([begin], paused[part[:-1]])) for begin, part in zip(begins, parts, strict=True))
    source, then = joined(zip(sources, parts, strict=True), 2)
    return source, paused[then], row[then]


def with_waits_in_turn(state: State, parts_of: Callable[[], ClassParts]) -> ClassParts | None:
    """Let threads that hand work over wait for it in turn: their queue is as short as the recording allows."""
    done, asks = meets(state.graph)
    return _with_edges(parts_of(), _waits(done, asks, np.zeros(len(done), np.int64))) if len(done) else None


def with_all_parts(state: State, parts_of: Callable[[], ClassParts]) -> ClassParts | None:
    """Let threads that go on need work that ended on threads beside them."""
    end, begin = last_parts(state.graph)
    return _with_edges(parts_of(), _waits(end, begin, np.zeros(len(end), np.int64))) if len(end) else None


def with_first_answers(state: State, parts_of: Callable[[], ClassParts]) -> ClassParts | None:
    """Let waits be for the first of several tasks; None where the task that released each wait is still the first."""
    answers = first_answers(state.graph)
    first = taken(state, answers) if len(answers.end) else None
    if first is None or not len(first.end):
        return None
    lag = state.lag[first.released_by]
    parts = parts_of()
    parts.lag.fix(first.released_by, NEVER)
    return _with_edges(parts, _waits(first.end, first.wait, lag), lag)


def without_polls(state: State, parts_of: Callable[[], ClassParts]) -> ClassParts | None:
    """Let loops that wait with a timeout be over as soon as the work that they wait for is done."""
    loops = poll_loops(state.graph)
    loops = loops.take(np.flatnonzero(state.lag[loops.last] > NEVER))
    if not len(loops.last):
        return None
    parts = parts_of()
    parts.lag.fix(loops.last, NEVER)
    return _with_edges(parts, _waits(loops.begin, loops.over, np.zeros(len(loops.begin), np.int64)))


_UnrecordedWaits: TypeAlias = tuple[Array, Array, Array, Array]
"""Waits that the recording does not show: (the vertex from which each is counted, the vertex that waits, the longest
that each may last in ns, the edge whose change each follows)."""


@once
def _slow_loaders(graph: DependencyGraph) -> _UnrecordedWaits:
    """Return the batches of loaders that were never waited for, each from where the loader was free for it."""
    acts, edges = graph.activities, graph.edges
    loads = np.flatnonzero(of_kind(graph, *FETCHES) & (edges.activity >= 0))
    loads = loads[names_that(has_loader_workers, graph.names)[acts.name[edges.activity[loads]]]]
    produced = edges.kind[loads] == EdgeKind.OUTSIDE
    lane, name = acts.lane[edges.activity[loads]], acts.name[edges.activity[loads]]
    loader = lane.astype(np.int64) * max(len(graph.names), 1) + name
    own = ~produced & ~np.isin(loader, loader[produced])
    fetches, loader = loads[own], loader[own]
    order = np.lexsort((-edges.lag[fetches], edges.activity[fetches]))
    order = order[np.unique(edges.activity[fetches[order]], return_index=True)[1]]  # the longest stretch of each batch
    order = order[np.lexsort((graph.time[edges.target[fetches[order]]], loader[order]))]
    fetches, loader = fetches[order], loader[order]
    follows = np.flatnonzero(np.diff(loader) == 0)
    batch, before = fetches[follows + 1], edges.target[fetches[follows]]
    took = _at_most_usual(graph.time[edges.target[batch]] - graph.time[before], loader[follows + 1])
    return before, edges.target[batch], took, batch


def _at_most_usual(took: Array, group: Array) -> Array:
    """Return times, none longer than the median of its group, ns."""
    return np.minimum(took, np.add(*middles(took, coded(group))) // 2)


@once
def _ready_answers(graph: DependencyGraph) -> _UnrecordedWaits:
    """Return what Python frames asked others for that was usually there, each from the end of the frame before.

    Frames with a known wait in them or right behind them, and in data loaders, are left out.
    """
    acts, edges = graph.activities, graph.edges
    asking = names_that(is_asking, graph.names)[acts.name] & (acts.kind == ActivityKind.PYTHON)
    if not asking.any():
        return (np.zeros(0, np.int64),) * 4
    rows = graph.tree.outermost(asking & ~graph.tree.inside(names_that(is_data_loader, graph.names)[acts.name]))
    site = coded(acts.lane[rows], acts.name[rows])
    waits = edges.target[of_kind(graph, EdgeKind.THREAD, *FETCHES)].astype(np.int64)
    waits = np.sort(lane_moments(acts, waits >> 1, acts.moment(waits)))
    first, behind = (lane_moments(acts, rows, when) for when in (acts.start[rows], acts.end[rows] + LIMITS.turn_ns))
    known = np.bincount(site, np.searchsorted(waits, behind) - np.searchsorted(waits, first))
    usual = np.add(*middles(acts.duration[rows], site)) // 2
    keep = (np.bincount(site)[site] >= LIMITS.often) & (known[site] == 0) & (usual < 2 * LIMITS.turn_ns)
    rows, site = rows[keep], site[keep]
    order = np.lexsort((acts.start[rows], site))
    follows = np.flatnonzero(np.diff(site[order]) == 0)
    before, target = 2 * rows[order[follows]] + 1, 2 * rows[order[follows + 1]] + 1
    took = _at_most_usual(graph.time[target] - graph.time[before], site[order[follows + 1]])
    return before, target, took, graph.in_edges[graph.in_offsets[target]].astype(np.int64)


@once
def _slow_messages(graph: DependencyGraph) -> _UnrecordedWaits:
    """Return the messages between hosts, each from the begin of its send."""
    acts, edges, matches = graph.activities, graph.edges, graph.matches
    on_host = acts.kind == ActivityKind.HOST_COMMUNICATION
    if matches is None or not on_host.any():
        return (np.zeros(0, np.int64),) * 4
    receives = names_that(lambda name: transfer_direction(name) < 0, graph.names)[acts.name]
    pair = np.full(len(acts), -1, np.int64)
    pair[matches.activity] = matches.collective
    sender, size = np.full(matches.count + 1, -1, np.int64), np.full(matches.count + 1, -1, np.int64)
    sends = on_host & ~receives & (pair >= 0)
    sender[pair[sends]] = np.flatnonzero(sends)
    size[matches.collective] = matches.bytes
    owner = edges.activity
    rows = np.flatnonzero(of_kind(graph, EdgeKind.P2P) & (owner >= 0))
    rows = rows[(edges.target[rows] == 2 * owner[rows] + 1) & (on_host & receives)[owner[rows]]]
    rows = rows[sender[pair[owner[rows]]] >= 0]
    start = 2 * sender[pair[owner[rows]]]
    took = graph.time[edges.target[rows]] - graph.time[start]
    alike = coded(acts.rank[owner[rows]], acts.rank[start >> 1], size[pair[owner[rows]]])
    took = least_of(took, alike)
    return start[took > 0], edges.target[rows][took > 0], took[took > 0], rows[took > 0]


def _untimed_messages(state: State) -> tuple[Array, Array, Array]:
    """Return (the messages between hosts of which none of their size and rank was waited for, a tenth of each, 0)."""
    graph, matches = state.graph, state.graph.matches
    acts, edges, time, (rows, member) = graph.activities, graph.edges, graph.time, transfer_edges(graph)
    if matches is None:
        return rows, rows, rows
    messages = (edges.kind[rows] == EdgeKind.P2P) & (edges.lag[rows] > 0)
    messages &= acts.kind[edges.activity[rows]] == ActivityKind.HOST_COMMUNICATION
    rows, member = rows[messages], member[messages]
    alike = coded(acts.rank[edges.activity[rows]], matches.bytes[member])
    over = time[edges.target[rows]] - time[edges.source[rows]] - edges.lag[rows]
    rows = rows[(least_of(over, alike) > 0) & (state.lag[rows] > 0)]
    return rows, np.full(len(rows), _QUICK), np.zeros(len(rows))


def _network_shares(state: State) -> tuple[Array, Array, Array]:
    """Return (transfers between hosts, the share of each that surely is the network's, what else it took, ns).

    What no change scales keeps its time: its share and the rest are all of it. A backend's threads need a core to move
    data: they wake up late, and may get none while operators of the rank compute. The least time of a message shows how
    late at most.
    """
    graph, acts = state.graph, state.graph.activities
    asks = (acts.kind == ActivityKind.OP) & names_that(is_collective_call, graph.names)[acts.name]
    rows, waits = without_core(graph, (acts.kind == ActivityKind.OP) & ~asks & ~graph.tree.around(asks))
    was = graph.edges.lag[rows]
    waits = _SHARE * np.minimum(waits + was.min(where=was > 0, initial=LIMITS.turn_ns), was)
    keep = (was > 0) & (state.lag[rows] > NEVER) & ~_removed(state)[graph.edges.activity[rows]]
    return rows[keep], 1 - waits[keep] / was[keep], waits[keep]


def _removed(state: State) -> Array:
    """Return the activities that changes removed, or freed of what they wait for."""
    return marked(np.concatenate((*state.unblocked, np.zeros(0, np.int64))), len(state.graph.activities))


def _weighed(
    shares: Callable[[State], tuple[Array, Array, Array]], state: State, parts_of: Callable[[], ClassParts]
) -> ClassParts | None:
    """Let a share of some transfers follow the change of its class, and a rest that no change scales."""
    rows, share, rest = shares(state)
    if not len(rows):
        return None
    parts = parts_of()
    parts.lag.let(rows, np.rint(share * parts.lag.rest[rows] + rest))
    if parts.lag.amount.flags.writeable:
        parts.lag.amount[rows] = np.rint(share * parts.lag.amount[rows])
    return parts


def without_surroundings(state: State, parts_of: Callable[[], ClassParts]) -> ClassParts | None:
    """Let code right before and after removed host activities go with them.

    This code prepared or took up their work (hooks, an operator's own time around an inner one), or did something else.
    Stretches from a turn of the host on did something else. Transfers no longer wait for the cores of what was removed.
    """
    if not state.unblocked:
        return None
    graph, edges, acts = state.graph, state.graph.edges, state.graph.activities
    host = of_kind(graph, EdgeKind.BODY) & ~np.append(acts.on_device, [True])[edges.activity]
    gone = _removed(state) & ~acts.on_device
    gone &= np.bincount(edges.activity[host], state.lag[host], len(acts)) <= 0
    if not gone.any():
        return None
    top = marked(graph.tree.outermost(gone), len(acts))
    beside = (top[edges.target >> 1] & (edges.target & 1 == 0)) | (top[edges.source >> 1] & (edges.source & 1 == 1))
    rows = np.flatnonzero(beside & (host | of_kind(graph, EdgeKind.HOST_ORDER)))
    parts, target = parts_of(), edges.target[rows]
    parts.lag.fix(rows[(state.lag[rows] > 0) & (state.lag[rows] < LIMITS.turn_ns)], 0)
    short = (graph.gap_kind[target] == GapKind.HOST_UNTRACED) & (state.gap[target] < LIMITS.turn_ns)
    parts.gap.fix(target[short], 0)
    rows, waits = without_core(graph, gone & (acts.kind == ActivityKind.OP))
    less = np.minimum(np.rint(_SHARE * waits).astype(np.int64), np.maximum(state.lag[rows], 0))
    parts.lag.let(rows, parts.lag.rest[rows] - less)
    return parts


def _with_times_off(
    state: State, parts_of: Callable[[], ClassParts], *, longer: bool, of_layout: bool = False
) -> ClassParts | None:
    """Let all times that a model predicted be at one end of what they may be.

    With `of_layout`, the layout of the job is also the one nearest to this end, if the recording leaves it open.
    """
    if of_layout and not opens_layout(state.unsure, longer=longer):
        return None
    graph, factor, later = state.graph, np.ones(len(state.graph.activities) + 1), np.ones(state.graph.vertex_count)
    for each in counted(state.unsure, of_layout=of_layout):
        ends, count = each.high if longer else each.low, len(each.activities)
        factor[each.activities] *= ends[:count]
        later[each.vertices] *= ends[count:]
    rows = edges_of(graph, factor != 1)
    rows = rows[(state.lag[rows] > 0) & of_kinds(graph.edges.kind[rows], (EdgeKind.BODY, *TRANSFERS))]
    vertices = np.flatnonzero((later != 1) & (state.gap > 0))
    if not len(rows) and not len(vertices):
        return None
    parts, factor = parts_of(), factor[graph.edges.activity[rows]]
    for weights, at, times in ((parts.lag, rows, factor), (parts.gap, vertices, later[vertices])):
        weights.let(at, np.rint(weights.rest[at] * times).astype(np.int64))
        if weights.amount.flags.writeable:
            weights.amount[at] = np.rint(weights.amount[at] * times)
    return parts


def _with(
    waits_of: Callable[[DependencyGraph], _UnrecordedWaits], state: State, parts_of: Callable[[], ClassParts]
) -> ClassParts | None:
    """Add waits, each of which follows the change of the edge that it is like."""
    waits, edges = waits_of(state.graph), state.graph.edges
    kept = state.lag[waits[3]] > NEVER
    if not kept.any():
        return None
    source, target, took, like = (each[kept] for each in waits)
    took, recorded, parts = (_SHARE * took).astype(np.int64), edges.lag[like], parts_of()
    share = np.divide(took, recorded, out=np.zeros(len(took)), where=recorded > 0)
    rest = np.where(recorded > 0, np.rint(share * parts.lag.rest[like]), took).astype(np.int64)
    amount = np.rint(share * parts.lag.amount[like]).astype(np.int64)
    return _with_edges(parts, _waits(source, target, took, edges.activity[like]), rest, parts.lag.mask[like], amount)


with_slow_loaders: Final[Doubt] = partial(_with, _slow_loaders)
"""Lets data loaders that were never waited for need nearly the time of a step per batch.

There are none if the loader has no workers, or was waited for, so that its time is known."""
with_slow_answers: Final[Doubt] = partial(_with, _ready_answers)
"""Lets what Python frames asked others for take nearly the time between two of them."""
with_slow_messages: Final[Doubt] = partial(_with, _slow_messages)
"""Lets messages between hosts take nearly as long as their receivers left them.

Messages of one size to one receiver take equally long: the message that had least time limits them all, so that nothing
changes for messages that were waited for."""
with_quick_messages: Final[Doubt] = partial(_weighed, _untimed_messages)
"""Lets messages that were over when somebody asked for them take next to no time."""
with_hosts_in_transfers: Final[Doubt] = partial(_weighed, _network_shares)
"""Lets parts of changed transfers between hosts be waits for cores, not network."""
with_longer_kernels: Final[Doubt] = partial(_with_times_off, longer=True)
"""Lets what a model predicted take as long as they may."""
with_shorter_kernels: Final[Doubt] = partial(_with_times_off, longer=False)
"""Lets what a model predicted take as little time as they may."""
with_groups_that_stay: Final[Doubt] = partial(_with_times_off, longer=False, of_layout=True)
"""Lets process groups that may be tensor parallel stay as they are, and what a model predicted be short."""
with_unshared_work: Final[Doubt] = partial(_with_times_off, longer=True, of_layout=True)
"""Lets tensor parallel ranks share products and attention alone, and what a model predicted be long."""
DOUBTS: Final[dict[IntervalCause, Doubt]] = {
    IntervalCause.UNCERTAIN_WAITS: without_doubtful_waits,
    IntervalCause.OUTSIDE: with_waits_for_outside,
    IntervalCause.SLOW_LOADER: with_slow_loaders,
    IntervalCause.SLOW_ANSWERS: with_slow_answers,
    IntervalCause.WAITS_IN_TURN: with_waits_in_turn,
    IntervalCause.FIRST_ANSWERS: with_first_answers,
    IntervalCause.POLLS: without_polls,
    IntervalCause.LAST_PARTS: with_all_parts,
    IntervalCause.SLOW_MESSAGES: with_slow_messages,
    IntervalCause.QUICK_MESSAGES: with_quick_messages,
    IntervalCause.HOSTS_IN_TRANSFERS: with_hosts_in_transfers,
    IntervalCause.NO_NEED: without_needs,
    IntervalCause.SURROUNDINGS: without_surroundings,
    IntervalCause.ABSENT_RANKS: with_waits_for_absent_ranks,
    IntervalCause.GROUPS_MAY_STAY: with_groups_that_stay,
    IntervalCause.UNSHARED_WORK: with_unshared_work,
    IntervalCause.LONGER_MODEL: with_longer_kernels,
    IntervalCause.SHORTER_MODEL: with_shorter_kernels,
}
"""Cause of an interval's width → the other reading of the recording."""
