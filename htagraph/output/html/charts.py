"""Charts of bars and curves: they print, they need no script, and their words keep their size on a narrow screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from htagraph.findings.finding import Bar, BarPart, Chart
from htagraph.findings.phrases import shortened, time_text
from htagraph.output.html.page import NOTHING, Html, element, join

__all__ = ["change_text", "curve", "drawn", "legend", "stacked", "waterfall"]

_WIDE = 1000.0
"""Units from one side of a chart to the other; a browser stretches them to the pixels that there are."""
_BAR = 18
"""Pixels of the height of a bar."""
_LETTERS = 48
"""Letters of a name beside a bar; whole on hover. Chosen: two lines of it. Doubled, four."""


class _Mark(NamedTuple):
    left: float
    width: float
    color: str
    says: str


class _Row(NamedTuple):
    """A bar as it is drawn: its name, its marks and what they say."""

    word: str
    marks: Sequence[_Mark]
    value: str
    href: str = ""
    whisker: tuple[float, float] | None = None


def drawn(chart: Chart, href: Callable[[Bar], str] = lambda _: "") -> Html:
    """Return a chart: bars of parts, or bars of µs from 0 with whiskers over their intervals, which lead to `href`."""
    if chart.stacks or not chart.bars:
        return stacked(chart.title, chart.stacks, chart.text) if chart.stacks else NOTHING
    longest = max(max((bar.value, *(bar.interval or ()))) for bar in chart.bars) or 1.0
    rows = []
    for bar in chart.bars:
        shown = bar.text or time_text(bar.value)
        text, whisker = shown, None
        if bar.interval is not None:
            low, high = (max(end, 0.0) for end in bar.interval)
            whisker = (_WIDE * low / longest, _WIDE * high / longest)
            text += f", likely {time_text(low)} to {time_text(high)}"
        mark = _Mark(0.0, _WIDE * max(bar.value, 0.0) / longest, bar.color or chart.color, text)
        rows.append(_Row(bar.word, [mark], shown, href(bar), whisker))
    return _figure(chart.title, [_rows(rows)])


def stacked(
    title: str, rows: Sequence[tuple[str, Sequence[BarPart]]], text: Callable[[float], str] = time_text
) -> Html:
    """Return bars of parts from left to right, all on one scale, with a legend; `text` is a value in words."""
    longest = max((sum(part.value for part in parts) for _, parts in rows), default=0.0) or 1.0
    drawn = []
    for word, parts in rows:
        marks, x, whole = [], 0.0, sum(part.value for part in parts)
        for part in parts:
            width, share = _WIDE * part.value / longest, 100 * part.value / (whole or 1.0)
            if part.value > 0:
                marks.append(_Mark(x, width, part.color, f"{part.word} {text(part.value)} ({share:.1f} %)"))
            x += width
        drawn.append(_Row(word, marks, text(whole)))
    return _figure(title, [_legend([part for _, parts in rows for part in parts]), _rows(drawn)])


def waterfall(title: str, before: float, steps: Sequence[tuple[str, float]], after: float) -> Html:
    """Return bars from a time before to a time after, µs, by steps that sum to the difference."""
    moments = [*accumulate((change for _, change in steps), initial=before)]
    longest = max(*moments, after, 1e-9)
    least = min(*moments, after)
    is_small = 0 < longest - least < 0.2 * longest  # changes that are hard to see if bars begin at 0
    base = least - (longest - least) if is_small else 0.0
    scale = _WIDE / (longest - base or 1.0)
    bounds = [("before", base, before, "other")]
    for (word, change), begin in zip(steps, moments, strict=False):
        bounds.append((word, begin, begin + change, "more" if change > 0 else "less"))
    bounds.append(("after", base, after, "other"))
    rows = []
    for word, begin, end, color in bounds:
        left, right = (scale * (each - base) for each in (min(begin, end), max(begin, end)))
        value = time_text(end) if color == "other" else change_text(end - begin)
        rows.append(_Row(word, [_Mark(left, right - left, color, value)], value))
    note = element("p", f"Bars begin at {time_text(base)}, not at 0.", class_="note") if base else NOTHING
    return _figure(title, [_rows(rows), note])


def change_text(us: float) -> str:
    """Return a change of a time with its sign.

    Example:
        >>> change_text(1500.0), change_text(-2.0), change_text(-0.0)
        ('+1.50 ms', '−2.0 µs', '0.0 µs')
    """
    text = time_text(abs(us))
    sign = "+" if us > 0 else "−"
    return f"{sign}{text}" if set(text) & set("123456789") else text


def curve(title: str, points: Sequence[tuple[float, float]], top: str) -> Html:
    """Return a curve of (µs, value) that holds each value until the next one; `top` is the largest value in words."""
    if not points:
        return NOTHING
    first, last = points[0][0], points[-1][0]
    most = max(value for _, value in points) or 1.0
    x = [_WIDE * (moment - first) / ((last - first) or 1.0) for moment, _ in points]
    y = [2 + 156 * (1 - value / most) for _, value in points]  # of 160 pixels
    path = f"M{x[0]:.1f} {y[0]:.1f}" + "".join(
        f"H{here:.1f}V{there:.1f}" for here, there in zip(x[1:], y[1:], strict=True)
    )
    says = f"{title}: at most {top}, from {time_text(first)} to {time_text(last)}"
    plane = element(
        "div",
        element("div", element("span", top), element("span", "0"), class_="up"),
        _svg([element("path", d=path)], 160, says, "plot"),
        element("div", element("span", time_text(first)), element("span", time_text(last)), class_="along"),
        class_="plane",
    )
    return _figure(title, [plane])


def _figure(title: str, parts: Sequence[Html]) -> Html:
    return element("figure", element("figcaption", title), *parts, class_="chart")


def _rows(rows: Sequence[_Row]) -> Html:
    """Return bars with their names and values, or one picture of more than a screen of them."""
    return _picture(rows) if len(rows) > 40 else element("div", *map(_row, rows), class_="bars")


def _row(row: _Row) -> Html:
    says = f"{row.word}: {', '.join(mark.says for mark in row.marks) or row.value}"
    marks = [_rect(mark, row.word, 0, _BAR) for mark in row.marks]
    if row.whisker is not None:
        low, high = row.whisker
        marks.append(element("line", x1=f"{low:.1f}", y1=_BAR / 2, x2=f"{high:.1f}", y2=_BAR / 2, class_="whisker"))
    shown = shortened(row.word, _LETTERS)
    name = element("a", shown, href=row.href, title=row.word) if row.href else shown
    return element(
        "div", element("span", name, class_="name", title=row.word if shown != row.word else None),
        _svg(marks, _BAR, says, "bar"), element("span", row.value, class_="value"), class_="bar-row",
    )  # fmt: skip


def _picture(rows: Sequence[_Row]) -> Html:
    """Return many bars as one picture, with a name at some of them."""
    step = max(1.0, 620 / len(rows))  # a screen
    every = int(16 / step) + 1  # lines of small letters
    height = step * len(rows)
    words = [shortened(row.word, _LETTERS) for row in rows]
    room = int(6.5 * max(map(len, words))) + 8  # wider than letters of system fonts
    names = [
        element("text", word, x=room - 4, y=f"{max((at + 0.5) * step + 4, 9):.1f}", text_anchor="end")
        for at, word in enumerate(words)
        if at % every == 0 and (at + 0.5) * step + 4 < height
    ]  # fmt: skip
    thick = step - 1 if step >= 3 else step
    marks = [_rect(mark, row.word, at * step, thick) for at, row in enumerate(rows) for mark in row.marks]
    beside = element("svg", join(names), width=room, height=f"{height:.0f}", aria_hidden="true")
    says = f"{len(rows)} bars, from {rows[0].word} ({rows[0].value}) to {rows[-1].word} ({rows[-1].value})"
    return element("div", beside, _svg(marks, height, says, "bar"), class_="many")


def _legend(parts: Sequence[BarPart]) -> Html:
    """Return a legend of the parts that occur."""
    return legend([(part.word, part.color) for part in parts if part.value > 0])


def legend(colors: Iterable[tuple[str, str]]) -> Html:
    """Return a legend of words, each with the name of its color; a word that comes again stands there once."""
    keys = dict.fromkeys(colors)
    square = {"width": 10, "height": 10}
    return element("div", *(
        element("span", element(
            "svg", element("rect", **square, class_=f"c-{color}"), **square, aria_hidden="true"
        ), word)
        for word, color in keys
    ), class_="legend")  # fmt: skip


def _svg(marks: Sequence[Html], height: float, says: str, kind: str) -> Html:
    return element(
        "svg", join(marks), viewBox=f"0 0 {_WIDE:.0f} {height:.0f}", preserveAspectRatio="none", role="img",
        aria_label=says, class_=kind, height=f"{height:.0f}",
    )  # fmt: skip


def _rect(mark: _Mark, word: str, y: float, height: float) -> Html:
    place = {"x": f"{mark.left:.2f}", "y": f"{y:.2f}", "width": f"{mark.width:.2f}", "height": f"{height:.2f}"}
    return element("rect", element("title", f"{word}: {mark.says}"), **place, class_=f"c-{mark.color}")
