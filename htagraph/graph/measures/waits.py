"""`graph.waits`: who waits for whom in each collective, and how long the transfer takes: exact, in ns.

Each member of a collective is one activity: a kernel on a stream, or a collective on a host thread. Its duration is
split into the time in which its thread still ran other work (of asynchronous sends and receives on hosts), wait (until
the last arrival that its end depends on), pure transfer (the shortest of any collective of its class, each as long
as that of its last member: a sender may only hand over the data) and excess (the rest).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, joined, marked
from htagraph.core.computing import once
from htagraph.core.intervals import difference, length, union
from htagraph.core.kinds import COMMUNICATION, TRANSFERS, ActivityKind, of_kinds
from htagraph.core.statistics import least_of
from htagraph.graph.activities import blocked_since
from htagraph.graph.matches import PAIR
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = [
    "Damage", "Waits", "bus_factor", "damaged_ranks", "lacks_members", "ranks_not_read", "unmatched", "waiting_devices",
    "waits_of",
]  # fmt: skip

_CUT, _ALL_READ = ("truncated", "gzip_truncated"), "all events were read"
_DROPPED = ("event_unreadable", "time_corrupt")
"""Issues of a file that ends early, what their text says where only its end is missing, and those that count events."""


@dataclass(frozen=True, eq=False)
class Waits:
    """One row per member of a collective: matched ones first, by (collective, rank), then all others."""

    activity: npt.NDArray[np.int64]
    collective: npt.NDArray[np.int64]
    """Index into the columns of `DependencyGraph.matches`; -1 where unmatched."""
    rank: npt.NDArray[np.int64]
    arrival: npt.NDArray[np.int64]
    """Start of the member, ns on the common clock."""
    beside: npt.NDArray[np.int64]
    """Time in which its thread ran other work before it waited, ns; meanwhile the transfer may have been under way or
    over. 0 on streams and on a backend's own threads."""
    wait: npt.NDArray[np.int64]
    """Time until the last arrival that its end depends on, without the time beside other work, ns."""
    pure: npt.NDArray[np.int64]
    """The shortest transfer of a collective of its class (group, operation, bytes), ns; no more than its own."""
    excess: npt.NDArray[np.int64]
    """ns; beside + wait + pure + excess is the activity's duration."""
    late: npt.NDArray[np.int64]
    """The member that arrived last of those it waits for: itself if it was the last; -1 if unmatched."""
    bytes: npt.NDArray[np.int64]
    """Size of the message; -1 where unknown."""
    size: npt.NDArray[np.int64]
    """Members of the collective that are in the graph."""

    def __len__(self) -> int:
        return len(self.activity)

    @property
    def transfer(self) -> npt.NDArray[np.int64]:
        """The duration without the wait and the time beside other work, ns."""
        return self.pure + self.excess

    @property
    def shows_transfer(self) -> npt.NDArray[np.bool_]:
        """Whether no part of the transfer may lie beside other work, so that `transfer` is all of it."""
        return (self.beside == 0) | (self.wait > 0)


def waits_of(graph: DependencyGraph) -> Waits:
    """Return what `graph.waits` is: the wait, transfer and excess of every member of a collective in the graph.

    A member waits for the JOIN that its end depends on. Of an unmatched one no wait is known: its duration is transfer
    and excess, by the shortest of its name and bytes on any rank.
    """
    acts, matches = graph.activities, graph.matches
    none = np.zeros(0, np.int64)
    matched, collective, bytes_ = none, none, none
    if matches is not None:
        order = np.lexsort((acts.rank[matches.activity], matches.collective))
        matched = matches.activity[order].astype(np.int64)
        collective, bytes_ = matches.collective[order].astype(np.int64), matches.bytes[order].astype(np.int64)
    alone = np.setdiff1d(np.flatnonzero(of_kinds(acts.kind, COMMUNICATION)), matched)
    parent = acts.parent[alone]  # those inside another collective of their thread are a part of it
    alone = alone[~((parent >= 0) & of_kinds(acts.kind[np.maximum(parent, 0)], COMMUNICATION))]
    unknown = np.full(len(alone), -1)
    activity, collective, bytes_ = joined([(matched, collective, bytes_), (alone, unknown, unknown)], 3)
    arrival = graph.time[2 * activity]
    beside = blocked_since(acts, activity) - acts.start[activity]
    blocked = graph.time[2 * activity + 1] - arrival - beside
    join, late = _joins(graph, activity)
    wait = np.where(late >= 0, np.clip(join - arrival - beside, 0, blocked), 0)
    late = np.where((wait == 0) & (collective >= 0), activity, late)
    transfer = blocked - wait
    whole = (beside == 0) | (wait > 0)
    longest = np.zeros(int(collective.max(initial=-1)) + 2, np.int64)
    np.maximum.at(longest, collective[: len(matched)], transfer[: len(matched)])
    of_last = np.where(collective >= 0, longest[collective], transfer)
    pure = np.minimum(transfer, _least(_classes(graph, activity, collective, bytes_), of_last, whole))
    size = np.ones(len(activity), np.int64)
    if len(matched):
        size[: len(matched)] = np.bincount(collective[: len(matched)])[collective[: len(matched)]]
    return Waits(
        activity, collective, acts.rank[activity].astype(np.int64), arrival, beside, wait, pure, transfer - pure, late,
        bytes_, size,
    )  # fmt: skip


def bus_factor(op: str, size: int) -> float:
    """Return the factor from algorithm bandwidth to bus bandwidth, as in NCCL's tests (PERFORMANCE.md of nccl-tests).

    Example:
        >>> bus_factor("all_reduce", 4), bus_factor("all_gather", 4), bus_factor("broadcast", 4)
        (1.5, 0.75, 1.0)
    """
    if size < 2:
        return 1.0
    share = (size - 1) / size
    shares = {"all_reduce": 2 * share, "all_gather": share, "reduce_scatter": share, "all_to_all": share}
    return shares.get(op, 1.0)


def _joins(graph: DependencyGraph, activity: Array) -> tuple[Array, Array]:
    """Return (the moment of the JOIN that each end depends on, the activity that arrived last there or -1)."""
    edges, time = graph.edges, graph.time
    meets = np.flatnonzero(of_kinds(edges.kind, TRANSFERS))
    last = _last_arrivals(graph, meets)
    moment = np.full(len(graph.activities), np.iinfo(np.int64).min)
    late = np.full(len(graph.activities), -1, np.int64)
    leaving = meets[edges.activity[meets] >= 0]
    leaving = leaving[np.argsort(time[edges.source[leaving]], kind="stable")]  # of several JOINs, the last one counts
    moment[edges.activity[leaving]] = time[edges.source[leaving]]
    late[edges.activity[leaving]] = last[edges.source[leaving]]
    return moment[activity], late[activity]


def _last_arrivals(graph: DependencyGraph, meets: Array) -> Array:
    """Return, for each vertex of a JOIN, the activity that arrived last, through chains of JOINs; else -1."""
    edges, time, kind = graph.edges, graph.time, graph.activities.kind
    source, target = edges.source[meets], edges.target[meets]
    arriving = kind[target // 2] == ActivityKind.JOIN
    source, target = source[arriving], target[arriving]
    order = np.lexsort((-source, time[source], target))  # on ties the first activity
    before = np.arange(graph.vertex_count)
    before[target[order]] = source[order]
    joins = np.unique(target)
    at = before[joins]
    while not np.array_equal(further := before[at], at):
        at = further
    last = np.full(graph.vertex_count, -1, np.int64)
    last[joins] = at // 2
    return last


def _classes(graph: DependencyGraph, activity: Array, collective: Array, bytes_: Array) -> Array:
    """Return the class of each member: its (group, operation, bytes), or where unmatched its name and bytes."""
    matches = graph.matches
    name = graph.activities.name[activity].astype(np.int64)
    label = -1 - name
    known = collective >= 0
    if matches is not None and known.any():
        label[known] = matches.label[collective[known]]
    size = np.where(bytes_ >= 0, bytes_, -1 - name)  # without a size, the kernel's name at least has the data type
    return np.unique(np.stack([label, size], axis=1), axis=0, return_inverse=True)[1].ravel()


def _least(number: Array, values: Array, counts: Array) -> npt.NDArray[np.int64]:
    """Return, for each row, the least value of its class among those that count; of all where none does."""
    never = np.iinfo(np.int64).max
    among = least_of(np.where(counts, values, never), number)
    return np.where(among < never, among, least_of(values, number))


def ranks_not_read(graph: DependencyGraph) -> tuple[int, ...]:
    """Return the ranks of the job without any activity in the graph, as far as the traces say how many it has.

    Example:
        >>> import htagraph as hg
        >>> ranks_not_read(hg.load("data/demo"))
        ()
    """
    size = max((trace.facts.world_size for trace in graph.traces.values()), default=0)
    empty = set(graph.ranks) - set(np.unique(graph.activities.rank).tolist())
    if len(graph.ranks) < size:
        return tuple(sorted(set(range(size)) - set(graph.ranks) | empty))
    return tuple(sorted(empty)) if len(empty) < len(graph.ranks) else ()


class Damage(NamedTuple):
    """A recording lacks a part of the work of its rank."""

    how: Literal["cut", "lost", "work"]
    """How: the file ends early, events were dropped, or launches have no device work."""
    share: float
    """The share that is missing; NaN if unknown."""


@once
def damaged_ranks(graph: DependencyGraph) -> dict[int, Damage]:
    """Return the ranks whose recording lacks what they did, how, and the share that is missing.

    The file ends early (``cut``), events were dropped (``lost``), or launches have no device work (``work``), far more
    than on another rank: what it did is unknown.
    """
    acts, lost, cut = graph.activities, dict.fromkeys(graph.ranks, 0), {}
    for issue in graph.issues:
        if issue.what in _CUT and _ALL_READ not in issue.detail:
            cut[issue.rank] = Damage("cut", float("nan"))
        elif issue.what in _DROPPED and issue.rank in lost:
            lost[issue.rank] += issue.count
    events = {rank: sum(trace.counts.values()) + lost.get(rank, 0) for rank, trace in graph.traces.items()}
    share = {rank: count / max(events.get(rank, 1), 1) for rank, count in lost.items()}
    launches = acts.kind == ActivityKind.LAUNCH
    alone = launches & ~marked(acts.cause[acts.on_device & (acts.cause >= 0)], len(acts))
    places = [acts.of_rank(rank) for rank in graph.ranks]
    idle = [float(alone[own].sum() / max(launches[own].sum(), 1)) for own in places]
    beyond = min(idle, default=0.0) + (1 - LIMITS.nearly_all)
    work = {rank: Damage("work", each) for rank, each in zip(graph.ranks, idle, strict=True) if each > beyond}
    return work | {rank: Damage("lost", each) for rank, each in share.items() if each > LIMITS.small} | cut


@once
def unmatched(graph: DependencyGraph) -> tuple[dict[int, float], npt.NDArray[np.bool_]]:
    """Return (the share that is not matched of the communication of each rank, which activities that is).

    The share is that of the time or of the number, whichever is larger. Small shares do not matter, and are left out.
    """
    acts, matches = graph.activities, graph.matches
    talks = of_kinds(acts.kind, COMMUNICATION)
    alone = talks & (len(graph.ranks) > 1)
    if matches is not None:
        alone[matches.activity] = False
    shares = {}
    for rank in graph.ranks if alone.any() else ():
        place = acts.of_rank(rank)
        own, left, took = talks[place], alone[place], acts.duration[place]
        share = max(left.sum() / max(own.sum(), 1), took[left].sum() / max(took[own].sum(), 1))
        if share > LIMITS.small:
            shares[rank] = float(share)
    return shares, alone


@once
def lacks_members(graph: DependencyGraph) -> npt.NDArray[np.bool_]:
    """Return which activities are communication whose group is not in the graph on all its ranks.

    What such a one takes after the last recorded arrival is its transfer, or waiting for a rank that was not recorded.
    Where ranks of the job were not read, or could not be matched, communication without a match counts, too; where some
    were not read, so do collectives whose group was not recorded, unless one rank sends and one receives.

    Example:
        >>> import htagraph as hg
        >>> bool(lacks_members(hg.load("data/demo")).any())
        False
    """
    acts, matches = graph.activities, graph.matches
    out = np.zeros(len(acts), np.bool_)
    if ranks_not_read(graph) or unmatched(graph)[0]:
        out |= of_kinds(acts.kind, COMMUNICATION)
    if matches is not None and len(matches.size):
        present = np.bincount(matches.collective, minlength=matches.count)
        size = np.asarray(matches.size)
        is_pair = np.array([op == PAIR for op in matches.op], np.bool_)
        may_lack = (size == 0) & ~is_pair & bool(ranks_not_read(graph))
        out[matches.activity] = ((size > present) | may_lack)[matches.collective]
    return out


_WORK = (ActivityKind.COMPUTATION, ActivityKind.MEMORY)


def waiting_devices(graph: DependencyGraph) -> dict[int, int]:
    """Return, for each rank, how long its device ran only collective kernels that waited for other ranks, ns.

    A collective kernel spins until the last rank arrives; time in which it does and no computation and no copy runs is
    idle time of the device that no device time shows.

    Example:
        >>> import htagraph as hg
        >>> waiting_devices(hg.load("data/demo"))[0] > 0
        True
    """
    acts, waits = graph.activities, graph.waits
    at = np.flatnonzero(acts.on_device[waits.activity] & (waits.wait > 0))
    waited = {}
    for rank in graph.ranks:
        mine = at[waits.rank[at] == rank]
        begin = acts.start[waits.activity[mine]] + waits.beside[mine]
        rows = acts.of_rank(rank)
        work = rows.start + np.flatnonzero(of_kinds(acts.kind[rows], _WORK))
        waiting = difference(union(begin, begin + waits.wait[mine]), union(acts.start[work], acts.end[work]))
        waited[rank] = length(waiting)
    return waited
