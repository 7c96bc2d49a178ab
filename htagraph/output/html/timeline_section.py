"""The section of the timeline: a canvas that its script draws on, and what is said where there is none."""

from __future__ import annotations

from htagraph.output.html.markup import Html, element
from htagraph.output.html.page import Section, json_bytes
from htagraph.output.html.timeline import Timeline

__all__ = ["timeline_figure", "timeline_section"]

SCRIPTS = (
    "payload.js", "model.js", "layout.js", "colors.js", "scan.js", "words.js", "marks.js", "draw.js", "details.js",
    "find.js", "moves.js", "timeline.js",
)  # fmt: skip
STYLES = ("timeline.css",)

_KEYS = (
    "Click into it or go there by Tab, then: W and S or the wheel zoom, A and D or dragging pan, arrow keys pan and "
    "scroll, / finds, N goes to the next one found, 0 shows all. Click a slice to select it; . and , select the next "
    "and the one before in its row, F or a double click zooms to it, Escape selects nothing."
)


_COLORS = (
    "Blue is computation, orange communication, green memory copies; on the host, purple launches, pink blocking "
    "calls, grey all else. The red line is the critical path, and the strip above all ranks says what it is spent on, "
    "in the colors of the findings. Lines between ranks join the starts and the ends of one collective; dashed lines "
    "are steps."
)


def timeline_section(timelines: dict[str, tuple[str, Timeline]], *, events: str = "") -> Section:
    """Return the section of one or several timelines.

    Args:
        timelines: by id, of letters and digits: what each is of (empty where there is one) and the timeline.
        events: where a server tells all about an event; empty without one.
    """
    body = element("div", *(timeline_figure(key, title, each) for key, (title, each) in timelines.items()))
    payload: dict[str, bytes] = {}
    for key, (_, each) in timelines.items():
        payload |= {f"{key}-header": json_bytes(each.header | {"events": events}), f"{key}-data": each.data}
    return Section("timeline", "Timeline", body, SCRIPTS, STYLES, payload)


def timeline_figure(key: str, title: str, timeline: Timeline) -> Html:
    """Return the place of a timeline: its controls, its canvas, and what it leaves out."""
    controls = element(
        "div",
        element("input", type="search", class_="find", placeholder="Find by name", aria_label="Find by name"),
        element("output", class_="found"),
        element("button", "Next", type="button", class_="next"),
        element("label", element("input", type="checkbox", class_="path", checked=True), " critical path"),
        element("label", element("input", type="checkbox", class_="collectives", checked=True), " collectives"),
        element("button", "All", type="button", class_="whole"),
        element("button", "Larger", type="button", class_="larger"),
        element("span", class_="range", title="What is shown, since the job's first activity"),
        class_="controls",
    )
    stage = element(
        "div",
        element(
            "canvas",
            class_="slices",
            tabindex=0,
            role="application",
            aria_describedby=f"{key}-keys",
            aria_label="Timeline of ranks, streams and threads",
        ),
        element("p", "The timeline needs scripts; all else on this page does not.", class_="waiting"),
        element("div", class_="tip", hidden=True),
        class_="stage",
    )
    return element(
        "div",
        element("h3", title) if title else Html(""),
        controls,
        stage,
        element("div", element("p", "Nothing is selected.", class_="hint"), class_="selected", aria_live="polite"),
        element("p", _KEYS, class_="hint", id=f"{key}-keys"),
        element("p", _COLORS, class_="note"),
        *(element("p", sentence, class_="note") for sentence in timeline.left_out),
        class_="timeline",
        data_key=key,
    )
