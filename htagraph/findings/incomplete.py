"""The recording lacks a part of the job, so that a verdict would describe the recording and not the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from htagraph.core.naming import COUNTER_RANGE
from htagraph.core.statistics import MOST
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.phrases import plural, ranks_text, time_text
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part, RankLedger

__all__ = ["INCOMPLETE", "Missing", "incomplete_note", "missing_parts"]

_MISSING: Final = {
    Part.DEVICE: "What bounds the job, when its device is idle and what changes gain cannot be said",
    Part.HOST: "What the host does cannot be said",
    Part.MEANING: "Nothing can be said of hosts and devices",
}
_ADVICE: Final = {
    Part.DEVICE: (
        "Record again: without a second profiler on the device, with permission to profile it, and with a driver that "
        "fits (PyTorch prints a warning where the profiler may not record)."
    ),
    Part.HOST: "Record with activities=[CPU, CUDA].",
    Part.MEANING: (
        "Open the file with tools of the program that wrote it: recordings of PyTorch and of Nsight Systems are judged."
    ),
}


_NOTED: Final = ("idle", "opportunities", "phases", "plan", "stragglers", "what-if")
"""Commands whose reports conclude something of a job without stating findings."""


class Missing(NamedTuple):
    """A part of a job that was not recorded."""

    lost: Part
    why: str
    """The figures that show that it is missing."""
    ranks: tuple[int, ...]
    """The ranks whose recording lacks the part."""
    advice: str
    """How to record the part."""


def missing_parts(graph: DependencyGraph) -> list[Missing]:
    """Return the parts of a job that the recording lacks; none where a profiler of counters kept no kernels.

    Example:
        >>> import htagraph as hg
        >>> missing_parts(hg.load("data/demo"))
        []
    """
    counted = any(trace.in_categories(COUNTER_RANGE).any() for trace in graph.traces.values())
    missing = []
    for lost in Part:
        lacking = graph.ledger.lacking(lost)
        if lacking and not (lost == Part.DEVICE and counted):
            ranks = tuple(rank.rank for rank in lacking)
            missing.append(Missing(lost, _why(lost, lacking), ranks, _ADVICE[lost]))
    return missing


def _when(results: Results) -> list[Claim]:
    return [
        Claim("incomplete", lost.name, len(ranks), "count", facts={"why": why, "ranks": ranks})
        for lost, why, ranks, _ in missing_parts(results.graph)
    ]


def _why(part: Part, lacking: Sequence[RankLedger]) -> str:
    """Return the figures that show that a part was not recorded."""
    if part == Part.DEVICE:
        return _without_device(lacking)
    if part == Part.HOST:
        calls = sum(rank.launches for rank in lacking)
        return f"no operator of the host was recorded, only device work and {plural(calls, 'launch call')}"
    events = sum(rank.foreign_events for rank in lacking)
    return f"another program wrote the file, and its rows do not say what is device work ({plural(events, 'event')})"


def _without_device(lacking: Sequence[RankLedger]) -> str:
    launches = sum(rank.launches for rank in lacking)
    empty_launches = sum(rank.launches_without_work for rank in lacking)
    graphs = sum(rank.graph_launches for rank in lacking)
    empty_graphs = sum(rank.graph_launches_without_work for rank in lacking)
    steps = sum(rank.steps for rank in lacking)
    empty_steps = sum(rank.steps_without_work for rank in lacking)
    if 2 * empty_graphs > graphs:
        text = f"{empty_graphs} of {plural(graphs, 'launch call')} of CUDA graphs have no kernels in the file"
    elif 2 * empty_launches > launches:
        text = f"{empty_launches} of {plural(launches, 'launch call')} have no kernel or copy in the file"
    else:
        text = f"{empty_steps} of {plural(steps, 'step')} have no device work in the file"
    waited_ns = sum(rank.sync_ns for rank in lacking)
    window_ns = sum(rank.window_ns for rank in lacking)
    if waited_ns > MOST * window_ns:
        waited = f"{time_text(waited_ns / 1000)} of {time_text(window_ns / 1000)}"
        text += f", while the host waits {waited} for devices, which are likely the limit"
    return text


def _short(claim: Claim) -> str:
    return _sentence(Part[claim.about], claim.facts["why"], claim.facts["ranks"])


def _sentence(part: Part, why: str, ranks: Sequence[int]) -> str:
    on = f" on {ranks_text(ranks)}" if len(ranks) > 1 else ""
    return f"The recording lacks {part.value}{on}: {why}. {_MISSING[part]}."


def incomplete_note(graph: DependencyGraph, command: str) -> list[str]:
    """Return the sentences about an incomplete recording in the report of a command; none for a complete recording."""
    if command not in _NOTED:
        return []
    return [_sentence(missing.lost, missing.why, missing.ranks) for missing in missing_parts(graph)]


INCOMPLETE = Finding(
    "incomplete",
    when=_when,
    short=_short,
    advice=lambda claim: _ADVICE[Part[claim.about]],
)
