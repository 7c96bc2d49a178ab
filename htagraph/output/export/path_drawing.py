"""A folded critical path drawn on a time axis: a row per rank, boxes as wide as their time, in Graphviz's language."""

from __future__ import annotations

import heapq
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import time_text
from htagraph.core.kinds import EdgeKind, GapKind
from htagraph.core.naming import short_name
from htagraph.findings.phrases import shortened
from htagraph.output.scene import KIND_COLORS, tint
from htagraph.queries.paths import CATEGORIES, CriticalPath

if TYPE_CHECKING:
    import graphviz

__all__ = [
    "COLORS", "Box", "Hop", "dot_text", "draw_path", "fold_path", "hops_between", "one_line", "rows_of", "text_width",
]  # fmt: skip

COLORS = {category: tint(KIND_COLORS[category]) for category in CATEGORIES}
"""Fill of a box by category."""
_WIDTH, _LEFT, _RIGHT = 1180, 96, 130
"""Points: the picture's width (with the border, 1,200 points are 1,600 pixels at the 96 dots per inch of screens and of
Graphviz's PNGs), and the room left of the time axis, for the names of rows, and right of it, for the last label."""
_FONT, _BAR, _LEVEL, _ROOM, _OFFSET, _MIN_BOX = 9, 20, 26, 10, 3, 2.0
"""Points: labels (12 pixels); heights of a box and of a label of two lines, which fit the font; the room between rows;
between the line down from a box and its label; and the least width of a box that can be seen and pointed at. Doubled,
labels need twice the rows, and short boxes reach further."""
_NAME_LETTERS, _ROW_LETTERS = 26, 18
"""Letters of names in boxes and of rows; chosen. Doubled, labels need up to twice the levels."""
_TICKS = 10
"""About how many ticks the axis has; chosen. Doubled, they are closer."""
_LINE, _GREY = "#b00020", "#888888"
_MIN_UNFOLDED_SHARE = 0.01
"""Share of the path from which a segment is a box of its own if there is room; chosen. Doubled, fewer stand alone."""
_OTHER_CATEGORY, _OTHER_ROW = 4, 32
"""How many times dearer it is to fold neighbours of two categories, or of two rows, than of one. Chosen: what is short
joins its own kind first. Doubled, boxes are purer and their sizes differ more."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_LETTER_WIDTH, _WIDE = 0.56, 1.0
"""Widths of a letter, and of one that East Asian scripts draw wide, in sizes of the font; measured of Helvetica's and
Arial's lower case, rounded up. Doubled, labels take twice the room."""


@dataclass
class _Label:
    x: float
    width: float
    text: str
    bar: int
    level: int = -1
    """The line of labels below its row; -1 for in the box itself."""


@dataclass
class _LaneRow:
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
    by_rank = _totals(path.graph.activities.rank[path.segments.place], path.segments.length)
    inside = [time for rank, time in by_rank.items() if rank not in shown]
    if inside:
        lines.append(f"{time_text(sum(inside) / 1000)} on {len(inside)} other ranks is inside boxes of these")
    return "\n".join(lines)


def _rows(path: CriticalPath, boxes: list[Box], hops: dict[int, Hop]) -> dict[int, _LaneRow]:
    """Return the rows from above, with their boxes, labels and places."""
    several, lanes = len(path.graph.ranks) > 1, path.graph.lanes
    rows: dict[int, _LaneRow] = {}
    for key in sorted({box.row for box in boxes}):
        rows[key] = _LaneRow(f"rank {key}" if several else lanes[key].label if key >= 0 else "between ranks")
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


def _add_box(out: graphviz.Digraph, path: CriticalPath, number: int, box: Box, row: _LaneRow) -> None:
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


def _add_row(out: graphviz.Digraph, path: CriticalPath, key: int, row: _LaneRow) -> None:
    time = int(path.segments.length[rows_of(path) == key].sum())
    name = shortened(one_line(row.name), _ROW_LETTERS)
    text = f"{name}\n{time_text(time / 1000)} ({100 * time / max(path.makespan_ns, 1):.0f} %)"
    label = _Label(0, _LEFT - 6, text, -1)
    _add_text(out, f"row{key}", 0, row.y, label, color="#000000")


def _add_edges(out: graphviz.Digraph, boxes: list[Box], hops: dict[int, Hop], rows: dict[int, _LaneRow]) -> None:
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


@dataclass(frozen=True)
class Box:
    """Consecutive segments of a path that a picture shows as one."""

    first: int
    """Its first segment."""
    end: int
    """The segment behind its last."""
    row: int
    """Where most of its time is: a rank, or in a job of one rank a lane."""
    category: str
    """What most of its time is spent on."""
    start_ns: int
    length_ns: int
    why: str
    """For time that is no work of its own, why it passes, as words that lead to the name; empty for work."""
    name: str
    """The name, in full, of what takes most of its time in that category, or of what that leads to."""
    ranks: dict[int, int]
    """Time by rank, ns, most first."""
    categories: dict[str, int]
    """Time by category, ns, most first."""

    @property
    def count(self) -> int:
        """How many segments it stands for."""
        return self.end - self.first


@dataclass(frozen=True)
class Hop:
    """A change of rank from one box to the next."""

    from_rank: int
    to_rank: int
    edge: str
    """The kind of the edge."""
    waited_ns: int
    """How long the activity that waited had been running by then."""


def fold_path(path: CriticalPath, most: int) -> list[Box]:
    """Return a path as at most so many boxes, in the order of time; their lengths sum to the makespan.

    Consecutive segments of one rank (of one rank's job, one lane) and category are one box, but for segments that take
    a hundredth of the path. If these are too many, neighbours are joined, the shortest first, rather of one category
    than of two, and of one rank than of two.

    Example:
        >>> import htagraph as hg
        >>> path = hg.critical_path(hg.load("data/demo"))
        >>> sum(box.length_ns for box in fold_path(path, 10)) == path.makespan_ns
        True
    """
    parts = path.segments
    if not len(parts):
        return []
    row = rows_of(path)
    alone = parts.length >= max(1, _MIN_UNFOLDED_SHARE * path.makespan_ns)
    new = np.ones(len(parts), np.bool_)
    new[1:] = (np.diff(row) != 0) | (np.diff(parts.category) != 0) | alone[1:] | alone[:-1]
    first = np.flatnonzero(new)
    length = np.add.reduceat(parts.length, first)
    kept = _joined(length.tolist(), row[first].tolist(), parts.category[first].tolist(), most)
    bounds = [*first[kept].tolist(), len(parts)]
    return [_box(path, row, begin, end) for begin, end in pairwise(bounds)]


def rows_of(path: CriticalPath) -> Array:
    """Return the row of a picture that each segment is on: its rank, or its lane where there is one rank."""
    acts, place = path.graph.activities, path.segments.place
    return (acts.rank if len(path.graph.ranks) > 1 else acts.lane)[place].astype(np.int64)


def hops_between(path: CriticalPath, boxes: list[Box]) -> dict[int, Hop]:
    """Return the changes of rank between boxes, by the number of the later box."""
    table, origin = path.hops(), path.graph.origin_ns
    columns = ("at_us", "from_rank", "to_rank", "edge", "waited_us")
    rows = zip(*(table[name].tolist() for name in columns), strict=True)
    by_moment: dict[tuple[int, int], Hop] = {}
    for at_us, come, go, edge, waited in rows:
        by_moment[round(at_us * 1000), go] = Hop(come, go, edge, round(waited * 1000))
    rank = path.graph.activities.rank[path.segments.place]
    found = {}
    for number, box in enumerate(boxes):
        here, before = int(rank[box.first]), int(rank[box.first - 1])
        if number and here != before:
            plain = Hop(before, here, EdgeKind(path.segments.edge[box.first]).label, 0)
            found[number] = by_moment.get((box.start_ns - origin, here), plain)
    return found


def _joined(length: list[int], row: list[int], category: list[int], most: int) -> list[int]:
    """Return the runs that begin a box once neighbours are joined until there are few enough."""
    count = len(length)
    before, behind = list(range(-1, count - 1)), [*range(1, count), -1]
    version = [0] * count

    def cost(one: int) -> float:
        other = behind[one]
        kind = _OTHER_ROW if row[one] != row[other] else _OTHER_CATEGORY if category[one] != category[other] else 1
        return min(length[one], length[other]) * kind

    left = count
    queue = [(cost(one), one, 0, 0) for one in range(count - 1)] if count > most else []
    heapq.heapify(queue)
    while left > max(1, most):
        _, one, own, others = heapq.heappop(queue)
        other = behind[one]
        if own != version[one] or other < 0 or others != version[other]:
            continue
        if length[other] > length[one]:
            row[one], category[one] = row[other], category[other]
        length[one] += length[other]
        behind[one], version[one], version[other] = behind[other], version[one] + 1, -1
        left -= 1
        if behind[one] >= 0:
            before[behind[one]] = one
            heapq.heappush(queue, (cost(one), one, version[one], version[behind[one]]))
        if before[one] >= 0:
            heapq.heappush(queue, (cost(before[one]), before[one], version[before[one]], version[one]))
    return [run for run in range(count) if version[run] >= 0]


def _box(path: CriticalPath, row: Array, first: int, end: int) -> Box:
    parts, some = path.segments, slice(first, end)
    length = parts.length[some]
    ranks = _totals(path.graph.activities.rank[parts.place[some]], length)
    categories = _totals(parts.category[some], length)
    main = next(iter(categories))
    mine = np.flatnonzero(parts.category[some] == main)
    names = _totals(path.graph.activities.name[parts.activity[some]][mine], length[mine])
    mine = mine[path.graph.activities.name[parts.activity[some]][mine] == next(iter(names))]
    why, name = _what(path, first + int(mine[np.argmax(length[mine])]))
    return Box(
        first=first, end=end, row=next(iter(_totals(row[some], length))), category=CATEGORIES[main],
        start_ns=int(parts.start[first]), length_ns=int(length.sum()), why=why, name=name,
        ranks=ranks, categories={CATEGORIES[code]: time for code, time in categories.items()},
    )  # fmt: skip


def _totals(codes: Array, length: Array) -> dict[int, int]:
    """Return the time of each code, most first."""
    kinds, which = np.unique(codes, return_inverse=True)
    time = np.bincount(which, length, len(kinds)).astype(np.int64)
    return {int(kinds[at]): int(time[at]) for at in np.argsort(-time, kind="stable").tolist()}


def _what(path: CriticalPath, at: int) -> tuple[str, str]:
    """Return why a segment's time passes, empty for work, and the name of the work or of what it leads to."""
    parts, names, named = path.segments, path.graph.names, path.graph.activities.name
    gap, edge, before = GapKind(parts.gap[at]), int(parts.edge[at]), names[named[parts.target[at]]]
    if edge < 0:
        return "before recording:", before
    if gap != GapKind.NONE:
        return f"{gap.label.replace('_', ' ')} before", before
    if edge != EdgeKind.BODY:
        return f"{EdgeKind(edge).label.replace('_', ' ')} →", before
    return "", names[named[parts.activity[at]]]


def dot_text(text: str) -> str:
    r"""Return a label that shows its characters as they are: no escapes, HTML or entities; lines end as given.

    Example:
        >>> print(dot_text("a<b>\\n&"))
        a<b>\\n&amp;
    """
    import graphviz

    return graphviz.nohtml(str(graphviz.escape(text.replace("&", "&amp;"))).replace("\n", "\\n"))


def one_line(text: str) -> str:
    """Return a text with a blank in the place of line ends and other control characters."""
    return _CONTROL.sub(" ", text)


def text_width(text: str, size: float) -> float:
    """Return about how wide the longest line of a text is, in the unit of the font's size.

    Example:
        >>> text_width("ab", 10) < text_width("核核", 10)
        True
    """
    wide = {"W", "F"}
    widths = ([_WIDE if unicodedata.east_asian_width(each) in wide else _LETTER_WIDTH for each in line]
              for line in text.split("\n"))  # fmt: skip
    return size * max(map(sum, widths))
