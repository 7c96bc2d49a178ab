"""A graph as the slices of a timeline: rows of slices that do not overlap, the critical path, the collectives."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, inverse_of, run_starts
from htagraph.core.errors import printable
from htagraph.core.kinds import ADDED, COMMUNICATION, ActivityKind, EdgeKind, of_kinds
from htagraph.core.naming import short_name
from htagraph.findings.phrases import plural, shortened, time_text
from htagraph.graph.activities import Lane
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.html.page import json_bytes
from htagraph.output.scene import Scene, rows_below, scene_of, tracks_of
from htagraph.queries.paths import CATEGORIES, CriticalPath

__all__ = ["MAX_LETTERS", "MOST_SLICES", "PageTimeline", "differences", "kept_slices", "packed", "timeline_of"]

MAX_LETTERS = 1000
"""Letters of a name; longer ones are cut in the middle, which the page says. Chosen: several lines of a tooltip.
Doubled, names that programs make (of shapes, or of generated kernels) weigh twice as much."""
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


class PageTimeline(NamedTuple):
    """The slices of a job as the page needs them."""

    header: dict[str, Any]
    """What the page reads first: ranks, lanes, rows, columns, the window; plain values."""
    data: bytes
    """The columns that the header lists, gzipped."""
    slices: int
    """How many slices there are."""
    left_out: list[str]
    """What is not shown, in sentences; empty where everything is."""


def timeline_of(path: CriticalPath, *, most: int = MOST_SLICES) -> PageTimeline:
    """Return the timeline of a job with its critical path, of as many slices as `kept_slices` keeps.

    Example:
        >>> import htagraph as hg
        >>> timeline = timeline_of(hg.critical_path(hg.load("data/demo")))
        >>> timeline.slices, timeline.left_out
        (9508, [])
    """
    graph = path.graph
    kept, left_out = kept_slices(path, most)

    def streams_first(lane: Lane, slices: int) -> tuple[Any, ...]:  # threads with most calls first
        return lane.rank, lane.stream < 0, lane.device, lane.stream, -slices if lane.stream < 0 else 0

    scene = scene_of(graph, np.flatnonzero(kept), streams_first, rows_below)
    scene = scene.chosen(np.lexsort((scene.start, scene.row, scene.lane)))
    lanes, row = _lanes(scene)
    # the names that occur, the most frequent first, and which of them each slice has
    name = graph.activities.name[scene.activity]
    count = np.bincount(name, minlength=len(graph.names))
    used = np.argsort(-count, kind="stable")[: int((count > 0).sum())]
    names, number = [printable(graph.names[each]) for each in used.tolist()], inverse_of(used, len(graph.names))[name]
    slice_of = inverse_of(scene.activity, len(graph.activities) + 1)
    arguments, values, texts = _arguments(graph, slice_of)
    collectives, members = _collectives(graph, slice_of)
    columns = {**_slices(graph, scene, row, number), **_path(path, slice_of), **members, **values}
    # all names together have some MB when packed, but each keeps enough letters to differ from others
    room = min(MAX_LETTERS, max(40, 30_000_000 // max(len(names), 1)))
    listed, data = packed(columns, {"names": json_bytes([shortened(name, room) for name in names])})
    cut = sum(len(name) > room for name in names)
    left_out += [f"{plural(cut, 'name')} of more than {room:,} letters: shown without their middle."] if cut else []
    header = {
        "columns": listed,
        # of names that are long to read, what is written into slices, which are at most so wide
        "shortNames": {
            at: shortened(short_name(name), 120) for at, name in enumerate(names) if short_name(name) != name
        },
        "lanes": lanes,
        "kinds": [kind.label for kind in ActivityKind],
        "categories": list(CATEGORIES),
        "edges": [kind.label for kind in EdgeKind],
        "arguments": arguments,
        "textArguments": texts,
        "collectives": collectives,
        "whole": int(graph.time.max()) - graph.origin_ns if graph.vertex_count else 0,
        "pathStart": path.window[0] - graph.origin_ns,
        "step": int(ActivityKind.STEP),
    }
    return PageTimeline(header, data, len(row), left_out)


def _lanes(scene: Scene) -> tuple[list[dict[str, Any]], Array]:
    """Return each lane from top to bottom, with how many slices each of its rows has, and the row of each slice."""
    lanes: list[dict[str, Any]] = [
        {"rank": lane.rank, "label": printable(lane.label), "device": lane.stream >= 0, "rows": []}
        for lane in scene.lanes
    ]
    rows, row = tracks_of(scene.lane, scene.row)
    for (lane, _), count in zip(rows, np.bincount(row, minlength=len(rows)).tolist(), strict=True):
        lanes[lane]["rows"].append(count)
    return lanes, row


def _slices(graph: DependencyGraph, scene: Scene, row: Array, number: Array) -> dict[str, Array]:
    """Return the columns of slices; a start is the time since the slice before it in its row ended."""
    acts, rows = graph.activities, scene.activity
    start = scene.start - graph.origin_ns
    before = np.where(np.diff(row, prepend=-1), 0, np.roll(start + scene.duration, 1))
    return {
        "gap": start - before,
        "duration": scene.duration,
        "name": number,
        "kind": acts.kind[rows],
        "activity": differences(rows),
        "stepNumber": differences(acts.step[rows]),
        "launch": differences(acts.cause[rows[acts.on_device[rows]]]),
    }


def _path(path: CriticalPath, slice_of: Array) -> dict[str, Array]:
    """Return the stretches of the critical path: what follows each other in one slice and category is one."""
    parts = path.segments
    place, category = slice_of[parts.place], parts.category
    opens = run_starts(place, category)
    length = np.add.reduceat(parts.length, opens) if len(opens) else np.zeros(0, np.int64)
    return {
        "pathSlice": differences(place[opens]),
        "pathLength": length,
        "pathCategory": category[opens],
        "pathEdge": parts.edge[opens],
    }


def _collectives(graph: DependencyGraph, slice_of: Array) -> tuple[list[str], dict[str, Array]]:
    """Return what each collective of several ranks is (operation and group), and the slices that are its members."""
    matches, none = graph.matches, np.zeros(0, np.int64)
    if matches is None:
        return [], {"memberSlice": none, "memberOf": none}
    words = [printable(f"{op} · {group}") for op, group in zip(matches.op, matches.group, strict=True)]
    return words, {
        "memberSlice": differences(slice_of[matches.activity]), "memberOf": differences(matches.collective),
    }  # fmt: skip


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
    first, then the shortest calls of the host, then the shortest work of devices, until no more than `most` are left.
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
            sentences.append(
                f"{len(rows):,} {what}, each at most {time_text(int(acts.duration[rows].max()) / 1000)} long, are not "
                "drawn: the page shows as many slices as a browser can. They count in every number. For those of one "
                "moment, make a report with --steps or --time."
            )
    return kept, sentences


def packed(
    columns: Mapping[str, Array], texts: Mapping[str, bytes] | None = None
) -> tuple[list[dict[str, Any]], bytes]:
    """Return columns of integers and texts as one gzipped piece, and what lies in it, one after the other.

    A column is listed with its ``name``, ``count`` (values; of a text, bytes), ``planes`` (bytes per value, the lowest
    first; 0 for a text) and ``signed``: then, n is written as 2n and -n as 2n - 1.

    Example:
        >>> packed({"a": np.array([1, -1, 300])})[0]
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
    # level 9 is 6 % smaller than 6; the window makes a header of gzip without time and name: equal data, equal bytes
    press = zlib.compressobj(9, zlib.DEFLATED, 31)
    return listed, press.compress(b"".join(pieces)) + press.flush()


def differences(values: Array) -> npt.NDArray[np.int64]:
    """Return each value less the one before it, the first less 0.

    Example:
        >>> differences(np.array([5, 7, 4])).tolist()
        [5, 2, -3]
    """
    whole = values.astype(np.int64)
    return np.asarray(np.diff(whole, prepend=np.int64(0)), np.int64)
