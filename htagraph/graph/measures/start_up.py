"""`graph.start_up`: the time that a process spends once, when it first does something, by rank and activity.

Modules load per kernel, so the first launch of each kernel takes milliseconds; a library makes its handle in the first
operator that needs the library; a process group connects in its first collective; code is compiled, and kernels are
tuned, before the first use. No job after a warm-up has this time. What a recording shows of each is one row here, and
every analysis asks this measure.

A recording that begins in the middle of a job also has a first launch of each kernel. These launches are no start-up:
they take as long as the later ones. A rank counts as started within its recording if the launches that are the first of
their kernel, and far longer than usual, take most of the time of all launches of the rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Ints, Mask, marked
from htagraph.core.kinds import FRAMES, OPERATORS, ActivityKind, of_kinds
from htagraph.core.naming import is_compiling, is_tuning, names_that
from htagraph.core.statistics import MOST
from htagraph.graph.activities import frozen
from htagraph.graph.measures.allocator import recorded_flushes, time_without_waiting
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["KINDS", "StartUp", "start_up_of"]

KINDS: Final = ("kernel", "library", "context", "group", "tuning", "compiling")
"""Why the time is spent: the first launch of a kernel loads its module; a library makes its handle or loads its code;
the process makes its context on the device; a process group connects; kernels are tuned; code is compiled."""
_CALLS = (ActivityKind.LAUNCH, ActivityKind.RUNTIME)
_WORK = (ActivityKind.COMPUTATION, ActivityKind.COMMUNICATION)
_MIN_NS = 1_000_000
"""ns; the shortest call or operator that counts by itself. Chosen: modules load in 0.3 to 20 ms, while a steady call
takes µs. Doubled, small modules are missed."""
_SURE_NS = 5_000_000
"""ns; the shortest call that counts on a rank without other evidence of a start. Chosen: making a context takes some
100 ms and a stream some ms. Doubled, streams of small jobs count as steady work."""
_PAUSE_NS = 50_000_000
"""ns; the shortest call that counts there inside the first operator of a name. Chosen: a recording has many such
operators, so that a pause of the host, some 10 ms, hits one by chance. Doubled, small libraries are missed."""
_TIMES = 100
"""How many times the median of the later calls the first one takes. Chosen: calls that load code take a thousand times
as long, while calls that sometimes wait differ by ten. Doubled, functions that always take 50 µs need 10 ms."""
_TIMES_WHEN_STARTED = 10
"""The same on a rank that was started within its recording. Chosen: the evidence is there, and steady calls differ by
less. Doubled, small modules are missed."""


@dataclass(frozen=True, eq=False)
class StartUp:
    """One row per activity that spends time once, by rank and start."""

    activity: Ints
    """Calls of the runtime, and operators by their own time."""
    kind: Ints
    """Index into `KINDS`."""
    time: Ints
    """How much longer the activity takes than it usually does, ns, without waits for a device."""
    whole: Ints
    """How long the activity takes, ns: `time` and what the activity usually takes."""

    def __len__(self) -> int:
        return len(self.activity)

    def of(self, chosen: Mask) -> StartUp:
        """Return some of the rows."""
        return StartUp(self.activity[chosen], self.kind[chosen], self.time[chosen], self.whole[chosen])


class _Rows(NamedTuple):
    """Rows of one kind."""

    kind: str
    activity: Ints
    time: Ints
    whole: Ints


class _Calls(NamedTuple):
    """Calls of the runtime by rank and start, and how long each takes without waiting for a device."""

    row: Ints
    rank: Ints
    name: Ints
    time: Ints


def start_up_of(graph: DependencyGraph) -> StartUp:
    """Return what `graph.start_up` is."""
    loads = _kernel_loads(graph)
    started = np.unique(graph.activities.rank[loads.activity])
    calls = _calls(graph)
    found = [loads, *_regions(graph), *_sure_calls(graph, calls), *_groups(graph)]
    if len(started):
        found += [_library_calls(graph, calls, started), _first_operators(graph, loads.activity, started)]
    return _joined(graph, found)


def _joined(graph: DependencyGraph, found: list[_Rows]) -> StartUp:
    """Return rows of several kinds by rank and start; of an activity with several kinds, the first row counts."""
    activity = np.concatenate([rows.activity for rows in found]).astype(np.int64)
    kind = np.repeat([KINDS.index(rows.kind) for rows in found], [len(rows.activity) for rows in found])
    time = np.concatenate([rows.time for rows in found]).astype(np.int64)
    whole = np.concatenate([rows.whole for rows in found]).astype(np.int64)
    _, first = np.unique(activity, return_index=True)
    first = first[time[first] > 0]
    acts = graph.activities
    first = first[_is_much(graph, acts.rank[activity[first]], time[first])]
    order = first[np.lexsort((activity[first], acts.start[activity[first]], acts.rank[activity[first]]))]
    return StartUp(frozen(activity[order]), frozen(kind[order]), frozen(time[order]), frozen(whole[order]))


def _is_much(graph: DependencyGraph, rank: Ints, time: Ints) -> Mask:
    """Return which rows are of ranks whose start-up is 5 % of their recording or more."""
    acts = graph.activities
    ranks, row = np.unique(rank, return_inverse=True)
    total = np.bincount(row, time, len(ranks))
    spans = []
    for number in ranks.tolist():
        of_rank = acts.of_rank(number)
        spans.append(int(acts.end[of_rank].max() - acts.start[of_rank].min()))
    return (total >= LIMITS.small * np.array(spans))[row]


def _calls(graph: DependencyGraph) -> _Calls:
    acts = graph.activities
    rows = np.flatnonzero(of_kinds(acts.kind, _CALLS))
    rows = rows[np.lexsort((acts.start[rows], acts.rank[rows]))]
    return _Calls(rows, acts.rank[rows], acts.name[rows], time_without_waiting(graph, rows))


def _kernel_loads(graph: DependencyGraph) -> _Rows:
    """Return the launches that load the module of a kernel, on the ranks that were started in their recording."""
    acts = graph.activities
    works = np.flatnonzero(of_kinds(acts.kind, _WORK) & (acts.cause >= 0))
    works = works[acts.kind[acts.cause[works]] == ActivityKind.LAUNCH]
    launch = acts.cause[works]
    works = works[np.lexsort((works, acts.start[launch], acts.rank[works]))]
    _, first = np.unique(acts.rank[works].astype(np.int64) * len(graph.names) + acts.name[works], return_index=True)
    firsts = np.unique(acts.cause[works[first]])
    launches = np.unique(acts.cause[works])
    time = time_without_waiting(graph, launches)
    is_first = np.isin(launches, firsts)
    activity = []
    excess = []
    whole = []
    for rank in np.unique(acts.rank[launches]).tolist():
        of_rank = acts.rank[launches] == rank
        later = time[of_rank & ~is_first]
        usual = float(np.median(later)) if len(later) else float(LIMITS.launch_ns)
        is_long = of_rank & is_first & (time >= max(_MIN_NS, _TIMES * usual))
        if time[is_long].sum() < max(_SURE_NS, MOST * time[of_rank].sum()):
            continue
        loads = of_rank & is_first & (time >= max(LIMITS.long_call_ns, _TIMES_WHEN_STARTED * usual))
        activity.append(launches[loads])
        whole.append(time[loads])
        excess.append(time[loads] - round(usual))
    return _rows("kernel", activity, excess, whole)


def _rows(kind: str, activity: list[Ints], time: list[Ints], whole: list[Ints]) -> _Rows:
    nothing = np.zeros(0, np.int64)
    return _Rows(
        kind, np.concatenate([nothing, *activity]), np.concatenate([nothing, *time]), np.concatenate([nothing, *whole])
    )


def _first_of_name(graph: DependencyGraph, rows: Ints) -> Mask:
    """Return which activities are the first of their name on their rank, or are inside the first.

    None of the name ended before such an activity began: PyTorch records an operator inside one of the same name.
    """
    acts = graph.activities
    key = acts.rank[rows].astype(np.int64) * len(graph.names) + acts.name[rows]
    number, group = np.unique(key, return_inverse=True)
    first_end = np.full(len(number), np.iinfo(np.int64).max)
    np.minimum.at(first_end, group, acts.end[rows])
    return marked(rows[acts.start[rows] < first_end[group]], len(acts))


def _operators(graph: DependencyGraph) -> Ints:
    """Return the operators of hosts by rank and start."""
    acts = graph.activities
    rows = np.flatnonzero((acts.kind == ActivityKind.OP) & ~acts.on_device)
    return rows[np.lexsort((acts.start[rows], acts.rank[rows]))]


def _library_calls(graph: DependencyGraph, calls: _Calls, started: Ints) -> _Rows:
    """Return long calls inside the first operator of a name, on ranks that were started in their recording."""
    acts = graph.activities
    is_operator = acts.kind == ActivityKind.OP
    first = _first_of_name(graph, _operators(graph))
    around = graph.tree.nearest(is_operator, calls.row)
    flushed = np.isin(calls.row, recorded_flushes(graph).call)
    chosen = np.isin(calls.rank, started) & (acts.kind[calls.row] == ActivityKind.RUNTIME) & ~flushed
    chosen &= (calls.time >= _MIN_NS) & (around >= 0) & first[around]
    is_steady = (around < 0) | ~first[around]
    usual = np.zeros(len(calls.row))
    for at in np.flatnonzero(chosen).tolist():
        alike = (calls.rank == calls.rank[at]) & (calls.name == calls.name[at]) & is_steady
        usual[at] = np.median(calls.time[alike]) if alike.any() else 0.0
    chosen &= calls.time >= _TIMES_WHEN_STARTED * usual
    excess = calls.time - np.rint(usual).astype(np.int64)
    return _Rows("library", calls.row[chosen], excess[chosen], calls.time[chosen])


def _first_operators(graph: DependencyGraph, loads: Ints, started: Ints) -> _Rows:
    """Return first operators of a name by their own time, in which code loads that no call shows."""
    acts = graph.activities
    rows = _operators(graph)
    rows = rows[np.isin(acts.rank[rows], started)]
    own = graph.own_time[rows]
    is_first = _first_of_name(graph, rows)[rows]
    loads_inside = graph.tree.around(marked(loads, len(acts)))[rows]
    _, first_of_rank = np.unique(acts.rank[rows], return_index=True)
    activity = []
    excess = []
    for at in np.flatnonzero(is_first & (own >= _MIN_NS)).tolist():
        later = own[(acts.rank[rows] == acts.rank[rows[at]]) & (acts.name[rows] == acts.name[rows[at]]) & ~is_first]
        usual = float(np.median(later)) if len(later) else 0.0
        is_proven = loads_inside[at] or at in first_of_rank
        times = LIMITS.uneven if is_proven else _TIMES_WHEN_STARTED
        if own[at] >= times * usual and (len(later) or is_proven):
            activity.append(rows[at])
            excess.append(own[at] - round(usual))
    return _Rows("library", np.array(activity, np.int64), np.array(excess, np.int64), graph.own_time[activity])


def _sure_calls(graph: DependencyGraph, calls: _Calls) -> Iterator[_Rows]:
    """Yield calls that are a start by themselves, on any rank.

    A call counts if it is a rank's first of its name and lasts at least 5 ms, or is inside a rank's first operator of a
    name and lasts at least 50 ms; if it takes 100 times the median of all; and if most ranks that call it have one. Of
    a function that is called once nothing tells, unless the call is the rank's first of all: a context is made then.
    """
    acts = graph.activities
    flushed = np.isin(calls.row, recorded_flushes(graph).call)
    long = (calls.time >= _SURE_NS) & ~flushed
    frames = np.flatnonzero(of_kinds(acts.kind, FRAMES))
    frames = frames[np.lexsort((acts.start[frames], acts.rank[frames]))]
    first_frames = _first_of_name(graph, frames)
    parent = graph.tree.parent[calls.row]
    _, first_of_rank = np.unique(calls.rank, return_index=True)
    for name in np.unique(calls.name[long]).tolist():
        alike = np.flatnonzero(calls.name == name)
        ranks, begin = np.unique(calls.rank[alike], return_index=True)
        firsts = alike[begin]
        usual = np.array([_usual(calls.time[later[1:]]) for later in np.split(alike, begin[1:])])
        is_first = (usual >= 0) & (calls.time[firsts] >= np.maximum(_SURE_NS, _TIMES * usual))
        if is_first.mean() > MOST:
            yield _excess("library", calls, firsts[is_first & long[firsts]], usual[is_first & long[firsts]])
        if len(alike) == 1 and alike[0] in first_of_rank:
            yield _excess("context", calls, alike[long[alike]], np.zeros(int(long[alike].sum())))
        median = float(np.median(calls.time[alike]))
        is_long = calls.time[alike] >= max(_PAUSE_NS, _TIMES * median)
        inside = alike[is_long & long[alike] & (parent[alike] >= 0) & first_frames[parent[alike]]]
        if len(inside) and len(np.unique(calls.rank[alike[is_long]])) > MOST * len(ranks):
            yield _excess("library", calls, inside, np.full(len(inside), median))


def _usual(time: Ints) -> float:
    """Return the median of times, -1 for none."""
    return float(np.median(time)) if len(time) else -1.0


def _excess(kind: str, calls: _Calls, chosen: Ints, usual: np.ndarray) -> _Rows:
    time = calls.time[chosen]
    return _Rows(kind, calls.row[chosen], time - np.rint(usual).astype(np.int64), time)


def _groups(graph: DependencyGraph) -> Iterator[_Rows]:
    """Yield first collectives of process groups: operators that connect the ranks, by their own time."""
    acts = graph.activities
    group = acts.arg("pg_name")
    rows = np.flatnonzero((acts.kind == ActivityKind.OP) & (group >= 0))
    if not len(rows):
        return
    rows = rows[np.lexsort((acts.start[rows], acts.rank[rows]))]
    own = graph.own_time[rows]
    key = acts.rank[rows].astype(np.int64) * len(graph.names) + group[rows]
    _, first = np.unique(key, return_index=True)
    is_first = marked(first, len(rows))
    for rank_group in np.unique(group[rows]).tolist():
        firsts = np.flatnonzero(is_first & (group[rows] == rank_group))
        usual = np.array([_usual(own[~is_first & (acts.rank[rows] == acts.rank[rows[at]])]) for at in firsts.tolist()])
        connects = (usual >= 0) & (own[firsts] >= np.maximum(_SURE_NS, _TIMES * usual))
        if connects.mean() > MOST:
            chosen = firsts[connects]
            time = own[chosen] - np.rint(usual[connects]).astype(np.int64)
            yield _Rows("group", rows[chosen], time, own[chosen])


def _regions(graph: DependencyGraph) -> Iterator[_Rows]:
    """Yield everything that hosts do inside regions that tune kernels or compile code, unless most steps have some."""
    acts = graph.activities
    is_host = ~acts.on_device & (acts.rank >= 0)
    for kind, names_it in (("tuning", is_tuning), ("compiling", is_compiling)):
        is_region = names_that(names_it, graph.names)[acts.name] & is_host
        rows = graph.tree.outermost(is_region)
        steps = np.unique(acts.step[rows][acts.step[rows] >= 0])
        if not len(rows) or len(steps) > max(1, MOST * len(graph.steps)):
            continue
        inside = np.flatnonzero((graph.tree.inside(marked(rows, len(acts))) | marked(rows, len(acts))) & is_host)
        own = graph.own_time[inside]
        is_call = of_kinds(acts.kind[inside], (*_CALLS, *OPERATORS, ActivityKind.PYTHON))
        yield _Rows(kind, inside[is_call], own[is_call], own[is_call])
