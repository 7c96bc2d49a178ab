"""A graph as the slices of a timeline: rows of slices that do not overlap, the critical path, the collectives."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, coded, inverse_of, run_starts, stable_order
from htagraph.core.errors import printable
from htagraph.core.kinds import ADDED, COMMUNICATION, ActivityKind, of_kinds
from htagraph.core.names import readable_name, short_name
from htagraph.findings.phrases import plural, shortened, time_text
from htagraph.graph.activities import Lane
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.html.page import json_bytes
from htagraph.output.html.walks import walks_of
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
    """The columns that the header lists, each compressed."""
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
    names, named = _names(graph, scene)
    slice_of = inverse_of(scene.activity, len(graph.activities) + 1)
    arguments, values, texts = _arguments(graph, slice_of)
    collectives, members = _collectives(graph, slice_of)
    # all names together have some MB when packed, but each keeps enough letters to differ from others
    room = min(MAX_LETTERS, max(40, 30_000_000 // max(len(names), 1)))
    letters = {"names": np.frombuffer(json_bytes([shortened(name, room) for name in names]), np.uint8)}
    slices, on_path = _slices(graph, scene, row), _path(path, scene, row, slice_of)
    walks = walks_of(graph, scene.activity, on_path=path.segments.place)
    listed, data = packed({**letters, **named, **slices, **on_path, **members, **values, **walks.columns})
    cut = len({name for name in names if len(name) > room})
    left_out += [f"{plural(cut, 'name')} of more than {room:,} letters: shown without their middle."] if cut else []
    left_out += walks.left_out
    header = {
        **walks.header,
        "columns": listed,
        # of names that are long to read, what is written into slices, which are at most so wide
        "shortNames": {
            at: shortened(short, 120) for at, name in enumerate(names) if (short := short_name(name)) != name
        },
        "lanes": lanes,
        "kinds": [kind.label for kind in ActivityKind],
        "categories": list(CATEGORIES),
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


def _names(graph: DependencyGraph, scene: Scene) -> tuple[list[str], dict[str, Array]]:
    """Return the names that occur, one of several kinds once for each, and their columns: what each slice has."""
    acts = graph.activities
    code = coded(acts.name[scene.activity], acts.kind[scene.activity])
    order = np.argsort(-np.bincount(code), kind="stable")  # the most frequent first
    one = scene.activity[inverse_of(code, len(order))[order]]  # an activity of each
    names = [printable(readable_name(graph.names[each])) for each in acts.name[one].tolist()]
    return names, {"name": inverse_of(order, len(order))[code], "kindOf": acts.kind[one]}


def _slices(graph: DependencyGraph, scene: Scene, row: Array) -> dict[str, Array]:
    """Return the columns of slices; a start is the time since the slice before it in its row ended."""
    acts, rows = graph.activities, scene.activity
    start = scene.start - graph.origin_ns
    before = np.where(np.diff(row, prepend=-1), 0, np.roll(start + scene.duration, 1))
    return {
        "gap": start - before,
        "duration": scene.duration,
        "activity": differences(rows),
        "stepNumber": differences(acts.step[rows]),
        "launch": differences(acts.cause[rows[acts.on_device[rows]]]),
    }


def _path(path: CriticalPath, scene: Scene, row: Array, slice_of: Array) -> dict[str, Array]:
    """Return the stretches of the critical path: what follows each other in one slice and category is one.

    A stretch has the row of its slice, from 1 (0: no slice); how many slices behind the last one of its row on the path
    that is; and how much later it ends than its slice starts or, if that had started already, ends.
    """
    parts, opens = path.segments, run_starts(slice_of[path.segments.place], path.segments.category)
    place, bounds = slice_of[parts.place[opens]], np.append(parts.start[opens], path.window[1])
    on = np.flatnonzero(place >= 0)
    on = on[stable_order(row[place[on]])]
    shown, (rows, step), expected = place[on], np.zeros((2, len(opens)), np.int64), bounds[:-1].copy()
    begins, before, start = run_starts(row[shown]), np.roll(shown, 1), scene.start[shown]
    before[begins] = run_starts(row)[row[shown[begins]]]
    rows[on], step[on] = row[shown] + 1, shown - before
    expected[on] = np.where(start > bounds[on], start, start + scene.duration[shown])
    return {"pathRow": rows, "pathStep": step, "pathLate": bounds[1:] - expected, "pathCategory": parts.category[opens]}


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
    always[path.segments.place] = True
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


def packed(columns: Mapping[str, Array]) -> tuple[list[dict[str, Any]], bytes]:
    """Return columns of integers as compressed pieces, one after the other, and where each is: a page unpacks any.

    A column is listed with its ``name``, ``count`` (values), ``planes`` (bytes per value, the lowest first), the
    ``unit`` that values are multiples of, and ``signed``: then, n is written as 2n and -n as 2n - 1.

    Example:
        >>> packed({"a": np.array([100, -100, 30000])})[0]
        [{'name': 'a', 'count': 3, 'planes': 2, 'unit': 100, 'signed': True, 'at': 0, 'size': 14}]
    """
    listed: list[dict[str, Any]] = []
    data = bytearray()
    for name, values in columns.items():
        unit = max(int(np.gcd.reduce(values)), 1)
        whole = values.astype("<i8") // unit
        signed = bool(whole.min(initial=0) < 0)
        plain = np.where(whole < 0, -2 * whole - 1, 2 * whole) if signed else whole
        planes = (int(plain.max(initial=0)).bit_length() + 7) // 8
        piece = zlib.compress(plain.view(np.uint8).reshape(-1, 8)[:, :planes].T.tobytes(), 9)  # 6 % smaller than 6
        facts = {"name": name, "count": len(values), "planes": planes, "unit": unit, "signed": signed}
        listed.append({**facts, "at": len(data), "size": len(piece)})
        data += piece + bytes(-len(piece) % 3)  # the next one begins with a letter of base64
    return listed, bytes(data)


def differences(values: Array) -> npt.NDArray[np.int64]:
    """Return each value less the one before it, the first less 0.

    Example:
        >>> differences(np.array([5, 7, 4])).tolist()
        [5, 2, -3]
    """
    whole = values.astype(np.int64)
    return np.asarray(np.diff(whole, prepend=np.int64(0)), np.int64)
