"""The recording lacks a part of the job, so that a verdict would describe the recording and not the job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from htagraph.core.arrays import Mask
from htagraph.core.statistics import MOST
from htagraph.findings.finding import JUDGES, Claim, Finding
from htagraph.findings.limits import MAX_NAMED
from htagraph.findings.phrases import and_list, plural, ranks_text, share_text, time_text
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.launch_calls import LaunchCalls
from htagraph.graph.measures.ledger import Part, RankLedger, keeps_counters, lost_between, world_size
from htagraph.trace.readers import setting_for

__all__ = ["INCOMPLETE", "Comparison", "Missing", "comparison_of", "is_judged", "missing_parts"]

_UNKNOWN: Final = {
    Part.DEVICE: "What bounds the job, when its device is idle and what changes gain cannot be said",
    Part.HOST: "What the host does cannot be said",
    Part.CALLS: "Whether devices wait for the host cannot be said",
    Part.PEERS: "What bounds the job, and what changes gain, cannot be said",
    Part.MEANING: "Nothing can be said of hosts and devices",
}
_OTHER_PROGRAM: Final = (
    "Open the file with tools of the program that wrote it: recordings of PyTorch and of Nsight Systems are judged."
)


class Missing(NamedTuple):
    """A part of a job that was not recorded."""

    lost: Part
    why: str
    """The figures that show that it is missing."""
    ranks: tuple[int, ...]
    """The ranks whose recording lacks the part."""
    advice: str
    """How to record the part."""

    @property
    def sentence(self) -> str:
        """The missing part, the figures that show the gap, and the conclusions that need this part."""
        on = f" on {ranks_text(self.ranks)}" if len(self.ranks) > 1 else ""
        return f"The recording lacks {self.lost.value}{on}: {self.why}. {_UNKNOWN[self.lost]}."


def missing_parts(graph: DependencyGraph) -> list[Missing]:
    """Return the parts of a job that the recording lacks; none where a profiler of counters kept no kernels.

    Example:
        >>> import htagraph as hg
        >>> missing_parts(hg.load("data/demo"))
        []
    """
    is_counted = keeps_counters(graph)
    missing = []
    for lost in Part:
        lacking = graph.ledger.lacking(lost)
        if lost == Part.CALLS:  # a host without any row is named once
            lacking = tuple(rank for rank in lacking if Part.HOST not in rank.lacks)
        if lacking and not (lost == Part.DEVICE and is_counted):
            ranks = tuple(rank.rank for rank in lacking)
            missing.append(Missing(lost, _why(graph, lost, lacking), ranks, _advice(graph, lost, lacking)))
    return missing


def is_judged(graph: DependencyGraph, needs: frozenset[Part] = JUDGES) -> bool:
    """Return whether the recording holds all parts that a judgement needs.

    Example:
        >>> import htagraph as hg
        >>> is_judged(hg.load("data/demo"))
        True
    """
    return not any(missing.lost in needs for missing in missing_parts(graph))


class Comparison(NamedTuple):
    """Two recordings as the ledger lets a reader compare them."""

    notes: list[str]
    """The parts that each recording lacks, as sentences; the ranks that only one of the recordings has."""
    lost: frozenset[Part]
    """The parts whose loss makes the recordings incomparable: nothing is said of causes then."""


def comparison_of(before: DependencyGraph, after: DependencyGraph, ranks: tuple[int, int] = (0, 0)) -> Comparison:
    """Return the parts that two recordings lack, and whether they can be compared.

    Args:
        before: the job before.
        after: the job after.
        ranks: how many ranks of each job are compared.

    Returns:
        The sentences to say first, and the parts whose loss forbids a verdict.

    Example:
        >>> import htagraph as hg
        >>> comparison_of(hg.load("data/demo"), hg.load("data/demo"))
        Comparison(notes=[], lost=frozenset())
    """
    jobs = (("Before", before), ("After", after))
    notes = [f"{job}: {gap.sentence} {gap.advice}" for job, graph in jobs for gap in missing_parts(graph)]
    lost = lost_between(before, after)
    if ranks[0] != ranks[1] and world_size(before) == world_size(after) > 0:
        lost |= {Part.PEERS}
        notes.append(
            f"The jobs of {plural(world_size(after), 'rank')} were read with different numbers of ranks ({ranks[0]} "
            f"before, {ranks[1]} after): load the same ranks of both jobs, to see causes."
        )
    return Comparison(notes, lost)


def _when(results: Results) -> list[Claim]:
    claims = []
    for missing in missing_parts(results.graph):
        facts = {"sentence": missing.sentence, "ranks": missing.ranks, "advice": missing.advice}
        claims.append(Claim("incomplete", missing.lost.name, len(missing.ranks), "count", facts=facts))
    return claims


def _advice(graph: DependencyGraph, lost: Part, lacking: Sequence[RankLedger]) -> str:
    """Return how to record a part, in the words of the profiler that wrote the files."""
    traces = [graph.traces[rank.rank] for rank in lacking if rank.rank in graph.traces]
    if lost == Part.MEANING:
        return _OTHER_PROGRAM
    if lost == Part.PEERS:
        return "Load the files of all ranks, to see which rank is late, and how long transfers take."
    if lost != Part.DEVICE:
        return f"Record with {setting_for(traces, 'host' if lost == Part.CALLS else 'operators')}."
    if all(rank.is_alone for rank in lacking):
        return f"Record with {setting_for(traces, 'device')} on every rank."
    graphs = ", or without replaying CUDA graphs" if _are_graphs(lacking) else ""
    hint = setting_for(traces, "lost_device")
    return (
        "Record again: without a second profiler on the device, with permission to profile it, and with a driver that "
        f"fits{hint}{graphs}."
    )


def _why(graph: DependencyGraph, lost: Part, lacking: Sequence[RankLedger]) -> str:
    """Return the figures that show that a part was not recorded."""
    if lost == Part.DEVICE:
        return _without_device(graph, lacking)
    if lost == Part.HOST:
        calls = sum(rank.launches for rank in lacking)
        return f"no operator of the host was recorded, only device work and {plural(calls, 'launch call')}"
    if lost == Part.CALLS:
        alone = sum(rank.device_work_without_launch for rank in lacking)
        every = sum(rank.device_work for rank in lacking)
        return f"{alone} of {every} kernels and copies have no launch call in the file"
    if lost == Part.PEERS:
        busy = sum(rank.device_ns for rank in lacking)
        met = share_text(100 * sum(rank.meeting_ns for rank in lacking) / busy)
        return f"for {met} of their busy time, devices run only collectives with ranks that were not read"
    events = sum(rank.foreign_events for rank in lacking)
    return f"another program wrote the file, and its rows do not say what is device work ({plural(events, 'event')})"


def _without_device(graph: DependencyGraph, lacking: Sequence[RankLedger]) -> str:
    """Return how much device work is missing, and how long the host waited for it."""
    if all(rank.is_alone for rank in lacking):
        return "no launch and no device work is in the file, though other ranks have some"
    lost = sum(rank.lost_launches for rank in lacking)
    steps = sum(rank.steps for rank in lacking)
    empty_steps = sum(rank.steps_without_work for rank in lacking)
    text = f"{empty_steps} of {steps} steps have no device work in the file"
    if lost:
        text = _without_kernels(graph, lacking)
    waited_ns = sum(rank.sync_without_work_ns for rank in lacking)
    window_ns = sum(rank.window_ns for rank in lacking)
    if waited_ns > MOST * window_ns:
        waited = f"{time_text(waited_ns / 1000)} of {time_text(window_ns / 1000)}"
        text += f", while the host waits {waited} for devices that do nothing in the file and are likely the limit"
    return text


def _without_kernels(graph: DependencyGraph, lacking: Sequence[RankLedger]) -> str:
    """Return how many launches have no device work, the calls with most of these, and from when on."""
    launches = graph.ledger.launches
    of_ranks = np.isin(graph.activities.rank[launches.activity], [rank.rank for rank in lacking])
    if _are_graphs(lacking):
        graphs = sum(rank.graph_launches for rank in lacking)
        empty = sum(rank.graph_launches_without_work for rank in lacking)
        text = f"{empty} of {graphs} launch calls of CUDA graphs have no kernels in the file"
    else:
        lost = int(np.count_nonzero(launches.is_lost & of_ranks))
        calls = sum(rank.launches for rank in lacking)
        text = f"{lost} of {calls} launch calls have no kernel or copy in the file"
        named = _lost_calls(graph, launches, of_ranks)
        text += f" ({and_list(named[:MAX_NAMED])})" if len(named) > 1 else ""
    return f"{text}{_since(graph, lacking)}"


def _are_graphs(lacking: Sequence[RankLedger]) -> bool:
    """Return whether most launches that lost their work are launches of CUDA graphs."""
    lost_graphs = sum(rank.graph_launches_without_work for rank in lacking)
    return lost_graphs > MOST * sum(rank.lost_launches for rank in lacking)


def _lost_calls(graph: DependencyGraph, launches: LaunchCalls, of_ranks: Mask) -> list[str]:
    """Return the calls whose work is missing, each with how many are, the most first."""
    lost = launches.activity[launches.is_lost & of_ranks]
    counts = Counter(graph.names[name] for name in graph.activities.name[lost].tolist())
    return [f"{name} {count}" for name, count in counts.most_common()]


def _since(graph: DependencyGraph, lacking: Sequence[RankLedger]) -> str:
    """Return from when on nothing of the device was recorded, where that is where all work is missing."""
    launches = graph.ledger.launches
    acts = graph.activities
    for rank in lacking:
        lost = launches.activity[launches.is_lost & (acts.rank[launches.activity] == rank.rank)]
        start = graph.time[2 * acts.of_rank(rank.rank).start : 2 * acts.of_rank(rank.rank).stop].min()
        if not rank.device_end_ns or not len(lost) or graph.time[2 * lost].min() < start + rank.device_end_ns:
            return ""
    ends = [rank.device_end_ns for rank in lacking]
    return f", none from {time_text(min(ends) / 1000)} after the start on"


INCOMPLETE = Finding(
    "incomplete",
    when=_when,
    short=lambda claim: str(claim.facts["sentence"]),
    advice=lambda claim: str(claim.facts["advice"]),
)
