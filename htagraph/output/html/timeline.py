"""A graph as the slices of a timeline: rows of slices that do not overlap, the critical path, the collectives."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.compiled import njit
from htagraph.core.errors import printable
from htagraph.core.kinds import ADDED, COMMUNICATION, ActivityKind, EdgeKind, of_kinds
from htagraph.core.naming import short_name
from htagraph.findings.phrases import plural, shortened, time_text
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.html.page import json_bytes
from htagraph.queries.paths import CATEGORIES, CriticalPath

__all__ = ["MOST_SLICES", "Packed", "Timeline", "differences", "kept_slices", "packed", "timeline_of"]

MAX_LETTERS = 1000
"""Letters of a name; longer ones are cut in the middle, which the page says. Chosen: several lines of a tooltip.
Doubled, names that programs make (of shapes, or of generated kernels) weigh twice as much."""
LEAST_LETTERS = 40
"""Letters that a name keeps at least; chosen: names stay apart. Doubled, pages of a million names are larger."""
_LETTERS_OF_ALL = 30_000_000
"""Letters of all names together, beyond which each may have fewer. Chosen: some MB when packed, which a browser keeps.
Doubled, a job in which every event has a long name of its own makes a page of twice the size."""
_SHOWN_LETTERS = 120
"""Letters of a name in a slice; chosen: as wide as slices are. Doubled, pages are some kilobytes larger."""
_ARGUMENTS = (
    "collective_name", "pg_desc", "pg_name", "dtype", "in_msg_nelems", "out_msg_nelems", "group_size", "seq", "bytes",
    "graph_id", "input_dims",
)  # fmt: skip
"""Arguments that the page shows; those of launches are shown by the line to what they launched."""
_TEXTS = frozenset({"collective_name", "pg_desc", "pg_name", "dtype", "input_dims", "input_type"})
"""Those whose values are numbers of names."""
MOST_SLICES = 2_000_000
"""Slices of one page. Source: measured, a slice takes 4 to 8 bytes of the page, its part of the critical path included,
so that pages stay below 16 MB; a frame takes as long as of fewer. Doubled, pages of 5 million events are 16 to 32 MB,
and browsers need 300 MB for them."""
_LEVEL = 9
"""Of gzip. Measured on 75,000 slices: 6 % smaller than level 6, in three times its time, which is still a small part of
making a report. It cannot be doubled."""
_GZIP = 31
"""The window bits by which zlib writes a header of gzip, with no time and no name in it: equal data, equal bytes."""


@dataclass(frozen=True)
class Timeline:
    """The slices of a job as the page needs them."""

    header: dict[str, Any]
    """What the page reads first: ranks, lanes, rows, columns, the window; plain values."""
    data: bytes
    """The columns that the header lists, gzipped."""
    slices: int
    """How many slices there are."""
    left_out: list[str]
    """What is not shown, in sentences; empty where everything is."""


@dataclass(frozen=True)
class _Order:
    """Which slices are shown, and in which order."""

    rows: npt.NDArray[np.int64]
    """Activities by lane, depth and start."""
    start: npt.NDArray[np.int64]
    """ns since the job's start."""
    duration: npt.NDArray[np.int64]
    lane: npt.NDArray[np.int64]
    """The place of the lane on the page."""
    depth: npt.NDArray[np.int64]
    shown_lanes: npt.NDArray[np.int64]
    """Lanes from top to bottom."""


def timeline_of(path: CriticalPath, *, most: int | None = None) -> Timeline:
    """Return the timeline of a job with its critical path.

    Args:
        path: the critical path; its graph is the job.
        most: how many slices at most; the default is that of `kept_slices`.

    Example:
        >>> import htagraph as hg
        >>> timeline = timeline_of(hg.critical_path(hg.load("data/demo")))
        >>> timeline.slices, timeline.left_out
        (9508, [])
    """
    graph = path.graph
    kept, left_out = kept_slices(path) if most is None else kept_slices(path, most)
    order = _ordered(graph, kept)
    names, number = _names(graph, order.rows)
    slice_of = np.full(len(graph.activities) + 1, -1, np.int64)
    slice_of[order.rows] = np.arange(len(order.rows))
    arguments, values, texts = _arguments(graph, slice_of)
    columns = {**_slices(graph, order, number), **_path(path, slice_of), **_collectives(graph, slice_of), **values}
    room = min(MAX_LETTERS, max(LEAST_LETTERS, _LETTERS_OF_ALL // max(len(names), 1)))
    whole = packed(columns, {"names": json_bytes([shortened(name, room) for name in names])})
    cut = sum(len(name) > room for name in names)
    left_out += [f"{plural(cut, 'name')} of more than {room:,} letters: shown without their middle."] if cut else []
    header = {
        "columns": whole.columns,
        "shortNames": _short_names(names),
        "lanes": _lanes(graph, order),
        "kinds": [kind.label for kind in ActivityKind],
        "categories": list(CATEGORIES),
        "edges": [kind.label for kind in EdgeKind],
        "arguments": arguments,
        "textArguments": texts,
        "collectives": _collective_words(graph),
        "whole": int(graph.time.max()) - graph.origin_ns if graph.vertex_count else 0,
        "pathStart": path.window[0] - graph.origin_ns,
        "step": int(ActivityKind.STEP),
    }
    return Timeline(header, whole.data, len(order.rows), left_out)


def _ordered(graph: DependencyGraph, kept: Array) -> _Order:
    acts = graph.activities
    rows = np.flatnonzero(kept)
    start, end = graph.time[2 * rows] - graph.origin_ns, graph.time[2 * rows + 1] - graph.origin_ns
    lane = acts.lane[rows].astype(np.int64)
    shown = _lanes_in_order(graph, lane)
    place = np.full(len(graph.lanes) + 1, -1, np.int64)
    place[shown] = np.arange(len(shown))
    lane = place[lane]
    by_start = np.lexsort((start - end, start, lane))
    depth = np.zeros(len(rows), np.int64)
    if len(rows):
        _assign_depths(by_start, np.stack((lane, start, end)), depth)
    order = np.lexsort((start, depth, lane))
    return _Order(rows[order], start[order], (end - start)[order], lane[order], depth[order], shown)


@njit(cache=True, nogil=True)
def _assign_depths(order: Array, columns: Array, depth: Array) -> None:
    """Put each slice, in order of (lane, start, longer first), below all that are under way on its lane."""
    lane, start, end = columns
    under_way = np.empty(len(order), np.int64)
    count = 0
    for at in range(len(order)):
        row = order[at]
        if at and lane[row] != lane[order[at - 1]]:
            count = 0
        while count and end[under_way[count - 1]] <= start[row]:
            count -= 1
        depth[row] = count
        under_way[count] = row
        count += 1


def _lanes_in_order(graph: DependencyGraph, lane: Array) -> npt.NDArray[np.int64]:
    """Return the lanes that have slices: by rank, streams before threads, threads with most calls first."""
    count = np.bincount(lane, minlength=len(graph.lanes))
    used = np.flatnonzero(count)
    keys = [
        (each.rank, each.stream < 0, each.device, each.stream, -int(count[number]) if each.stream < 0 else 0, number)
        for number, each in ((number, graph.lanes[number]) for number in used.tolist())
    ]
    return np.array([key[-1] for key in sorted(keys)], np.int64)


def _lanes(graph: DependencyGraph, order: _Order) -> list[dict[str, Any]]:
    """Return each lane from top to bottom, with how many slices each of its rows has."""
    rows = []
    for place, number in enumerate(order.shown_lanes.tolist()):
        lane = graph.lanes[number]
        counts = np.bincount(order.depth[order.lane == place]).tolist()
        rows.append({"rank": lane.rank, "label": printable(lane.label), "device": lane.stream >= 0, "rows": counts})
    return rows


def _names(graph: DependencyGraph, rows: Array) -> tuple[list[str], Array]:
    """Return the names that occur, the most frequent first, and which of them each slice has."""
    name = graph.activities.name[rows]
    count = np.bincount(name, minlength=len(graph.names))
    used = np.argsort(-count, kind="stable")[: int((count > 0).sum())]
    number = np.zeros(len(graph.names), np.int64)
    number[used] = np.arange(len(used))
    return [printable(graph.names[each]) for each in used.tolist()], number[name]


def _short_names(names: Sequence[str]) -> dict[int, str]:
    """Return, for names that are long to read, what is written into slices."""
    shorts = {number: short_name(name) for number, name in enumerate(names)}
    return {number: shortened(short, _SHOWN_LETTERS) for number, short in shorts.items() if short != names[number]}


def _slices(graph: DependencyGraph, order: _Order, number: Array) -> dict[str, Array]:
    """Return the columns of slices; a start is the time since the slice before it in its row ended."""
    acts = graph.activities
    opens = np.ones(len(order.rows), np.bool_)
    opens[1:] = (order.lane[1:] != order.lane[:-1]) | (order.depth[1:] != order.depth[:-1])
    before = np.concatenate((np.zeros(1, np.int64), (order.start + order.duration)[:-1]))[: len(opens)]
    on_device = acts.on_device[order.rows]
    cause = acts.cause[order.rows[on_device]].astype(np.int64)
    return {
        "gap": order.start - np.where(opens, 0, before),
        "duration": order.duration,
        "name": number,
        "kind": acts.kind[order.rows],
        "activity": differences(order.rows),
        "stepNumber": differences(acts.step[order.rows]),
        "launch": differences(cause),
    }


def _path(path: CriticalPath, slice_of: Array) -> dict[str, Array]:
    """Return the stretches of the critical path: what follows each other in one slice and category is one."""
    parts = path.segments
    place, category = slice_of[parts.place], parts.category
    first = np.ones(len(parts), np.bool_)
    first[1:] = (place[1:] != place[:-1]) | (category[1:] != category[:-1])
    opens = np.flatnonzero(first)
    length = np.add.reduceat(parts.length, opens) if len(opens) else np.zeros(0, np.int64)
    return {
        "pathSlice": differences(place[opens]),
        "pathLength": length,
        "pathCategory": category[opens],
        "pathEdge": parts.edge[opens],
    }


def _collectives(graph: DependencyGraph, slice_of: Array) -> dict[str, Array]:
    """Return the members of collectives of several ranks, as slices."""
    if graph.matches is None:
        return {"memberSlice": np.zeros(0, np.int64), "memberOf": np.zeros(0, np.int64)}
    return {
        "memberSlice": differences(slice_of[graph.matches.activity]),
        "memberOf": differences(graph.matches.collective),
    }


def _collective_words(graph: DependencyGraph) -> list[str]:
    """Return what each collective is: operation and group."""
    if graph.matches is None:
        return []
    return [printable(f"{op} · {group}") for op, group in zip(graph.matches.op, graph.matches.group, strict=True)]


def _arguments(graph: DependencyGraph, slice_of: Array) -> tuple[list[str], dict[str, Array], dict[str, list[str]]]:
    """Return which arguments there are, their slices and values as columns, and the words of those that are texts."""
    found: list[str] = []
    columns: dict[str, Array] = {}
    texts: dict[str, list[str]] = {}
    for name in _ARGUMENTS:
        sparse = graph.activities.args.get(name)
        if sparse is None or not len(sparse.rows):
            continue
        shown = slice_of[sparse.rows]
        values = np.asarray(sparse.values)[shown >= 0].astype(np.int64)
        if name in _TEXTS:
            used, values = np.unique(values, return_inverse=True)
            texts[name] = [
                shortened(printable(graph.names[each]), MAX_LETTERS) if each >= 0 else "" for each in used.tolist()
            ]
        order = np.argsort(shown[shown >= 0], kind="stable")
        found.append(name)
        columns |= {f"{name}At": differences(shown[shown >= 0][order]), f"{name}Is": values.ravel()[order]}
    return found, columns, texts


def kept_slices(path: CriticalPath, most: int = MOST_SLICES) -> tuple[npt.NDArray[np.bool_], list[str]]:
    """Return which activities are shown, and sentences about what is not.

    The critical path, communication and steps are always shown. Of the rest, calls of Python functions are left out
    first, then the shortest calls of the host, then the shortest work of devices, until the others fit.

    Args:
        path: the critical path; its graph is the job.
        most: how many slices at most, beyond those that are always shown.

    Returns:
        A mask over the activities, and a sentence per kind that is left out; none where everything fits.
    """
    acts = path.graph.activities
    kept = ~of_kinds(acts.kind, ADDED) & (acts.lane >= 0)
    sentences: list[str] = []
    always = of_kinds(acts.kind, (*COMMUNICATION, ActivityKind.STEP))
    always[np.unique(path.segments.place)] = True
    for what, group in (
        ("calls of Python functions", acts.kind == ActivityKind.PYTHON),
        ("calls of the host", ~acts.on_device & (acts.kind != ActivityKind.PYTHON)),
        ("kernels and copies", acts.on_device),
    ):
        over = int(kept.sum()) - most
        if over <= 0:
            break
        rows = np.flatnonzero(kept & group & ~always)
        rows = rows[np.argsort(acts.duration[rows], kind="stable")][:over]
        if len(rows):
            kept[rows] = False
            sentences.append(_left_out(what, acts.duration[rows]))
    return kept, sentences


def _left_out(what: str, duration: Array) -> str:
    longest = time_text(int(duration.max()) / 1000)
    return (
        f"{len(duration):,} {what}, each at most {longest} long, are not drawn: the page shows as many slices as a "
        "browser can. They count in every number. For those of one moment, make a report with --steps or --time."
    )


class Packed:
    """Columns of integers and texts as one gzipped piece, and the list of where each lies in it."""

    def __init__(self, columns: list[dict[str, Any]], data: bytes) -> None:
        self.columns = columns
        """Of each: ``name``, ``count`` (values; of a text, bytes), ``planes`` (bytes per value; 0 for a text) and
        ``signed``; they lie one after the other."""
        self.data = data


def packed(columns: Mapping[str, Array], texts: Mapping[str, bytes] | None = None) -> Packed:
    """Return columns of integers, each as planes of bytes, the lowest first.

    Where a column has negative values, n is written as 2n and -n as 2n - 1.

    Args:
        columns: integers of at most 2^53, by name.
        texts: whole texts, by name.

    Example:
        >>> packed({"a": np.array([1, -1, 300])}).columns
        [{'name': 'a', 'count': 3, 'planes': 2, 'signed': True}]
    """
    listed: list[dict[str, Any]] = []
    pieces: list[bytes] = []
    for name, values in columns.items():
        signed = bool(len(values)) and bool(values.min() < 0)
        whole = values.astype(np.int64)
        plain = np.where(whole < 0, -2 * whole - 1, 2 * whole) if signed else whole
        planes = (int(plain.max(initial=0)).bit_length() + 7) // 8
        listed.append({"name": name, "count": len(values), "planes": planes, "signed": signed})
        pieces += [((plain >> (8 * plane)) & 0xFF).astype(np.uint8).tobytes() for plane in range(planes)]
    for name, data in (texts or {}).items():
        listed.append({"name": name, "count": len(data), "planes": 0, "signed": False})
        pieces.append(data)
    press = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return Packed(listed, press.compress(b"".join(pieces)) + press.flush())


def differences(values: Array) -> npt.NDArray[np.int64]:
    """Return each value less the one before it, the first less 0.

    Example:
        >>> differences(np.array([5, 7, 4])).tolist()
        [5, 2, -3]
    """
    whole = values.astype(np.int64)
    return np.asarray(np.diff(whole, prepend=np.int64(0)), np.int64)
