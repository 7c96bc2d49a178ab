"""Interruptions of host code: where threads stopped in calls that are quick as a rule, in many different ones.

`interrupted` finds them, `interruption_time` says which lags and gaps of the graph they are, and `interrupted_ranks`
how those of different ranks lie in time: in turn, at the same moments, or independently of each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, coded, inverse_of, joined, marked
from htagraph.core.computing import once
from htagraph.core.intervals import union
from htagraph.core.kinds import BLOCKING, LAUNCHES, ActivityKind, EdgeKind, GapKind, of_kinds
from htagraph.core.naming import is_compiling, is_data_loader, is_native, is_wait, names_that
from htagraph.core.statistics import MOST, STANDS_OUT, middles
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import untraced_edges
from htagraph.queries.peers import alike
from htagraph.queries.weights import OwnTime

__all__ = [
    "LONG_NS", "InterruptedRanks", "Interruptions", "interrupted", "interrupted_beyond_us", "interrupted_ranks",
    "interruption_time", "rare_pauses", "runs_no_python",
]  # fmt: skip

_FAR = 10
"""How many times as long as usual a stretch must be, and how many median absolute deviations beyond its usual time.
Chosen: other sizes of an operator's arguments seldom change the time of its dispatch by more than a few times, and
times have skewed distributions. Doubled, stops of 1 to 2 ms in code that usually takes 0.1 ms, or whose time varies,
are not found."""
_MIN_CALLS = 4
"""How many times code must have been recorded for its usual time to be known. Chosen: one long of four leaves the
median as it is. Doubled, stops in code that runs 4 to 7 times are not found."""
_MIN_CALLS_ONCE = 20
"""The same in a recording of one step of one rank, where nothing shows what the same call takes at another time.
Chosen: an operator that is called that often is a small one. Doubled, stops in rarer ones are not found."""
_MAX_SHARE = 0.25
"""Share of the stretches of one place that may be long. Chosen: what is long more often is what the code does. Doubled,
code that is slow every second time counts as interrupted."""
_MIN_PLACES = 5
"""How many different places must have been hit, and how often a job must have been. Chosen: what an operator does
itself is long in that operator, not in five. Doubled, short recordings of few stops are not recognized."""
_CHANCE_ERRORS = 2
"""Standard errors by which a place may be hit more often than its share of the time. Chosen: at random, 39 of 40 places
are hit that often or less. Doubled, rare long work of an operator itself counts as interrupted, in jobs of which that
operator has three quarters of the time."""
_CODE = (
    ActivityKind.OP, ActivityKind.ANNOTATION, ActivityKind.STEP, ActivityKind.PYTHON, ActivityKind.LAUNCH,
    ActivityKind.RECORD, ActivityKind.WAIT, ActivityKind.RUNTIME,
)  # fmt: skip
"""Kinds whose own time is host code; calls that block, and communication on the host, wait by design."""
_CALLS = (ActivityKind.LAUNCH, ActivityKind.RECORD, ActivityKind.WAIT, ActivityKind.RUNTIME)
"""Kinds of calls of a device's runtime."""
_MIN_TOGETHER = 0.6
"""Share of the time in which as many ranks go on, or of the interrupted time in which all are, for a pattern to be one.
Chosen: more than half, with room for interruptions that are too short to be found. It cannot be doubled; at 1, no real
recording has a pattern."""
_IDLE = (GapKind.STREAM_IDLE, GapKind.LAUNCH_EXCESS)
"""What a stream's wait for a launch is, where an earlier kernel or copy ended after the call had begun; and else."""
LONG_NS: Final = 1_000_000
"""ns; a stretch of host code this long is neither dispatch nor launching. Chosen: the dispatch of an operator takes
some 10 µs, a time slice of an operating system 1 to 10 ms, and a full run of Python's garbage collector more than 1 ms
where it matters. Doubled, stops of 1 to 2 ms are not found, and CUDA graphs are advised where such pauses dominate."""


@dataclass(frozen=True, eq=False)
class Interruptions:
    """Stretches of host threads that lasted far longer than the same code does as a rule, in order of rank and time.

    A stretch is what passes on a thread between two recorded moments: a slice of an activity's own time, or the time
    between two activities that no event covers.
    """

    edge: npt.NDArray[np.int64]
    """The edge whose lag is the stretch; -1 for time that no event covers."""
    vertex: npt.NDArray[np.int64]
    """The moment at which it ended."""
    activity: npt.NDArray[np.int64]
    """The activity whose own time it is; -1 for time that no event covers."""
    length: npt.NDArray[np.int64]
    """ns."""
    usual: npt.NDArray[np.int64]
    """What the same code takes as a rule, ns: the median in the same place of a step, on all ranks and in all steps, or
    that of the same code anywhere, whichever is longer."""

    def __len__(self) -> int:
        return len(self.edge)


@once
def interrupted(graph: DependencyGraph) -> Interruptions:
    """Return where host threads were interrupted; nothing where long stretches may be what the code itself does.

    A stretch of host code counts if it lasts at least 1 ms, and at least ten times and ten median absolute deviations
    longer than usual: than other stretches of the same name between the same two neighbours, and than the same stretch
    in other steps and on other ranks (`queries.peers`), where there are any. It does not count in a call that waits
    for the device, in a data loader, in what compiles, in the first call of a name on a rank, or in the first launch of
    a kernel. Because an interruption can hit any code, they count only together: at least five, in five different
    places (names of activities, or of what comes after code that no event covers), and not all in the first of several
    steps; and no place has more than half of the time, unless its share of all host code is as large. On a rank with
    as many, stretches count as well that last 1 ms and ten median absolute deviations longer than usual, as what stops
    a thread does not ask how long code takes. Of a recording of one step of one rank, only operators and calls count
    that occur twenty times; without a device, which leaves the work to the operators, none.

    Example:
        >>> import htagraph as hg
        >>> len(interrupted(hg.load("data/demo")))
        0
    """
    few = _stretches(graph, LONG_NS)
    counts = _may_count(graph, few[2], few[1])
    vertex, owner, length = (column[counts] for column in few[1:])
    if not _in_many_places(graph, owner, vertex, length):
        return _chosen(few, np.zeros(0, np.int64), np.zeros(0, np.int64))
    every = _stretches(graph, 0)
    long = np.flatnonzero(every[3] >= LONG_NS)[counts]
    usual, is_far = _usual(graph, every, long)
    rank = graph.activities.rank[vertex >> 1]
    far = vertex[is_far]
    if not _in_many_places(graph, owner[is_far], far, length[is_far]) or _only_in_first_steps(graph, far):
        return _chosen(few, np.zeros(0, np.int64), np.zeros(0, np.int64))
    often = np.bincount(rank[is_far], minlength=max(graph.ranks) + 1)[rank] >= _MIN_PLACES
    known = np.flatnonzero((usual >= 0) & (is_far | often))
    order = known[np.lexsort((graph.time[vertex[known]], rank[known]))]
    return _chosen(every, long[order], usual[order])


@once
def interruption_time(graph: DependencyGraph) -> OwnTime:
    """Return the lags and gaps that interruptions are, of which the usual time of the code is fixed; gaps have none.

    They are the interrupted stretches of host threads, and how long a stream waited for what an interrupted call
    launched: from within the interruption until the kernel or copy started, if it did so as the interruption ended,
    give or take the usual time of the call. What started earlier was launched before the interruption, and of what
    started later, something else held it up.

    Example:
        >>> import htagraph as hg
        >>> len(interruption_time(hg.load("data/demo")).edges)
        0
    """
    found = interrupted(graph)
    inside = found.edge >= 0
    of_threads = (found.edge[inside], found.usual[inside], found.vertex[~inside])
    return OwnTime(*joined([of_threads, _of_streams(graph, found)], 3))


@once
def rare_pauses(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return the moments at which pauses between activities ended that the same code hardly ever makes.

    A pause counts by itself, as it does for `interrupted` beside others: the program or its machine may have made it.

    Example:
        >>> import htagraph as hg
        >>> rare_pauses(hg.load("data/demo")).tolist()
        []
    """
    every = _stretches(graph, 0)
    long = np.flatnonzero((every[3] >= LONG_NS) & (every[0] < 0))
    long = long[_may_count(graph, every[2][long], every[1][long])]
    _, is_far = _usual(graph, every, long)
    return np.asarray(every[1][long[is_far]], np.int64)


Pattern: TypeAlias = Literal["in turn", "together", ""]
"""Whether always the same number of ranks goes on, or all are interrupted at the same moments; empty for neither."""


class InterruptedRanks(NamedTuple):
    """How the interruptions of ranks lie in time."""

    pattern: Pattern
    """The pattern; empty also for one rank, and where clocks of ranks are unknown."""
    going: int
    """How many ranks most often go on at a time."""
    shares: dict[int, float]
    """Share of the time from its first to its last activity in which each rank is interrupted, on any thread."""


def interrupted_ranks(graph: DependencyGraph, found: Interruptions) -> InterruptedRanks:
    """Return how much of their time ranks are interrupted, and whether in turn or together.

    Example:
        >>> import htagraph as hg
        >>> from htagraph.queries.interruptions import interrupted
        >>> graph = hg.load("data/demo")
        >>> interrupted_ranks(graph, interrupted(graph)).pattern
        ''
    """
    acts, end = graph.activities, graph.time[found.vertex]
    rank = acts.rank[found.vertex >> 1]
    spans, unions = {}, {}
    for one in graph.ranks:
        rows = acts.of_rank(one)
        time = graph.time[2 * rows.start : 2 * rows.stop]
        spans[one] = (int(time.min()), int(time.max()))
        mine = rank == one
        unions[one] = np.stack(union(end[mine] - found.length[mine], end[mine]), axis=1)
    shares = {
        one: float((stops[:, 1] - stops[:, 0]).sum()) / max(1, spans[one][1] - spans[one][0])
        for one, stops in unions.items()
    }
    known = len(unions) > 1 and len(found) and all(clock.uncertainty_ns >= 0 for clock in graph.clocks)
    begin, stop = max(first for first, _ in spans.values()), min(last for _, last in spans.values())
    if not known or stop <= begin:
        return InterruptedRanks("", 0, shares)
    return InterruptedRanks(*_pattern(*_stopped(list(unions.values()), begin, stop)), shares)


def interrupted_beyond_us(graph: DependencyGraph, rank: int) -> float:
    """Return how much longer other work stops a rank than the median other rank, µs: beyond the usual time of its code.

    Only code counts that runs no Python: elsewhere, Python's garbage collector may have stopped it.

    Example:
        >>> import htagraph as hg
        >>> interrupted_beyond_us(hg.load("data/demo"), 2)
        0.0
    """
    stops = interrupted(graph)
    is_native = np.append(runs_no_python(graph), [False])[stops.activity]  # the last is code that no event covers
    on_rank = graph.activities.rank[stops.vertex >> 1]
    stopped_ns = np.where(is_native, stops.length - stops.usual, 0)
    by_rank = {number: float(stopped_ns[on_rank == number].sum()) for number in graph.ranks}
    of_peers = [time for number, time in by_rank.items() if number != rank]
    usual = float(np.median(of_peers)) if of_peers else 0.0
    return (by_rank[rank] - usual) / 1000


def runs_no_python(graph: DependencyGraph) -> npt.NDArray[np.bool_]:
    """Return which activities run no Python in their own time, so that its garbage collector cannot run there.

    These are calls of a device's runtime, and operators of PyTorch itself. An operator runs Python if it encloses some.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> bool(runs_no_python(graph)[graph.select(name="aten::mm").activities].all())
        True
    """
    acts = graph.activities
    native = of_kinds(acts.kind, _CALLS)
    native |= (acts.kind == ActivityKind.OP) & names_that(is_native, graph.names)[acts.name]
    around = graph.tree.parent[acts.kind == ActivityKind.PYTHON]
    native[around[around >= 0]] = False
    return native


def _stretches(graph: DependencyGraph, least: int) -> Sequence[Array]:
    """Return (edge or -1, moment of its end, owner or -1, ns) of each stretch of host code of `least` ns or more."""
    edges, kind = graph.edges, np.append(graph.activities.kind, np.int8(-1))
    rows = np.flatnonzero((edges.lag >= least) & (edges.kind == EdgeKind.BODY))
    rows = rows[of_kinds(kind[edges.activity[rows]], _CODE)]
    gaps = edges.target[untraced_edges(graph)].astype(np.int64)
    gaps = gaps[graph.gap[gaps] >= least]
    none = np.full(len(gaps), -1)
    inside = (rows, edges.target[rows], edges.activity[rows], edges.lag[rows])
    return joined([inside, (none, gaps, none, graph.gap[gaps])], 4)


def _may_count(graph: DependencyGraph, owner: Array, vertex: Array) -> npt.NDArray[np.bool_]:
    """Return which stretches are in code that neither waits by design, loads data, starts up, nor runs first."""
    acts, names = graph.activities, graph.names
    excluded = names_that(is_wait, names)
    edges = graph.edges
    excluded[acts.name[edges.target[of_kinds(edges.kind, BLOCKING)] >> 1]] = True
    region = names_that(is_data_loader, names) | names_that(is_compiling, names)
    at = np.stack((np.where(owner >= 0, owner, vertex >> 1), vertex >> 1))
    apart = region[acts.name]
    apart[graph.start_up.activity] = True
    within = (graph.tree.nearest(apart, at) >= 0) | _runs_first(graph, at)
    return ~(excluded[acts.name[at[0]]] | within.any(axis=0))


def _runs_first(graph: DependencyGraph, some: Array) -> npt.NDArray[np.bool_]:
    """Return which of some activities are the first of their name on their rank, or launch a kernel that is."""
    acts = graph.activities
    work = np.flatnonzero(acts.on_device & marked(some, len(acts) + 1)[acts.cause])
    asked = marked(acts.name[np.concatenate((some.ravel(), work))], len(graph.names))
    rows = np.flatnonzero(asked[acts.name])
    order = rows[np.argsort(acts.start[rows], kind="stable")]
    _, first = np.unique(acts.rank[order].astype(np.int64) * len(graph.names) + acts.name[order], return_index=True)
    out = marked(order[first], len(acts))
    out[acts.cause[work[out[work]]]] = True
    return out[some]


def _in_many_places(graph: DependencyGraph, owner: Array, vertex: Array, length: Array) -> bool:
    """Return whether so many stretches are in different places, with no place that has most of the time by itself.

    Interruptions at random hit code in proportion to its time: an operator with most time of the ranks has most
    interruptions, too.
    """
    place = np.where(owner >= 0, graph.activities.name[owner], _place_of_gaps(graph, vertex))
    time = np.bincount(place, length, 2 * len(graph.names))
    if int((time > 0).sum()) < _MIN_PLACES:
        return False
    largest = int(time.argmax())
    share = float(time[largest] / time.sum())
    if share <= MOST:
        return True
    ranks = np.unique(graph.activities.rank[vertex >> 1])
    code = np.maximum(_time_of_code(graph, ranks) - time, 0)
    expected = float(code[largest] / max(float(code.sum()), 1.0))
    error = math.sqrt(expected * (1 - expected) / len(vertex))
    return share <= expected + _CHANCE_ERRORS * error


def _place_of_gaps(graph: DependencyGraph, vertex: Array) -> Array:
    """Return the place of code that no event covers, by what comes after it; these follow the places of names."""
    return len(graph.names) + graph.activities.name[vertex >> 1]


def _time_of_code(graph: DependencyGraph, ranks: Array) -> Array:
    """Return how much host code of some ranks each place has, ns: names, then what comes after untraced code."""
    acts = graph.activities
    is_code = of_kinds(acts.kind, _CODE) & np.isin(acts.rank, ranks)
    names = len(graph.names)
    inside = np.bincount(acts.name[is_code], graph.own_time[is_code], 2 * names)
    behind = graph.edges.target[untraced_edges(graph)].astype(np.int64)
    behind = behind[np.isin(acts.rank[behind >> 1], ranks)]
    return inside + np.bincount(_place_of_gaps(graph, behind), graph.gap[behind], 2 * names)


def _only_in_first_steps(graph: DependencyGraph, vertex: Array) -> bool:
    """Return whether, of several steps, all stretches are in the first one of each rank: that is warming up."""
    acts = graph.activities
    inside = acts.step >= 0
    if len(np.unique(acts.step[inside])) < 2:
        return False
    at = vertex >> 1
    for rank in np.unique(acts.rank[at]).tolist():
        of_rank = acts.of_rank(rank)
        steps = acts.step[of_rank][inside[of_rank]]
        if len(steps) and (acts.step[at][acts.rank[at] == rank] > steps.min()).any():
            return False
    return True


def _usual(graph: DependencyGraph, stretches: Sequence[Array], long: Array) -> tuple[Array, Array]:
    """Return (what each long stretch takes as a rule, ns, -1 if unknown or as long; which are far longer)."""
    acts = graph.activities
    _, vertex, owner, length = stretches
    name = np.where(owner >= 0, acts.name[owner], -1)
    wanted = marked(name[long], len(graph.names) + 1)
    rows = np.flatnonzero(wanted[name])  # of other names, nothing has to be known
    at = np.searchsorted(rows, long)
    edge = graph.binding[vertex[rows]]
    begin = np.where(stretches[0][rows] >= 0, graph.edges.source[stretches[0][rows]], graph.edges.source[edge])
    code = coded(name[rows], *_named(graph, begin), *_named(graph, vertex[rows]))
    middle, deviation, count = _middles(length[rows], code)
    least = np.maximum(_FAR * middle, middle + _FAR * deviation)
    often = np.bincount(code, length[rows] >= np.maximum(least, LONG_NS))[code]
    if len(graph.ranks) < 2 and len(np.unique(acts.step[acts.step >= 0])) < 2:
        known = (count >= _MIN_CALLS_ONCE) & (name[rows] >= 0) & bool(acts.on_device.any())
        known &= ~of_kinds(np.append(acts.kind, np.int8(-1))[owner[rows]], (ActivityKind.PYTHON,))
        usual = middle
    else:
        place = alike(graph)[1][vertex[rows] >> 1] * 2 + (vertex[rows] & 1)
        there, _, peers = _middles(length[rows], coded(place, code))
        known, usual = (count >= _MIN_CALLS) & (peers > 1), np.maximum(middle, there)
    known &= often <= _MAX_SHARE * count
    far = known & (length[rows] >= np.maximum(least, _FAR * usual))
    known &= far | (length[rows] - usual >= np.maximum(LONG_NS, _FAR * deviation))
    return np.where(known, usual, -1)[at].astype(np.int64), far[at]


def _named(graph: DependencyGraph, vertex: Array) -> tuple[Array, Array]:
    """Return what moments are: the name of the activity, and whether it starts or ends."""
    return graph.activities.name[vertex >> 1], vertex & 1


def _middles(values: Array, group: Array) -> tuple[Array, Array, Array]:
    """Return, for each value, the lower median of its group, the median deviation from it, and how many there are."""
    middle = middles(values, group)[0]
    return middle, middles(np.abs(values - middle), group)[0], np.bincount(group)[group]


def _of_streams(graph: DependencyGraph, found: Interruptions) -> tuple[Array, Array, Array]:
    """Return (LAUNCH and GRAPH edges whose lag has an interruption; the rest of it, ns; gaps that are in one)."""
    edges = graph.edges
    row_of = inverse_of(found.activity, len(graph.activities) + 1)
    row_of[-1] = -1  # code between activities launches nothing
    launches = np.flatnonzero(of_kinds(edges.kind, LAUNCHES))
    launches = launches[row_of[edges.source[launches] >> 1] >= 0]
    row = row_of[edges.source[launches] >> 1]
    started, ended = graph.time[edges.target[launches]], graph.time[found.vertex[row]]
    as_it_ended = np.abs(started - ended) <= found.usual[row]
    launches, row, started, ended = (each[as_it_ended] for each in (launches, row, started, ended))
    longer = edges.lag[launches] >= found.length[row]
    rest = (edges.lag[launches] - found.length[row] + found.usual[row])[longer]
    at = edges.target[launches].astype(np.int64)
    within = (started - graph.gap[at] >= ended - found.length[row]) & (graph.gap[at] > 0)
    return launches[longer], rest, np.unique(at[within & of_kinds(graph.gap_kind[at], _IDLE)])


def _stopped(unions: list[Array], begin: int, stop: int) -> tuple[Array, Array]:
    """Return (which ranks are interrupted in each part of a window, a row per rank; the length of each part, ns)."""
    cut = [np.clip(stops, begin, stop) for stops in unions]
    marks = np.unique(np.concatenate([np.array([begin, stop]), *(stops.ravel() for stops in cut)]))
    rows = []
    for stops in cut:
        change = np.zeros(len(marks), np.int64)
        np.add.at(change, np.searchsorted(marks, stops[:, 0]), 1)
        np.add.at(change, np.searchsorted(marks, stops[:, 1]), -1)
        rows.append(np.cumsum(change)[:-1] > 0)
    return np.array(rows), np.diff(marks)


def _pattern(stopped: Array, length: Array) -> tuple[Pattern, int]:
    """Return the pattern of ranks, far more often than by chance, and how many go on at a time; see `_stopped`."""
    whole, ranks = float(length.sum()), len(stopped)
    observed = np.bincount(ranks - stopped.sum(axis=0), length, ranks + 1) / whole
    each = (stopped @ length) / whole
    expected = np.ones(1)  # of how many ranks go on, were each interrupted independently
    for share in each:
        expected = np.convolve(expected, (share, 1 - share))
    any_stops, by_chance = 1 - observed[ranks], 1 - expected[ranks]
    together = float(observed[0] / any_stops) if any_stops > 0 else 0.0
    chance = float(expected[0] / by_chance) if by_chance > 0 else 1.0
    if together >= max(_MIN_TOGETHER, STANDS_OUT * chance):
        return "together", 0
    going = 1 + int(observed[1:ranks].argmax())
    is_usual = observed[going] >= max(_MIN_TOGETHER, STANDS_OUT * expected[going])
    return ("in turn", going) if is_usual else ("", 0)


def _chosen(stretches: Sequence[Array], rows: Array, usual: Array) -> Interruptions:
    edge, vertex, owner, length = (column[rows] for column in stretches)
    return Interruptions(edge, vertex, owner, length, usual)
