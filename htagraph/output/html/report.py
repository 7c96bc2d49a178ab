"""report: one HTML file that shows a job (findings, timeline, breakdowns) or what changed between two jobs, and why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from htagraph.analyses.differences import Diff
from htagraph.analyses.differences.diff import ADDED_PATHS, REMOVED_PATHS
from htagraph.core.naming import short_name
from htagraph.findings.finding import Bar, Chart
from htagraph.findings.phrases import CATEGORY_WORDS, command_line, plural, time_text
from htagraph.findings.verbs.diff import diff_sentences
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.html import sections as parts_of
from htagraph.output.html.charts import change_text, drawn, waterfall
from htagraph.output.html.page import Section, definition, element, page, table_of
from htagraph.output.html.sections import PageResults, findings_section
from htagraph.output.html.timeline import timeline_of
from htagraph.output.html.what_if_panel import what_if_section
from htagraph.output.reports.two_jobs import marked, of_both
from htagraph.output.whole_files import write_whole
from htagraph.queries.inputs import inputs_of, issues_of

__all__ = ["comparison_bytes", "report", "report_bytes", "steps_of_change"]

_SIDES = ("before", "after")
_ROWS = 10
"""Rows of a table; chosen: as many as the command shows. Doubled, two tables fill a screen."""


def report(job: DependencyGraph | Diff, target: str | Path, *, inputs: Sequence[str] = ()) -> Path:
    """Write a page about a job: what limits it, with evidence, an interactive timeline, and where the time goes.

    For a difference (`htagraph.diff`), the page says what changed and why, and has the timelines of both jobs.

    The file needs no other file and no network; a browser opens it from the disk. Texts of the traces are shown, never
    run.

    Args:
        job: the job, or the result of `htagraph.diff`.
        target: the file to write, as a rule with the suffix ``.html``.
        inputs: the words of a command line that read the same job, for the commands that the page suggests; by
            default the folder of the traces. For a difference, the words of both jobs.

    Returns:
        The path of the file, in bytes at most some MB (15 MB at a million events); beyond `MOST_SLICES` events the
        timeline leaves some out and says which.

    Raises:
        OSError: the file cannot be written.

    Example:
        >>> import tempfile, pathlib, htagraph as hg
        >>> path = hg.report(hg.load("data/demo"), pathlib.Path(tempfile.mkdtemp()) / "job.html")
        >>> path.stat().st_size < 1_000_000
        True
    """
    path = Path(target)
    write_whole(path, comparison_bytes(job, inputs) if isinstance(job, Diff) else report_bytes(job, inputs))
    return path


def report_bytes(graph: DependencyGraph, inputs: Sequence[str] = (), *, events: str = "") -> bytes:
    """Return the page of `report`; `events` is where its server tells all about an event, empty without a server."""
    results = PageResults(graph, inputs or _folder(graph))
    first = findings_section(results), parts_of.glance_section(results)
    timeline = parts_of.timeline_section({results.key: ("", timeline_of(results.path))}, events=events)
    last = parts_of.breakdown_section(results), parts_of.collective_section(results), parts_of.memory_section(results)
    panel = what_if_section(graph, results.words, results.summary.tables["opportunities"])
    sections: list[Section] = [*first, timeline, panel, *(each for each in last if each is not None)]
    recorded = next((moment for moment in results.summary.inputs["start_utc"] if moment), "")
    when = f", recorded {recorded} UTC" if recorded else ""
    lead = f"{plural(len(results.summary.inputs), 'rank')}, {time_text(results.summary.window_us)}{when}."
    title = f"{' '.join(results.words[:1])} · htagraph"
    return page(title, sections, lead=element("p", lead, class_="lead"))


def _folder(graph: DependencyGraph) -> list[str]:
    """Return the folder of the traces, or the file where there is one."""
    paths = [Path(str(trace.path)) for trace in graph.traces.values()]
    if len(paths) == 1:
        return [str(paths[0])]
    parents = {path.parent for path in paths}
    return [str(parents.pop())] if len(parents) == 1 else ["PATHS"]


def comparison_bytes(diff: Diff, inputs: Sequence[str] = ()) -> bytes:
    """Return the page about a difference of two jobs, which `inputs` name as on a command line.

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
    graphs = [part.graph for part in diff.parts]
    issues = table_of(of_both(issues_of, graphs), caption="Repaired, dropped or unmatched")
    jobs = element("div", parts_of.files_table(of_both(inputs_of, graphs)), issues)
    timeline = parts_of.timeline_section(timelines)
    sections = [_findings(diff, named), _causes(diff), timeline, _paths(diff), Section("jobs", "Both jobs", jobs)]
    times = f"Per {diff.unit}: {time_text(diff.before_us)} before, {time_text(diff.after_us)} after."
    lead = element("p", f"{named[0]} → {named[1]}. {times}", class_="lead")
    short = [Path(name).name or name for name in named]
    return page(f"{short[0]} → {short[1]} · htagraph diff", sections, lead=lead)


def steps_of_change(diff: Diff) -> list[tuple[str, float]]:
    """Return by how much each category of the critical path changed, µs per step; they sum to the whole change."""
    table = diff.summary()
    table = table[(table["group"] == "category") & (table["change_us"] != 0)]
    steps = [(CATEGORY_WORDS[key], float(us)) for key, us in zip(table["key"], table["change_us"], strict=True)]
    shown, others = steps[:7], steps[7:]  # most of the others are too short to be seen
    return [*shown, ("all others", sum(us for _, us in others))] if others else shown


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
    paths = ["path", "count_per_step", "total_us", "critical_us"]
    for title, frame, meaning in (
        (ADDED_PATHS.title, diff.added[paths], Diff.added),
        (REMOVED_PATHS.title, diff.removed[paths], Diff.removed),
        ("Kernels replaced by others", diff.renamed, Diff.renamed),
        ("Steps, paired in their order", diff.step_times(), Diff.step_times),
    ):
        parts += parts_of.titled(title, table_of(frame.head(_ROWS)), definition(meaning))
    return Section("paths", "What changed", element("div", *parts))
