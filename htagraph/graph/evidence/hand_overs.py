"""Which thread of a rank wakes which other one: producers and consumers with a queue, futures of a thread pool.

No event records it. The evidence is regularity: whenever a thread has been idle for long, its next operator of one name
starts shortly after the end of an operator of one name on other threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import ADDED, ANNOTATIONS, ActivityKind
from htagraph.core.parents import outermost
from htagraph.graph.evidence.call_sites import grouped, mixed
from htagraph.graph.evidence.host_threads import HostThread
from htagraph.graph.evidence.job import Job

__all__ = ["HandOvers", "hand_overs"]

Array = npt.NDArray[np.int64]

_MIN_IDLE_NS = 500_000
"""ns: a thread that ran no operator for at least this long may have been woken. Chosen: above all Python between two
operators of a thread that others interrupt (0.1 to 0.3 ms in recordings). Doubled, short waits are no evidence."""
_MAX_DELAY_NS = 1_000_000
"""ns: the longest time from the end of the operator to the start of the one that it wakes. Measured: 0.1 to 0.25 ms for
queues and futures of Python. Doubled, more pairs agree by chance."""
_MAX_DELAY_SHARE = 0.25
"""The same as a share of the idle time. Chosen: by chance, an end lies in the last quarter of a wait in one of four
waits. Doubled, more pairs agree by chance."""
_MIN_AGREE = 0.9
"""Share of the waits after which the same name must have ended shortly before. Chosen: the first and the last wait of a
recording may differ. It cannot be doubled."""
_MIN_WAITS = 3
"""How many waits must agree. Chosen: of two, each may be chance. Doubled, recordings of five steps show no
hand-over."""
_NEAREST = 4
"""How many ends before a wake-up are looked at for the names that may have caused it. Chosen: threads that work in step
end together. Doubled, more threads may end between cause and effect."""
_WOKEN = 80
"""Percent: confidence that the operator that ended woke the thread, where it did so in all waits; it falls with the
share that agrees. Chosen: times fit, but no id proves it. Used by `acyclic`, and shown. It cannot be doubled."""
_COUNTED = 65
"""Percent: the same where the thread did not wait, and counting says whose result it took. Chosen: below `_WOKEN`. Used
likewise. It cannot be doubled."""


class HandOvers(NamedTuple):
    """One row per operator of a thread that takes what another thread's operator made."""

    source: Array
    """The vertex of the end of the operator that made it."""
    target: Array
    """The vertex of the first moment of the thread that may depend on it."""
    confidence: Array
    """Percent."""


def hand_overs(job: Job, threads: Sequence[HostThread]) -> HandOvers:
    """Return who takes what was made on which other thread, among threads of one rank.

    Args:
        job: the job.
        threads: the threads between which nothing else is known.
    """
    none = np.zeros(0, np.int64)
    parts = [HandOvers(none, none, none)]
    if len(threads) > 1:
        lanes = [thread.lane for thread in threads]
        items = _operators(job, lanes)
        lane = job.activities.lane[items]
        for thread in threads:
            made = items[lane != thread.lane]
            made = made[np.argsort(job.moment(2 * made + 1), kind="stable")]
            takes = _Takes.of(job, thread, items[lane == thread.lane])
            parts += [each for rows in grouped(takes.key) if (each := _taken(job, takes, rows, made)) is not None]
    return HandOvers(*map(np.concatenate, zip(*parts, strict=True)))


def _operators(job: Job, lanes: Sequence[int]) -> Array:
    """Return the operators and calls on some threads that are inside no other one, by thread and start."""
    acts = job.activities
    idle = (*ANNOTATIONS, *ADDED, ActivityKind.PYTHON)
    wanted = np.isin(acts.lane, lanes) & ~acts.on_device & ~np.isin(acts.kind, idle)
    items = outermost(acts.parent, wanted)
    return items[np.lexsort((job.moment(2 * items), acts.lane[items]))]


class _Takes(NamedTuple):
    """The operators of a thread that may have waited for another thread."""

    thread: HostThread
    item: Array
    key: npt.NDArray[np.uint64]
    """Equal for operators of one name behind operators of one name."""
    start: Array
    """When each starts, ns."""
    idle: Array
    """For how long the thread had run nothing before, ns."""

    @staticmethod
    def of(job: Job, thread: HostThread, items: Array) -> _Takes:
        name, start, end = job.activities.name[items], job.moment(2 * items), job.moment(2 * items + 1)
        return _Takes(thread, items[1:], mixed(name[1:], name[:-1]), start[1:], start[1:] - end[:-1])


def _taken(job: Job, takes: _Takes, rows: Array, made: Array) -> HandOvers | None:
    """Return the hand-overs to the operators of one key, None if nothing regular precedes them.

    Args:
        job: the job.
        takes: the operators of a thread.
        rows: those of one key, in order.
        made: the operators of the other threads, by their end.
    """
    waited = np.flatnonzero(takes.idle[rows] >= _MIN_IDLE_NS)
    if len(waited) < _MIN_WAITS or not len(made):
        return None
    start, limit = takes.start[rows[waited]], np.minimum(_MAX_DELAY_NS, _MAX_DELAY_SHARE * takes.idle[rows[waited]])
    name, ends = job.activities.name[made], job.moment(2 * made + 1)
    last = np.searchsorted(ends, start, side="right")[:, None] - 1 - np.arange(_NEAREST)
    best: tuple[float, float, Array, Array, Array] | None = None
    for each in np.unique(name[np.maximum(last, 0)]).tolist():
        of_name = np.flatnonzero(name == each)
        at = np.searchsorted(ends[of_name], start, side="right") - 1
        delay = start - ends[of_name[at]]
        agrees = (at >= 0) & (delay <= limit)
        share = float(agrees.mean())
        if agrees.sum() < _MIN_WAITS or share < _MIN_AGREE:
            continue
        candidate = (share, -float(np.median(delay[agrees])), made[of_name], waited[agrees], at[agrees])
        best = max(best, candidate, key=lambda of: of[:2]) if best else candidate
    if best is None:
        return None
    share, _, made, woken, by = best
    return _counted(job, takes, rows, made, (woken, by, round(_WOKEN * share)))


def _counted(job: Job, takes: _Takes, rows: Array, made: Array, seen: tuple[Array, Array, int]) -> HandOvers:
    """Return the hand-overs to all operators of a key: those seen, and where counting tells, those that did not wait.

    Args:
        job: the job.
        takes: the operators of a thread.
        rows: those of one key, in order.
        made: the operators of one name on other threads, by their end.
        seen: (which of `rows` waited, for which of `made`, percent of confidence).
    """
    woken, by, sure = seen
    target = _first_moments(takes, rows[woken], job.moment(2 * made[by] + 1))
    found = HandOvers(2 * made[by] + 1, target, np.full(len(by), sure))
    each = round((by[-1] - by[0]) / max(1, int(woken[-1] - woken[0])))  # how many are made for one that takes
    offset = by - each * woken
    usual = int(np.median(offset))
    if each < 1 or (offset == usual).mean() < _MIN_AGREE:
        return found
    taker = np.repeat(np.arange(len(rows)), each)
    maker = each * taker + usual - np.tile(np.arange(each), len(rows))
    known = (maker >= 0) & (maker < len(made))
    taker, maker = taker[known], maker[known]
    in_time = job.moment(2 * made[maker] + 1) <= takes.start[rows[taker]]
    new = in_time & ~(np.isin(taker, woken) & np.isin(maker, by))
    taker, maker = taker[new], maker[new]
    counted = HandOvers(2 * made[maker] + 1, 2 * takes.item[rows[taker]], np.full(len(maker), _COUNTED))
    return HandOvers(*map(np.concatenate, zip(found, counted, strict=True)))


def _first_moments(takes: _Takes, rows: Array, since: Array) -> Array:
    """Return the vertex of the thread's first moment since each time (ns), at the latest the start of each operator."""
    thread = takes.thread
    at = np.searchsorted(thread.times, since)
    return np.where(thread.times[at] < takes.start[rows], thread.vertices[at], 2 * takes.item[rows])
