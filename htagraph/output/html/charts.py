"""Charts as SVG: they print, and they need no script. A title says on hover what a mark is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from htagraph.output.html.markup import Html, element, join
from htagraph.output.phrases import shortened, time_text

__all__ = ["Bar", "Part", "bars", "curve", "stacked", "waterfall"]

_WIDTH = 760
"""Pixels of a chart; narrower screens shrink it. Chosen: as wide as 700-pixel windows show in full size."""
_LABEL = 190
"""Pixels left of the bars, for their names."""
_VALUE = 90
"""Pixels right of the bars, for their values."""
_LETTERS = 26
"""Letters of a name beside a bar; whole on hover."""
_HEIGHT = 620
"""Pixels of a chart of many bars, and so of 512 ranks; chosen: a screen. Doubled, they are thicker."""
_SMALL = 0.2
"""Share of the longest bar of a waterfall; if all changes are within it, bars do not begin at 0, which is said. Chosen:
shorter ones are hard to see. Doubled, changes of a third of the time look like the whole."""
_MOST, _LEAST = 20.0, 1.0
"""Pixels of a bar at most and at least."""


@dataclass(frozen=True)
class Part:
    """A part of a bar."""

    word: str
    color: str
    """The name of a color of ``page.css``, such as ``computation``."""
    value: float


@dataclass(frozen=True)
class Bar:
    """A bar with a whisker."""

    word: str
    value: float
    low: float
    high: float
    href: str = ""


def stacked(rows: Sequence[tuple[str, Sequence[Part]]], *, title: str) -> Html:
    """Return bars of parts, all on one scale of µs, with a legend.

    Args:
        rows: what each bar is of, and its parts from left to right.
        title: what the chart shows, for those who cannot see it.
    """
    longest = max((sum(part.value for part in parts) for _, parts in rows), default=0.0) or 1.0
    legend, top = _legend([part for _, parts in rows for part in parts])
    step, bar, every = _rhythm(len(rows))
    marks = [*legend]
    for number, (word, parts) in enumerate(rows):
        y, x = top + number * step, float(_LABEL)
        marks += [_label(word, y + bar / 2)] if number % every == 0 else []
        for part in parts:
            width = (_WIDTH - _LABEL - _VALUE) * part.value / longest
            share = 100 * part.value / (sum(each.value for each in parts) or 1.0)
            hint = f"{word}: {part.word} {time_text(part.value)} ({share:.1f} %)"
            marks.append(_rect((x, y, width, bar), part.color, hint))
            x += width
        marks += [_text(time_text(sum(part.value for part in parts)), x + 6, y + bar / 2)] if every == 1 else []
    return _svg(marks, top + len(rows) * step + 4, title)


def bars(rows: Sequence[Bar], *, title: str, color: str = "computation") -> Html:
    """Return bars of µs from 0, each with its value and a whisker from its least to its largest value."""
    longest = max((max(bar.value, bar.high) for bar in rows), default=0.0) or 1.0
    room = _WIDTH - _LABEL - _VALUE
    step, height, every = _rhythm(len(rows))
    marks = []
    for number, bar in enumerate(rows):
        y = 4 + number * step
        width = room * max(bar.value, 0.0) / longest
        hint = f"{bar.word}: {time_text(bar.value)}"
        hint += f", likely {time_text(max(bar.low, 0.0))} to {time_text(bar.high)}" if bar.high > bar.low else ""
        marks += [_label(bar.word, y + height / 2)] if number % every == 0 else []
        marks.append(_rect((_LABEL, y, width, height), color, hint))
        ends = [_LABEL + room * max(end, 0.0) / longest for end in (bar.low, bar.high)]
        if ends[1] - ends[0] > 2:
            marks.append(_line(ends[0], y + height / 2, ends[1], y + height / 2, "whisker"))
        if every == 1:
            marks.append(_text(time_text(bar.value), max(_LABEL + width, ends[1]) + 6, y + height / 2))
    return _svg(marks, 8 + len(rows) * step, title)


def waterfall(before: float, steps: Sequence[tuple[str, float]], after: float, *, title: str) -> Html:
    """Return bars from a time before to a time after, each beginning where the one above it ends.

    Args:
        before: µs.
        steps: what each change is and by how much it is longer, µs; they sum to the difference.
        after: µs.
        title: what the chart shows.
    """
    moments = [before]
    for _, change in steps:
        moments.append(moments[-1] + change)
    longest = max(*moments, after, 1e-9)
    least = min(*moments, after)
    small = 0 < longest - least < _SMALL * longest
    base = least - (longest - least) if small else 0.0
    scale = (_WIDTH - _LABEL - 100) / (longest - base or 1.0)
    bounds = [("before", base, before, "other")]
    for (word, change), begin in zip(steps, moments, strict=False):
        bounds.append((word, begin, begin + change, "more" if change > 0 else "less"))
    bounds.append(("after", base, after, "other"))
    marks = []
    for number, (word, begin, end, color) in enumerate(bounds):
        y = 4 + number * (_MOST + 6)
        left, right = (_LABEL + scale * (each - base) for each in (min(begin, end), max(begin, end)))
        whole = color == "other"
        value = time_text(end) if whole else f"{'+' if end > begin else '−'}{time_text(abs(end - begin))}"
        marks += [_label(word, y + _MOST / 2), _rect((left, y, right - left, _MOST), color, f"{word}: {value}")]
        marks.append(_text(value, right + 6, y + _MOST / 2))
    note = (
        []
        if base == 0
        else [_text(f"bars begin at {time_text(base)}", _LABEL, 14 + len(bounds) * (_MOST + 6), "small")]
    )
    return _svg([*marks, *note], 26 + len(bounds) * (_MOST + 6), title)


def curve(points: Sequence[tuple[float, float]], *, title: str, unit: str) -> Html:
    """Return a curve that holds each value until the next one.

    Args:
        points: (µs, value).
        title: what it shows.
        unit: of the values.
    """
    if not points:
        return Html("")
    first, last = points[0][0], points[-1][0]
    top = max(value for _, value in points) or 1.0
    wide, high = _WIDTH - 70, 160
    x = [60 + wide * (moment - first) / ((last - first) or 1.0) for moment, _ in points]
    y = [10 + high * (1 - value / top) for _, value in points]
    path = f"M{x[0]:.1f} {y[0]:.1f}" + "".join(
        f"H{here:.1f}V{there:.1f}" for here, there in zip(x[1:], y[1:], strict=True)
    )
    marks = [
        _line(60, 10 + high, _WIDTH - 10, 10 + high, "axis"), element("path", d=path, class_="curve"),
        _text(f"{top:,.1f} {unit}", 54, 14, "small", anchor="end"), _text("0", 54, 8 + high, "small", anchor="end"),
        _text(time_text(first), 60, 24 + high, "small"), _text(time_text(last), _WIDTH - 10, 24 + high, "small", "end"),
    ]  # fmt: skip
    return _svg(marks, high + 36, title)


def _rhythm(count: int) -> tuple[float, float, int]:
    """Return pixels from bar to bar, pixels of a bar, and of how many bars one has its name."""
    step = min(_MOST + 6, max(_LEAST, _HEIGHT / max(count, 1)))
    bar = step - 6 if step > 12 else max(step - 1, _LEAST)
    every = 1 if step >= 13 else int(16 / step) + 1
    return step, bar, every


def _legend(parts: Sequence[Part]) -> tuple[list[Html], int]:
    """Return a legend of the parts that occur, and where the bars begin."""
    marks: list[Html] = []
    x, y = float(_LABEL), 4
    for word, color in dict.fromkeys((part.word, part.color) for part in parts if part.value > 0):
        width = 26 + 6.6 * len(word)
        if x + width > _WIDTH and x > _LABEL:
            x, y = float(_LABEL), y + 18
        marks += [_rect((x, y, 12, 12), color, word), _text(word, x + 17, y + 6)]
        x += width
    return marks, y + 22


def _svg(marks: Sequence[Html], height: float, title: str) -> Html:
    return element(
        "svg", element("title", title), join(marks), viewBox=f"0 0 {_WIDTH} {height:.0f}", class_="chart", role="img",
        width=_WIDTH, height=f"{height:.0f}",
    )  # fmt: skip


def _rect(box: tuple[float, float, float, float], color: str, hint: str) -> Html:
    x, y, width, height = (f"{each:.2f}" for each in box)
    return element("rect", element("title", hint), x=x, y=y, width=width, height=height, class_=f"c-{color}")


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    return element("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=kind)


def _label(word: str, y: float) -> Html:
    shown = shortened(word, _LETTERS)
    return element("text", element("title", word), shown, x=_LABEL - 8, y=f"{y + 4:.1f}", text_anchor="end")


def _text(words: str, x: float, y: float, kind: str | None = None, anchor: str | None = None) -> Html:
    return element("text", words, x=f"{x:.1f}", y=f"{y + 4:.1f}", class_=kind, text_anchor=anchor)
