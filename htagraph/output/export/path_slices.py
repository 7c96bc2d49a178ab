"""The segments of a critical path as slices for Perfetto: what many of them share is encoded once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind, EdgeKind, GapKind
from htagraph.core.naming import short_name
from htagraph.findings.phrases import shortened
from htagraph.output.export.event_batches import Slices
from htagraph.output.export.row_texts import INTEGER, MICROSECONDS, TEXT, Column, row_texts
from htagraph.output.export.trace_writer import readable
from htagraph.queries.attribution import module_of, operator_of
from htagraph.queries.paths import CATEGORIES, CriticalPath
from htagraph.trace.reading.collect.growing import Interner

__all__ = ["CATEGORY", "PATH_PID", "path_slices", "us_texts"]


PATH_PID = 1
"""Process of the path's tracks; processes of ranks count from 1000, as `PidOf` gives them."""
CATEGORY = "critical_path"
_MAX_LETTERS = 80
"""Letters of a slice's name; chosen. Doubled, names reach further into slices that are wide enough."""
_MAX_ARGUMENT = 2_000
"""Letters of a name among the arguments of a slice. Chosen: kernels of C++ have hundreds, and every slice repeats them.
Doubled, a file of one long name grows by twice as much for each slice."""
_AT_ONCE = 1 << 16
"""Slices whose numbers become text together. Chosen: a few MB. Doubled, twice the memory, and no faster."""


def path_slices(path: CriticalPath, tids: Mapping[int, int], base_ns: int) -> Iterator[Slices]:
    """Yield the segments of a path as slices.

    Args:
        path: of one rank or of all.
        tids: lane → number of its track.
        base_ns: the moment that times are relative to, ns on the common clock.
    """
    parts = path.segments
    shared, alike = _shared(path, tids)
    places, names = Interner[tuple[int, int]](), Interner[str]()
    category = names[CATEGORY]
    place = np.array([places[PATH_PID, tid] for tid, _, _ in shared], np.int64)[alike]
    name = np.array([names[title] for _, title, _ in shared], np.int64)[alike]
    texts = [b'{"weight_us":', b',"activity":', *(tail for _, _, tail in shared)]
    for first in range(0, len(parts), _AT_ONCE):
        some = slice(first, first + _AT_ONCE)
        length = parts.length[some]
        columns = (
            Column(TEXT, 0), Column(MICROSECONDS, length), Column(TEXT, 1), Column(INTEGER, parts.activity[some]),
            Column(TEXT, 2 + alike[some]),
        )  # fmt: skip
        args = row_texts(columns, len(length), texts)
        yield Slices(
            list(places), list(names), place[some], parts.start[some] - base_ns, length, name[some],
            np.full(len(length), category), args.spans, args.text,
        )  # fmt: skip


def us_texts(nanoseconds: Array) -> list[str]:
    """Return times, ns, as the µs of a trace file.

    Example:
        >>> us_texts(np.array([1_500, 2_000, -7]))
        ['1.500', '2', '-0.007']
    """
    whole, rest = np.divmod(np.abs(nanoseconds), 1000)
    texts = [f"{us}.{ns:03d}" if ns else str(us) for us, ns in zip(whole.tolist(), rest.tolist(), strict=True)]
    for at in np.flatnonzero(nanoseconds < 0).tolist():
        texts[at] = f"-{texts[at]}"
    return texts


def _shared(path: CriticalPath, tids: Mapping[int, int]) -> tuple[list[tuple[int, str, bytes]], Array]:
    """Return (track, name, end of the arguments) of slices of which many are alike, and which each is."""
    graph, parts = path.graph, path.segments
    acts = graph.activities
    named = np.append(acts.name, -1)  # for none
    columns: dict[str, Array] = {
        "tid": np.array([tids[lane] for lane in acts.lane[parts.place].tolist()], np.int64),
        "category": parts.category, "edge": parts.edge, "gap": parts.gap, "kind": acts.kind[parts.activity],
        "name": acts.name[parts.activity], "operator": named[operator_of(graph, parts.region)],
        "module": named[module_of(graph, parts.region)], "before": acts.name[parts.target],
        "rank": acts.rank[parts.place], "lane": acts.lane[parts.place],
    }  # fmt: skip
    alike = np.zeros(len(parts), np.int64)
    for column in columns.values():
        least = int(column.min(initial=0))
        alike = alike * (int(column.max(initial=0)) - least + 1) + (column.astype(np.int64) - least)
        alike = pd.factorize(alike)[0]  # small again, so that no product overflows
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
    title = f"{why.replace('_', ' ')} → {_short(texts['before'])}" if why else _short(texts["name"])
    shown = {
        "category": CATEGORIES[codes["category"]], "edge": edge, "gap": gap, "kind": ActivityKind(codes["kind"]).label,
        **texts, "rank": codes["rank"], "lane": shortened(lanes[lane].label, _MAX_ARGUMENT) if lane >= 0 else "",
    }  # fmt: skip
    tail = readable(msgspec.json.encode({key: value for key, value in shown.items() if value != ""}))
    return codes["tid"], title, b"," + tail[1:]


def _short(name: str) -> str:
    return shortened(short_name(name), _MAX_LETTERS)
