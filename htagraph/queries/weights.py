"""State: the weights of a graph under change, and what changes share: whose time each lag and gap is.

A change is a function from a state to a new state. It writes to nothing that it is given, and replays nothing. Of the
time of communication, the waiting, which is no transfer, stays as it is (`waiting`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, coded, distinct, marked, spread
from htagraph.core.computing import once
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import (
    ANNOTATIONS,
    BETWEEN,
    COMMUNICATION,
    FETCHES,
    HOST_GAPS,
    TRANSFERS,
    ActivityKind,
    EdgeKind,
    GapKind,
    of_kinds,
)
from htagraph.core.statistics import least_of, middles
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.change_scope import UNTRACED, activities_of, kinds_of, untraced_gaps

__all__ = [
    "NEVER", "NOTED_SHARE", "ChangeError", "Jitter", "Modelled", "OwnTime", "State", "Unsure", "checked",
    "edges_into", "edges_of", "end_spread", "entries_of", "here", "initial",
    "of_kind", "own_time", "released", "taken_away", "time_of", "waiting", "weighed", "with_factor",
    "with_factors", "without_waits",
]  # fmt: skip

NOTED_SHARE = 0.005
"""Share of a whole from which a note says what a change does to it, or what is not known about it. Chosen: less changes
no digit that is shown. Doubled, fewer notes."""
NEVER = -(1 << 60)
"""The lag of an edge that no longer constrains anything, ns.

Chosen: minus 36 years, so that no moment that it leads to can be the latest, and sums of a moment (ns since 1970)
and a few of it stay within int64. It is a mark: no result depends on its size."""
_FEW = 8
"""The edges of one in so many activities, or fewer, are found by owner; edges of more by a look at each edge. Chosen:
then both take about as long. It changes times only."""
_OWN_SHARES = ("all_to_all", "send_recv")
"""Operations in which each member receives a message of its own, so that their ends differ by message."""
_MAX_END_SPREAD_NS = 5_000
"""How much later than the first member of a collective another one ends, at most, without this being transfer, ns.

Chosen: the members of one ring end within a few µs of each other (the simulator draws up to 1.5 µs, its traces show
1.25 µs at the 99th percentile); recorded traces show more, which clock errors explain. Doubled, up to 5 µs more of each
transfer do not scale with the network, on the members that end late."""


class ChangeError(SelectionError, ValueError):
    """A change was given a number that it cannot use."""


@dataclass(frozen=True, eq=False)
class Jitter:
    """Noise that each run draws anew."""

    time: OwnTime
    """The lags and gaps that vary."""
    owner: npt.NDArray[np.int64]
    """The number of the draw that applies to each edge and then to each gap of `time`."""
    sigma: float
    """Relative standard deviation of the factors."""
    runs: int
    """How many runs are drawn."""
    seed: int
    """Of the random numbers; the same seed draws the same numbers."""


class Unsure(NamedTuple):
    """How far new times of some activities and pauses may be off: a 90 % interval."""

    activities: npt.NDArray[np.int64]
    """Activities whose own time, or whose transfer, a model predicts."""
    low: npt.NDArray[np.float64]
    """Of each activity, then of each vertex: the least time over the predicted one."""
    high: npt.NDArray[np.float64]
    """Of each activity, then of each vertex: the longest time over the predicted one."""
    vertices: npt.NDArray[np.int64] = np.zeros(0, np.int64)
    """Vertices whose gap a model predicts."""
    of_layout: bool = False
    """Whether the recording leaves open how the job is laid out over ranks, not a model how long work takes."""


class Modelled(Enum):
    """A part of a job that a model predicts, at most once."""

    BATCH = "batch"
    DEVICE = "device"


@dataclass(frozen=True, eq=False)
class State:
    """The weights of a graph, as changed so far."""

    graph: DependencyGraph
    """The structure; a structural change exchanges it."""
    lag: npt.NDArray[np.int64]
    """Of each edge, in the order of `graph.edges`, ns."""
    gap: npt.NDArray[np.int64]
    """Of each vertex, ns."""
    head: npt.NDArray[np.int64]
    """The moment of each vertex that has no in-edges, ns on the common clock."""
    notes: tuple[str, ...] = ()
    """Remarks on the result, for example that it is an extrapolation."""
    jitter: tuple[Jitter, ...] = ()
    """Noise to draw; empty unless `jitter` was asked for."""
    unblocked: tuple[npt.NDArray[np.int64], ...] = ()
    """Activities that no longer block, one array per change that made them so."""
    sooner: tuple[npt.NDArray[np.int64], ...] = ()
    """Communication that changes let begin sooner, one array per change."""
    unsure: tuple[Unsure, ...] = ()
    """How far predicted times may be off, one entry per change that predicts some."""
    also: tuple[DependencyGraph, ...] = ()
    """Other recordings of the job, such as with another batch."""
    ceilings: tuple[str, ...] = ()
    """Changes that leave out all of a time, though a real change leaves a part: the job is no faster than predicted."""
    shared_link: bool | None = None
    """Whether transfers that overlap slow each other down; None lets the recording decide."""
    scaled: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """How many times as many ranks, samples of a step, and how many times the work of a step, as were recorded."""
    modelled: Mapping[Modelled, str] = field(default_factory=dict)
    """The note on each part of the job that a model predicts."""
    reasons: tuple[str, ...] = ()
    """The notes that say why a change leaves the job as it is."""

    def with_note(self, note: str) -> State:
        """Return the state with one more note, unless it has it."""
        return self if note in self.notes else replace(self, notes=(*self.notes, note))

    def with_model(self, part: Modelled, note: str) -> State:
        """Return the state in which a model predicts a part of the job, with the note on the prediction."""
        modelled = {**self.modelled, part: note}
        return replace(self, modelled=modelled).with_note(note)

    def with_reason(self, note: str) -> State:
        """Return the state with a note that says why a change leaves the job as it is."""
        return replace(self, reasons=(*self.reasons, note)).with_note(note)

    def as_ceiling(self, change: str) -> State:
        """Return the state whose gain is the most that a change can save, with a note that says so."""
        note = "at most so much is saved: work that no longer waits may take longer than recorded"
        return replace(self, ceilings=(*self.ceilings, change)).with_note(note)


def initial(graph: DependencyGraph) -> State:
    """Return the state in which nothing has changed."""
    return State(graph, graph.edges.lag, graph.gap, graph.time)


@dataclass(frozen=True, eq=False)
class OwnTime:
    """The lags and gaps of a state that are the time of some activities."""

    edges: npt.NDArray[np.int64]
    """Edges whose lag is their time."""
    fixed: npt.NDArray[np.int64]
    """How much of each of those lags is waiting, which a change of their time leaves alone, ns."""
    gaps: npt.NDArray[np.int64]
    """Vertices whose gap is their time."""


def checked(value: float, what: str, *, least: float = 0.0, above: bool = False, most: float = 1e6) -> float:
    """Return a number that a change was given, as a float; with `above`, the least value itself is refused too.

    Raises:
        ChangeError: it is no finite number, too small, or too large (times must fit into 64 bits of ns).
    """
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not abs(value) <= most or value < least or (above and value <= least):
        bound = f" {'above' if above else 'of at least'} {least:g}" if math.isfinite(least) else ""
        msg = f"{what}={str(value)[:40]}: give a finite number{bound}, at most {most:g}"
        raise ChangeError(msg)
    return float(value)


def own_time(state: State, criteria: dict[str, Any], *, loader: bool | None = None) -> OwnTime:
    """Return the lags and gaps that are the time of the activities that meet some criteria.

    The time of an activity is the lag of each edge it owns (slices of self time, device work, transfers) and, for
    annotations and steps, the untraced gaps between the operators inside, on any thread. The whole host, or that of
    some ranks, also has the gaps outside all regions. Waiting for the data loader, or for something outside of the
    recording, is no host work: unless `loader` says whether it counts, where a kind is asked for, it counts only if it
    is named. The kind ``"untraced"`` has no activities: it is the gaps between them, by the criteria of
    `untraced_gaps`; other kinds take those of `DependencyGraph.select`.

    Raises:
        SelectionError: nothing meets the criteria; names what would.
    """
    kinds = kinds_of(criteria)
    if UNTRACED not in kinds:
        return _of_criteria(state, criteria, loader=loader)
    gaps = untraced_gaps(state.graph, {key: value for key, value in criteria.items() if key != "kind"})
    rest = sorted(kinds - {UNTRACED})
    if not rest:
        nothing = np.zeros(0, np.int64)
        return OwnTime(nothing, nothing, gaps)
    time = _of_criteria(state, criteria | {"kind": rest}, loader=loader)
    return replace(time, gaps=np.union1d(time.gaps, gaps))


def _of_criteria(state: State, criteria: dict[str, Any], *, loader: bool | None) -> OwnTime:
    named = any(criteria.get(key) is not None for key in ("name", "regex", "op"))
    loader = (named or criteria.get("kind") is None) if loader is None else loader
    given = {key for key, value in criteria.items() if value is not None}
    host = given <= {"kind", "rank"} and "host" in (kinds_of(criteria) or {"host"})
    outside = here(state.graph, criteria) if host else np.zeros(len(state.graph.activities), np.bool_)
    chosen = activities_of(state, criteria)
    time = time_of(state, chosen, loader=loader, outside=outside)
    if criteria.get("backward_of") is None:
        return time
    return replace(time, gaps=np.union1d(time.gaps, _between(state.graph, chosen)))


def _between(graph: DependencyGraph, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the pauses between two chosen activities of a thread: the autograd engine's own time between operators."""
    edges = graph.edges
    rows = of_kind(graph, EdgeKind.HOST_ORDER) & chosen[edges.source >> 1] & chosen[edges.target >> 1]
    vertices = edges.target[rows]
    return vertices[graph.gap_kind[vertices] == GapKind.HOST_UNTRACED]


def time_of(state: State, chosen: npt.NDArray[np.bool_], *, loader: bool, outside: npt.NDArray[np.bool_]) -> OwnTime:
    """Return the lags and gaps that are the time of the chosen activities; see `own_time`.

    The mask `chosen` has one entry more than there are activities, always False. The gaps before an activity that is
    `outside` count if no region is around them.
    """
    graph = state.graph
    edges, (free, region, code, annotation) = graph.edges, _apart(graph)
    rows, apart = edges_of(graph, chosen), code[chosen[annotation]]
    if len(apart):
        rows = distinct(np.concatenate((rows, apart)), len(edges))
    kind = edges.kind[rows]
    between = of_kinds(kind, BETWEEN)
    belongs = chosen[region] | ((region < 0) & outside[free >> 1])
    gaps = np.concatenate((edges.target[rows[between]], free[belongs]))
    rows = rows[~between & (loader | ~of_kinds(kind, FETCHES))]
    kinds = HOST_GAPS if loader else (GapKind.HOST_UNTRACED,)
    gaps = gaps[of_kinds(graph.gap_kind[gaps], kinds)]
    return OwnTime(rows, waiting(state, rows), distinct(gaps, graph.vertex_count))


def edges_of(graph: DependencyGraph, chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the edges that chosen activities own, ascending; the mask's last entry is for edges without an owner."""
    rows = np.flatnonzero(chosen)
    if len(rows) * _FEW > len(chosen):
        return np.flatnonzero(chosen[graph.edges.activity])
    offsets, order = _by_owner(graph)
    return np.sort(entries_of(offsets, order, np.where(rows < len(chosen) - 1, rows + 1, 0)))


def edges_into(graph: DependencyGraph, vertices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the edges into some vertices, in no particular order."""
    if len(vertices) * _FEW <= graph.vertex_count:
        return entries_of(graph.in_offsets, graph.in_edges, vertices)
    wanted = marked(vertices, graph.vertex_count)
    return np.flatnonzero(wanted[graph.edges.target])


def entries_of(offsets: Array, entries: Array, keys: Array) -> npt.NDArray[np.int64]:
    """Return the entries of some keys, where the entries of each key begin at its offset."""
    return entries[spread(offsets[keys], offsets[keys + 1])[1]].astype(np.int64)


@once
def _by_owner(graph: DependencyGraph) -> tuple[Array, Array]:
    """Return (where the edges of each owner begin, -1 first; the edges by owner)."""
    from htagraph.core import traverse  # numba takes a moment to load

    return traverse.counting_order(graph.edges.activity + 1, len(graph.activities) + 1)


@once
def _apart(graph: DependencyGraph) -> tuple[Array, Array, Array, Array]:
    """Return what belongs to regions without having them as owner: (free, region, code, annotation).

    `free` are moments after a stretch of a thread that nothing on this thread is around; `region` is what is around
    each of these moments on another thread, or -1. `code` are edges that are own code of a Python frame inside an
    annotation that the frame opened; `annotation` is the annotation of each of these edges.
    """
    edges, kind, parent = graph.edges, np.append(graph.activities.kind, np.int8(-1)), graph.tree.parent
    free = edges.target[of_kinds(edges.kind, BETWEEN) & (edges.activity < 0)]
    code = np.flatnonzero((edges.kind == EdgeKind.BODY) & (kind[edges.activity] == ActivityKind.PYTHON))
    source = edges.source[code]
    innermost = np.where(source % 2, parent[source >> 1], source >> 1)
    inside = of_kinds(kind[innermost], ANNOTATIONS)
    return free, parent[free >> 1], code[inside], innermost[inside]


def here(graph: DependencyGraph, criteria: dict[str, Any]) -> npt.NDArray[np.bool_]:
    """Return True for each activity of the ranks and steps in the criteria."""
    acts = graph.activities
    here = np.ones(len(acts), np.bool_)
    for column, wanted in ((acts.rank, criteria.get("rank")), (acts.step, criteria.get("step"))):
        if wanted is not None:
            here &= np.isin(column, np.atleast_1d(np.asarray(wanted)))
    return here


def with_factor(state: State, time: OwnTime, factor: float | Array) -> State:
    """Return the state with some time multiplied, by one factor or by one per edge and then per gap."""
    factors = np.asarray(factor, np.float64)
    for_edges, for_gaps = (factors, factors) if not factors.ndim else np.split(factors, [len(time.edges)])
    lag = state.lag  # unchanged parts need no copy
    gap = state.gap
    if len(time.edges):
        now = lag[time.edges]
        lag = lag.copy()
        lag[time.edges] = time.fixed + _times(now - time.fixed, for_edges)
    if len(time.gaps):
        gap = gap.copy()
        gap[time.gaps] = _times(gap[time.gaps], for_gaps)
    return replace(state, lag=lag, gap=gap)


def with_factors(state: State, rows: Array, factor: Array, low: Array, high: Array) -> State:
    """Return the state in which each activity of `rows` takes `factor` times as long, give or take `low` and `high`."""
    count, factors = len(state.graph.activities), np.ones(len(state.graph.activities) + 1)
    factors[rows] = factor
    time = time_of(state, factors != 1, loader=False, outside=np.zeros(count, np.bool_))
    changed = with_factor(state, replace(time, gaps=time.gaps[:0]), factors[state.graph.edges.activity[time.edges]])
    return replace(changed, unsure=(*state.unsure, Unsure(rows, low, high)))


def taken_away(state: State, time: OwnTime) -> OwnTime:
    """Return some time with what it took longer than usual: no transfer is late that there is not."""
    return replace(time, fixed=np.minimum(time.fixed, waiting(state, time.edges, late=False)))


def _times(value: Array, factor: Array) -> Array:
    """Return values multiplied and rounded; negative values, where clocks disagree, stay as they are."""
    return np.where(value > 0, np.rint(value * factor), value).astype(np.int64)


def weighed(state: State, edges: Array, lag: Array | int, vertices: Array | None = None) -> State:
    """Return the state with another lag, ns, on some edges, and no gap at some vertices; both are masks or numbers."""
    lags = state.lag.copy()
    lags[edges] = lag
    if vertices is None:
        return replace(state, lag=lags)
    gap = state.gap.copy()
    gap[vertices] = 0
    return replace(state, lag=lags, gap=gap)


def released(state: State, dropped: npt.NDArray[np.bool_]) -> State:
    """Return the state in which some edges no longer constrain anything.

    A vertex needs an in-edge, because its moment depends on nothing else: where all would go, they stay with lag 0.
    """
    graph = state.graph
    target = graph.edges.target
    rows = np.flatnonzero(dropped)
    others = edges_into(graph, distinct(target[rows], graph.vertex_count))
    others = others[~dropped[others] & (state.lag[others] > NEVER)]
    kept = marked(target[others], graph.vertex_count)
    lag = state.lag.copy()
    lag[rows] = np.where(kept[target[rows]], NEVER, np.minimum(lag[rows], 0))
    return replace(state, lag=lag)


def without_waits(state: State, waits: npt.NDArray[np.bool_]) -> State:
    """Return the state in which some edges no longer constrain anything, and no pause is left where they led."""
    return weighed(released(state, waits), np.zeros(0, np.int64), 0, state.graph.edges.target[waits])


def of_kind(graph: DependencyGraph, *kinds: EdgeKind) -> npt.NDArray[np.bool_]:
    """Return True for each edge of one of the kinds."""
    chosen = graph.edges.kind == kinds[0]  # comparing bytes is faster than np.isin
    for kind in kinds[1:]:
        chosen |= graph.edges.kind == kind
    return chosen


def end_spread(state: State, rows: Array) -> npt.NDArray[np.int64]:
    """Return how much of each lag is the spread of ends, ns: how much later the member ends than the first one.

    These few microseconds (at most `_MAX_END_SPREAD_NS`) do not depend on the network and are no transfer. In an
    all-to-all and between a send and a receive there is none: each member receives a message of its own.
    """
    late = _late_ends(state.graph)
    if late is None:
        return np.zeros(len(rows), np.int64)
    return np.clip(late[rows].astype(np.int64), 0, np.maximum(state.lag[rows], 0))


@once
def _late_ends(graph: DependencyGraph) -> npt.NDArray[np.int16] | None:
    """Return how much later than its collective's first member the member of each edge ends, up to the most, ns."""
    # 0 for all that is no collective whose members end together; None where there is none
    matches, edges = graph.matches, graph.edges
    if matches is None or not matches.count:
        return None
    every = np.flatnonzero((edges.kind == EdgeKind.COLLECTIVE) & (edges.activity >= 0))
    if not len(every):
        return None
    together = np.zeros(len(graph.activities) + 1, np.bool_)
    together[matches.activity] = ~np.isin(np.array(matches.op), _OWN_SHARES)[matches.collective]
    late = np.minimum(edges.lag[every] - least_of(edges.lag[every], edges.source[every]), _MAX_END_SPREAD_NS)
    out = np.zeros(len(edges), np.int16)
    out[every] = np.where(together[edges.activity[every]], late, 0)
    return out


def waiting(state: State, rows: Array, *, late: bool = True) -> npt.NDArray[np.int64]:
    """Return how much of each lag is waiting and not transfer, ns.

    Where the partners of a communication are not in the graph, the shortest one of a name and size is taken as pure
    transfer, and the rest of longer ones as waiting. On host threads, what a transfer takes longer than usual is no
    time of the network: a thread was busy, or came `late`.
    """
    fixed = end_spread(state, rows)
    if late and (longer := _late(state.graph)) is not None:
        fixed = np.maximum(fixed, np.clip(longer[rows], 0, np.maximum(state.lag[rows], 0)))
    alone, most = _waits_alone(state.graph)
    if len(alone) and len(rows):
        at = np.minimum(np.searchsorted(rows, alone), len(rows) - 1)
        known = rows[at] == alone
        fixed[at[known]] = np.clip(most[known], 0, np.maximum(state.lag[alone[known]], 0))
    return fixed


@once
def _late(graph: DependencyGraph) -> Array | None:
    """Return how much longer transfers between hosts took than the median of their like, ns; None for 0 everywhere."""
    edges, matches = graph.edges, graph.matches
    if matches is None:
        return None
    member = np.full(len(graph.activities) + 1, -1, np.int64)
    known = (matches.bytes >= 0) & (graph.activities.kind[matches.activity] == ActivityKind.HOST_COMMUNICATION)
    member[matches.activity[known]] = np.flatnonzero(known)
    rows = np.flatnonzero(of_kinds(edges.kind, TRANSFERS))
    rows = rows[member[edges.activity[rows]] >= 0]
    at = member[edges.activity[rows]]
    alike = coded(matches.label[matches.collective[at]], matches.bytes[at], graph.activities.rank[edges.activity[rows]])
    longer = edges.lag[rows] - np.add(*middles(edges.lag[rows], alike)) // 2
    if not (longer > 0).any():
        return None
    late = np.zeros(len(edges), np.int64)
    late[rows] = np.maximum(longer, 0)
    return late


@once
def _waits_alone(graph: DependencyGraph) -> tuple[Array, Array]:
    """Return (the edges of communication whose partners are not in the graph, how much of each is waiting, ns)."""
    acts, edges = graph.activities, graph.edges
    matched = marked(edges.activity[of_kinds(edges.kind, TRANSFERS)], len(acts) + 1)
    alone = np.append(of_kinds(acts.kind, COMMUNICATION), False) & ~matched
    if not alone.any():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    rows = np.flatnonzero(alone[edges.activity])
    pure = _class_minimum(graph, np.flatnonzero(alone))[edges.activity[rows]]
    return rows, edges.lag[rows] - np.minimum(pure, edges.lag[rows])


def _class_minimum(graph: DependencyGraph, rows: Array) -> npt.NDArray[np.int64]:
    """Return, for each activity of `rows`, the shortest recorded duration of its name and size, ns; 0 for others."""
    acts = graph.activities
    size = (acts.arg(column)[rows] for column in ("in_msg_nelems", "out_msg_nelems"))
    out = np.zeros(len(acts), np.int64)
    if len(rows):
        out[rows] = least_of(acts.duration[rows], coded(acts.name[rows], *size))
    return out
