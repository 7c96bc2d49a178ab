"""Devices that execute one thing at a time, whatever the number of their streams.

A device of this kind (MTIA) records as rows of its own for how long each stream waited. Where kernels of several
streams never overlap though the rows show that a stream waited for nothing else, a kernel waited for the device itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Ints, joined
from htagraph.core.kinds import KERNELS, ActivityKind, of_kinds
from htagraph.core.naming import is_device_wait, names_that
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.tolerances import LIMITS

__all__ = ["SerialWork", "serial_work"]


class SerialWork(NamedTuple):
    """Kernels and recorded waits behind work of another stream, on devices that execute one thing at a time."""

    before: Ints
    """The kernel at whose end the device turned to another stream."""
    after: Ints
    """The kernel that it then executed."""
    ended: Ints
    """The kernel at whose end a recorded wait of another stream was over."""
    waited: Ints
    """The recorded wait."""


def serial_work(job: RecordedJob) -> SerialWork:
    """Return kernels and waits behind work of another stream, on devices whose kernels never overlap.

    Args:
        job: the recorded job.
    """
    acts = job.activities
    is_wait = names_that(is_device_wait, job.names)[acts.name]
    is_wait &= acts.kind == ActivityKind.DEVICE_OTHER
    is_wait &= acts.duration > 0
    if not is_wait.any():
        return _no_work()
    device = _device_numbers(job)
    is_kernel = of_kinds(acts.kind, KERNELS)
    by_device = list[SerialWork]()
    for number in np.unique(device[is_wait]).tolist():
        is_here = device == number
        kernels = np.flatnonzero(is_kernel & is_here)
        waits = np.flatnonzero(is_wait & is_here)
        by_device.append(_of_device(job, kernels, waits))
    return SerialWork(*joined(by_device, len(SerialWork._fields)))


def _no_work() -> SerialWork:
    """Return the result for a job, or a device, that shows no serial execution."""
    return SerialWork(*joined([], len(SerialWork._fields)))


def _device_numbers(job: RecordedJob) -> Ints:
    """Return a number for the device of each activity; devices of different ranks have different numbers."""
    devices = np.array([[lane.rank, lane.device] for lane in job.lanes], np.int64)
    _, device_of_lane = np.unique(devices, axis=0, return_inverse=True)
    numbers: Ints = device_of_lane.ravel()[job.activities.lane]
    return numbers


def _of_device(job: RecordedJob, kernels: Ints, waits: Ints) -> SerialWork:
    """Return the kernels and waits of one device behind work of another stream; none if its kernels ever overlap.

    Args:
        job: the recorded job.
        kernels: the kernels of the device.
        waits: the recorded waits of streams of the device.
    """
    acts = job.activities
    order = kernels[np.lexsort((acts.end[kernels], acts.start[kernels]))]
    before = order[:-1]
    after = order[1:]
    turns = acts.lane[before] != acts.lane[after]
    is_serial = bool((acts.end[before] <= acts.start[after]).all())
    if not is_serial or int(turns.sum()) < LIMITS.proof:
        return _no_work()
    place = np.searchsorted(acts.end[order], acts.end[waits], side="right") - 1
    ended = order[np.maximum(place, 0)]
    is_over = place >= 0
    is_over &= acts.end[ended] > acts.start[waits]
    is_over &= acts.lane[ended] != acts.lane[waits]
    is_over &= acts.end[waits] - acts.end[ended] <= 2 * LIMITS.queued_ns
    following = order[np.minimum(place + 1, len(order) - 1)]
    runs_next = (place + 1 < len(order)) & (acts.start[following] < acts.end[waits])
    is_over &= ~runs_next  # a wait that lasts into the next kernel was for something else
    return SerialWork(before[turns], after[turns], ended[is_over], waits[is_over])
