"""The recording lacks a part of the job, so that a verdict would describe the recording and not the job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from htagraph.core.arrays import Ints
from htagraph.core.statistics import MOST
from htagraph.findings.finding import JUDGES, Claim, Finding
from htagraph.findings.limits import MAX_NAMED
from htagraph.findings.phrases import and_list, plural, ranks_text, share_text, time_text, transfers_words
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part, RankLedger, keeps_counters, lost_between, only_with_device, world_size
from htagraph.trace.columns import Trace
from htagraph.trace.readers import setting_for

__all__ = ["INCOMPLETE", "Comparison", "IncompleteClaim", "Missing", "comparison_of", "is_judged", "missing_parts"]

_Ledgers: TypeAlias = Sequence[RankLedger]
"""The ledgers of the ranks whose recordings lack a part."""
_Why: TypeAlias = Callable[[DependencyGraph, _Ledgers], str]

_UNKNOWN: Final = {
    Part.DEVICE: "What bounds the job, when its device is idle and what changes gain cannot be said",
    Part.HOST: "What the host does cannot be said",
    Part.GRAPHS: "Which kernels take that time cannot be said",
    Part.CALLS: "Whether devices wait for the host cannot be said",
    Part.PEERS: (
        "Communication bounds them; how much of it is waiting, and what changes gain, cannot be said without the others"
    ),
    Part.THREADS: "What bounds the job, and what changes gain, cannot be said",
    Part.MEANING: "Nothing can be said of hosts and devices",
}
_TOLD_BY: Final = {Part.CALLS: Part.HOST, Part.HOST: Part.GRAPHS}
"""A missing part that is not named beside another missing part."""
_SETTING: Final = {Part.CALLS: "host", Part.HOST: "operators", Part.GRAPHS: "graphs"}
"""The setting of a profiler that records a part, see `htagraph.trace.readers.Reader`."""
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
    waited: str = ""
    """How long the host waited for the part, as a part of a sentence; empty where that is not long."""

    @property
    def brief(self) -> str:
        """The missing part, and the figures that show the gap; of missing ranks, the bound that they leave."""
        if self.lost == Part.PEERS:
            return f"Bound by {transfers_words('recorded')}: {self.why}."
        return f"{self._gap}."

    @property
    def sentence(self) -> str:
        """The missing part, the figures that show the gap, and the conclusions that need this part."""
        return f"{self._gap}{self.waited}. {_UNKNOWN[self.lost]}."

    @property
    def _gap(self) -> str:
        on = f" on {ranks_text(self.ranks)}" if len(self.ranks) > 1 else ""
        return f"The recording lacks {self.lost.value}{on}: {self.why}"


def missing_parts(graph: DependencyGraph) -> list[Missing]:
    """Return the parts of a job that the recording lacks; none where a profiler of counters kept no kernels.

    Example:
        >>> import htagraph as hg
        >>> missing_parts(hg.load("data/demo"))
        []
    """
    is_counted = keeps_counters(graph)
    missing = list[Missing]()
    for lost in Part:
        lacking = _lacking(graph, lost)
        if not lacking or (lost == Part.DEVICE and is_counted):
            continue
        why = _WHY[lost](graph, lacking)
        ranks = tuple(rank.rank for rank in lacking)
        advice = _advice(graph, lost, lacking)
        waited = _waited(lacking) if lost == Part.DEVICE else ""
        missing.append(Missing(lost, why, ranks, advice, waited))
    return missing


def _lacking(graph: DependencyGraph, lost: Part) -> _Ledgers:
    """Return the ledgers of the ranks that lack a part, but for ranks that lack a part which says as much.

    A host without any row is named once, as a missing host. Operators would not name the kernels of a CUDA graph that
    was recorded as a whole.
    """
    lacking = graph.ledger.lacking(lost)
    told_by = _TOLD_BY.get(lost)
    return [rank for rank in lacking if told_by not in rank.lacks]


def is_judged(graph: DependencyGraph, needs: frozenset[Part] = JUDGES) -> bool:
    """Return whether the recording holds all parts that a judgement needs.

    Example:
        >>> import htagraph as hg
        >>> is_judged(hg.load("data/demo"))
        True
    """
    lost = {missing.lost for missing in missing_parts(graph)}
    return lost.isdisjoint(needs)


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


@dataclass(frozen=True, kw_only=True)
class IncompleteClaim(Claim):
    """A part of the job was not recorded; the figure is on how many ranks."""

    missing: Missing
    """The part."""


def _when(results: Results) -> list[IncompleteClaim]:
    claims = list[IncompleteClaim]()
    for missing in missing_parts(results.graph):
        claim = IncompleteClaim(
            "incomplete",
            about=missing.lost.name,
            figure=len(missing.ranks),
            unit="count",
            ranks=missing.ranks,
            missing=missing,
        )
        claims.append(claim)
    return claims


def _advice(graph: DependencyGraph, lost: Part, lacking: _Ledgers) -> str:
    """Return how to record a part, in the words of the profiler that wrote the files."""
    if lost == Part.MEANING:
        return _OTHER_PROGRAM
    if lost == Part.PEERS:
        return "Load the files of all ranks, to see which rank is late, and how long transfers take."
    if lost in (Part.DEVICE, Part.THREADS) and any(Part.THREADS in rank.lacks for rank in lacking):
        return _all_threads(graph)
    if lost == Part.CALLS and all(rank.launches for rank in lacking):  # the host was recorded
        return "Use the whole file, or record again: it has some launch calls, and the others were cut off."
    numbers = {rank.rank for rank in lacking}
    traces = [trace for number, trace in graph.traces.items() if number in numbers]
    if lost in _SETTING:
        return f"Record with {setting_for(traces, _SETTING[lost])}."
    return _with_devices(traces, lacking)


def _with_devices(traces: Sequence[Trace], lacking: _Ledgers) -> str:
    """Return how to record the work of devices of some ranks, given their files."""
    if all(rank.is_alone for rank in lacking):
        return f"Record with {setting_for(traces, 'device')} on every rank."
    if not any(rank.launches for rank in lacking):
        return f"Record with {setting_for(traces, 'device')}."
    hint = setting_for(traces, "lost_device")
    graphs = ""
    if _are_graphs(lacking):
        graphs = ", or without replaying CUDA graphs"
    return (
        "Record again: without a second profiler on the device, with permission to profile it, and with a driver that "
        f"fits{hint}{graphs}."
    )


def _all_threads(graph: DependencyGraph) -> str:
    """Return how to record the threads that are missing, with the devices where these are missing, too."""
    setting = setting_for(graph.traces.values(), "device")
    if Part.DEVICE in graph.ledger.lacks and setting:
        return f"Record all threads and the device ({setting})."
    return "Record all threads of the process, also the one of autograd."


def _without_threads(_graph: DependencyGraph, lacking: _Ledgers) -> str:
    """Return how long a thread waits for gradients that no recorded thread computes."""
    empty_ns = sum(rank.backward.empty_ns for rank in lacking)
    asked_ns = sum(rank.backward.asked_ns for rank in lacking)
    waited = f"{time_text(empty_ns / 1000)} of the {time_text(asked_ns / 1000)} of its backward pass"
    return f"for {waited}, no operator is in the file, and no gradient is computed on any thread"


def _without_host(_graph: DependencyGraph, lacking: _Ledgers) -> str:
    """Return how many launch calls there are without any operator."""
    calls = sum(rank.launches for rank in lacking)
    launches = f" and {plural(calls, 'launch call')}" if calls else ""
    return f"no operator of the host was recorded, only device work{launches}"


def _without_graphs(_graph: DependencyGraph, lacking: _Ledgers) -> str:
    """Return how many CUDA graphs were recorded as a whole, and how much of the time of devices they are."""
    graphs = sum(rank.whole_graphs for rank in lacking)
    graphs_ns = sum(rank.whole_graphs_ns for rank in lacking)
    device_ns = sum(rank.device_ns for rank in lacking)
    share = share_text(100 * graphs_ns / device_ns)
    return f"{plural(graphs, 'run')} of CUDA graphs, {share} of the busy time of devices, were recorded as a whole"


def _without_calls(_graph: DependencyGraph, lacking: _Ledgers) -> str:
    """Return how much device work has no launch call."""
    alone = sum(rank.device_work_without_launch for rank in lacking)
    every = sum(rank.device_work for rank in lacking)
    return f"{alone} of {every} kernels and copies have no launch call in the file"


def _without_peers(_graph: DependencyGraph, lacking: _Ledgers) -> str:
    """Return how much of their busy time devices spend with ranks that were not read."""
    busy_ns = sum(rank.device_ns for rank in lacking)
    met_ns = sum(rank.meeting_ns for rank in lacking)
    met = share_text(100 * met_ns / busy_ns)
    return f"for {met} of their busy time, devices run only collectives with ranks that were not read"


def _without_meaning(_graph: DependencyGraph, lacking: _Ledgers) -> str:
    """Return how many events another program wrote."""
    events = sum(rank.foreign_events for rank in lacking)
    return f"another program wrote the file, and its rows do not say what is device work ({plural(events, 'event')})"


def _without_device(graph: DependencyGraph, lacking: _Ledgers) -> str:
    """Return how much device work is missing."""
    if all(rank.is_alone for rank in lacking):
        return "no launch and no device work is in the file, though other ranks have some"
    lost = sum(rank.lost_launches for rank in lacking)
    if not any(rank.launches or rank.device_work for rank in lacking):
        return _without_all(graph, lacking)
    steps = sum(rank.steps for rank in lacking)
    empty_steps = sum(rank.steps_without_work for rank in lacking)
    text = f"{empty_steps} of {steps} steps have no device work in the file"
    partial = sum(rank.partial_replays for rank in lacking)
    if partial and not (lost or empty_steps > MOST * steps):
        text = _within_replays(lacking)
    if lost:
        text = _without_kernels(graph, lacking)
    return text


def _without_all(graph: DependencyGraph, lacking: _Ledgers) -> str:
    """Return how many operators show that a job has a device, where nothing else does."""
    names = Counter[str]()
    for rank in lacking:
        rows = graph.activities.of_rank(rank.rank)
        shows = rows.start + np.flatnonzero(only_with_device(graph, rows))
        names.update(graph.names[name] for name in graph.activities.name[shows].tolist())
    shown = and_list([f"{name} {count}" for name, count in names.most_common(MAX_NAMED)])
    return f"no launch and no device work is in the file, but operators that need a device are ({shown})"


def _waited(lacking: _Ledgers) -> str:
    """Return how long the host waited for devices whose work is missing; empty where that is not most of the time."""
    if all(rank.is_alone for rank in lacking):
        return ""
    waited_ns = sum(rank.sync_without_work_ns for rank in lacking)
    window_ns = sum(rank.window_ns for rank in lacking)
    if waited_ns <= MOST * window_ns:
        return ""
    waited = time_text(waited_ns / 1000)
    window = time_text(window_ns / 1000)
    return (
        f", while the host waits {waited} of {window} for devices that do nothing in the file and are likely the limit"
    )


def _within_replays(lacking: Sequence[RankLedger]) -> str:
    """Return how many replays of CUDA graphs lack kernels that most replays of the same graph have."""
    partial = sum(rank.partial_replays for rank in lacking)
    replays = sum(rank.graph_launches for rank in lacking)
    missing = sum(rank.missing_in_replays for rank in lacking)
    works = f"{plural(missing, 'kernel')} and copies" if missing > 1 else "1 kernel or copy"
    return f"{partial} of {replays} launches of CUDA graphs lack {works} that most launches of the same graph have"


def _without_kernels(graph: DependencyGraph, lacking: _Ledgers) -> str:
    """Return how many launches have no device work, the calls with most of these, and from when on."""
    since = _since(graph, lacking)
    if _are_graphs(lacking):
        graphs = sum(rank.graph_launches for rank in lacking)
        empty = sum(rank.graph_launches_without_work for rank in lacking)
        return f"{empty} of {graphs} launch calls of CUDA graphs have no kernels in the file{since}"
    launches = graph.ledger.launches
    rank_of_call = graph.activities.rank[launches.activity]
    numbers = [rank.rank for rank in lacking]
    is_lost = launches.is_lost & np.isin(rank_of_call, numbers)
    lost = int(np.count_nonzero(is_lost))
    calls = sum(rank.launches - rank.launches_without_work + rank.lost_launches for rank in lacking)
    text = f"{lost} of {calls} launch calls have no kernel or copy in the file"
    named = _lost_calls(graph, launches.activity[is_lost])
    if len(named) > 1:
        text += f" ({and_list(named[:MAX_NAMED])})"
    return f"{text}{since}"


def _are_graphs(lacking: _Ledgers) -> bool:
    """Return whether most launches that lost their work are launches of CUDA graphs."""
    graphs = sum(rank.graph_launches_without_work for rank in lacking)
    calls = sum(rank.lost_launches for rank in lacking)
    return graphs > MOST * calls


def _lost_calls(graph: DependencyGraph, lost: Ints) -> list[str]:
    """Return the names of calls whose work is missing, each with the number of these calls, the most first."""
    names = graph.activities.name[lost]
    counts = Counter(names.tolist())
    return [f"{graph.names[name]} {count}" for name, count in counts.most_common()]


def _since(graph: DependencyGraph, lacking: _Ledgers) -> str:
    """Return from when on nothing of the device was recorded, where that is where all work is missing."""
    launches = graph.ledger.launches
    acts = graph.activities
    for rank in lacking:
        is_of_rank = acts.rank[launches.activity] == rank.rank
        lost = launches.activity[launches.is_lost & is_of_rank]
        if not rank.device_end_ns or not len(lost):
            return ""
        activities = acts.of_rank(rank.rank)
        times = graph.time[2 * activities.start : 2 * activities.stop]
        device_end = times.min() + rank.device_end_ns
        first_lost = graph.time[2 * lost].min()
        if first_lost < device_end:
            return ""
    first_end = min(rank.device_end_ns for rank in lacking)
    return f", none from {time_text(first_end / 1000)} after the start on"


_WHY: Final[Mapping[Part, _Why]] = {
    Part.DEVICE: _without_device,
    Part.HOST: _without_host,
    Part.GRAPHS: _without_graphs,
    Part.CALLS: _without_calls,
    Part.PEERS: _without_peers,
    Part.THREADS: _without_threads,
    Part.MEANING: _without_meaning,
}
"""Returns the figures that show that a part was not recorded, by the part."""


INCOMPLETE = Finding(
    "incomplete",
    when=_when,
    short=lambda claim: claim.missing.sentence,
    why=lambda claim: claim.missing.brief,
    advice=lambda claim: claim.missing.advice,
)
