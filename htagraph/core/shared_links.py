"""Times of a DAG in which some edges are transfers that share links: those that overlap slow each other down.

An event simulation, because how fast a transfer is depends on which others run at the same moment. Compiled by
numba, cached on disk; it knows arrays only. A transfer has one edge or more (one per member); its links are
``link_ids[link_offsets[t]:link_offsets[t + 1]]``.
"""

from __future__ import annotations

import heapq
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.compiled import njit

__all__ = ["shared_lags", "work_alone"]

Array: TypeAlias = npt.NDArray[Any]


@njit(cache=True)
def _set_rates(  # noqa: PLR0913, PLR0917 - a state as arrays
    running: Array, count: int, since: Array, link_offsets: Array, link_ids: Array, in_turn: int, rate: Array
) -> None:
    """Set how fast each running transfer is, as a share of its speed alone."""
    for a in range(count):
        one = running[a]
        users, first = 1, True
        for i in range(link_offsets[one], link_offsets[one + 1]):
            on_link, oldest = 1, True
            for b in range(count):
                other = running[b]
                if other == one:
                    continue
                for j in range(link_offsets[other], link_offsets[other + 1]):
                    if link_ids[j] == link_ids[i]:
                        on_link += 1
                        oldest &= since[one] < since[other] or (since[one] == since[other] and one < other)
            users = max(users, on_link)
            first &= oldest
        if in_turn == 1:
            rate[one] = 1.0 if first else 0.0
        else:
            rate[one] = 1.0 / users


def work_alone(
    start: Array, end: Array, transfer: Array, link_offsets: Array, link_ids: Array, in_turn: int
) -> npt.NDArray[np.float64]:
    """Return how long each edge of a transfer would take alone, given when all were under way, ns.

    Args:
        start: when each edge's transfer starts, ns since some origin.
        end: when the edge is over.
        transfer: the transfer of each edge, 0 and up.
        link_offsets: where the links of each transfer begin in `link_ids`.
        link_ids: the links.
        in_turn: 1 if a link serves its transfers one after the other, 0 if all at once, at equal shares.
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
    transfers = len(link_offsets) - 1
    work, rate = np.zeros(count, np.float64), np.zeros(transfers, np.float64)
    busy, since = np.zeros(transfers, np.int64), np.zeros(transfers, np.float64)
    running, edges = np.zeros(transfers, np.int64), np.zeros(count, np.int64)
    transfers_running = edges_running = 0
    now = 0.0
    for event in order:
        passed = moment[event] - now
        for a in range(edges_running):
            work[edges[a]] += passed * rate[transfer[edges[a]]]
        now = moment[event]
        edge = event % count
        one = transfer[edge]
        if event < count:
            edges[edges_running] = edge
            edges_running += 1
            busy[one] += 1
            if busy[one] == 1:
                since[one] = now
                running[transfers_running] = one
                transfers_running += 1
        else:
            edges_running = _dropped(edges, edges_running, edge)
            busy[one] -= 1
            if busy[one] == 0:
                transfers_running = _dropped(running, transfers_running, one)
        _set_rates(running, transfers_running, since, link_offsets, link_ids, in_turn, rate)
    return work


@njit(cache=True)
def _dropped(items: Array, count: int, item: int) -> int:
    """Remove an item from the first `count` items, and return how many are left."""
    for i in range(count):
        if items[i] == item:
            items[i] = items[count - 1]
            return count - 1
    return count


@njit(cache=True)
def _next_end(edges: Array, count: int, left: Array, rate: Array, transfer: Array, now: float) -> tuple[int, float]:
    """Return which of the first `count` running edges ends first, -1 if none does, and when, ns."""
    soonest, when = -1, np.inf
    for a in range(count):
        speed = rate[transfer[edges[a]]]
        if left[edges[a]] <= 0 or speed > 0:
            over = now if left[edges[a]] <= 0 else now + left[edges[a]] / speed
            if over < when:
                when, soonest = over, int(edges[a])
    return soonest, when


@njit(cache=True)
def shared_lags(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917 - a graph as arrays; compiled as one loop
    in_offsets: Array, out_offsets: Array, target: Array, lag: Array, gap: Array, head: Array,
    transfer: Array, work: Array, least: Array, link_offsets: Array, link_ids: Array, in_turn: int,
) -> Array:  # fmt: skip
    """Return the lag of each edge, ns, when transfers that overlap share their links; other lags are as given.

    Args:
        in_offsets: where the edges into each vertex begin, in some order by target.
        out_offsets: where the edges that leave each vertex begin.
        target: of each edge, in the order of their sources.
        lag: of each edge, ns.
        gap: how much later than its predecessors allow each vertex happens, ns.
        head: when each vertex without predecessors happens, ns since some origin.
        transfer: the transfer of each edge; -1 for edges that are no transfer.
        work: how long each transfer's edge takes alone, ns; not read for other edges.
        least: how long each transfer's edge takes at least, ns; not read for other edges.
        link_offsets: where the links of each transfer begin in `link_ids`.
        link_ids: the links.
        in_turn: 1 if a link serves its transfers one after the other, 0 if all at once, at equal shares.
    """
    vertices, transfers = len(gap), len(link_offsets) - 1
    out = lag.copy()
    waiting = np.diff(in_offsets)
    best = np.full(vertices, np.iinfo(np.int64).min // 2)
    rate, busy, since = np.zeros(transfers), np.zeros(transfers, np.int64), np.zeros(transfers)
    left, began = work.copy(), np.zeros(len(lag), np.float64)
    running, edges = np.zeros(transfers, np.int64), np.zeros(max(int((transfer >= 0).sum()), 1), np.int64)
    transfers_running = edges_running = 0
    ready = [(np.int64(0), np.int64(-1))]
    ready.pop()
    for first in range(vertices):
        if waiting[first] == 0:
            heapq.heappush(ready, (np.int64(head[first]), np.int64(first)))
    now = 0.0
    while len(ready) > 0 or edges_running > 0:
        soonest, when = _next_end(edges, edges_running, left, rate, transfer, now)
        at_vertex = len(ready) > 0 and ready[0][0] <= when
        moment = max(now, float(ready[0][0])) if at_vertex else when
        for a in range(edges_running):
            left[edges[a]] -= (moment - now) * rate[transfer[edges[a]]]
        now = moment
        changed = False
        if at_vertex:
            time, reached = heapq.heappop(ready)
            for edge in range(out_offsets[reached], out_offsets[reached + 1]):
                one = transfer[edge]
                if one < 0:
                    end = target[edge]
                    best[end] = max(best[end], time + lag[edge])
                    waiting[end] -= 1
                    if waiting[end] == 0:
                        heapq.heappush(ready, (best[end] + gap[end], np.int64(end)))
                    continue
                edges[edges_running] = edge
                edges_running += 1
                began[edge] = time
                busy[one] += 1
                changed = True
                if busy[one] == 1:
                    since[one] = now
                    running[transfers_running] = one
                    transfers_running += 1
        else:
            edges_running = _dropped(edges, edges_running, soonest)
            one, end = transfer[soonest], target[soonest]
            out[soonest] = max(np.int64(np.rint(now - began[soonest])), least[soonest])
            best[end] = max(best[end], np.int64(began[soonest]) + out[soonest])
            waiting[end] -= 1
            if waiting[end] == 0:
                heapq.heappush(ready, (best[end] + gap[end], np.int64(end)))
            busy[one] -= 1
            if busy[one] == 0:
                transfers_running = _dropped(running, transfers_running, one)
                changed = True
        if changed:
            _set_rates(running, transfers_running, since, link_offsets, link_ids, in_turn, rate)
    return out
