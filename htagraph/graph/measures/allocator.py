"""`graph.flushes`: where PyTorch's caching allocator gave memory back to its device to ask for other memory.

The allocator does so when its device is full: it frees the blocks that it holds unused, and asks for a new one. A
library that makes its handle frees and asks for memory, too, in the first operator that needs the library. The
allocator's own counters tell one from the other; without counters, only a pattern does, less surely.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from htagraph.core.arrays import Ints, Mask
from htagraph.core.kinds import BLOCKING, ActivityKind, of_kinds
from htagraph.core.naming import is_allocation, is_release, names_that
from htagraph.core.statistics import MOST
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Flushes", "allocator_calls", "flushes_of", "recorded_flushes", "time_without_waiting"]

_SEGMENT_BYTES = 2 << 20
"""Bytes; the allocator asks for multiples of 2 MiB. Source: kSmallBuffer of PyTorch's CUDACachingAllocator. Doubled,
flushes that give back less than 4 MiB are missed."""


@dataclass(frozen=True, eq=False)
class Flushes:
    """The allocator's calls in flushes, ascending, and the evidence for each."""

    call: Ints
    """Activities: calls that free or ask for memory, all inside operators in which memory was given back."""
    reserved_bytes: Ints
    """Held by the allocator before the flush, as its counters say; -1 where no counter was recorded."""
    freed_bytes: Ints
    """Given back to the device during the flush, at least; -1 where no counter was recorded."""

    def __len__(self) -> int:
        return len(self.call)

    @property
    def are_recorded(self) -> bool:
        """Whether counters prove every flush."""
        return bool((self.reserved_bytes >= 0).all())


class _Counters(NamedTuple):
    """The allocator's counters of one device of a rank, by time."""

    time: Ints
    """ns on the rank's own clock."""
    reserved: Ints
    """Bytes held after each event."""
    change: Ints
    """Bytes allocated by each event, negative if freed."""
    memory_bytes: int
    """Memory of the device; 0 where it is unknown."""


class _Episode(NamedTuple):
    """Calls of the allocator in one operator that frees memory."""

    calls: Ints
    reserved_bytes: int
    """Before the calls; -1 where no counter was recorded."""
    freed_bytes: int
    """At least; -1 where no counter shows it, 0 if the counters show that nothing was given back."""


def allocator_calls(graph: DependencyGraph) -> Ints:
    """Return the runtime calls that free device memory or ask for it, ascending."""
    acts = graph.activities
    is_call = names_that(
        is_allocation,
        graph.names,
    )[acts.name]
    return np.flatnonzero(is_call & (acts.kind == ActivityKind.RUNTIME))


def time_without_waiting(graph: DependencyGraph, calls: Ints) -> Ints:
    """Return how long calls take, without the time in which they wait for work of a device, ns."""
    since = graph.time[2 * calls]
    last = graph.binding[2 * calls + 1]
    waits = (last >= 0) & of_kinds(
        graph.edges.kind[last],
        BLOCKING,
    )
    since = np.where(
        waits,
        np.maximum(since, graph.time[graph.edges.source[last]]),
        since,
    )
    return np.maximum(
        0,
        graph.time[2 * calls + 1] - since,
    )


def recorded_flushes(graph: DependencyGraph) -> Flushes:
    """Return the flushes that the allocator's counters prove."""
    return _flushes([episode for episode in _episodes(graph) if episode.freed_bytes > 0])


def flushes_of(graph: DependencyGraph) -> Flushes:
    """Return the rows of `graph.flushes`: flushes that counters prove, and, where there are none, that a pattern shows.

    The pattern: operators of a rank free memory several times and ask for memory, no call takes most of the time of
    these calls, and the rank was not started in the recording: libraries that start, and kernels that are tried out,
    free memory, too.
    """
    episodes = list(_episodes(graph))
    without_counters = [episode for episode in episodes if episode.freed_bytes < 0]
    likely = _likely(
        graph,
        without_counters,
    )
    return _flushes([*(episode for episode in episodes if episode.freed_bytes > 0), *likely])


def _flushes(episodes: list[_Episode]) -> Flushes:
    if not episodes:
        nothing = np.zeros(
            0,
            np.int64,
        )
        return Flushes(
            nothing,
            nothing,
            nothing,
        )
    call = np.concatenate([episode.calls for episode in episodes])
    sizes = [len(episode.calls) for episode in episodes]
    order = np.argsort(
        call,
        kind="stable",
    )
    reserved = np.repeat(
        [episode.reserved_bytes for episode in episodes],
        sizes,
    )
    freed = np.repeat(
        [episode.freed_bytes for episode in episodes],
        sizes,
    )
    return Flushes(
        call[order],
        reserved[order],
        freed[order],
    )


def _episodes(graph: DependencyGraph) -> list[_Episode]:
    """Return the operators that free device memory and ask for it, by operator."""
    acts = graph.activities
    calls = allocator_calls(graph)
    parent = graph.tree.parent[calls]
    calls = calls[parent >= 0]
    parent = parent[parent >= 0]
    frees = _frees(
        graph,
        calls,
    )
    operators = np.intersect1d(
        parent[frees],
        parent[~frees],
    )
    inside = np.isin(
        parent,
        operators,
    )
    calls = calls[inside]
    parent = parent[inside]
    order = np.lexsort((acts.start[calls], parent))
    calls = calls[order]
    begins = np.flatnonzero(
        np.diff(
            parent[order],
            prepend=-1,
        )
    )
    of_rank: dict[int, list[_Counters]] = {}
    episodes = []
    for group in np.split(calls, begins[1:]) if len(calls) else []:
        rank = int(acts.rank[group[0]])
        if rank not in of_rank:
            of_rank[rank] = _counters(
                graph,
                rank,
            )
        episodes.append(
            _episode(
                graph,
                group,
                of_rank[rank],
            )
        )
    return episodes


def _frees(graph: DependencyGraph, calls: Ints) -> Mask:
    return names_that(
        is_release,
        graph.names,
    )[graph.activities.name[calls]]


def _counters(graph: DependencyGraph, rank: int) -> list[_Counters]:
    """Return the allocator's counters of each device of a rank."""
    trace = graph.traces.get(rank)
    if trace is None or not len(trace.instants):
        return []
    table = trace.instants
    kind = table.arg("device_type")
    number = table.arg("device_id")
    reserved = table.arg("total_reserved")
    has_counter = (kind > 0) & (reserved > 0)
    memory_bytes = {device.id: device.memory for device in trace.facts.devices}
    devices = []
    for device in np.unique(number[has_counter]).tolist():
        rows = np.flatnonzero(has_counter & (number == device))
        rows = rows[np.lexsort((table.index[rows], table.start[rows]))]
        change = table.arg("alloc_bytes")[rows]
        devices.append(
            _Counters(
                table.start[rows],
                reserved[rows],
                change,
                memory_bytes.get(device, 0),
            )
        )
    return devices


def _episode(graph: DependencyGraph, calls: Ints, devices: list[_Counters]) -> _Episode:
    """Return the calls of one operator, with the counters before and after these calls."""
    acts = graph.activities
    begin = int(acts.start[calls[0]])
    end = int(acts.end[calls].max())
    reserved_bytes = -1
    freed_bytes = -1
    for counters in devices:
        before = (
            int(
                np.searchsorted(
                    counters.time,
                    begin,
                    side="right",
                )
            )
            - 1
        )
        after = int(
            np.searchsorted(
                counters.time,
                end,
                side="left",
            )
        )
        if before < 0 or after >= len(counters.time):
            continue
        freed = _freed_bytes(
            counters,
            before,
            after,
        )
        if freed > freed_bytes or reserved_bytes < 0:
            freed_bytes = freed
            reserved_bytes = int(counters.reserved[before])
    return _Episode(
        calls,
        reserved_bytes,
        freed_bytes,
    )


def _freed_bytes(counters: _Counters, before: int, after: int) -> int:
    """Return how much memory went back to the device between two events, at least; 0 for none, -1 if unknown.

    Held memory that falls was given back. On a full device, so was all that the next allocation took beyond what the
    allocator grew by; elsewhere, the allocation may have come from memory that was held before.
    """
    grown = int(counters.reserved[after] - counters.reserved[before])
    freed = (
        max(
            0,
            int(counters.change[after]),
        )
        - grown
    )
    if grown < 0:
        return freed
    is_full = 0 < LIMITS.nearly_all * counters.memory_bytes <= counters.reserved[before]
    if is_full and freed >= _SEGMENT_BYTES:
        return freed
    return -1 if freed >= _SEGMENT_BYTES else 0


def _likely(graph: DependencyGraph, episodes: list[_Episode]) -> list[_Episode]:
    """Return the episodes without counters that look like flushes, on ranks without start-up."""
    acts = graph.activities
    started = set(acts.rank[graph.start_up.activity].tolist())
    by_rank: dict[int, list[_Episode]] = defaultdict(list)
    for episode in episodes:
        by_rank[int(acts.rank[episode.calls[0]])].append(episode)
    chosen: list[_Episode] = []
    for rank, of_rank in by_rank.items():
        calls = np.concatenate([episode.calls for episode in of_rank])
        duration = acts.duration[calls]
        free_count = np.count_nonzero(_frees(graph, calls))
        is_even = duration.max() < MOST * duration.sum()
        if rank not in started and free_count > 1 and is_even:
            chosen.extend(of_rank)
    return chosen
