"""State: the weights of a graph under change, and what changes share: which lags and gaps are the time of what.

A change is a function from a state to a new state. It writes to nothing that it is given, and replays nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from htagraph.core.distinct import distinct
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import (
    ANNOTATIONS,
    BETWEEN,
    COMMUNICATION,
    HOST_GAPS,
    TRANSFERS,
    ActivityKind,
    EdgeKind,
    GapKind,
)
from htagraph.queries.change_scope import activities_of, kinds_of
from htagraph.queries.untraced import UNTRACED, untraced_gaps

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = [
    "NEVER",
    "ChangeError",
    "Jitter",
    "OwnTime",
    "State",
    "checked",
    "end_spread",
    "here",
    "initial",
    "of_kind",
    "own_time",
    "released",
    "time_of",
    "weighed",
    "with_factor",
    "without_waits",
]

Array: TypeAlias = npt.NDArray[Any]

NEVER = -(1 << 60)
"""The lag of an edge that no longer constrains anything, ns.

Chosen: minus 36 years, so that no moment that it leads to can be the latest, and sums of a moment (ns since 1970)
and a few of it stay within int64. It is a mark: no result depends on its size."""
_OWN_SHARES = ("all_to_all", "send_recv")
"""Operations in which each member receives a message of its own, so that their ends differ by message."""
_MAX_END_SPREAD_NS = 5_000
"""How much later than the first member of a collective another one ends, at most, without this being transfer, ns.

Chosen: the members of one ring end within a few µs of each other (the simulator draws up to 1.5 µs, its traces show
1.25 µs at the 99th percentile); recorded traces show more, which clock errors explain. Doubled, up to 5 µs more of each
transfer do not scale with the network, on the members that end late."""
_MAX_NUMBER_WIDTH = 40
"""How many characters of a refused value an error shows. Chosen as above; it changes messages only."""


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
    """Of the random numbers; the same seed draws the same ones."""


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
    """What to know about the result, such as that it is an extrapolation."""
    jitter: tuple[Jitter, ...] = ()
    """Noise to draw; empty unless `jitter` was asked for."""
    unblocked: tuple[npt.NDArray[np.int64], ...] = ()
    """Activities that no longer block, one array per change that made them so."""
    shared_link: bool | None = None
    """Whether transfers that overlap slow each other down; None lets the recording decide."""

    def with_note(self, note: str) -> State:
        """Return the state with one more note, unless it has it."""
        return self if note in self.notes else replace(self, notes=(*self.notes, note))


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
    """Return a number that a change was given, as a float, or raise an error.

    Args:
        value: the number.
        what: its name, for the message.
        least: the least value allowed.
        above: True if `least` itself is refused too.
        most: the largest value allowed.

    Raises:
        ChangeError: it is no finite number, too small, or too large (times must fit into 64 bits of ns).
    """
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not abs(value) <= most or value < least or (above and value <= least):
        bound = f" {'above' if above else 'of at least'} {least:g}" if math.isfinite(least) else ""
        msg = f"{what}={str(value)[:_MAX_NUMBER_WIDTH]}: give a finite number{bound}, at most {most:g}"
        raise ChangeError(msg)
    return float(value)


def own_time(state: State, criteria: dict[str, Any], *, loader: bool | None = None) -> OwnTime:
    """Return the lags and gaps that are the time of the activities that meet some criteria.

    The time of an activity is the lag of each edge it owns (slices of self time, device work, transfers) and, for
    annotations and steps, the untraced gaps between the operators inside, on any thread. The whole host, or that of
    some ranks, also has the gaps outside all regions. Waiting for the data loader is no host work: where a kind is
    asked for, it counts only if it is named. The kind ``"untraced"`` has no activities: it is the gaps between them.

    Args:
        state: the weights so far.
        criteria: those of `DependencyGraph.select`; for the kind ``"untraced"`` those of `untraced_gaps`.
        loader: whether waits for the data loader count; by default where the criteria have a name, an op or no kind.

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
    return time_of(state, activities_of(state, criteria), loader=loader, outside=here(state.graph, criteria) & host)


def time_of(state: State, chosen: npt.NDArray[np.bool_], *, loader: bool, outside: npt.NDArray[np.bool_]) -> OwnTime:
    """Return the lags and gaps that are the time of some activities; see `own_time`.

    Args:
        state: the weights so far.
        chosen: which activities; one entry more than there are, always False.
        loader: whether waits for the data loader count.
        outside: which activities the gaps before count for if no region is around them.
    """
    graph = state.graph
    edges, known = graph.edges, _apart(graph)
    own = chosen[edges.activity]
    own[known.code[chosen[known.around_code]]] = True
    rows = np.flatnonzero(own)
    kind = edges.kind[rows]
    between = np.isin(kind, BETWEEN)
    belongs = chosen[known.region] | ((known.region < 0) & outside[known.free >> 1])
    gaps = np.concatenate((edges.target[rows[between]], known.free[belongs]))
    rows = rows[~between & (loader | (kind != EdgeKind.DATALOADER))]
    kinds = HOST_GAPS if loader else (GapKind.HOST_UNTRACED,)
    gaps = gaps[np.isin(graph.gap_kind[gaps], kinds)]
    return OwnTime(rows, _waiting(state, rows), distinct(gaps, graph.vertex_count))


class _Apart(NamedTuple):
    """What belongs to regions without having them as owner."""

    free: Array
    """Moments after a stretch of a thread that nothing on this thread is around."""
    region: Array
    """What is around each of these moments on another thread, -1 for nothing."""
    code: Array
    """Edges that are own code of a Python frame inside an annotation that the frame opened."""
    around_code: Array
    """The annotation of each of these edges."""


_APART: WeakKeyDictionary[DependencyGraph, _Apart] = WeakKeyDictionary()


def _apart(graph: DependencyGraph) -> _Apart:
    """Return what belongs to regions without having them as owner; found once per graph."""
    if graph not in _APART:
        edges, kind, parent = graph.edges, np.append(graph.activities.kind, np.int8(-1)), graph.tree.parent
        free = edges.target[np.isin(edges.kind, BETWEEN) & (edges.activity < 0)]
        code = np.flatnonzero((edges.kind == EdgeKind.BODY) & (kind[edges.activity] == ActivityKind.PYTHON))
        source = edges.source[code]
        innermost = np.where(source % 2, parent[source >> 1], source >> 1)
        inside = np.isin(kind[innermost], ANNOTATIONS)
        _APART[graph] = _Apart(free, parent[free >> 1], code[inside], innermost[inside])
    return _APART[graph]


def here(graph: DependencyGraph, criteria: dict[str, Any]) -> npt.NDArray[np.bool_]:
    """Return True for each activity of the ranks and steps in the criteria."""
    acts = graph.activities
    here = np.ones(len(acts), np.bool_)
    for column, wanted in ((acts.rank, criteria.get("rank")), (acts.step, criteria.get("step"))):
        if wanted is not None:
            here &= np.isin(column, np.atleast_1d(np.asarray(wanted)))
    return here


def end_spread(state: State, rows: Array) -> npt.NDArray[np.int64]:
    """Return how much of each lag is the spread of ends, ns: how much later the member ends than the first one.

    These few microseconds (at most `_MAX_END_SPREAD_NS`) do not depend on the network and are no transfer. In an
    all-to-all and between a send and a receive there is none: each member receives a message of its own.
    """
    graph, matches = state.graph, state.graph.matches
    fixed = np.zeros(len(rows), np.int64)
    if matches is None or not matches.count or not (graph.edges.kind[rows] == EdgeKind.COLLECTIVE).any():
        return fixed
    together = np.zeros(len(graph.activities) + 1, np.bool_)
    ops = np.array(matches.op)
    together[matches.activity] = ~np.isin(ops, _OWN_SHARES)[matches.collective]
    every = np.flatnonzero(graph.edges.kind == EdgeKind.COLLECTIVE)
    every = every[graph.edges.activity[every] >= 0]
    joins, member = np.unique(graph.edges.source[every], return_inverse=True)
    first = np.full(len(joins), np.iinfo(np.int64).max)
    np.minimum.at(first, member.ravel(), graph.edges.lag[every])
    spread = np.flatnonzero(np.isin(rows, every) & together[graph.edges.activity[rows]])
    recorded = graph.edges.lag[rows[spread]]
    late = recorded - first[np.searchsorted(joins, graph.edges.source[rows[spread]])]
    fixed[spread] = np.clip(np.minimum(late, _MAX_END_SPREAD_NS), 0, np.maximum(state.lag[rows[spread]], 0))
    return fixed


def _waiting(state: State, rows: Array) -> npt.NDArray[np.int64]:
    """Return how much of each lag is waiting and not transfer, ns.

    Where the partners of a communication are not in the graph, the shortest one of a name and size is taken as pure
    transfer, and the rest of longer ones as waiting.
    """
    graph = state.graph
    acts, owner = graph.activities, graph.edges.activity[rows]
    fixed = end_spread(state, rows)
    talks = np.flatnonzero(np.isin(acts.kind[owner], COMMUNICATION))
    if not len(talks):
        return fixed
    matched = np.zeros(len(acts) + 1, np.bool_)
    matched[graph.edges.activity[of_kind(graph, *TRANSFERS)]] = True
    matched[-1] = False
    lonely = talks[~matched[owner[talks]]]
    if not len(lonely):
        return fixed
    every = np.flatnonzero(np.isin(acts.kind, COMMUNICATION) & ~matched[:-1])
    pure = _class_minimum(graph, every)
    recorded = graph.edges.lag[rows[lonely]]
    share = np.minimum(pure[owner[lonely]], recorded)
    fixed[lonely] = np.clip(recorded - share, 0, np.maximum(state.lag[rows[lonely]], 0))
    return fixed


def _class_minimum(graph: DependencyGraph, rows: Array) -> npt.NDArray[np.int64]:
    """Return, for each activity of `rows`, the shortest recorded duration of its name and size, ns; 0 for others."""
    acts = graph.activities
    keys = np.stack([acts.name[rows], *(acts.arg(column)[rows] for column in ("in_msg_nelems", "out_msg_nelems"))])
    _, member = np.unique(keys, axis=1, return_inverse=True)
    member = member.ravel()
    least = np.full(int(member.max()) + 1 if len(member) else 0, np.iinfo(np.int64).max)
    np.minimum.at(least, member, acts.duration[rows])
    out = np.zeros(len(acts), np.int64)
    out[rows] = least[member]
    return out


def with_factor(state: State, time: OwnTime, factor: float | Array) -> State:
    """Return the state with some time multiplied, by one factor or by one per edge and then per gap."""
    factors = np.asarray(factor, np.float64)
    for_edges, for_gaps = (factors, factors) if not factors.ndim else np.split(factors, [len(time.edges)])
    lag, gap = state.lag.copy(), state.gap.copy()
    now = lag[time.edges]
    lag[time.edges] = time.fixed + _times(now - time.fixed, for_edges)
    gap[time.gaps] = _times(gap[time.gaps], for_gaps)
    return replace(state, lag=lag, gap=gap)


def _times(value: Array, factor: Array) -> Array:
    """Return values multiplied and rounded; negative ones, where clocks disagree, stay as they are."""
    return np.where(value > 0, np.rint(value * factor), value).astype(np.int64)


def weighed(state: State, edges: Array, lag: Array | int, vertices: Array | None = None) -> State:
    """Return the state with another lag on some edges, and no gap at some vertices.

    Args:
        state: the weights so far.
        edges: a mask of edges or their numbers.
        lag: the new lag of each, ns.
        vertices: a mask of vertices or their numbers, whose gaps become 0.
    """
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
    alive = ~dropped & (state.lag > NEVER)
    kept = np.zeros(graph.vertex_count, np.bool_)
    kept[graph.edges.target[alive]] = True
    lag = state.lag.copy()
    lag[dropped] = np.where(kept[graph.edges.target[dropped]], NEVER, np.minimum(lag[dropped], 0))
    return replace(state, lag=lag)


def without_waits(state: State, waits: npt.NDArray[np.bool_]) -> State:
    """Return the state in which some edges no longer constrain anything, and no pause is left where they led.

    Args:
        state: the weights so far.
        waits: a mask of edges.
    """
    return weighed(released(state, waits), np.zeros(0, np.int64), 0, state.graph.edges.target[waits])


def of_kind(graph: DependencyGraph, *kinds: EdgeKind) -> npt.NDArray[np.bool_]:
    """Return True for each edge of one of the kinds."""
    chosen = graph.edges.kind == kinds[0]  # comparing bytes is faster than np.isin
    for kind in kinds[1:]:
        chosen |= graph.edges.kind == kind
    return chosen
