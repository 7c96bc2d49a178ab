"""The work of each device in the order of starts: how long the device was busy before a moment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask
from htagraph.core.intervals import Intervals, union
from htagraph.core.kinds import DEVICE_WORK, of_kinds
from htagraph.graph.evidence.job import RecordedJob

__all__ = ["NEVER", "WorkInOrder", "devices_in_order"]

NEVER = np.iinfo(np.int64).min // 2
"""Before any recorded moment, ns; no threshold, and differences from it stay within int64."""


@dataclass(frozen=True, eq=False)
class WorkInOrder:
    """Work of one device in the order of starts, on the common clock."""

    rows: Ints
    """The activities."""

    start: Ints
    """When each one starts, ns."""

    end: Ints
    """When each one ends, ns."""

    @cached_property
    def busy(self) -> Intervals:
        """When any of the work runs."""
        return union(self.start, self.end)

    def only(self, chosen: Mask) -> WorkInOrder:
        """Return a part of the work."""
        return WorkInOrder(
            self.rows[chosen],
            self.start[chosen],
            self.end[chosen],
        )

    def busy_before(self, moments: Array) -> Ints:
        """Return for how long the device was at work before each moment, ns.

        Args:
            moments: ns on the common clock, in any order.

        Returns:
            The length of the part of `busy` that lies before each moment.
        """
        begin, end = self.busy
        if not len(begin):
            return np.zeros(len(moments), np.int64)
        total = np.append(0, np.cumsum(end - begin))
        count = np.searchsorted(begin, moments, side="right")
        last_end = end[np.maximum(count - 1, 0)]
        still_to_run = np.maximum(0, last_end - moments)
        return total[count] - np.where(count > 0, still_to_run, 0)

    def ends_last(self, moments: Array) -> tuple[Ints, Ints]:
        """Return the work that started before each moment and ends last.

        Args:
            moments: ns on the common clock, in any order.

        Returns:
            The activity of each moment and its end, ns; -1 and `NEVER` where nothing started before.
        """
        if not len(self.rows):
            nothing = np.full(len(moments), -1)
            return nothing, np.full(len(moments), NEVER)
        busy_until = np.maximum.accumulate(self.end)
        is_last = self.end == busy_until
        places = np.arange(len(self.end))
        last = np.maximum.accumulate(np.where(is_last, places, 0))
        count = np.searchsorted(self.start, moments)
        place = last[np.maximum(count - 1, 0)]
        return (
            np.where(count > 0, self.rows[place], -1),
            np.where(count > 0, self.end[place], NEVER),
        )


def devices_in_order(job: RecordedJob) -> list[WorkInOrder]:
    """Return the kernels, copies and sets of each device of each rank.

    Args:
        job: the recorded job.

    Returns:
        One `WorkInOrder` per device; one without work for a job without device work.

    Example:
        >>> import numpy as np
        >>> work = WorkInOrder(np.array([7, 9]), np.array([0, 20]), np.array([10, 25]))
        >>> work.busy_before(np.array([5, 15, 22])).tolist()
        [5, 10, 12]
    """
    acts = job.activities
    is_work = of_kinds(acts.kind, DEVICE_WORK)
    rows = np.flatnonzero(is_work)
    ordinals = np.array([lane.device for lane in job.lanes], np.int64)
    rank = acts.rank[rows].astype(np.int64)
    device = rank << 32 | (ordinals[acts.lane[rows]] + 1)
    order = np.lexsort((job.time[2 * rows], device))
    bounds = np.flatnonzero(np.diff(device[order])) + 1
    return [
        WorkInOrder(
            work,
            job.time[2 * work],
            job.time[2 * work + 1],
        )
        for work in np.split(rows[order], bounds)
    ]
