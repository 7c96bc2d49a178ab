"""A folded critical path drawn on a time axis: a row per rank, boxes as wide as their time, in Graphviz's language."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from rich.cells import cell_len

from htagraph.core.arrays import Array, run_starts
from htagraph.core.errors import time_text
from htagraph.core.kinds import EdgeKind, GapKind
from htagraph.core.naming import short_name
from htagraph.findings.phrases import plural, shortened
from htagraph.graph.activities import BETWEEN
from htagraph.output.scene import KIND_COLORS, tint
from htagraph.queries.path_segments import totals
from htagraph.queries.paths import CATEGORIES, CriticalPath

if TYPE_CHECKING:
    import graphviz

__all__ = ["COLORS", "dot_text", "draw_path", "one_line", "rows_of"]

COLORS = {category: tint(KIND_COLORS[category]) for category in CATEGORIES}
"""Fill of a box by category."""
_WIDTH, _LEFT, _RIGHT = 1180, 96, 130
"""Points: the picture's width (with the border, 1,200 points are 1,600 pixels at the 96 dots per inch of screens and of
Graphviz's PNGs), and the room left of the time axis, for the names of rows, and right of it, for the last label."""
_FONT, _LETTER_WIDTH = 9, 0.56
"""Points of the font of labels (12 pixels), and the width of a letter in sizes of the font, twice that where East Asian
scripts draw wide; measured of Helvetica's and Arial's lower case, rounded up. Doubled, labels take twice the room."""
_BAR, _LEVEL, _ROOM, _OFFSET, _MIN_BOX = 20, 26, 10, 3, 2.0
"""Points: heights of a box and of a label of two lines, which fit the font; the room between rows;
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
_LINE_ENDS = re.compile(r"\n+")


class Box(NamedTuple):
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
    def segments(self) -> int:
        """How many segments it stands for."""
        return self.end - self.first


class Hop(NamedTuple):
    """A change of rank from one box to the next."""

    from_rank: int
    to_rank: int
    edge: str
    """The kind of the edge."""
    waited_ns: int
    """How long the activity that waited had been running by then."""


class _Label(NamedTuple):
    x: float
    text: str
    width: float
    level: int = 0
    """The line of labels below or above its row; -1 for in the box itself."""


class _LaneRow(NamedTuple):
    y: float
    """Of the middle of its boxes, points downwards."""
    labels: dict[int, _Label]
    """By the number of their box."""
    hops: dict[int, _Label]
    """By the number of the later box."""
    bottom: float


def draw_path(path: CriticalPath, max_nodes: int) -> graphviz.Digraph:
    """Return the picture of a path that is not empty; see `to_graphviz`."""
    import graphviz

    boxes = fold_path(path, max_nodes)
    hops = {number: _hop_text(hop) for number, hop in hops_between(path, boxes).items()}
    rows = _rows(path, boxes, hops)
    font = {"fontname": "Helvetica,Arial,sans-serif", "fontsize": str(_FONT)}
    out = graphviz.Digraph(
        graph_attr=font | {
            "layout": "neato", "outputorder": "edgesfirst", "splines": "line", "overlap": "true", "pad": "0.1",
            "fontsize": "13", "labelloc": "t", "labeljust": "l", "label": _left(_title(path, boxes)),
        },
        node_attr=font | {"shape": "box", "margin": "0,0", "penwidth": "0.7", "color": _GREY},
        edge_attr=font | {"color": _GREY},
    )  # fmt: skip
    bottom = max(row.bottom for row in rows.values()) + _BAR
    _add_axis(out, path, bottom)
    for key, row in rows.items():
        lane = path.graph.lanes[key].label if key >= 0 else BETWEEN.label
        name = shortened(one_line(f"rank {key}" if len(path.graph.ranks) > 1 else lane), _ROW_LETTERS)
        text = f"{name}\n{_time_text(path, int(path.segments.length[rows_of(path) == key].sum()))}"
        _add_text(out, f"row{key}", row.y, _Label(0, text, _LEFT - 6), "#000000")
        for number, label in row.labels.items():
            _add_box(out, path, number, boxes[number], row.y, label)
    _add_edges(out, boxes, hops, rows)
    _add_legend(out, path, bottom + 2 * _BAR)
    return out


def _title(path: CriticalPath, boxes: list[Box]) -> str:
    folded = [box.length_ns for box in boxes if box.segments > 1]
    lines = [
        f"Critical path: {time_text(path.makespan_ns / 1000)}, {len(path.segments):,} segments in {len(boxes)} boxes",
        f"{len(folded)} boxes stand for several segments each and hold {_time_text(path, sum(folded))}; the width of a "
        "box is its time",
    ]
    shown = {rank for box in boxes for rank in list(box.ranks)[:1]}
    by_rank = totals(path.graph.activities.rank[path.segments.place], path.segments.length)
    inside = [time for rank, time in by_rank.items() if rank not in shown]
    if inside:
        lines.append(f"{time_text(sum(inside) / 1000)} on {len(inside)} other ranks is inside boxes of these")
    return "\n".join(lines)


def _time_text(path: CriticalPath, time: int) -> str:
    return f"{time_text(time / 1000)} ({100 * time / max(path.makespan_ns, 1):.0f} %)"


def _rows(path: CriticalPath, boxes: list[Box], hops: dict[int, str]) -> dict[int, _LaneRow]:
    rows: dict[int, _LaneRow] = {}
    y = _BAR * 2.0
    for key in sorted({box.row for box in boxes}):
        here = {number: box for number, box in enumerate(boxes) if box.row == key}
        labels, below = _lined({number: _label(path, box) for number, box in here.items()})
        arrows, above = _lined({
            number: _Label(_x(path, box.start_ns) + _OFFSET, hops[number], text_width(hops[number], _FONT))
            for number, box in here.items()
            if number in hops
        })  # fmt: skip
        y += above * _LEVEL + _BAR / 2
        rows[key] = _LaneRow(y, labels, arrows, y + below * _LEVEL)
        y = rows[key].bottom + _BAR / 2 + _ROOM
    return rows


def _label(path: CriticalPath, box: Box) -> _Label:
    name = shortened(one_line(f"{box.why} {short_name(box.name)}".strip()), _NAME_LETTERS)
    others = "" if box.segments == 1 else f", {plural(box.segments - 1, 'other')}"
    text = f"{name}\n{time_text(box.length_ns / 1000)}{others}"
    width = text_width(text, _FONT) + 8
    return _Label(_x(path, box.start_ns) + _OFFSET, text, width, -1 if _box_width(path, box) >= width else 0)


def _hop_text(hop: Hop) -> str:
    waited = f"\nrank {hop.to_rank} had waited {time_text(hop.waited_ns / 1000)}" if hop.waited_ns else ""
    return f"{hop.edge.replace('_', ' ')}: rank {hop.from_rank} → {hop.to_rank}{waited}"


def _lined(labels: dict[int, _Label]) -> tuple[dict[int, _Label], int]:
    """Put each label that is not in its box on the first line with room for it; return the number of lines as well."""
    placed: dict[int, _Label] = {}
    ends: list[float] = []
    for number, label in labels.items():
        if label.level >= 0:
            x = min(label.x, _WIDTH - label.width)
            level = next((at for at, end in enumerate(ends) if end <= x), len(ends))
            ends[level : level + 1] = [x + label.width + 4]
            label = label._replace(x=x, level=level)
        placed[number] = label
    return placed, len(ends)


def _x(path: CriticalPath, moment_ns: int) -> float:
    """Return where a moment is on the axis, points."""
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (moment_ns - path.window[0]) / max(path.makespan_ns, 1)


def _box_width(path: CriticalPath, box: Box) -> float:
    return max(_MIN_BOX, _x(path, box.start_ns + box.length_ns) - _x(path, box.start_ns))


def _at(x: float, y: float) -> str:
    """Return a fixed position, from points downwards to inches upwards."""
    return f"{x / 72:.4f},{-y / 72:.4f}!"


def _add_node(out: graphviz.Digraph, name: str, place: tuple[float, float, float], **style: str) -> None:
    """Add a filled node: where its left side and its middle are, and its width, points."""
    x, y, width = place
    size = {"pos": _at(x + width / 2, y), "width": f"{width / 72:.4f}", "fixedsize": "shape", "style": "filled"}
    out.node(name, **size, **style)


def _add_box(out: graphviz.Digraph, path: CriticalPath, number: int, box: Box, y: float, label: _Label) -> None:
    _add_node(
        out, f"n{number}", (_x(path, box.start_ns), y, _box_width(path, box)), height=f"{_BAR / 72:.4f}",
        label=dot_text(label.text) if label.level < 0 else "", tooltip=dot_text(_tooltip(path, box)),
        fillcolor=COLORS[box.category], color=_GREY,
    )  # fmt: skip
    if label.level >= 0:
        _add_text(out, f"t{number}", y + _BAR / 2 + (label.level + 0.5) * _LEVEL + 2, label)
        line = {"arrowhead": "none", "color": "#cccccc", "penwidth": "0.6", "tailport": "sw", "headport": "w"}
        out.edge(f"n{number}", f"t{number}", **line)


def _tooltip(path: CriticalPath, box: Box) -> str:
    begin = (box.start_ns - path.graph.origin_ns) / 1_000_000
    longest = "longest: " if box.segments > 1 else ""
    lines = [
        f"{time_text(box.length_ns / 1000)} from {begin:,.3f} ms on, {plural(box.segments, 'segment')}",
        one_line(f"{longest}{box.why} {box.name}".strip()),
        ", ".join(f"{word.replace('_', ' ')} {time_text(time / 1000)}" for word, time in box.categories.items()),
    ]
    if len(box.ranks) > 1:
        lines.append(", ".join(f"rank {rank} {time_text(time / 1000)}" for rank, time in box.ranks.items()))
    return "\n".join(lines)


def _left(text: str) -> str:
    """Return a label whose lines begin at its left side."""
    return "".join(f"{line}\\l" for line in dot_text(text).split("\\n"))


def _add_text(out: graphviz.Digraph, name: str, y: float, label: _Label, color: str = "#333333") -> None:
    _add_node(
        out, name, (label.x, y, label.width), height=f"{(_LEVEL - 1) / 72:.4f}", label=_left(label.text), shape="box",
        fillcolor="white", color="white", fontcolor=color,
    )  # fmt: skip


def _add_edges(out: graphviz.Digraph, boxes: list[Box], hops: dict[int, str], rows: dict[int, _LaneRow]) -> None:
    for number, (first, second) in enumerate(pairwise(boxes)):
        ends = f"n{number}", f"n{number + 1}"
        if first.row == second.row:
            out.edge(*ends, style="invis")  # they touch
            continue
        down = rows[second.row].y > rows[first.row].y
        text = hops.get(number + 1, f"{second.why} {short_name(second.name)}")
        out.edge(
            *ends, tooltip=dot_text(one_line(text)), color=_LINE, penwidth="1.5", arrowsize="0.6",
            tailport="se" if down else "ne", headport="nw" if down else "sw",
        )  # fmt: skip
    for row in rows.values():
        for number, label in row.hops.items():
            _add_text(out, f"h{number}", row.y - _BAR / 2 - (label.level + 0.5) * _LEVEL - 1, label, _LINE)


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
    x = 0.0
    for code, time in totals(path.segments.category, path.segments.length).items():
        text = f"{CATEGORIES[code].replace('_', ' ')} {_time_text(path, time)}"
        width = text_width(text, _FONT) + 8
        if x + width > _WIDTH:
            x, y = 0.0, y + _BAR
        place = x, y, width
        _add_node(out, f"legend{code}", place, label=dot_text(text), fillcolor=COLORS[CATEGORIES[code]], height="0.22")
        x += width + 6


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
    first = run_starts(row, parts.category, np.where(alone, np.arange(len(parts)), -1))
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
    rows = table[["at_us", "from_rank", "to_rank", "edge", "waited_us"]].itertuples(index=False)
    by_moment = {(round(at * 1000), go): Hop(come, go, edge, round(late * 1000)) for at, come, go, edge, late in rows}
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
    ranks = totals(path.graph.activities.rank[parts.place[some]], length)
    categories = totals(parts.category[some], length)
    main = next(iter(categories))
    mine = np.flatnonzero(parts.category[some] == main)
    name_of = path.graph.activities.name[parts.activity[some]][mine]
    mine = mine[name_of == next(iter(totals(name_of, length[mine])))]
    why, name = _what(path, first + int(mine[np.argmax(length[mine])]))
    return Box(
        first=first, end=end, row=next(iter(totals(row[some], length))), category=CATEGORIES[main],
        start_ns=int(parts.start[first]), length_ns=int(length.sum()), why=why, name=name,
        ranks=ranks, categories={CATEGORIES[code]: time for code, time in categories.items()},
    )  # fmt: skip


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
    """Return a text with a blank in the place of line ends, control characters and marks of direction."""
    if text.isprintable():
        return text
    lines = "".join(letter if letter.isprintable() else "\n" for letter in text)
    return _LINE_ENDS.sub(" ", lines)


def text_width(text: str, size: float) -> float:
    """Return about how wide the longest line of a text is, in the unit of the font's size.

    Example:
        >>> text_width("ab", 10) < text_width("核核", 10)
        True
    """
    return size * _LETTER_WIDTH * max(map(cell_len, text.split("\n")))
