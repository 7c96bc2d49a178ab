"""A folded critical path drawn on a time axis: a row per rank, boxes as wide as their time, in Graphviz's language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.naming import short_name
from htagraph.core.time_text import time_text
from htagraph.findings.phrases import shortened
from htagraph.output.export.dot_text import dot_text, one_line, text_width
from htagraph.output.export.folded_path import Box, Hop, fold_path, hops_between, rows_of
from htagraph.output.kind_colors import KIND_COLORS, tint
from htagraph.queries.paths import CATEGORIES, CriticalPath

if TYPE_CHECKING:
    import graphviz

__all__ = ["COLORS", "draw_path"]

COLORS = {category: tint(KIND_COLORS[category]) for category in CATEGORIES}
"""Fill of a box by category."""
_WIDTH = 1180
"""Points; chosen: with the border, 1,200 points are 1,600 pixels at the 96 dots per inch of screens and of Graphviz's
PNGs. Doubled, the picture needs two screens."""
_LEFT, _RIGHT = 96, 130
"""Points left of the time axis, for the names of rows, and right of it, for the last label; chosen to hold them."""
_FONT = 9
"""Points of labels: 12 pixels. Doubled, labels need twice the rows."""
_BAR, _LEVEL, _ROOM = 20, 26, 10
"""Points: heights of a box and of a label of two lines, and the room between rows; chosen to fit the font."""
_MIN_BOX = 2.0
"""Points; chosen: the least width of a box that can be seen and pointed at. Doubled, short boxes reach further."""
_OFFSET = 3
"""Points between the line down from a box and its label. Chosen. Doubled, labels stand further right."""
_NAME_LETTERS, _ROW_LETTERS = 26, 18
"""Letters of names in boxes and of rows; chosen. Doubled, labels need up to twice the levels."""
_TICKS = 10
"""About how many ticks the axis has; chosen. Doubled, they are closer."""
_LINE, _GREY = "#b00020", "#888888"


@dataclass
class _Label:
    x: float
    width: float
    text: str
    bar: int
    level: int = -1
    """The line of labels below its row; -1 for in the box itself."""


@dataclass
class _Row:
    name: str
    boxes: list[int] = field(default_factory=list)
    labels: list[_Label] = field(default_factory=list)
    hops: list[_Label] = field(default_factory=list)
    y: float = 0.0
    """Of the middle of its boxes, points downwards."""

    def height(self) -> tuple[float, float]:
        """Return the room that it needs above its boxes and below."""
        return _levels(self.hops) * _LEVEL, _levels(self.labels) * _LEVEL


def draw_path(path: CriticalPath, max_nodes: int) -> graphviz.Digraph:
    """Return the picture of a path that is not empty; see `to_graphviz`."""
    import graphviz

    boxes = fold_path(path, max_nodes)
    hops = hops_between(path, boxes)
    rows = _rows(path, boxes, hops)
    out = graphviz.Digraph(
        graph_attr={
            "layout": "neato", "outputorder": "edgesfirst", "splines": "line", "overlap": "true", "pad": "0.1",
            "fontname": "Helvetica,Arial,sans-serif", "fontsize": "13", "labelloc": "t", "labeljust": "l",
            "label": dot_text(_title(path, boxes)).replace("\\n", "\\l") + "\\l",
        },
        node_attr={"shape": "box", "fontname": "Helvetica,Arial,sans-serif", "fontsize": str(_FONT),
                   "margin": "0,0", "penwidth": "0.7", "color": _GREY},
        edge_attr={"fontname": "Helvetica,Arial,sans-serif", "fontsize": str(_FONT), "color": _GREY},
    )  # fmt: skip
    bottom = max(row.y + row.height()[1] for row in rows.values()) + _BAR
    _add_axis(out, path, bottom)
    for key, row in rows.items():
        _add_row(out, path, key, row)
        for number in row.boxes:
            _add_box(out, path, number, boxes[number], row)
    _add_edges(out, boxes, hops, rows)
    _add_legend(out, path, bottom + 2 * _BAR)
    return out


def _title(path: CriticalPath, boxes: list[Box]) -> str:
    folded = [box for box in boxes if box.count > 1]
    held = sum(box.length_ns for box in folded)
    shown = {rank for box in boxes for rank in list(box.ranks)[:1]}
    lines = [
        f"Critical path: {time_text(path.makespan_ns / 1000)}, {len(path.segments):,} segments in {len(boxes)} boxes",
        f"{len(folded)} boxes stand for several segments each and hold {time_text(held / 1000)}"
        f" ({100 * held / max(path.makespan_ns, 1):.0f} %); the width of a box is its time",
    ]
    inside = {rank: time for rank, time in _by_rank(path).items() if rank not in shown}
    if inside:
        lines.append(f"{time_text(sum(inside.values()) / 1000)} on {len(inside)} other ranks is inside boxes of these")
    return "\n".join(lines)


def _by_rank(path: CriticalPath) -> dict[int, int]:
    parts = path.segments
    ranks, which = np.unique(path.graph.activities.rank[parts.place], return_inverse=True)
    return dict(zip(ranks.tolist(), np.bincount(which, parts.length).astype(np.int64).tolist(), strict=True))


def _rows(path: CriticalPath, boxes: list[Box], hops: dict[int, Hop]) -> dict[int, _Row]:
    """Return the rows from above, with their boxes, labels and places."""
    several, lanes = len(path.graph.ranks) > 1, path.graph.lanes
    rows: dict[int, _Row] = {}
    for key in sorted({box.row for box in boxes}):
        rows[key] = _Row(f"rank {key}" if several else lanes[key].label if key >= 0 else "between ranks")
    for number, box in enumerate(boxes):
        row = rows[box.row]
        row.boxes.append(number)
        row.labels.append(_label(path, number, box))
        if number in hops:
            text = _hop_text(hops[number])
            row.hops.append(_Label(_x(path, box.start_ns) + _OFFSET, text_width(text, _FONT), text, number, level=0))
    y = _BAR * 2.0
    for row in rows.values():
        _place(row.labels)
        _place(row.hops)
        above, below = row.height()
        row.y = y + above + _BAR / 2
        y = row.y + _BAR / 2 + below + _ROOM
    return rows


def _label(path: CriticalPath, number: int, box: Box) -> _Label:
    name = shortened(one_line(f"{box.why} {short_name(box.name)}".strip()), _NAME_LETTERS)
    others = "" if box.count == 1 else ", 1 other" if box.count == 2 else f", {box.count - 1:,} others"
    text = f"{name}\n{time_text(box.length_ns / 1000)}{others}"
    width, room = text_width(text, _FONT) + 8, _box_width(path, box)
    return _Label(_x(path, box.start_ns) + _OFFSET, width, text, number, level=-1 if room >= width else 0)


def _hop_text(hop: Hop) -> str:
    waited = f"\nrank {hop.to_rank} had waited {time_text(hop.waited_ns / 1000)}" if hop.waited_ns else ""
    return f"{hop.edge.replace('_', ' ')}: rank {hop.from_rank} → {hop.to_rank}{waited}"


def _place(labels: list[_Label]) -> None:
    """Put each label that does not fit its box on the first line with room for it."""
    ends: list[float] = []
    for label in labels:
        if label.level < 0:
            continue
        label.x = min(label.x, _WIDTH - label.width)
        level = next((at for at, end in enumerate(ends) if end <= label.x), len(ends))
        ends[level : level + 1] = [label.x + label.width + 4]
        label.level = level


def _levels(labels: Iterable[_Label]) -> int:
    return max((label.level + 1 for label in labels), default=0)


def _x(path: CriticalPath, moment_ns: int) -> float:
    """Return where a moment is on the axis, points."""
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (moment_ns - path.window[0]) / max(path.makespan_ns, 1)


def _box_width(path: CriticalPath, box: Box) -> float:
    return max(_MIN_BOX, _x(path, box.start_ns + box.length_ns) - _x(path, box.start_ns))


def _at(x: float, y: float) -> str:
    """Return a fixed position, from points downwards to inches upwards."""
    return f"{x / 72:.4f},{-y / 72:.4f}!"


def _add_box(out: graphviz.Digraph, path: CriticalPath, number: int, box: Box, row: _Row) -> None:
    width, x = _box_width(path, box), _x(path, box.start_ns)
    label = next(each for each in row.labels if each.bar == number)
    inside = label.level < 0
    out.node(
        f"n{number}", label=dot_text(label.text) if inside else "", tooltip=dot_text(_tooltip(path, box)),
        pos=_at(x + width / 2, row.y), width=f"{width / 72:.4f}", height=f"{_BAR / 72:.4f}", fixedsize="shape",
        style="filled", fillcolor=COLORS[box.category], color=_GREY,
    )  # fmt: skip
    if inside:
        return
    y = row.y + _BAR / 2 + (label.level + 0.5) * _LEVEL + 2
    _add_text(out, f"t{number}", label.x, y, label)
    out.edge(f"n{number}", f"t{number}", arrowhead="none", color="#cccccc", penwidth="0.6", tailport="sw", headport="w")


def _tooltip(path: CriticalPath, box: Box) -> str:
    begin = (box.start_ns - path.graph.origin_ns) / 1_000_000
    many = f"{box.count:,} segments" if box.count > 1 else "1 segment"
    longest = "longest: " if box.count > 1 else ""
    lines = [
        f"{time_text(box.length_ns / 1000)} from {begin:,.3f} ms on, {many}",
        one_line(f"{longest}{box.why} {box.name}".strip()),
        ", ".join(f"{word.replace('_', ' ')} {time_text(time / 1000)}" for word, time in box.categories.items()),
    ]
    if len(box.ranks) > 1:
        lines.append(", ".join(f"rank {rank} {time_text(time / 1000)}" for rank, time in box.ranks.items()))
    return "\n".join(lines)


def _add_text(out: graphviz.Digraph, name: str, x: float, y: float, label: _Label, *, color: str = "#333333") -> None:
    out.node(
        name, label="".join(f"{line}\\l" for line in dot_text(label.text).split("\\n")), shape="box", style="filled",
        fillcolor="white", color="white", fontcolor=color, fixedsize="shape", pos=_at(x + label.width / 2, y),
        width=f"{label.width / 72:.4f}", height=f"{(_LEVEL - 1) / 72:.4f}",
    )  # fmt: skip


def _add_row(out: graphviz.Digraph, path: CriticalPath, key: int, row: _Row) -> None:
    time = int(path.segments.length[rows_of(path) == key].sum())
    name = shortened(one_line(row.name), _ROW_LETTERS)
    text = f"{name}\n{time_text(time / 1000)} ({100 * time / max(path.makespan_ns, 1):.0f} %)"
    label = _Label(0, _LEFT - 6, text, -1)
    _add_text(out, f"row{key}", 0, row.y, label, color="#000000")


def _add_edges(out: graphviz.Digraph, boxes: list[Box], hops: dict[int, Hop], rows: dict[int, _Row]) -> None:
    for number in range(1, len(boxes)):
        first, second = boxes[number - 1], boxes[number]
        one, other = f"n{number - 1}", f"n{number}"
        if first.row == second.row:
            out.edge(one, other, style="invis")  # they touch
            continue
        down = rows[second.row].y > rows[first.row].y
        text = _hop_text(hops[number]) if number in hops else f"{second.why} {short_name(second.name)}"
        out.edge(
            one, other, tooltip=dot_text(one_line(text)), color=_LINE, penwidth="1.5", arrowsize="0.6",
            tailport="se" if down else "ne", headport="nw" if down else "sw",
        )  # fmt: skip
    for row in rows.values():
        for label in row.hops:
            y = row.y - _BAR / 2 - (label.level + 0.5) * _LEVEL - 1
            _add_text(out, f"h{label.bar}", label.x, y, label, color=_LINE)


def _ticks(path: CriticalPath) -> Iterator[tuple[int, str]]:
    """Yield the moments of the ticks and their labels, ms since the job's first activity."""
    begin, end = (moment - path.graph.origin_ns for moment in path.window)
    least = max(1, (end - begin) / _TICKS)
    power = 10 ** int(np.floor(np.log10(least)))
    step = next(int(factor * power) for factor in (1, 2, 5, 10) if factor * power >= least)
    digits = max(0, 6 - int(np.floor(np.log10(step))))
    for moment in range(-(-begin // step) * step, end + 1, step):
        yield moment + path.graph.origin_ns, f"{moment / 1_000_000:,.{digits}f} ms"


def _add_axis(out: graphviz.Digraph, path: CriticalPath, bottom: float) -> None:
    for number, (moment, text) in enumerate(_ticks(path)):
        x = _x(path, moment)
        out.node(f"tick{number}", label=text, shape="plaintext", pos=_at(x, _BAR / 2), fontcolor="#555555",
                 width="0", height="0.15")  # fmt: skip
        out.node(f"foot{number}", label="", shape="point", style="invis", pos=_at(x, bottom), width="0.01")
        out.edge(f"tick{number}", f"foot{number}", arrowhead="none", color="#e4e4e4", penwidth="0.6")


def _add_legend(out: graphviz.Digraph, path: CriticalPath, y: float) -> None:
    parts = path.segments
    time = np.bincount(parts.category, parts.length, len(CATEGORIES))
    x = 0.0
    for code in np.argsort(-time, kind="stable").tolist():
        if not time[code]:
            continue
        share = 100 * time[code] / max(path.makespan_ns, 1)
        text = f"{CATEGORIES[code].replace('_', ' ')} {time_text(int(time[code]) / 1000)} ({share:.0f} %)"
        width = text_width(text, _FONT) + 8
        if x + width > _WIDTH:
            x, y = 0.0, y + _BAR
        out.node(
            f"legend{code}", label=dot_text(text), pos=_at(x + width / 2, y), style="filled",
            fillcolor=COLORS[CATEGORIES[code]], fixedsize="shape", width=f"{width / 72:.4f}", height="0.22",
        )  # fmt: skip
        x += width + 6
