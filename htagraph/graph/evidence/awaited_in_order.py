"""The collectives of waits that neither ids nor times resolve: each once, in the order of their launches.

A program that launches collectives ahead of their use, such as the all-gathers of sharded training, waits for each
collective once. Where all collectives were over in time, no wait lasted, and any place of the program may wait for any
collective; where one place has waits of several purposes, no single hypothesis fits it. The purpose of the construct
decides then: results are used in the order in which they were asked for, and sums of gradients after all else, as only
the optimizer needs them.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from htagraph.core.arrays import Array, Mask, joined
from htagraph.core.naming import collective_op, names_that
from htagraph.graph.evidence.calls import Calls, grouped, mixed
from htagraph.graph.tolerances import LIMITS

__all__ = ["behind_the_next", "in_order_of_launch", "launches_of_collectives"]


def launches_of_collectives(calls: Calls, rank: int, main: int) -> Array:
    """Return the positions of a rank's launches of collectives on other streams than the one that computes."""
    of_rank = calls.of_rank(rank)
    beside = calls.communicates[of_rank] & (calls.launched[of_rank] != main)
    return of_rank.start + np.flatnonzero(beside)


def in_order_of_launch(calls: Calls, waits: Array, launches: Array) -> tuple[Array, Array]:
    """Return (wait, launch of the collective that it is for) of waits of the computing stream, both as positions.

    Args:
        calls: the calls of the job.
        waits: the positions of waits of one rank that nothing else resolves.
        launches: the positions of launches of collectives that no other wait is for.
    """
    chosen = _oldest_pending(waits, launches, _sums(calls, launches))
    is_resolved = chosen >= 0
    waits = waits[is_resolved]
    chosen = chosen[is_resolved]
    possible = _never_refuted(calls, waits, chosen)
    return waits[possible], chosen[possible]


def behind_the_next(calls: Calls, launches: Array) -> tuple[Array, Array]:
    """Return (position of the first call behind which a collective is awaited, its launch) of gathered data.

    Where calls of events were not recorded, a program that gathers one piece ahead uses a piece once it has asked for
    the next one: work that is launched behind the next gather waits for this one.

    Args:
        calls: the calls of the job.
        launches: the positions of launches of collectives of one rank without a wait, in order.
    """
    gathers = launches[_gathers(calls, launches)]
    pairs: list[tuple[Array, Array]] = []
    for rows in grouped(calls.launched[gathers]):
        of_stream = gathers[rows]
        behind_next = of_stream[1:] + 1
        pairs.append((of_stream[:-1], behind_next))
    chosen, waits = joined(pairs, 2)
    next_gather = np.maximum(waits - 1, 0)
    same_step = calls.step[chosen] == calls.step[next_gather]
    chosen = chosen[same_step]
    waits = waits[same_step]
    possible = _never_refuted(calls, waits, chosen)
    return waits[possible], chosen[possible]


def _gathers(calls: Calls, launches: Array) -> Mask:
    """Return which launched collectives bring data together that was asked for ahead of its use."""
    is_gather = names_that(lambda name: collective_op(name) == "all_gather", calls.job.names)
    return is_gather[_names(calls, launches)]


def _names(calls: Calls, launches: Array) -> Array:
    """Return the names of launched collectives."""
    work = calls.enqueued.first_from(calls.launched[launches], launches)
    return calls.job.activities.name[work]


def _sums(calls: Calls, launches: Array) -> Mask:
    """Return which launched collectives are sums, as sums of gradients are."""
    is_sum = names_that(lambda name: "reduce" in collective_op(name), calls.job.names)
    return is_sum[_names(calls, launches)]


def _oldest_pending(waits: Array, launches: Array, sums: Mask) -> Array:
    """Return for each wait the launch of the oldest collective that is pending, sums last; -1 for none."""
    chosen = np.full(len(waits), -1)
    needed: deque[int] = deque()
    needed_last: deque[int] = deque()
    coming = 0
    for number in np.argsort(waits).tolist():
        while coming < len(launches) and launches[coming] < waits[number]:
            pending = needed_last if sums[coming] else needed
            pending.append(int(launches[coming]))
            coming += 1
        pending = needed or needed_last
        if pending:
            chosen[number] = pending.popleft()
    return chosen


def _never_refuted(calls: Calls, waits: Array, launches: Array) -> Mask:
    """Return which waits are for collectives of a place that, in nearly all steps, ended before the wait did."""
    acts = calls.job.activities
    main = _main_lane(calls, waits)
    source = calls.enqueued.first_from(calls.launched[launches], launches)
    target = calls.enqueued.first_from(np.full(len(waits), main), waits)
    has_work = (source >= 0) & (target >= 0)
    late = has_work & (acts.end[source] > acts.start[target] + LIMITS.tick_ns)
    possible = has_work.copy()
    places = mixed(calls.site[waits], calls.site[launches])
    for rows in grouped(places):
        possible[rows] &= late[rows].mean() <= LIMITS.damaged
    return possible


def _main_lane(calls: Calls, waits: Array) -> int:
    """Return the stream of the waits' rank that computes; -1 without a wait."""
    if not len(waits):
        return -1
    rank = int(calls.rank[waits[0]])
    return int(calls.lanes[rank][0])
