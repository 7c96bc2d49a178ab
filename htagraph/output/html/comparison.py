"""A page about a difference: what changed, why, and the timelines of both jobs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from htagraph.analyses.differences import Diff
from htagraph.analyses.differences.diff import ADDED_PATHS, REMOVED_PATHS
from htagraph.core.naming import short_name
from htagraph.findings.finding import Bar, Chart
from htagraph.findings.phrases import CATEGORY_WORDS, command_line, time_text
from htagraph.findings.verbs.diff import diff_sentences
from htagraph.output.html.charts import change_text, drawn, waterfall
from htagraph.output.html.page import NOTHING, Section, element, page
from htagraph.output.html.sections import files_table, timeline_section
from htagraph.output.html.tables import definition, table_of
from htagraph.output.html.timeline import timeline_of
from htagraph.output.reports.two_jobs import marked
from htagraph.queries.inputs import inputs_of, issues_of

__all__ = ["comparison_bytes", "steps_of_change"]

_SIDES = ("before", "after")
_ROWS = 10
"""Rows of a table; chosen: as many as the command shows. Doubled, two tables fill a screen."""
_MOST_STEPS = 7
"""Changes that a waterfall shows, besides all others as one; chosen: as many as have names of their own. Doubled, most
are too short to be seen."""


def comparison_bytes(diff: Diff, inputs: Sequence[str] = ()) -> bytes:
    """Return the page about a difference.

    Args:
        diff: result of `htagraph.diff`.
        inputs: the two jobs as a command line names them.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> b"takes as long as before" in comparison_bytes(hg.diff(graph, graph))
        True
    """
    named = list(inputs) or ["BEFORE", "AFTER"]
    timelines = {
        side: (f"{side.capitalize()}: {name}", timeline_of(path))
        for side, name, path in zip(_SIDES, named, (diff.before, diff.after), strict=True)
    }
    sections = [_findings(diff, named), _causes(diff), timeline_section(timelines), _paths(diff), _jobs(diff)]
    times = f"Per {diff.unit}: {time_text(diff.before_us)} before, {time_text(diff.after_us)} after."
    lead = element("p", f"{named[0]} → {named[1]}. {times}", class_="lead")
    short = [Path(name).name or name for name in named]
    return page(f"{short[0]} → {short[1]} · htagraph diff", sections, lead=lead)


def steps_of_change(diff: Diff) -> list[tuple[str, float]]:
    """Return by how much each category of the critical path changed, µs per step; they sum to the whole change."""
    table = diff.summary()
    table = table[(table["group"] == "category") & (table["change_us"] != 0)]
    steps = [(CATEGORY_WORDS[key], float(us)) for key, us in zip(table["key"], table["change_us"], strict=True)]
    rest = sum(us for _, us in steps[_MOST_STEPS:])
    return [*steps[:_MOST_STEPS], ("all others", rest)] if len(steps) > _MOST_STEPS else steps


def _findings(diff: Diff, inputs: Sequence[str]) -> Section:
    first, *others = diff_sentences(diff)
    title = f"Time per {diff.unit}, by what the critical path is spent on"
    chart = waterfall(title, diff.before_us, steps_of_change(diff), diff.after_us)
    causes = diff.causes(1)["name"].tolist()
    link = _link(diff, causes[0]) if causes else ""
    look = element("a", f"In the timeline: {causes[0]}", href=link) if link else ""
    command = element("p", element("span", "Try ", element("code", command_line("diff", inputs))), look, class_="try")
    summary = element("div", element("p", first), chart, command, definition(Diff.summary), class_="finding")
    rest = element("ul", *(element("li", sentence) for sentence in others))
    return Section(
        "findings", "Findings", element("div", summary, element("div", rest, class_="finding") if others else "")
    )


def _causes(diff: Diff) -> Section:
    causes = diff.causes(_ROWS)
    shown = marked(causes)
    columns = ["name", "kind", "before_us", "after_us", "change_us", "effect_us"]
    links = [_link(diff, name) for name in causes["name"].tolist()]
    effects = [
        Bar(name, abs(us), color="more" if us > 0 else "less", text=change_text(us))
        for name, us in zip(shown["name"], shown["effect_us"], strict=True)
    ]
    title = f"Effect on the time of the {diff.unit}, each replayed alone: red is longer, green is shorter"
    link_of = dict(zip(shown["name"], links, strict=True))
    chart = drawn(Chart(title, effects), lambda bar: link_of[bar.word])
    caption = (
        f"Own time per rank and {diff.unit}, or with all inside of calls that only one job has, and its effect on the "
        f"time of the {diff.unit}, each replayed alone"
    )
    table = table_of(shown[columns], caption=caption, links=links if any(links) else ())
    return Section(
        "causes", "Causes", element("div", chart, table or element("p", "Nothing changed."), definition(Diff.causes))
    )


def _link(diff: Diff, name: str) -> str:
    """Return the address of the longest activity of a name, in the job after where it has one; empty for none."""
    for side, part in reversed(list(zip(_SIDES, diff.parts, strict=True))):
        acts = part.graph.activities
        meant = [number for number, each in enumerate(part.graph.names) if name in (each, short_name(each))]
        rows = part.activities[np.isin(acts.name[part.activities], meant)]
        if len(rows):
            return f"#on={side}&event={int(rows[acts.duration[rows].argmax()])}"
    return ""


def _paths(diff: Diff) -> Section:
    table = diff.to_frame()
    table = table[table["change_us"] != 0].head(_ROWS)
    columns = ["path", "category", "before_us", "after_us", "change_us", "before_count", "after_count"]
    parts = [table_of(table[columns], caption="Change of the critical path by call path"), definition(Diff.to_frame)]
    for title, frame, meaning in (
        (ADDED_PATHS.title, diff.added, Diff.added),
        (REMOVED_PATHS.title, diff.removed, Diff.removed),
    ):
        shown = table_of(frame.head(_ROWS)[["path", "count_per_step", "total_us", "critical_us"]])
        parts += [element("h3", title), shown, definition(meaning)] if shown else []
    renamed = table_of(diff.renamed.head(_ROWS))
    parts += [element("h3", "Kernels replaced by others"), renamed, definition(Diff.renamed)] if renamed else []
    steps = table_of(diff.step_times().head(_ROWS))
    parts += [element("h3", "Steps, paired in their order"), steps, definition(Diff.step_times)] if steps else []
    return Section("paths", "What changed", element("div", *parts))


def _jobs(diff: Diff) -> Section:
    graphs = [part.graph for part in diff.parts]
    tables = [
        pd.concat([table(graph).assign(job=side) for side, graph in zip(_SIDES, graphs, strict=True)])
        for table in (inputs_of, issues_of)
    ]
    issues = table_of(tables[1], caption="Repaired, dropped or unmatched") or NOTHING
    return Section("jobs", "Both jobs", element("div", files_table(tables[0]), issues))
