"""The tracks of a critical path for Perfetto: its slices and arrows, where its time goes, what is next, who waited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from htagraph.core.arrays import Array, coded, run_starts
from htagraph.core.compiled import njit
from htagraph.core.kinds import ActivityKind, EdgeKind, GapKind
from htagraph.core.naming import short_name
from htagraph.findings.phrases import shortened
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.export import trace_writer
from htagraph.output.export.trace_writer import RawEvent, metadata, readable, row_texts, us
from htagraph.output.scene import Slices, nesting_tracks, path_scene, threads_first
from htagraph.queries.attribution import module_of, names_of, operator_of
from htagraph.queries.path_segments import Segments, segments_of, totals
from htagraph.queries.paths import CATEGORIES, CriticalPath, ways_beside
from htagraph.trace.columns import Interner

__all__ = ["PATH_PID", "path_events", "predicted_stretches"]

PATH_PID, _PREDICTED_TID, _FLOW_IDS = 1, 1_000_000, 2**60
"""Numbers of the path in a file: its process (processes of ranks count from 1000, see `PidOf`), the track of a
prediction's path (behind the tracks of lanes, waits and near-critical paths), and the first id of its arrows (above the
ids of any rank)."""
_CATEGORY = "critical_path"
_MAX_LETTERS, _MAX_ARGUMENT = 80, 2_000
"""Letters of a slice's name, and of a name among its arguments. Chosen: kernels of C++ have hundreds, and every slice
repeats them. Doubled, names reach further into slices that are wide enough, and a file of one long name is larger."""
_WHOLE_TID = PATH_PID  # its main thread, which the UI shows first
_FIRST_TID = _WHOLE_TID + 1
NEXT_CRITICAL = 3
"""Near-critical paths that are drawn; chosen: what is behind them needs several changes. Doubled, three more tracks."""
_MAX_STRETCHES = 1000
"""A stretch shorter than the path over this is drawn as part of the one before: a screen has about as many pixels.
Doubled, shorter stretches are drawn."""
_MAX_PIECES = 4 * _MAX_STRETCHES
"""Operators and kernels in a row that are shorter than the path over this are drawn as one: they are to be seen once a
stretch fills the screen."""
_LEAST_WORK = 0.0001
"""Share of the path that a near-critical path works at least, as for `CriticalPath.near`. Doubled, fewer are drawn."""
_DEVICE = tuple(CATEGORIES.index(word) for word in ("computation", "communication", "memory"))


def path_events(path: CriticalPath, base_ns: int) -> Iterator[RawEvent | Slices]:
    """Yield the tracks of a critical path: its slices and arrows, where its time goes, what is next, who waited."""
    yield metadata("process_name", PATH_PID, 0, name="critical path")
    if not len(path.segments):
        return
    scene = path_scene(path, threads_first)
    tid = _FIRST_TID + scene.lane
    yield from path_slices(path, tid, base_ns)
    yield from stretches(path, _WHOLE_TID, base_ns)
    yield from _path_arrows(path, tid, base_ns)
    behind = _FIRST_TID + len(scene.lanes)
    yield from next_critical(path, behind, base_ns)
    yield from waits(path, tid, (behind + NEXT_CRITICAL, _FLOW_IDS + len(path.segments)), base_ns)
    yield metadata("thread_name", PATH_PID, _WHOLE_TID, name="where the time goes")
    several = len(path.graph.ranks) > 1
    for number, lane in enumerate(scene.lanes, _FIRST_TID):
        name = f"rank {lane.rank} {lane.label}" if several else lane.label
        yield metadata("thread_name", PATH_PID, number, name=name)


def predicted_stretches(path: CriticalPath, base_ns: int) -> Iterator[RawEvent]:
    """Yield where the time of a predicted path goes, on a track below that of the recorded path."""
    if len(path.segments):
        yield from stretches(path, _PREDICTED_TID, base_ns)
        yield metadata("thread_name", PATH_PID, _PREDICTED_TID, name="where the predicted time goes")
        yield metadata("thread_sort_index", PATH_PID, _PREDICTED_TID, sort_index=_WHOLE_TID)


def _path_arrows(path: CriticalPath, tid: Array, base_ns: int) -> Iterator[RawEvent]:
    """Yield an arrow wherever the path changes lane: from the end of one slice to the start of the next."""
    graph, edges, acts, parts = path.graph, path.graph.edges, path.graph.activities, path.segments
    moments = graph.time[edges.source[path.edges]]
    crosses = acts.lane[edges.source[path.edges] >> 1] != acts.lane[edges.target[path.edges] >> 1]
    crossing = {int(moments[at]): int(path.edges[at]) for at in np.flatnonzero(crosses)[::-1].tolist()}
    heads = np.flatnonzero(np.diff(tid)) + 1
    operators = names_of(graph, operator_of(graph, parts.region[heads]))
    for at, operator in zip(heads.tolist(), operators.tolist(), strict=True):
        edge = crossing.get(int(parts.start[at]), -1)
        kind = edges.kind[edge] if edge >= 0 else parts.edge[at]
        label = EdgeKind(kind).label if kind >= 0 else ""
        weight = us(int(edges.lag[edge])) if edge >= 0 else 0
        what, category = graph.names[acts.name[parts.activity[at]]], CATEGORIES[parts.category[at]]
        args = {"kind": label, "weight_us": weight, "what": what, "category": category}
        args |= {"operator": operator} if operator else {}
        common = {"cat": _CATEGORY, "name": label, "id": _FLOW_IDS + at, "pid": PATH_PID, "args": args}
        tail = int(parts.start[at - 1])  # at its end, the next slice of its track may begin
        last = us(max(tail, tail + int(parts.length[at - 1]) - 1) - base_ns)
        yield {"ph": "s", **common, "tid": int(tid[at - 1]), "ts": last}
        yield {"ph": "f", **common, "tid": int(tid[at]), "ts": us(int(parts.start[at]) - base_ns), "bp": "e"}


def stretches(path: CriticalPath, tid: int, base_ns: int) -> Iterator[RawEvent]:
    """Yield the path on one track: stretches of one rank and category, in each a piece per operator or kernel.

    Short stretches join the one before, short pieces each other. The stretches' lengths sum to the makespan, and so do
    those of the pieces.
    """
    parts, several = path.segments, len(path.graph.ranks) > 1
    rank = path.graph.activities.rank[parts.place].astype(np.int64)
    category = _long_enough(parts.category.astype(np.int64), rank, parts.length, path.makespan_ns / _MAX_STRETCHES)
    bounds = list(pairwise([*run_starts(rank, category).tolist(), len(rank)]))
    for at, end in bounds:
        time = totals(parts.category[at:end], parts.length[at:end])
        most = CATEGORIES[next(iter(time))]
        name = f"rank {rank[at]}: {most}" if several else most
        args = {"rank": int(rank[at]), "segments": end - at, **_by_category(time)}
        where = us(int(parts.start[at]) - base_ns), us(int(parts.length[at:end].sum()))
        yield _slice(tid, name.replace("_", " "), *where, cat=f"{_CATEGORY}_stretch", args=args)
    stretch = np.repeat(np.arange(len(bounds)), [end - at for at, end in bounds])
    yield from _pieces(path.graph, parts, stretch, tid, base_ns)


def next_critical(path: CriticalPath, first_tid: int, base_ns: int) -> Iterator[RawEvent]:
    """Yield the near-critical paths (`CriticalPath.near`), least slack first, each on its own track with its name."""
    graph = path.graph
    for number, way in enumerate(ways_beside(path, NEXT_CRITICAL, int(path.makespan_ns * _LEAST_WORK))):
        # without the edge that returns
        start = max(int(graph.time[way.vertices[0]]), path.window[0])
        parts = segments_of(graph, way.vertices, way.into[: len(way.vertices) - 1], start)
        if not len(parts):
            continue
        tid = first_tid + number
        work = int(graph.edges.lag[way.into[graph.edges.activity[way.into] >= 0]].sum())
        args = {"slack_us": us(way.slack), "work_us": us(work), "rank": int(graph.activities.rank[parts.place[-1]])}
        args |= {"returns": way.returns >> 1} if way.returns >= 0 else {}
        where = us(int(parts.start[0]) - base_ns), us(int(parts.length.sum()))
        name = f"critical once {way.slack / 1000:,.1f} µs longer"
        yield _slice(tid, name, *where, cat=f"{_CATEGORY}_next", args=args)
        yield from _pieces(graph, parts, np.zeros(len(parts), np.int64), tid, base_ns)
        yield metadata("thread_name", PATH_PID, tid, name=f"next critical {number + 1}")


def waits(path: CriticalPath, on: Array, first: tuple[int, int], base_ns: int) -> Iterator[RawEvent]:
    """Yield what waited on other ranks until the path came from them, each with an arrow to its longest cause.

    `on` is the track of each segment of the path; `first` is the first track's number and the first arrow's id.
    """
    table, parts, graph = path.hops(), path.segments, path.graph
    table = table[table["waited_us"] > 0]
    end = np.rint(table["at_us"].to_numpy() * 1000).astype(np.int64) + graph.origin_ns
    length = np.rint(table["waited_us"].to_numpy() * 1000).astype(np.int64)
    begin = np.maximum(end - length, path.window[0])
    rank, of = table["to_rank"].to_numpy(), table["from_rank"].to_numpy()
    level = nesting_tracks(rank, begin, end - begin)
    tracks: dict[tuple[int, int], int] = {}
    for at, name in enumerate(table["name"].tolist()):
        tid = tracks.setdefault((int(rank[at]), int(level[at])), first[0] + len(tracks))
        cause = _cause(path, int(of[at]), int(begin[at]), int(end[at]))
        args = {"rank": int(rank[at]), "waited_for_rank": int(of[at])}
        args |= {"longest_cause": graph.names[graph.activities.name[parts.activity[cause]]]} if cause >= 0 else {}
        title = f"rank {rank[at]} waits for rank {of[at]}: {short_name(name)}"
        start = us(int(begin[at]) - base_ns)
        yield _slice(tid, title, start, us(int(end[at] - begin[at])), cat=f"{_CATEGORY}_wait", args=args)
        if cause >= 0 and parts.start[cause] >= begin[at]:
            arrow = {"cat": f"{_CATEGORY}_wait", "name": "waits for", "id": first[1] + at, "pid": PATH_PID}
            yield {"ph": "s", **arrow, "tid": tid, "ts": start}
            yield {"ph": "f", **arrow, "tid": int(on[cause]), "ts": us(int(parts.start[cause]) - base_ns), "bp": "e"}
    for (each, depth), tid in tracks.items():
        name = f"rank {each} waits" + (f" ({depth + 1})" if depth else "")
        yield metadata("thread_name", PATH_PID, tid, name=name)


def _cause(path: CriticalPath, rank: int, begin: int, end: int) -> int:
    """Return the longest segment of a rank while another waits for it, -1 for none."""
    parts = path.segments
    first, behind = np.searchsorted(parts.start, [begin, end]).tolist()
    mine = np.arange(first, behind)
    mine = mine[path.graph.activities.rank[parts.place[mine]] == rank]
    return int(mine[np.argmax(parts.length[mine])]) if len(mine) else -1


def _pieces(graph: DependencyGraph, parts: Segments, stretch: Array, tid: int, base_ns: int) -> Iterator[RawEvent]:
    """Yield a slice per operator or kernel of each stretch; of short ones in a row one, named by the longest."""
    operator = operator_of(graph, parts.region)
    by_operator = (operator >= 0) & ~np.isin(parts.category, _DEVICE)
    named = graph.activities.name[np.where(by_operator, operator, parts.activity)].astype(np.int64)
    for at, end in _chunks(stretch, named, parts.length, int(parts.length.sum()) / _MAX_PIECES):
        length = parts.length[at:end]
        args = {"segments": end - at, **_by_category(totals(parts.category[at:end], length))}
        where = us(int(parts.start[at]) - base_ns), us(int(length.sum()))
        names = list(totals(named[at:end], length))
        name = short_name(graph.names[names[0]])
        name = name if len(names) == 1 else f"{name}, {len(names) - 1} more"
        yield _slice(tid, name, *where, cat=f"{_CATEGORY}_piece", args=args)


def _long_enough(value: Array, outer: Array, length: Array, least: float) -> Array:
    """Return values by segment; runs shorter than the least get the value before them within the same outer value."""
    starts = run_starts(outer, value)
    joins = (np.add.reduceat(length, starts) < least) & (starts > 0) & (outer[starts - 1] == outer[starts])
    own = np.maximum.accumulate(np.where(joins, 0, np.arange(len(starts))))  # the run whose value each gets
    return np.repeat(value[starts[own]], np.diff(starts, append=len(value)))


def _chunks(outer: Array, inner: Array, length: Array, least: float) -> list[tuple[int, int]]:
    """Return runs of equal values, those in a row that are shorter than the least as one until they have its length."""
    starts = run_starts(outer, inner)
    opens = np.empty(len(starts), np.bool_)
    _open_chunks(np.add.reduceat(length, starts), outer[starts], least, opens)
    return list(pairwise([*starts[opens].tolist(), len(outer)]))


@njit(cache=True, nogil=True)
def _open_chunks(time: Array, outer: Array, least: float, opens: Array) -> None:
    """Mark the runs that do not join the one before."""
    held = 0.0  # of the last chunk, while it may still grow
    for run in range(len(time)):
        opens[run] = not (held and time[run] < least and outer[run] == outer[run - 1])
        held = time[run] + (0.0 if opens[run] else held)
        if held >= least:
            held = 0.0


def _by_category(time: Mapping[int, int]) -> dict[str, Any]:
    return {f"{CATEGORIES[code]}_us": us(each) for code, each in time.items()}


def _slice(tid: int, name: str, ts: Any, dur: Any, **more: Any) -> RawEvent:  # noqa: ANN401 - int or Decimal
    return {"ph": "X", "pid": PATH_PID, "tid": tid, "name": name, "ts": ts, "dur": dur, **more}


def path_slices(path: CriticalPath, tid: Array, base_ns: int) -> Iterator[Slices]:
    """Yield the segments of a path as slices; `tid` is the track of each."""
    parts = path.segments
    shared, alike = _shared(path, tid)
    places, names = Interner[tuple[int, int]](), Interner[str]()
    category = names[_CATEGORY]
    place = np.array([places[PATH_PID, tid] for tid, _, _ in shared], np.int64)[alike]
    name = np.array([names[title] for _, title, _ in shared], np.int64)[alike]
    tails = [tail for _, _, tail in shared]
    for first in range(0, len(parts), trace_writer.AT_ONCE):
        some = slice(first, first + trace_writer.AT_ONCE)
        length = parts.length[some]
        args = row_texts((
            b'{"weight_us":', (trace_writer.MICROSECONDS, length),
            b',"activity":', (trace_writer.INTEGER, parts.activity[some]), (tails, alike[some]),
        ), len(length))  # fmt: skip
        yield Slices(
            list(places), list(names), place[some], parts.start[some] - base_ns, length, name[some],
            np.full(len(length), category), args.spans, args.text,
        )  # fmt: skip


def _shared(path: CriticalPath, tid: Array) -> tuple[list[tuple[int, str, bytes]], Array]:
    """Return (track, name, end of the arguments) of slices of which many are alike, and which each is."""
    graph, acts, parts = path.graph, path.graph.activities, path.segments
    named = np.append(acts.name, -1)  # for none
    columns: dict[str, Array] = {
        "tid": tid, "category": parts.category, "edge": parts.edge, "gap": parts.gap, "kind": acts.kind[parts.activity],
        "name": acts.name[parts.activity], "operator": named[operator_of(graph, parts.region)],
        "module": named[module_of(graph, parts.region)], "before": acts.name[parts.target],
        "rank": acts.rank[parts.place], "lane": acts.lane[parts.place],
    }  # fmt: skip
    alike = pd.factorize(coded(*columns.values()))[0]
    example = np.zeros(int(alike.max(initial=-1)) + 1, np.int64)
    example[alike] = np.arange(len(parts))
    rows = zip(*(column[example].tolist() for column in columns.values()), strict=True)
    return [_texts(path, dict(zip(columns, row, strict=True))) for row in rows], alike


def _texts(path: CriticalPath, codes: dict[str, int]) -> tuple[int, str, bytes]:
    """Return the track of a slice, its name, and the end of its arguments as JSON."""
    names, lanes, lane = path.graph.names, path.graph.lanes, codes["lane"]
    edge = EdgeKind(codes["edge"]).label if codes["edge"] >= 0 else ""
    gap = GapKind(codes["gap"]).label if codes["gap"] != GapKind.NONE else ""
    texts = {
        key: shortened(names[codes[key]], _MAX_ARGUMENT) if codes[key] >= 0 else ""
        for key in ("name", "operator", "module", "before")
    }
    why = gap or ("" if edge == EdgeKind.BODY.label else edge)
    short = shortened(short_name(texts["before" if why else "name"]), _MAX_LETTERS)
    title = f"{why.replace('_', ' ')} → {short}" if why else short
    shown = {
        "category": CATEGORIES[codes["category"]], "edge": edge, "gap": gap, "kind": ActivityKind(codes["kind"]).label,
        **texts, "rank": codes["rank"], "lane": shortened(lanes[lane].label, _MAX_ARGUMENT) if lane >= 0 else "",
    }  # fmt: skip
    tail = readable(msgspec.json.encode({key: value for key, value in shown.items() if value != ""}))
    return codes["tid"], title, b"," + tail[1:]
