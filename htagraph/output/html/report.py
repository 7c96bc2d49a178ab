"""report: one HTML file that shows a job: findings, timeline, breakdowns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from htagraph.analyses.differences import Diff
from htagraph.findings.phrases import plural, time_text
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.html.comparison import comparison_bytes
from htagraph.output.html.findings import PageResults, findings_section
from htagraph.output.html.page import Section, element, page
from htagraph.output.html.sections import (
    breakdown_section,
    collective_section,
    glance_section,
    memory_section,
    timeline_section,
)
from htagraph.output.html.timeline import timeline_of
from htagraph.output.html.what_if_panel import what_if_section
from htagraph.output.whole_files import write_whole

__all__ = ["report", "report_bytes"]


def report(job: DependencyGraph | Diff, target: str | Path, *, inputs: Sequence[str] = ()) -> Path:
    """Write a page about a job: what limits it, with evidence, an interactive timeline, and where the time goes.

    Of a difference, the page says what changed and why, and has the timelines of both jobs.

    The file needs no other and no network; a browser opens it from the disk. Texts of the traces are shown, never run.

    Args:
        job: the job, or the result of `htagraph.diff`.
        target: the file to write, as a rule with the suffix ``.html``.
        inputs: the words of a command line that read the same job, for the commands that the page suggests; by
            default the folder of the traces. Of a difference, the two jobs.

    Returns:
        The path of the file, in bytes at most some MB (15 MB at a million events); beyond `MOST_SLICES` events the
        timeline leaves some out and says which.

    Raises:
        OSError: it cannot be written.

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
    last = breakdown_section(results), collective_section(results), memory_section(results)
    panel = what_if_section(graph, results.words, results.summary.tables["opportunities"])
    sections: list[Section] = [*first, timeline, panel, *(each for each in last if each is not None)]
    return page(_title(results), sections, lead=element("p", _lead(results), class_="lead"))


def _folder(graph: DependencyGraph) -> list[str]:
    """Return the folder of the traces, or the file where there is one."""
    paths = [Path(str(trace.path)) for trace in graph.traces.values()]
    if len(paths) == 1:
        return [str(paths[0])]
    parents = {path.parent for path in paths}
    return [str(parents.pop())] if len(parents) == 1 else ["PATHS"]


def _title(results: PageResults) -> str:
    return f"{' '.join(results.words[:1])} · htagraph"


def _lead(results: PageResults) -> str:
    inputs = results.summary.inputs
    recorded = next((moment for moment in inputs["start_utc"] if moment), "")
    when = f", recorded {recorded} UTC" if recorded else ""
    return f"{plural(len(inputs), 'rank')}, {time_text(results.summary.window_us)}{when}."
