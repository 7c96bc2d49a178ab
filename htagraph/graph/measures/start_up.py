"""`graph.start_up`: the time that a process spends once, when it first does something, by rank and activity.

Modules load per kernel, so the first launch of each kernel takes milliseconds; a library makes its handle in the first
operator that needs the library; a process group connects in its first collective; code is compiled, and kernels are
tuned, before the first use. No job after a warm-up has this time. Each activity of a start has a row here, and every
analysis asks this measure.

A recording that begins in the middle of a job also has a first launch of each kernel. These launches are no start-up:
they take as long as later launches. A rank counts as started within its recording if the launches that are the first of
their kernel, and far longer than usual, take most of the time of all launches of the rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from htagraph.core.arrays import Ints, Mask, marked
from htagraph.core.kinds import FRAMES, ActivityKind, of_kinds
from htagraph.core.naming import is_compiling, is_tuning
from htagraph.core.statistics import MOST
from htagraph.graph.activities import frozen
from htagraph.graph.measures.allocator import recorded_flushes, time_without_waiting
from htagraph.graph.measures.first_allocations import long_allocations
from htagraph.graph.measures.tuning import time_in_regions, time_in_tuned_operators
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
"""ns; the shortest call that counts there inside the first operator of a name. Chosen: a recording has many first
operators, so that a pause of the host, some 10 ms, hits one by chance. Doubled, small libraries are missed."""
_TIMES = 100
"""How many times the median of the later calls the first one takes. Chosen: calls that load code take a thousand times
as long, while calls that sometimes wait differ by ten. Doubled, functions that always take 50 µs need 10 ms."""
_TIMES_WHEN_STARTED = 10
"""The same on a rank that was started within its recording. Chosen: the evidence is there, and steady calls differ by
less. Doubled, small modules are missed."""
_COLUMNS = ["activity", "kind", "time", "whole"]
_TYPES = dict.fromkeys(
    _COLUMNS,
    "int64",
)


@dataclass(frozen=True, eq=False)
class StartUp:
    """One row per activity that spends time once, by rank and start."""

    activity: Ints
    """Calls of the runtime, and operators by their own time."""
    kind: Ints
    """Index into `KINDS`."""
    time: Ints
    """How much longer the activity takes than it usually does, ns, without waits for a device but for kernels that are
    tried out."""
    whole: Ints
    """How long the activity takes, ns: `time` and its usual time."""

    def __len__(self) -> int:
        return len(self.activity)

    def of(self, chosen: Mask) -> StartUp:
        """Return some of the rows."""
        return StartUp(
            activity=self.activity[chosen],
            kind=self.kind[chosen],
            time=self.time[chosen],
            whole=self.whole[chosen],
        )


def start_up_of(graph: DependencyGraph) -> StartUp:
    """Return the rows of `graph.start_up`."""
    rows = pd.concat(
        _tables(graph),
        ignore_index=True,
    )[_COLUMNS].astype(_TYPES)
    rows = rows.drop_duplicates("activity")  # the first table that has an activity says why
    rows["rank"] = graph.activities.rank[rows["activity"]]
    rows["start"] = graph.activities.start[rows["activity"]]
    is_counted = rows["time"] > 0
    is_counted &= _is_worth_naming(
        graph,
        rows,
    )
    rows = rows[is_counted].sort_values(["rank", "start", "activity"])
    return StartUp(
        activity=frozen(rows["activity"].to_numpy()),
        kind=frozen(rows["kind"].to_numpy()),
        time=frozen(rows["time"].to_numpy()),
        whole=frozen(rows["whole"].to_numpy()),
    )


def _tables(graph: DependencyGraph) -> list[pd.DataFrame]:
    """Return start-up by kind of evidence, the surest first."""
    calls = _calls(graph)
    loads = _kernel_loads(graph)
    tuned = time_in_tuned_operators(graph)
    tables = [
        loads,
        _rows(
            "tuning",
            time_in_regions(
                graph,
                is_tuning,
            ),
        ),
        _rows(
            "compiling",
            time_in_regions(
                graph,
                is_compiling,
            ),
        ),
        _first_calls(calls),
        _contexts(calls),
        _calls_in_first_frames(
            graph,
            calls,
        ),
        _groups(graph),
    ]
    return [
        *tables,
        *_of_started_processes(
            graph,
            calls,
            loads,
        ),
        _rows(
            "tuning",
            tuned,
            tuned["usual"],
        ),
    ]


def _of_started_processes(
    graph: DependencyGraph,
    calls: pd.DataFrame,
    loads: pd.DataFrame,
) -> list[pd.DataFrame]:
    """Return loads of libraries in the processes that load kernels, as the processes start in the recording."""
    process = _process_of(graph)
    started = np.unique(process[loads["activity"].to_numpy(np.int64)])
    if not len(started):
        return []
    of_started = calls[calls["process"].isin(started)]
    operators = _operators(
        graph,
        np.isin(process, started),
    )
    tables = [
        _calls_in_first_operators(
            graph,
            of_started,
        ),
        _first_operators(
            graph,
            operators,
            loads,
        ),
    ]
    found = pd.concat([loads, *tables])
    allocations = long_allocations(
        graph,
        of_started,
        found.assign(process=process[found["activity"].to_numpy(np.int64)]),
    )
    return [
        *tables,
        _rows(
            "library",
            allocations,
            allocations["usual"],
        ),
    ]


def _is_worth_naming(graph: DependencyGraph, rows: pd.DataFrame) -> pd.Series[bool]:
    """Return the rows of ranks whose start-up is 5 % of their recording or more."""
    acts = graph.activities
    spans = {}
    for rank in rows["rank"].unique().tolist():
        of_rank = acts.of_rank(rank)
        spans[rank] = int(acts.end[of_rank].max() - acts.start[of_rank].min())
    total = rows.groupby("rank")["time"].transform("sum")
    return total >= LIMITS.small * rows["rank"].map(spans)


def _process_of(graph: DependencyGraph) -> Ints:
    """Return the number of the process of each activity: code loads once in each, also in workers of a rank."""
    lanes = pd.DataFrame(
        {
            "rank": [lane.rank for lane in graph.lanes],
            "pid": [lane.pid for lane in graph.lanes],
        }
    )
    number = lanes.groupby(["rank", "pid"]).ngroup().to_numpy(np.int64)
    return np.asarray(number[graph.activities.lane])


def _rows(
    kind: str,
    table: pd.DataFrame,
    usual: pd.Series[float] | float = 0.0,
) -> pd.DataFrame:
    """Return rows of one kind, given a table with ``activity`` and ``time``, and the usual time of each row, ns."""
    excess = table["time"] - usual
    return pd.DataFrame(
        {
            "activity": table["activity"],
            "kind": KINDS.index(kind),
            "time": excess.round(),
            "whole": table["time"],
        }
    )


def _calls(graph: DependencyGraph) -> pd.DataFrame:
    """Return all calls of each function that has a long call, by rank and start.

    Calls in flushes of the allocator are left out. Columns: ``activity``, ``process``, ``name``, ``time`` (ns, without
    waits for a device), ``is_launch`` and ``is_first_of_rank`` (of all calls).
    """
    acts = graph.activities
    rows = np.flatnonzero(
        of_kinds(
            acts.kind,
            _CALLS,
        )
    )
    rows = np.setdiff1d(
        rows,
        recorded_flushes(graph).call,
    )
    _, first_of_rank = np.unique(
        acts.rank[rows],
        return_index=True,
    )
    first_start = (
        np.minimum.reduceat(
            acts.start[rows],
            first_of_rank,
        )
        if len(rows)
        else rows
    )
    names = np.unique(acts.name[rows[acts.duration[rows] >= _MIN_NS]])
    rows = rows[
        np.isin(
            acts.name[rows],
            names,
        )
    ]
    rows = rows[np.lexsort((acts.start[rows], acts.rank[rows]))]
    return pd.DataFrame(
        {
            "activity": rows,
            "process": _process_of(graph)[rows],
            "name": acts.name[rows],
            "time": time_without_waiting(
                graph,
                rows,
            ),
            "is_launch": acts.kind[rows] == ActivityKind.LAUNCH,
            "is_first_of_rank": np.isin(
                acts.start[rows],
                first_start,
            ),
        }
    )


def _operators(graph: DependencyGraph, chosen: Mask) -> pd.DataFrame:
    """Return chosen operators by rank and start: ``activity``, ``process``, ``name``, ``time`` (own, ns)."""
    acts = graph.activities
    rows = np.flatnonzero((acts.kind == ActivityKind.OP) & chosen)
    order = np.lexsort((acts.start[rows], acts.rank[rows]))
    rows = rows[order]
    return pd.DataFrame(
        {
            "activity": rows,
            "process": _process_of(graph)[rows],
            "name": acts.name[rows],
            "time": graph.own_time[rows],
        }
    )


def _is_first_of_name(
    graph: DependencyGraph,
    kinds: tuple[ActivityKind, ...],
) -> Mask:
    """Return the activities of some kinds that are the first of their name in their process, or are inside the first.

    None of the name ended before the activity began: PyTorch records an operator inside one of the same name.
    """
    acts = graph.activities
    rows = np.flatnonzero(
        of_kinds(
            acts.kind,
            kinds,
        )
    )
    table = pd.DataFrame(
        {
            "process": _process_of(graph)[rows],
            "name": acts.name[rows],
            "end": acts.end[rows],
        }
    )
    first_end = table.groupby(["process", "name"])["end"].transform("min")
    return marked(
        rows[acts.start[rows] < first_end],
        len(acts),
    )


def _kernel_loads(graph: DependencyGraph) -> pd.DataFrame:
    """Return the launches that load the module of a kernel, on the ranks that were started in their recording."""
    launches = _launches(graph)
    tables = [
        _rows(
            "kernel",
            launches.iloc[:0],
        )
    ]
    for _, of_rank in launches.groupby("process"):
        later = of_rank.loc[~of_rank["is_first"], "time"]
        usual = float(later.median()) if len(later) else float(LIMITS.launch_ns)
        first = of_rank[of_rank["is_first"]]
        is_long = first["time"] >= max(
            _MIN_NS,
            _TIMES * usual,
        )
        long_ns = first.loc[is_long, "time"].sum()
        if long_ns >= max(_SURE_NS, MOST * of_rank["time"].sum()):
            least = max(
                LIMITS.long_call_ns,
                _TIMES_WHEN_STARTED * usual,
            )
            loads = first[first["time"] >= least]
            tables.append(
                _rows(
                    "kernel",
                    loads,
                    usual,
                )
            )
    return pd.concat(tables)


def _launches(graph: DependencyGraph) -> pd.DataFrame:
    """Return the calls that launch kernels: ``activity``, ``process``, ``time`` (ns) and ``is_first`` (of a kernel)."""
    acts = graph.activities
    works = np.flatnonzero(
        of_kinds(
            acts.kind,
            _WORK,
        )
        & (acts.cause >= 0)
    )
    works = works[acts.kind[acts.cause[works]] == ActivityKind.LAUNCH]
    launch = acts.cause[works]
    table = pd.DataFrame(
        {
            "activity": launch.astype(np.int64),
            "process": _process_of(graph)[launch],
            "kernel": acts.name[works],
            "start": acts.start[launch],
        }
    )
    table = table.sort_values(["start", "activity"])
    table["is_first"] = ~table.duplicated(["process", "kernel"])
    of_launch = table.groupby(
        "activity",
        as_index=False,
    )
    launches = of_launch.agg({"process": "first", "is_first": "any"})
    launches["time"] = time_without_waiting(
        graph,
        launches["activity"].to_numpy(),
    )
    return launches


def _calls_in_first_operators(graph: DependencyGraph, calls: pd.DataFrame) -> pd.DataFrame:
    """Return long calls inside the first operator of a name, of ranks that were started in their recording."""
    operator = graph.tree.nearest(
        graph.activities.kind == ActivityKind.OP,
        calls["activity"],
    )
    is_in_first = (operator >= 0) & _is_first_of_name(
        graph,
        (ActivityKind.OP,),
    )[operator]
    steady = calls[~is_in_first]
    usual_by_name = steady.groupby(["process", "name"])["time"].median()
    usual = _looked_up(
        usual_by_name,
        calls,
    ).fillna(0.0)
    is_long = calls["time"] >= np.maximum(
        _MIN_NS,
        _TIMES_WHEN_STARTED * usual,
    )
    chosen = is_in_first & ~calls["is_launch"] & is_long
    return _rows(
        "library",
        calls[chosen],
        usual[chosen],
    )


def _looked_up(by_name: pd.Series[float], table: pd.DataFrame) -> pd.Series[float]:
    """Return the value of each row's process and name, NaN for none."""
    keys = pd.MultiIndex.from_frame(table[["process", "name"]])
    return pd.Series(
        by_name.reindex(keys).to_numpy(),
        index=table.index,
    )


def _first_operators(
    graph: DependencyGraph,
    operators: pd.DataFrame,
    loads: pd.DataFrame,
) -> pd.DataFrame:
    """Return first operators of a name by their own time, in which code loads that no call shows.

    An operator with a load inside, and a rank's first operator of all, need no later operators of their name to compare
    with.
    """
    is_first = _is_first_of_name(
        graph,
        (ActivityKind.OP,),
    )[operators["activity"]]
    later = operators[~is_first]
    usual_by_name = later.groupby(["process", "name"])["time"].median()
    usual = _looked_up(
        usual_by_name,
        operators,
    )
    around = graph.tree.around(
        marked(
            loads["activity"].to_numpy(),
            len(graph.activities),
        )
    )
    is_proven = around[operators["activity"]] | ~operators.duplicated("process")
    times = np.where(
        is_proven,
        LIMITS.uneven,
        _TIMES_WHEN_STARTED,
    )
    is_long = operators["time"] >= np.maximum(
        _MIN_NS,
        times * usual.fillna(0.0),
    )
    is_comparable = is_proven | usual.notna()
    chosen = is_first & is_long & is_comparable
    return _rows(
        "library",
        operators[chosen],
        usual[chosen].fillna(0.0),
    )


def _first_calls(calls: pd.DataFrame) -> pd.DataFrame:
    """Return first calls of a name that are a start by themselves, as most ranks that call the function have one.

    The call lasts at least 5 ms, and 100 times the median of the rank's later calls of the name.
    """
    is_first = ~calls.duplicated(["process", "name"])
    first = calls[is_first]
    later = calls[~is_first]
    usual_by_name = later.groupby(["process", "name"])["time"].median()
    usual = _looked_up(
        usual_by_name,
        first,
    )
    is_long = first["time"] >= np.maximum(
        _SURE_NS,
        _TIMES * usual,
    )
    is_long &= usual.notna()
    share_of_ranks = is_long.groupby(first["name"]).transform("mean")
    chosen = is_long & (share_of_ranks > MOST)
    return _rows(
        "library",
        first[chosen],
        usual[chosen],
    )


def _contexts(calls: pd.DataFrame) -> pd.DataFrame:
    """Return calls of 5 ms or more that are the first of their rank and the only calls of their function.

    Nothing but its place tells of the call: a process makes its context on the device then.
    """
    is_only = ~calls.duplicated(
        "name",
        keep=False,
    )
    chosen = is_only & calls["is_first_of_rank"] & (calls["time"] >= _SURE_NS)
    return _rows(
        "context",
        calls[chosen],
    )


def _calls_in_first_frames(graph: DependencyGraph, calls: pd.DataFrame) -> pd.DataFrame:
    """Return calls that are a start by themselves, as they load a library inside the first operator of a name.

    The call lasts at least 50 ms, and 100 times the median of all calls of the name; most ranks have one.
    """
    if not (calls["time"] >= _PAUSE_NS).any():
        return _rows(
            "library",
            calls.iloc[:0],
        )
    parent = graph.tree.parent[calls["activity"]]
    is_inside = (parent >= 0) & _is_first_of_name(
        graph,
        FRAMES,
    )[parent]
    by_name = calls.groupby("name")
    usual = by_name["time"].transform("median")
    is_long = calls["time"] >= np.maximum(
        _PAUSE_NS,
        _TIMES * usual,
    )
    ranks = by_name["process"].transform("nunique")
    with_long_call = calls["process"].where(is_long)
    ranks_with_long_call = with_long_call.groupby(calls["name"]).transform("nunique")
    chosen = is_inside & is_long & (ranks_with_long_call > MOST * ranks)
    return _rows(
        "library",
        calls[chosen],
        usual[chosen],
    )


def _groups(graph: DependencyGraph) -> pd.DataFrame:
    """Return first collectives of process groups: operators that connect the ranks, by their own time.

    Most ranks of the group that were read have one, and it takes 5 ms or more, and 100 times the median of the rank's
    later collectives.
    """
    group = graph.activities.arg("pg_name")
    collectives = _operators(
        graph,
        group >= 0,
    )
    collectives["group"] = group[collectives["activity"]]
    is_first = ~collectives.duplicated(["process", "group"])
    first = collectives[is_first]
    later = collectives[~is_first]
    usual = first["process"].map(later.groupby("process")["time"].median())
    is_long = first["time"] >= np.maximum(
        _SURE_NS,
        _TIMES * usual,
    )
    is_long &= usual.notna()
    share_of_ranks = is_long.groupby(first["group"]).transform("mean")
    chosen = is_long & (share_of_ranks > MOST)
    return _rows(
        "group",
        first[chosen],
        usual[chosen],
    )
