"""Times of a DAG in which some edges are transfers that share links: those that overlap slow each other down.

An event simulation, because how fast a transfer is depends on which others run at the same moment. Compiled by
numba, cached on disk; it knows arrays only. A transfer has one edge or more (one per member); its links are
``link_ids[link_offsets[t]:link_offsets[t + 1]]``.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.compiled import njit

__all__ = ["shared_lags", "work_alone"]


class _Running(NamedTuple):
    """What is under way at some moment."""

    edges: Array
    """The edges of transfers, the first `counts[0]` of these."""
    transfers: Array
    """The transfers, the first `counts[1]` of these."""
    counts: Array
    busy: Array
    """How many edges of each transfer are under way."""
    since: Array
    """When each transfer began, ns."""
    rate: Array
    """How fast each of the transfers is, as a share of its speed alone."""


@njit(no_cpython_wrapper=True)
def _nothing_running(edges: int, transfers: int) -> _Running:
    return _Running(
        np.zeros(edges, np.int64), np.zeros(transfers, np.int64), np.zeros(2, np.int64), np.zeros(transfers, np.int64),
        np.zeros(transfers, np.float64), np.zeros(transfers, np.float64),
    )  # fmt: skip


@njit(no_cpython_wrapper=True)
def _begin(running: _Running, edge: int, one: int, now: float) -> None:
    """Add an edge of a transfer, which begins with its first one."""
    running.edges[running.counts[0]] = edge
    running.counts[0] += 1
    running.busy[one] += 1
    if running.busy[one] == 1:
        running.since[one] = now
        running.transfers[running.counts[1]] = one
        running.counts[1] += 1


@njit(no_cpython_wrapper=True)
def _finish(running: _Running, edge: int, one: int) -> bool:
    """Take away an edge of a transfer; return whether the transfer is over with it."""
    running.counts[0] = _dropped(running.edges, running.counts[0], edge)
    running.busy[one] -= 1
    if running.busy[one] > 0:
        return False
    running.counts[1] = _dropped(running.transfers, running.counts[1], one)
    return True


@njit(no_cpython_wrapper=True)
def _dropped(items: Array, count: int, item: int) -> int:
    """Remove an item from the first `count` items, and return how many are left."""
    for i in range(count):
        if items[i] == item:
            items[i] = items[count - 1]
            return count - 1
    return count


@njit(no_cpython_wrapper=True)
def _set_rates(running: _Running, link_offsets: Array, link_ids: Array, in_turn: int) -> None:
    """Set how fast each transfer is that is under way."""
    since, count = running.since, running.counts[1]
    for a in range(count):
        one = running.transfers[a]
        users, first = 1, True
        for i in range(link_offsets[one], link_offsets[one + 1]):
            on_link, oldest = 1, True
            for b in range(count):
                other = running.transfers[b]
                if other == one:
                    continue
                for j in range(link_offsets[other], link_offsets[other + 1]):
                    if link_ids[j] == link_ids[i]:
                        on_link += 1
                        oldest &= since[one] < since[other] or (since[one] == since[other] and one < other)
            users = max(users, on_link)
            first &= oldest
        if in_turn == 1:
            running.rate[one] = 1.0 if first else 0.0
        else:
            running.rate[one] = 1.0 / users


def work_alone(
    start: Array, end: Array, transfer: Array, link_offsets: Array, link_ids: Array, in_turn: int
) -> npt.NDArray[np.float64]:
    """Return how long each edge of a transfer would take alone, given when all were under way, ns.

    Links serve their transfers one after the other if `in_turn` is 1, all at once and at equal shares if it is 0.
    """
    moment = np.concatenate((start, end)).astype(np.float64)
    order = np.argsort(moment, kind="stable")  # here, because numba takes seconds to compile a sort
    return np.asarray(_work_alone(moment, order, transfer, link_offsets, link_ids, in_turn))


@njit(cache=True)
def _work_alone(
    moment: Array, order: Array, transfer: Array, link_offsets: Array, link_ids: Array, in_turn: int
) -> Array:
    """Return the work of each edge, given the moments of all starts and then of all ends, and their order."""
    count = len(transfer)
    work, running = np.zeros(count, np.float64), _nothing_running(count, len(link_offsets) - 1)
    now = 0.0
    for event in order:
        passed = moment[event] - now
        for edge in running.edges[: running.counts[0]]:
            work[edge] += passed * running.rate[transfer[edge]]
        now = moment[event]
        edge = event % count
        if event < count:
            _begin(running, edge, transfer[edge], now)
        else:
            _finish(running, edge, transfer[edge])
        _set_rates(running, link_offsets, link_ids, in_turn)
    return work


@njit(no_cpython_wrapper=True)
def _next_end(running: _Running, left: Array, transfer: Array, now: float) -> tuple[int, float]:
    """Return which of the edges under way ends first, -1 if none does, and when, ns."""
    soonest, when = -1, np.inf
    for edge in running.edges[: running.counts[0]]:
        speed = running.rate[transfer[edge]]
        if left[edge] <= 0 or speed > 0:
            over = now if left[edge] <= 0 else now + left[edge] / speed
            if over < when:
                when, soonest = over, int(edge)
    return soonest, when


@njit(no_cpython_wrapper=True)
def _allow(vertex: int, moment: int, best: Array, waiting: Array, gap: Array, ready: Any) -> None:  # noqa: ANN401 - a heap
    """Note when an edge allows a vertex; after the last edge into it, note when it happens."""
    best[vertex] = max(best[vertex], moment)
    waiting[vertex] -= 1
    if waiting[vertex] == 0:
        heapq.heappush(ready, (best[vertex] + gap[vertex], np.int64(vertex)))


@njit(cache=True)
def shared_lags(  # noqa: PLR0913, PLR0917 - a graph as arrays
    in_offsets: Array, out_offsets: Array, target: Array, lag: Array, gap: Array, head: Array,
    transfer: Array, work: Array, link_offsets: Array, link_ids: Array, in_turn: int,
) -> Array:  # fmt: skip
    """Return the lag of each edge, ns, when transfers that overlap share their links; other lags are as given.

    `transfer` is -1 for edges that are none, `work` is how long each edge of a transfer takes alone, ns. `in_turn` is
    as in `work_alone`, all others as in `traverse`.
    """
    vertices = len(gap)
    out = lag.copy()
    waiting = np.diff(in_offsets)
    best = np.full(vertices, np.iinfo(np.int64).min // 2)
    left, began = work.copy(), np.zeros(len(lag), np.float64)
    running = _nothing_running(max(int((transfer >= 0).sum()), 1), len(link_offsets) - 1)
    ready = [(np.int64(0), np.int64(-1))]
    ready.pop()
    for first in range(vertices):
        if waiting[first] == 0:
            heapq.heappush(ready, (np.int64(head[first]), np.int64(first)))
    now = 0.0
    while len(ready) > 0 or running.counts[0] > 0:
        soonest, when = _next_end(running, left, transfer, now)
        at_vertex = len(ready) > 0 and ready[0][0] <= when
        moment = max(now, float(ready[0][0])) if at_vertex else when
        for edge in running.edges[: running.counts[0]]:
            left[edge] -= (moment - now) * running.rate[transfer[edge]]
        now = moment
        changed = False
        if at_vertex:
            time, reached = heapq.heappop(ready)
            for edge in range(out_offsets[reached], out_offsets[reached + 1]):
                if transfer[edge] < 0:
                    _allow(target[edge], time + lag[edge], best, waiting, gap, ready)
                    continue
                began[edge] = time
                _begin(running, edge, transfer[edge], now)
                changed = True
        else:
            changed = _finish(running, soonest, transfer[soonest])
            out[soonest] = np.int64(np.rint(now - began[soonest]))
            _allow(target[soonest], np.int64(began[soonest]) + out[soonest], best, waiting, gap, ready)
        if changed:
            _set_rates(running, link_offsets, link_ids, in_turn)
    return out
