"""Draw the pictures of the documentation: `python docs/drawings.py` writes docs/img/*.svg.

Those of concepts.md show one small job, which the page builds and tests/test_docs.py compares with `BARS` and `EDGES`.
The picture of the start page is a step of data/demo; `page_picture.py` makes that of the README.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

IMAGES = Path(__file__).parent / "img"

# the job of concepts.md

LANES = ((0, "thread"), (0, "GPU"), (0, "network"), (1, "thread"), (1, "GPU"), (1, "network"))
"""Rank and lane of each row of the drawings, from top to bottom."""


class Bar(NamedTuple):
    """An activity: where it runs, when it starts and how long it takes, in µs."""

    rank: int
    lane: str
    start: int
    duration: int


BARS = {
    "launch 0": Bar(0, "thread", 0, 1),
    "forward 0": Bar(0, "GPU", 2, 4),
    "reduce 0": Bar(0, "network", 8, 2),
    "update 0": Bar(0, "GPU", 11, 1),
    "launch 1": Bar(1, "thread", 0, 1),
    "forward 1": Bar(1, "GPU", 2, 6),
    "reduce 1": Bar(1, "network", 8, 2),
    "update 1": Bar(1, "GPU", 10, 1),
}
"""The recorded job, by id of its activities."""


class Edge(NamedTuple):
    """One activity cannot begin before another one has begun or ended, plus a lag in µs."""

    source: str
    target: str
    lag: int
    from_start: bool


EDGES = (
    Edge("launch 0", "forward 0", 2, from_start=True),
    Edge("launch 1", "forward 1", 2, from_start=True),
    Edge("forward 0", "reduce 0", 0, from_start=False),
    Edge("forward 0", "reduce 1", 0, from_start=False),
    Edge("forward 1", "reduce 0", 0, from_start=False),
    Edge("forward 1", "reduce 1", 0, from_start=False),
    Edge("reduce 0", "update 0", 0, from_start=False),
    Edge("reduce 1", "update 1", 0, from_start=False),
)
PATH = ("forward 1", "reduce 0", "update 0")
"""Its critical path, after the beginning of `launch 1`, whose end delays nothing."""
FASTER = BARS | {
    "forward 1": Bar(1, "GPU", 2, 3),
    "reduce 0": Bar(0, "network", 6, 2),
    "update 0": Bar(0, "GPU", 9, 1),
    "reduce 1": Bar(1, "network", 6, 2),
    "update 1": Bar(1, "GPU", 8, 1),
}
"""The job if `forward 1` took half its time."""

_LEFT, _TOP, _ROW, _BAR, _US = 132, 26, 34, 22, 46
"""Pixels: of the names of the rows, of the scale, of a row, of a bar, and of a µs. Chosen: 700 pixels in all, the width
of the text on the site. Doubled, the drawings are twice as large."""
_END = 12
"""µs: the end of the job."""

STYLE = """\
text{font:13px system-ui,sans-serif;fill:#1f2933}.small{font-size:11px;fill:#52606d}.bar{stroke:#fff}
.thread{fill:#b8c4ce}.GPU{fill:#7fb2e5}.network{fill:#f0b26b}.path{stroke:#b4232a;stroke-width:2.5}
.edge{stroke:#3e4c59;stroke-width:1.4;fill:none;marker-end:url(#head)}.cause{stroke:#b4232a;stroke-width:2.4}
.gap{fill:none;stroke:#b4232a;stroke-dasharray:4 3;stroke-width:1.4}
.slack{fill:none;stroke:#52606d;stroke-dasharray:4 3}
.grid{stroke:#e4e7eb}.faint{opacity:.35}.red{fill:#b4232a}"""
HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" orient="auto" '
    'markerUnits="userSpaceOnUse">'
    '<path d="M0 0L8 4L0 8z" fill="context-stroke"/></marker>'
)


def x_of(time: float) -> float:
    """Return where a time in µs lies."""
    return _LEFT + time * _US


def y_of(rank: int, lane: str) -> int:
    """Return where the bars of a lane begin; a rank begins with some room."""
    return _TOP + LANES.index((rank, lane)) * _ROW + 14 * rank


def drawing(parts: Iterable[str], what: str, *, width: float = 716, height: float = 268, style: str = STYLE) -> str:
    """Return an SVG file of some parts, on white, so that it can be read on a dark page too."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img">'
        f"<title>{escape(what)}</title><defs>{HEAD}</defs><style>{style}</style>"
        f'<rect width="100%" height="100%" fill="#fff" rx="6"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def scale() -> list[str]:
    """Return the names of the rows and a line every 2 µs."""
    bottom = y_of(*LANES[-1]) + _ROW
    parts = [f'<text x="12" y="{y_of(rank, lane) + 16}">rank {rank} · {escape(lane)}</text>' for rank, lane in LANES]
    for time in range(0, _END + 1, 2):
        parts.append(f'<path class="grid" d="M{x_of(time):g} {_TOP - 4}V{bottom}"/>')
        parts.append(f'<text class="small" x="{x_of(time):g}" y="16" text-anchor="middle">{time} µs</text>')
    return parts


def bars(job: Mapping[str, Bar], marked: Sequence[str] = (), faint: Sequence[str] = ()) -> list[str]:
    """Return the activities of a job, some of them marked as critical or drawn faintly."""
    parts = []
    for name, bar in job.items():
        kind = bar.lane + (" path" if name in marked else " bar") + (" faint" if name in faint else "")
        x, y, width = x_of(bar.start), y_of(bar.rank, bar.lane), bar.duration * _US
        parts.append(f'<rect class="{kind}" x="{x:g}" y="{y}" width="{width}" height="{_BAR}" rx="3"/>')
        label = name if width > _US else name.split()[0]
        size = ' class="small"' if width <= _US else ""
        parts.append(f'<text{size} x="{x + width / 2:g}" y="{y + 16}" text-anchor="middle">{escape(label)}</text>')
    return parts


def arrow(edge: Edge, job: Mapping[str, Bar] = BARS, kind: str = "edge") -> str:
    """Return an edge from the start or end of a bar to the start of another."""
    source, target = job[edge.source], job[edge.target]
    x0 = x_of(source.start if edge.from_start else source.start + source.duration)
    y0, y1 = (y_of(bar.rank, bar.lane) + _BAR / 2 for bar in (source, target))
    y0 += _BAR / 2 if edge.from_start else 0
    x1 = x_of(target.start)
    bend = 18 if x1 - x0 < _US else (x1 - x0) / 2
    return f'<path class="{kind}" d="M{x0:g} {y0:g}C{x0 + bend:g} {y0:g} {x1 - bend:g} {y1:g} {x1 - 1:g} {y1:g}"/>'


def dashed(kind: str, rank: int, lane: str, begin: float, end: float, text: str) -> list[str]:
    """Return an empty stretch of a lane with a text in it or below it."""
    y = y_of(rank, lane)
    red = " red" if kind == "gap" else ""
    middle = x_of((begin + end) / 2) - (5 if kind == "gap" else 0)  # beside the head of an arrow
    return [
        f'<rect class="{kind}" x="{x_of(begin):g}" y="{y}" width="{(end - begin) * _US:g}" height="{_BAR}" rx="3"/>',
        f'<text class="small{red}" x="{middle:g}" y="{y + 15}" text-anchor="middle">{escape(text)}</text>',
    ]


def activities() -> str:
    """Draw what was recorded."""
    return drawing([*scale(), *bars(BARS)], "Activities of two ranks, in rows of threads, GPUs and network")


def edges() -> str:
    """Draw what depends on what, the lag of a launch, and the gap that nothing explains."""
    lag = f'<text class="small" x="{x_of(0.2):g}" y="{y_of(0, "GPU") + 16}">lag 2</text>'
    gap = dashed("gap", 0, "GPU", 10, 11, "gap 1")
    parts = [*scale(), *bars(BARS), *map(arrow, EDGES), lag, *gap]
    return drawing(
        parts, "The same activities with the edges between them; a lag after a launch; a gap before update 0"
    )


def path() -> str:
    """Draw the critical path, and the slack of what is not on it."""
    on = {name: BARS[name] for name in PATH}
    causes = [
        arrow(edge, kind="edge cause") for edge in EDGES if edge.target in on and (edge.source in on or edge.from_start)
    ]
    slack = [*dashed("slack", 0, "GPU", 6, 8, "slack 2"), *dashed("slack", 1, "GPU", 11, 12, "slack 1")]
    parts = [*scale(), *bars(BARS, marked=PATH), *causes, *slack, *dashed("gap", 0, "GPU", 10, 11, "gap 1")]
    return drawing(parts, "The critical path: launch 1, forward 1, reduce 0, a gap, update 0; the rest has slack")


def what_if() -> str:
    """Draw the job with `forward 1` in half its time."""
    saved = (
        f'<path class="edge cause" d="M{x_of(12):g} 258H{x_of(10):g}"/>'
        f'<text class="small red" x="{x_of(9.9):g}" y="262" text-anchor="end">2 µs saved, not 3: '
        "the others wait for forward 0 now</text>"
    )
    parts = [*scale(), *bars(FASTER, marked=("forward 0", "reduce 0", "update 0")), saved]
    parts += dashed("gap", 0, "GPU", 8, 9, "gap 1")
    return drawing(parts, "The same job if forward 1 took half its time: it ends at 10 µs, and rank 0 is critical")


def wait() -> str:
    """Draw a collective as it is recorded: the kernel of the rank that arrives first runs, and waits."""
    y = {0: 34, 1: 78}
    parts = [f'<text x="12" y="{y[rank] + 16}">rank {rank} · network</text>' for rank in y]
    for rank, begin in ((0, 6), (1, 8)):
        parts.append(
            f'<rect class="network bar" x="{x_of(begin):g}" y="{y[rank]}" '
            f'width="{(10 - begin) * _US}" height="{_BAR}"/>'
        )
    parts += [
        f'<rect class="gap" x="{x_of(6):g}" y="{y[0]}" width="{2 * _US}" height="{_BAR}"/>',
        f'<text class="small red" x="{x_of(7):g}" y="{y[0] + 15}" text-anchor="middle">wait 2</text>',
        f'<text class="small" x="{x_of(9):g}" y="{y[0] + 15}" text-anchor="middle">transfer 2</text>',
        f'<text class="small" x="{x_of(9):g}" y="{y[1] + 15}" text-anchor="middle">transfer 2</text>',
        f'<path class="edge cause" d="M{x_of(8):g} {y[1]}V{y[0] + _BAR + 2}"/>',
        f'<text class="small red" x="{x_of(7.9):g}" y="{y[1] + 15}" text-anchor="end">'
        "rank 1 arrives, and ends the wait</text>",
        f'<text class="small" x="{x_of(6):g}" y="24">rank 0 arrives</text>',
    ]
    return drawing(parts, "An all-reduce on two ranks: rank 0 waits for rank 1, then both transfer", height=118)


# the picture of the README

COLOURS = {
    "host": "#b8c4ce", "data loader": "#c9a6d8", "computation": "#7fb2e5", "memory copies": "#8cc79a",
    "communication": "#f0b26b", "critical path": "#b4232a",
}  # fmt: skip
_OF_KIND = {"computation": "computation", "memory": "memory copies", "communication": "communication"}
"""Colours of device work by its kind; all else is the host's."""
_ROWS = ("host", "computation", "communication")
_LIES_IN = {"data loader": "host", "memory copies": "computation"}
"""Rows of a rank, and in which of them a colour lies that has none of its own."""
_LABELS, _TIMELINE, _LINE = 116, 640, 18
"""Pixels: of the names of the rows, of a step, and of a row. Chosen: the width of a page on GitHub. Doubled, the
picture is twice as large."""


def timeline() -> str:
    """Draw one step of data/demo: what each rank's host and streams do, and the critical path."""
    import htagraph as hg

    graph = hg.load(Path(__file__).parents[1] / "data" / "demo")
    path = hg.critical_path(graph, steps=6).to_frame()
    begin, end = path["start_us"].min(), (path["start_us"] + path["duration_us"]).max()

    def pixel(time: float) -> float:
        return _LABELS + (min(max(time, begin), end) - begin) * _TIMELINE / (end - begin)

    parts = [
        f'<text x="10" y="{_top(rank, row) + 12}">{_label(rank, row)}</text>' for rank in graph.ranks for row in _ROWS
    ]
    work = graph.select(step_index=[0, 1, 2]).to_frame()
    work["row"] = [_row(kind, name) for kind, name in zip(work["kind"], work["name"], strict=True)]
    by_row: Any = work[work["row"] != ""].groupby(["rank", "row"])  # keys of any type to its stubs
    for (rank, colour), rows in by_row:
        ends = zip(rows["start_us"], rows["start_us"] + rows["duration_us"], strict=True)
        spans = merged((pixel(a), pixel(b)) for a, b in ends if a < end and b > begin)
        y = _top(rank, _LIES_IN.get(colour, colour)) + 8
        d = "".join(f"M{a:.1f} {y}H{b:.1f}" for a, b in spans)
        parts.append(f'<path d="{d}" stroke="{COLOURS[colour]}" stroke-width="14"/>')
    d = ""
    for rank, kind, start, duration in path[["rank", "kind", "start_us", "duration_us"]].itertuples(index=False):
        y = _top(rank, _LIES_IN.get(_OF_KIND.get(kind, "host"), _OF_KIND.get(kind, "host"))) + 8
        d += f"{'L' if d else 'M'}{pixel(start):.1f} {y}H{pixel(start + duration):.1f}"
    parts.append(f'<path d="{d}" fill="none" stroke="{COLOURS["critical path"]}" stroke-width="2.2"/>')
    parts += _legend(f"one step, {(end - begin) / 1000:.1f} ms")
    return drawing(parts, "One step of data/demo on four ranks", width=770, height=_top(graph.ranks[-1] + 1, "host"))


def _row(kind: str, name: str) -> str:
    """Return the colour of an activity in the timeline; "" for what is not drawn."""
    if "DataLoader" in name:
        return "data loader"
    return _OF_KIND.get(kind, "host" if kind in ("op", "launch", "sync", "runtime") else "")


def _top(rank: int, row: str) -> int:
    return 32 + rank * (len(_ROWS) * _LINE + 12) + _ROWS.index(row) * _LINE


def _label(rank: int, row: str) -> str:
    return f"rank {rank} · host" if row == "host" else {"computation": "GPU", "communication": "network"}[row]


def _legend(duration: str) -> list[str]:
    """Return what the colours mean, and how long a step takes."""
    parts, x = [f'<text class="small" x="756" y="18" text-anchor="end">{duration}</text>'], _LABELS
    for name, colour in COLOURS.items():
        parts.append(f'<rect x="{x}" y="8" width="12" height="12" fill="{colour}"/>')
        parts.append(f'<text class="small" x="{x + 17}" y="18">{name}</text>')
        x += 26 + round(5.7 * len(name))
    return parts


def merged(stretches: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return stretches in pixels, those less than half a pixel apart as one."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(stretches):
        if found and begin - found[-1][1] < 0.5:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


DRAWINGS: Mapping[str, Callable[[], str]] = {
    "activities": activities,
    "edges": edges,
    "path": path,
    "what_if": what_if,
    "wait": wait,
    "timeline": timeline,
}


def main() -> None:
    """Write every picture."""
    IMAGES.mkdir(exist_ok=True)
    for name, draw in DRAWINGS.items():
        (IMAGES / f"{name}.svg").write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
