"""report: one HTML file that shows a job (findings, timeline, breakdowns) or what changed between two jobs, and why."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd

from htagraph.analyses.collectives import collectives
from htagraph.analyses.differences import Diff
from htagraph.analyses.differences.diff import ADDED_PATHS, REMOVED_PATHS
from htagraph.analyses.idle_breakdown import idle_breakdown
from htagraph.analyses.kernel_breakdown import kernel_breakdown
from htagraph.analyses.memory import peaks, timeline
from htagraph.analyses.operator_breakdown import operator_breakdown
from htagraph.analyses.overlap import overlap
from htagraph.analyses.step_times import step_times
from htagraph.analyses.stragglers import stragglers
from htagraph.analyses.temporal_breakdown import temporal_breakdown
from htagraph.core.naming import short_name
from htagraph.findings.change import PredictedChange
from htagraph.findings.changes import ProposedChange
from htagraph.findings.device_idle import idle_chart
from htagraph.findings.finding import Bar, BarPart, Chart, Claim, Evidence, Finding, Place
from htagraph.findings.incomplete import is_judged
from htagraph.findings.phrases import CATEGORY_WORDS, Suggestion, command_line, plural, size_text, time_text
from htagraph.findings.plan import plan, plan_of
from htagraph.findings.results import Results
from htagraph.findings.uneven_steps import steps_in_words
from htagraph.findings.verbs.diff import diff_sentences
from htagraph.findings.verbs.what_if import capacity_sentences
from htagraph.findings.verdict import sentences, stated
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.html.charts import change_text, curve, drawn, stacked, waterfall
from htagraph.output.html.page import NOTHING, Html, Section, definition, element, join, json_bytes, page, table_of
from htagraph.output.html.samples import samples_section
from htagraph.output.html.step_picture import step_picture
from htagraph.output.html.timeline import MOST_SLICES, PageTimeline, timeline_of
from htagraph.output.html.what_if_panel import what_if_section
from htagraph.output.report import wording_of
from htagraph.output.reports.ranks import summed_by_operation
from htagraph.output.reports.two_jobs import INSIDE, marked, of_both
from htagraph.output.summary import Summary, summary_of
from htagraph.output.whole_files import write_whole
from htagraph.queries.inputs import devices_in, inputs_of, issues_of
from htagraph.whatif.capacity import capacity

__all__ = [
    "PageResults", "breakdown_section", "capacity_section", "collective_section", "comparison_bytes", "evidence_of",
    "files_table", "findings_section", "glance_section", "memory_section", "report", "report_bytes", "steps_of_change",
    "timeline_figure", "timeline_section", "titled",
]  # fmt: skip

_ROWS = 16
"""Rows of a table by rank, and of one by name; chosen: two nodes of eight. Doubled, tables fill screens."""
_CHANGES = 10
"""Rows of a table of changes; chosen: as many as the command shows. Doubled, two tables fill a screen."""
_SIDES = ("before", "after")
_PARTS = {
    "computation": "computation", "exposed_communication": "communication", "exposed_memory": "memory", "idle": "idle",
}  # fmt: skip
"""Parts of a rank's time, and their colors."""
_IN_COLLECTIVES = {
    "wait": "wait", "transfer": "communication", "excess": "excess", "wait_or_transfer": "other", "beside": "idle",
}  # fmt: skip
"""Parts of a rank's time in collectives, and their colors."""
_MEANINGS = (
    "First to last activity: from the first to the last moment of any rank that was read, on the common clock.",
    "Mean time from step to step: from one step's start to the next one's, mean over steps and ranks. A job whose host "
    "runs ahead has steps that last longer than that.",
    "Events read: in the files, before any was left out. Problems in files: kinds of what was repaired, dropped or not "
    "matched; each is a row below.",
)
SCRIPTS = (
    "payload.js", "model.js", "busy.js", "layout.js", "colors.js", "scan.js", "words.js", "walk.js", "known.js",
    "area.js", "marks.js", "draw.js", "details.js", "find.js", "address.js", "moves.js", "timeline.js",
)  # fmt: skip
STYLES = ("timeline.css",)
_KEYS = (
    "Click into it or go there by Tab, then: + and - (or W and S, or the wheel) zoom, arrow keys (or A and D, or "
    "dragging) pan and scroll, / finds, N goes to the next one found, 0 shows all. Click a slice, or press Enter, to "
    "select; . and , select the next and the one before in its row, F or a double click zooms to it, Escape selects "
    "nothing. Drag along the ruler, with Shift or with Area pressed to sum an area up. A click on ◇, or P, pins a row. "
    "The address of the page keeps the view: send it to show what you see."
)
_BY_RANK = element("option", "rank", value="rank")
_BY_BUSY_TIME = element("option", "busy time", value="busy")
_ORDER = element("select", _BY_RANK, _BY_BUSY_TIME, class_="order", aria_label="Order of rows")
_COLORS = (
    "Blue is computation, orange communication, green memory copies; on the host, purple launches, pink blocking "
    "calls, grey all else. The red line is the critical path, and the strip above all ranks says what it is spent on, "
    "in the colors of the findings. Lines between ranks join the starts and the ends of one collective; dashed lines "
    "are steps."
)


def glance_section(results: PageResults) -> Section:
    """Return what was read: ranks, devices, steps, files, problems."""
    summary = results.summary
    cards = [
        element("div", element("b", value), element("span", word), class_="card") for word, value in _facts(results)
    ]
    in_words = summary.issues.drop(columns="what")  # the words for programs are in the tables of commands
    issues = table_of(in_words.assign(rank=in_words["rank"].fillna(-1)), caption="Repaired, dropped or unmatched")
    headings = wording_of("summary").headings
    steps = _some(
        summary.tables["steps"], "median_us", headings=headings, caption="Step times: until all work of a step is over"
    )
    body = element(
        "div", element("div", *cards, class_="cards"), steps, definition(step_times),
        element("details", element("summary", "What was repaired, dropped or unmatched"), issues)
        if issues else element("p", "Nothing was repaired, dropped or unmatched."),
        element("details", element("summary", "Files"), files_table(summary.inputs)),
        element("details", element("summary", "What these numbers mean"), *(element("p", each) for each in _MEANINGS)),
    )  # fmt: skip
    return Section("job", "The job at a glance", body)


def files_table(inputs: pd.DataFrame) -> Html:
    """Return what was read, a row per rank; a file that does not say how many ranks its job has is no job of 0."""
    sizes = ["unknown" if size == 0 else f"{size:,}" for size in inputs["world_size"].tolist()]
    return table_of(inputs.assign(world_size=sizes))


def _facts(results: PageResults) -> list[tuple[str, str]]:
    summary = results.summary
    inputs, steps = summary.inputs, steps_in_words(results.graph)
    size = int(inputs["world_size"].max()) if len(inputs) else 0
    devices = ", ".join(devices_in(inputs))
    cards = [
        ("ranks read", f"{len(inputs):,} of {size:,}" if size > len(inputs) else f"{len(inputs):,}"),
        ("device", devices if len(devices) <= 60 else f"{devices[:59]}…"),
        ("first to last activity", time_text(summary.window_us)),
        ("events read", f"{int(inputs['events'].sum()):,}"),
        ("problems in files", plural(summary.issues["what"].nunique(), "kind") if len(summary.issues) else "none"),
    ]
    if steps:
        recorded = len(np.unique(results.graph.step_spans.step))
        number = f"{steps.number:,}" if recorded == steps.number else f"{recorded:,}, {steps.number:,} of these usual"
        cards[2:2] = [("steps", number), ("usual step", steps.lasts)]
    return cards


def breakdown_section(results: PageResults) -> Section:
    """Return where the time of each rank went: by kind, by cause of idle time, by kernel, by operator."""
    tables = results.summary.tables
    temporal, hidden = tables["temporal_breakdown"], tables["overlap"]
    hidden = hidden if hidden["communication_us"].any() else hidden.iloc[:0]
    operators = operator_breakdown(results.graph, by="job").head(_ROWS)
    everywhere = temporal["executor"].nunique() == 1
    ranks = [f"rank {rank}" for rank in temporal["rank"]]
    if not everywhere:
        ranks = [f"{rank} ({executor})" for rank, executor in zip(ranks, temporal["executor"], strict=True)]
    time = stacked("Time of each rank by what it was spent on", _stacks(ranks, temporal, _PARTS))
    folded = element("details", element("summary", "As a table"), table_of(temporal)) if len(temporal) else NOTHING
    parts = [
        element("h3", "Time by rank"), time, folded, definition(temporal_breakdown),
        *titled("Communication overlapped with computation", _some(hidden, "communication_us"), definition(overlap)),
        *titled("Idle device time by cause", drawn(idle_chart(tables["rank_idle"])), definition(idle_breakdown)),
        *titled("Kernels, all ranks", table_of(tables["kernels"]), definition(kernel_breakdown)),
        *titled("Operators, all ranks", table_of(operators), definition(operator_breakdown)),
    ]  # fmt: skip
    return Section("breakdowns", "Where the time goes", element("div", *parts))


def _stacks(ranks: Sequence[str], times: pd.DataFrame, colors: Mapping[str, str]) -> list[tuple[str, list[BarPart]]]:
    """Return the parts of each rank's time, of which `times` has a row for each rank."""
    return [
        (rank, [BarPart(part.replace("_", " "), color, float(row[f"{part}_us"])) for part, color in colors.items()])
        for rank, row in zip(ranks, times.to_dict("records"), strict=True)
    ]


def titled(title: str, shown: Html, meaning: Html) -> list[Html]:
    """Return a heading, what it is of and what its numbers mean; nothing where there is nothing to show."""
    return [element("h3", title), shown, meaning] if shown else []


def _some(frame: pd.DataFrame, by: str, *, caption: str = "", headings: Mapping[str, str] | None = None) -> Html:
    """Return a table; of many rows those with the largest values of a column, and how many there are."""
    more = len(frame) - _ROWS
    if more <= 0:
        return table_of(frame, caption=caption, headings=headings)
    word = by.rpartition("_")[0].replace("_", " ")
    note = f"The {_ROWS} with the largest {word} of {len(frame):,} ranks; all: htagraph summary --format json"
    shown = table_of(frame.nlargest(_ROWS, by), caption=caption, headings=headings)
    return join((shown, element("p", note, class_="note")))


def collective_section(results: PageResults) -> Section | None:
    """Return how long ranks wait and transfer in collectives, and who makes others wait; None without any."""
    parts = results.collectives
    if not len(parts):
        return None
    sums = parts.groupby("rank")[[f"{part}_us" for part in _IN_COLLECTIVES]].sum()
    times = stacked(
        "Time in collectives by rank", _stacks([f"rank {rank}" for rank in sums.index], sums, _IN_COLLECTIVES)
    )
    ranks = results.summary.tables["stragglers"].nlargest(_ROWS, "blamed_us")
    late = ranks[["rank", "blamed_us", "share_percent", "waits_us", "late_count", "own_step_us", "slow", "cause"]]
    headings = {"blamed_us": "others wait for it_us", "waits_us": "it waits_us", "late_count": "came last"}
    operations = summed_by_operation(parts, sort=True).drop(columns=["collectives", "beside_us", "algbw_gb_s"])
    body = element(
        "div", times, table_of(operations.sort_values("total_us", ascending=False, kind="stable").head(_ROWS)),
        definition(collectives),
        *titled("Which rank the others wait for", table_of(late, headings=headings), definition(stragglers)),
    )  # fmt: skip
    return Section("collectives", "Collectives and stragglers", body)


def memory_section(results: PageResults) -> Section | None:
    """Return how much memory was in use, and what ran at the peak; None where it was not recorded."""
    most = peaks(results.graph)
    if not len(most):
        return None
    events = timeline(results.graph)
    parts: list[Html] = []
    for (rank, device), of_device in list(events.groupby(["rank", "device"], sort=False))[:4]:  # a screen
        every = max(1, -(-len(of_device) // 4000))  # several points per pixel
        highest = of_device.groupby(pd.RangeIndex(len(of_device)) // every).agg(
            {"time_us": "first", "allocated_bytes": "max"}
        )
        points = list(zip(highest["time_us"], highest["allocated_bytes"], strict=True))
        parts.append(curve(f"Memory in use, rank {rank}, {device}", points, size_text(max(size for _, size in points))))
    rows = [
        f"Rank {row['rank']}, {row['device']}: at most {size_text(row['peak_bytes'])} in use, in "
        f"{short_name(row['name'])}."
        for row in most.head(_ROWS).to_dict("records")
    ]
    links = [results.address(Place(each)) if each >= 0 else "#memory" for each in most["activity"].tolist()]
    table = table_of(most.drop(columns="activity"), links=links)
    return Section(
        "memory", "Memory", element("div", *(element("p", row) for row in rows), *parts, table, definition(peaks))
    )


def plan_section(results: PageResults) -> Section:
    """Return which changes save most together."""
    found = plan_of(results)
    answer = found.answer(results.words)
    said = f"{answer.said}." if isinstance(answer, Suggestion) else answer  # the command stands below
    parts = [element("p", sentence) for sentence in (said, *found.caveats(), *found.details())]
    bars = [
        Bar(plural(int(count), "change"), us, found.interval_us if count == len(found.curve) else None)
        for count, us in zip(found.curve["changes"], found.curve["saved_us"], strict=True)
    ]
    title = f"How much shorter {'a step' if found.per_step else 'the job'} would be with the best of so many changes"
    table = table_of(found.changes.drop(columns="options"), caption="Each change, and what it adds to the others")
    if bars:
        command = command_line("what-if", results.words, *found.options)
        charts = element("div", drawn(Chart(title, bars, "less")), table, class_="columns")
        parts += [charts, element("p", element("span", "Try ", element("code", command)), class_="try")]
    return Section("plan", found.titles["plan"], element("div", *parts, definition(plan)))


def capacity_section(results: PageResults) -> Section:
    """Return how long a step takes with other batches and on other devices, or why the recording does not show it."""
    if len(results.graph.activities) > MOST_SLICES:
        return Section("capacity", "Another batch or device", element("p", "The job is large: ask htagraph capacity."))
    found = capacity(results.graph)
    by_batch = [
        Bar(f"batch {row['batch']}", row["step_us"], (row["low_us"], row["high_us"]),
            text=f"{time_text(row['step_us'])} · {row['samples_per_s']:,.0f} samples/s")
        for row in found.batches.to_dict("records")
    ]  # fmt: skip
    by_device = [
        Bar(row["device"], row["step_us"], (row["low_us"], row["high_us"]),
            text=f"{time_text(row['step_us'])} · {row['speedup']:.2f} ×")
        for row in found.devices.to_dict("records")
    ]  # fmt: skip
    titles = (f"Usual step by batch; recorded: {found.batch}", f"Usual step by device; recorded on {found.device}")
    charts = [drawn(Chart(title, bars)) for title, bars in zip(titles, (by_batch, by_device), strict=True) if bars]
    said = [element("p", each) for each in capacity_sentences(found)]
    tables = [table_of(table) for table in (found.batches, found.devices) if len(table)]
    return Section("capacity", "Another batch or device", element("div", *said, *charts, *tables, definition(capacity)))


def timeline_section(timelines: dict[str, tuple[str, PageTimeline]], *, events: str = "") -> Section:
    """Return the section of timelines by id, each with its title; `events` is where a server tells about an event."""
    body = element("div", *(timeline_figure(key, title, each) for key, (title, each) in timelines.items()))
    payload: dict[str, bytes] = {}
    for key, (_, each) in timelines.items():
        payload |= {f"{key}-header": json_bytes(each.header | {"events": events}), f"{key}-data": each.data}
    return Section("timeline", "Timeline", body, SCRIPTS, STYLES, payload)


def timeline_figure(key: str, title: str, timeline: PageTimeline) -> Html:
    """Return the place of a timeline: its controls, its canvas, and what it leaves out."""
    controls = element(
        "div",
        element("input", type="search", class_="find", placeholder="Find by name", aria_label="Find by name"),
        element("output", class_="found"),
        element("button", "Next", type="button", class_="next"),
        element("label", element("input", type="checkbox", class_="path", checked=True), " critical path"),
        element("label", element("input", type="checkbox", class_="collectives", checked=True), " collectives"),
        element("button", "Area", type="button", class_="mark", aria_pressed="false", title="Drag to sum an area up"),
        element("label", "rows by ", _ORDER, class_="sort"),
        element("button", "All", type="button", class_="whole"),
        element("button", "Larger", type="button", class_="larger"),
        element("span", class_="range", title="What is shown, since the job's first activity"),
        class_="controls",
    )
    canvas = element(
        "canvas", class_="slices", tabindex=0, role="application", aria_describedby=f"{key}-keys",
        aria_label="Timeline of ranks, streams and threads",
    )  # fmt: skip
    waiting = element("p", "The timeline needs scripts; all else on this page does not.", class_="waiting")
    stage = element("div", canvas, waiting, element("div", class_="tip", hidden=True), class_="stage")
    return element(
        "div",
        element("h3", title) if title else NOTHING,
        controls,
        stage,
        element("div", class_="area", aria_live="polite", hidden=True),
        element("div", element("p", "Nothing is selected.", class_="hint"), class_="selected", aria_live="polite"),
        element("p", _KEYS, class_="hint", id=f"{key}-keys"),
        element("p", _COLORS, class_="note"),
        *(element("p", sentence, class_="note") for sentence in timeline.left_out),
        class_="timeline",
        data_key=key,
    )


class PageResults(Results):
    """The results that a report shows, each computed once.

    `words` are those of a command line that read the same; `key` is the id of the timeline that links lead to.
    """

    def __init__(self, graph: DependencyGraph, words: Sequence[str], key: str = "job") -> None:
        super().__init__(graph)
        self.words, self.key = words, key

    @cached_property
    def summary(self) -> Summary:
        """The summary of the job."""
        return summary_of(self)

    def address(self, place: Place | None) -> str:
        """Return the address of a place in the timeline; empty for nowhere in particular."""
        if place is None:
            return ""
        selected = f"&event={place.activity}"
        if place.start_us is None:
            return f"#on={self.key}{selected}"
        stretch = f"&from={round(1000 * place.start_us)}&to={round(1000 * place.end_us)}"
        return f"#on={self.key}{stretch}{selected if place.activity >= 0 else ''}"


def findings_section(results: PageResults) -> Section:
    """Return the first thing to do, and the conclusions of the job's summary, with evidence."""
    parts = [_shown(results, finding, claims) for finding, claims in stated(results.summary.claims)]
    return Section("findings", "Findings", element("div", _head(results), *parts))


def _head(results: PageResults) -> Html:
    """Return the head of the summary, with the command that predicts the first change."""
    parts = list[Html]()
    for line in results.summary.head.lines:
        label = element("b", f"{line.label}: ") if line.label else NOTHING
        parts.append(element("p", label, line.sentence))
    first = results.summary.changes.first
    if first is not None and first.change is not None and not first.is_hypothetical:
        command = element("code", first.change.command(results.words))
        parts.append(element("p", element("span", "Try ", command), class_="try"))
    place = _place_of(results, first)
    link = results.address(place)
    if link:
        parts.append(element("p", element("a", "Show the cause in the timeline", href=link), class_="show cause"))
    return element("div", *parts, step_picture(results, place, link), class_="finding first")


def _place_of(results: PageResults, first: ProposedChange | None) -> Place | None:
    """Return where the cause of the first change is in the timeline; without one, the first place of a finding."""
    sentences = stated(results.summary.claims)
    if first is not None:
        sentences.sort(key=lambda sentence: sentence.finding.name != first.finding)
    for finding, claims in sentences:
        place = evidence_of(results, finding, claims).place
        if place and place.activity >= 0:
            return place
    return None


def evidence_of(results: PageResults, finding: Finding, claims: Sequence[Claim]) -> Evidence:
    """Return what proves the claims of a sentence; at least, where the first activity is that a claim rests on."""
    evidence = finding.evidence(results, *claims)
    rows = [row for claim in claims for row in claim.rows]
    place, look = (evidence.place, evidence.look) if evidence.place or not rows else (Place(rows[0]), "one of them")
    return replace(evidence, place=place, look=look)


def _shown(results: PageResults, finding: Finding, claims: Sequence[Claim]) -> Html:
    """Return a finding: its sentence, what proves it, what makes it uncertain and what to try."""
    evidence = evidence_of(results, finding, claims)
    rows = evidence.rows
    chart = drawn(evidence.chart, lambda bar: results.address(bar.place))
    links = [results.address(place) for place in rows.places]
    table = table_of(rows.frame, caption=rows.caption, headings=rows.headings, links=links)
    notes = [element("p", note) for note in evidence.notes]
    table = element("div", table, *notes) if notes else table
    parts: list[Html] = [element("p", sentence) for sentence in sentences(claims)]
    parts += [element("div", chart, table, class_="columns")] if chart or table else []
    rests = " and ".join(sorted({doubt.value for claim in claims for doubt in claim.rests_on}))
    if rests and not finding.is_caution:
        parts += [element("p", "Uncertain, because it rests on ", rests, ".", class_="note")]
    tries = list(_tries(results, evidence, next((claim.change for claim in claims if claim.change), None)))
    parts += [element("p", *tries, class_="try")] if tries else []
    parts += [definition(evidence.meaning)] if evidence.meaning else []
    return element("div", *parts, class_=f"finding{' doubt' if finding.is_caution else ''}")


def _tries(results: PageResults, evidence: Evidence, change: PredictedChange | None) -> Iterator[Html]:
    """Yield what to try, the slider that has it too, and where it is in the timeline."""
    command = ("what-if", *change.options) if change else evidence.command
    if command:
        verb, *options = command
        yield element("span", "Try ", element("code", command_line(verb, results.words, *options)))
    if command[:1] == ("what-if",):  # the panel's script shows the link if there is such a slider
        words = json.dumps(command[1:])
        yield element("a", "Try it on this page", href="#what-if", hidden=True, class_="trial", data_trial=words)
    if evidence.place:
        yield element("a", f"In the timeline: {evidence.look}", href=results.address(evidence.place))


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
        The path of the file, in bytes at most some MB; beyond `MOST_SLICES` events the
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
    first = findings_section(results), glance_section(results)
    timeline = timeline_section({results.key: ("", timeline_of(results.path))}, events=events)
    last = breakdown_section(results), collective_section(results), memory_section(results), samples_section(graph)
    sections = [*first, timeline, *_predictions(results), *(section for section in last if section is not None)]
    recorded = next((moment for moment in results.summary.inputs["start_utc"] if moment), "")
    when = f", recorded {recorded} UTC" if recorded else ""
    lead = f"{plural(len(results.summary.inputs), 'rank')}, {time_text(results.summary.window_us)}{when}."
    title = f"{' '.join(results.words[:1])} · htagraph"
    return page(title, sections, lead=element("p", lead, class_="lead"))


def _predictions(results: PageResults) -> list[Section]:
    """Return the sections that predict changed jobs; none where the recording lacks a part of the job."""
    graph = results.graph
    if not is_judged(graph):
        return []
    summary = results.summary
    panel = what_if_section(graph, results.words, summary.tables["opportunities"], summary.changes)
    return [panel, plan_section(results), capacity_section(results)]


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
        >>> b"No difference that these recordings show" in comparison_bytes(hg.diff(graph, graph))
        True
    """
    named = list(inputs) or ["BEFORE", "AFTER"]
    timelines = {
        side: (f"{side.capitalize()}: {name}", timeline_of(path))
        for side, name, path in zip(_SIDES, named, (diff.before, diff.after), strict=True)
    }
    graphs = [part.graph for part in diff.parts]
    issues = table_of(of_both(issues_of, graphs), caption="Repaired, dropped or unmatched")
    jobs = element("div", files_table(of_both(inputs_of, graphs)), issues)
    timeline = timeline_section(timelines)
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
    causes = marked(diff.causes(_CHANGES))["name"].tolist()
    link = _link(diff, causes[0]) if causes else ""
    look = element("a", f"In the timeline: {causes[0]}", href=link) if link else ""
    command = element("p", element("span", "Try ", element("code", command_line("diff", inputs))), look, class_="try")
    summary = element("div", element("p", first), chart, command, definition(Diff.summary), class_="finding")
    rest = element("ul", *(element("li", sentence) for sentence in others))
    return Section(
        "findings", "Findings", element("div", summary, element("div", rest, class_="finding") if others else "")
    )


def _causes(diff: Diff) -> Section:
    shown = marked(diff.causes(_CHANGES))
    columns = ["name", "kind", "before_us", "after_us", "change_us", "effect_us"]
    links = [_link(diff, name) for name in shown["name"].tolist()]
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
        short = name.removesuffix(INSIDE)
        meant = [number for number, each in enumerate(part.graph.names) if short in (each, short_name(each))]
        rows = part.activities[np.isin(acts.name[part.activities], meant)]
        if len(rows):
            return f"#on={side}&event={int(rows[acts.duration[rows].argmax()])}"
    return ""


def _paths(diff: Diff) -> Section:
    table = diff.to_frame()
    table = table[table["change_us"] != 0].head(_CHANGES)
    columns = ["path", "category", "before_us", "after_us", "change_us", "before_count", "after_count"]
    parts = [table_of(table[columns], caption="Change of the critical path by call path"), definition(Diff.to_frame)]
    paths = ["path", "count_per_step", "total_us", "critical_us"]
    for title, frame, meaning in (
        (ADDED_PATHS.title, diff.added[paths], Diff.added),
        (REMOVED_PATHS.title, diff.removed[paths], Diff.removed),
        ("Kernels replaced by others", diff.renamed, Diff.renamed),
        ("Steps, paired in their order", diff.step_times(), Diff.step_times),
    ):
        parts += titled(title, table_of(frame.head(_CHANGES)), definition(meaning))
    return Section("paths", "What changed", element("div", *parts))
