"""When and on which host each rank was recorded, and which recordings begin late or end early."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from htagraph.core.arrays import Array, Ints
from htagraph.core.errors import Issue
from htagraph.core.kinds import ActivityKind
from htagraph.graph.activities import Activities
from htagraph.graph.tolerances import LIMITS
from htagraph.trace.columns import Trace

__all__ = ["Recordings", "cores_of_ranks", "hosts_of", "on_one_host", "recordings_of", "uneven_recordings"]


@dataclass(frozen=True, eq=False)
class Recordings:
    """A row per rank that has any activity: what its recording covers.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> recordings_of(graph.activities, graph.time).rank.tolist()
        [0, 1, 2, 3]
    """

    rank: Ints
    begin: Ints
    """The start of its first activity, ns on the common clock."""
    end: Ints
    """The end of its last activity, ns on the common clock."""
    first_step: Ints
    """Number of its first step; -1 without steps."""
    last_step: Ints
    step_ns: Ints
    """The median duration of its steps, ns; without steps, that of the recording."""

    @property
    def usual_ns(self) -> int:
        """By how much recordings of one job begin and end apart as a rule, at most, ns."""
        return max(LIMITS.turn_ns, int(LIMITS.small * np.median(self.step_ns))) if len(self.step_ns) else LIMITS.turn_ns


def recordings_of(acts: Activities, time: Array) -> Recordings:
    """Return what the recording of each rank covers."""
    rows = []
    for rank in np.unique(acts.rank[: acts.ranked]).tolist():
        own = acts.of_rank(rank)
        times = time[2 * own.start : 2 * own.stop]
        begin, end = int(times[0::2].min()), int(times[1::2].max())
        marks = own.start + np.flatnonzero(acts.kind[own] == ActivityKind.STEP)
        steps = acts.step[marks]
        first, last = (int(steps.min()), int(steps.max())) if len(steps) else (-1, -1)
        usual = int(np.median(acts.duration[marks])) if len(steps) else end - begin
        rows.append((rank, begin, end, first, last, usual))
    columns = np.array(rows, np.int64).reshape(-1, 6).T
    return Recordings(*columns)


def uneven_recordings(acts: Activities, time: Array, files: Mapping[int, str]) -> tuple[Issue, ...]:
    """Return an issue for each rank whose recording begins later, or ends earlier, than most by more than is usual.

    What such a rank did before or after is not known: nobody can have waited for it, as far as this recording tells.
    """
    spans = recordings_of(acts, time)
    if len(spans.rank) < 2:
        return ()
    usual = spans.usual_ns
    usual_end = max(usual, int(LIMITS.most * np.median(spans.step_ns)))
    first, last = int(spans.begin.argmin()), int(spans.end.argmax())
    issues = []
    for row, rank in enumerate(spans.rank.tolist()):
        late, early = int(spans.begin[row] - spans.begin[first]), int(spans.end[last] - spans.end[row])
        for what, by, other, verb, steps in (
            ("recording_begins_late", late, first, "starts", spans.first_step),
            ("recording_ends_early", early, last, "ends", spans.last_step),
        ):
            if by > (usual if what == "recording_begins_late" else usual_end):
                side = "after" if verb == "starts" else "before"
                detail = f"rank {rank}'s recording {verb} {by / 1e6:.3g} ms {side} rank {spans.rank[other]}'s"
                if steps[row] != steps[other] and min(steps[row], steps[other]) >= 0:
                    which = "first" if verb == "starts" else "last"
                    detail += f" (its {which} step is {steps[row]}, there {steps[other]})"
                issues.append(Issue(files.get(rank, ""), what, f"{detail}; nothing is known of it there", 1, rank))
    return tuple(issues)


def hosts_of(traces: Mapping[int, Trace]) -> dict[int, int]:
    """Return the number of each rank's host, equal for ranks of one host; a rank whose host is unknown is left out.

    A host is known by its name. Files without one are of one host if they list the same devices, at least as many as
    the job has ranks, and no two of them ran on the same device or in the same process.
    """
    name = {rank: trace.facts.host for rank, trace in traces.items()}
    number: dict[str, int] = {}
    hosts = {rank: number.setdefault(host, len(number)) for rank, host in name.items() if host}
    nameless = [trace for rank, trace in traces.items() if rank not in hosts]
    if not hosts and _share_devices(nameless):
        return dict.fromkeys(traces, 0)
    return hosts


def cores_of_ranks(traces: Mapping[int, Trace], ranks: Iterable[int]) -> int | None:
    """Return how many cores some ranks of a host may use in all; None where the file of a rank does not say.

    Args:
        traces: the files of all ranks.
        ranks: the ranks.

    Returns:
        The number of cores, each counted once also if several ranks may use it.
    """
    cores: frozenset[int] = frozenset()
    for rank in ranks:
        trace = traces.get(rank)
        if trace is None or not trace.facts.cores:
            return None
        cores |= trace.facts.cores
    return len(cores)


def on_one_host(traces: Mapping[int, Trace]) -> bool:
    """Return whether all of several ranks are known to be on one host, so that their times can be compared."""
    hosts = hosts_of(traces)
    return len(traces) > 1 and len(hosts) == len(traces) and len(set(hosts.values())) == 1


def _share_devices(traces: list[Trace]) -> bool:
    """Return whether all files list the same devices, enough for all ranks, and each rank used others of them."""
    tables = [trace.facts.devices for trace in traces]
    if len(tables) < 2 or any(table != tables[0] for table in tables):
        return False
    size = max(len(traces), *(trace.facts.world_size for trace in traces))
    used = [{pid for pid, _ in trace.lanes if isinstance(pid, int) and pid >= 0} for trace in traces]
    return size <= len(tables[0]) and all(used) and len(set().union(*used)) == sum(map(len, used))
