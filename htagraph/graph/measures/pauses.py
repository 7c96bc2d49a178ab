"""`graph.pauses` and `graph.device_pauses`: when streams, or whole devices, had nothing to do, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, joined
from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.graph.measures.earlier_work import begins_of_devices
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["CAUSES", "KERNEL_PAUSE_US", "IdleCause", "Pauses", "device_pauses_of", "stream_pauses_of"]

_OF_DEVICES = 2
"""Numbers that identify a whole device: its rank and its number; a stream has its own as well."""
IdleCause: TypeAlias = Literal["host_wait", "kernel_wait", "other"]
"""Why a device is idle: it waits for the host, pauses between queued kernels, or waits for something else."""
CAUSES: Final[tuple[IdleCause, ...]] = get_args(IdleCause)
KERNEL_PAUSE_US = LIMITS.queued_ns / 1000
"""The longest pause between two queued kernels that counts as `kernel_wait`, µs.

Source: the default of `consecutive_kernel_delay` in HTA's idle time breakdown.
Doubled, pauses of 30 to 60 µs without a known reason count as `kernel_wait` in place of `other`; `host_wait` stays."""


@dataclass(frozen=True, eq=False)
class Pauses:
    """One row per kernel or copy that follows another one in the same place, by place and start.

    A place is a stream, or a device of a rank as a whole: that pauses while none of its streams is at work.
    """

    places: npt.NDArray[np.int64]
    """A row per place with device work, ascending: rank, device, stream; of whole devices no stream."""
    window: npt.NDArray[np.int64]
    """By place: the time from the start of its first work to the end of its last work, ns; the window of a device
    begins when the device has ended all work that was begun before the recording."""
    place: npt.NDArray[np.int64]
    """Index into `places`."""
    before: npt.NDArray[np.int64]
    """The work that started before this one."""
    last: npt.NDArray[np.int64]
    """The work that ended last before the pause; on ties the one that started later."""
    after: npt.NDArray[np.int64]
    """The work that ends the pause."""
    free: npt.NDArray[np.int64]
    """When all earlier work of the place had ended, ns on the rank's own clock."""
    begin: npt.NDArray[np.int64]
    """The same moment on the common clock, ns."""
    length: npt.NDArray[np.int64]
    """From then to the start of the work, ns; 0 where they overlap, which is no pause."""
    by_host: npt.NDArray[np.bool_]
    """Whether the host enqueued the work too late (`causes`)."""

    def __len__(self) -> int:
        return len(self.after)

    def causes(self, kernel_pause_us: float = KERNEL_PAUSE_US) -> npt.NDArray[np.int64]:
        """Return the cause of each pause, an index into `CAUSES`.

        ``host_wait``: for most of the pause, the launch call had not returned, or the LAUNCH edge, which is binding,
        did not allow the kernel to start yet. A kernel that starts long after that waited for something else.
        ``kernel_wait``: neither, and the pause is short enough to be the device's own between two kernels. ``other``:
        nothing in the graph explains a pause this long. `kernel_pause_us` is the longest pause between two queued
        kernels that is the device's own, µs.
        """
        short = np.where(self.length < kernel_pause_us * 1000, CAUSES.index("kernel_wait"), CAUSES.index("other"))
        return np.where(self.by_host, CAUSES.index("host_wait"), short)


def stream_pauses_of(graph: DependencyGraph) -> Pauses:
    """Return what `graph.pauses` is: the pauses of each stream, by rank, device, stream and start."""
    streams = [(graph.lanes[graph.activities.lane[rows[0]]], rows) for rows in graph.activities.by_stream()]
    return _pauses(graph, [((lane.rank, lane.device, lane.stream), rows) for lane, rows in streams], 3)


def device_pauses_of(graph: DependencyGraph) -> Pauses:
    """Return what `graph.device_pauses` is: when no stream of a device was at work, by rank, device and start.

    The pauses of a rank sum to the idle time of ``htagraph.idle_breakdown(graph, by="rank")``.
    """
    acts = graph.activities
    work = np.flatnonzero(acts.on_device)
    ordinals = np.array([lane.device for lane in graph.lanes], np.int64)
    rank = acts.rank[work]
    device = ordinals[acts.lane[work]]
    order = np.lexsort((acts.start[work], device, rank))
    work = work[order]
    place = np.stack((rank[order], device[order]), axis=1)
    bounds = np.flatnonzero(np.diff(place, axis=0).any(axis=1)) + 1
    devices = []
    if len(work):
        keys = place[np.append(0, bounds)].tolist()
        rows = np.split(work, bounds)
        devices = [((number, ordinal), runs) for (number, ordinal), runs in zip(keys, rows, strict=True)]
    return _pauses(graph, devices, _OF_DEVICES)


def _pauses(graph: DependencyGraph, works: Sequence[tuple[tuple[int, ...], Array]], width: int) -> Pauses:
    """Return the pauses of some places, given as (what identifies the place, its device work by start)."""
    acts = graph.activities
    works = sorted(works, key=lambda place: place[0])
    before, last, after, free = joined((_of_place(graph, rows) for _, rows in works), 4)
    window = np.array([_lasts(graph, rows, width) for _, rows in works], np.int64)
    place = np.repeat(np.arange(len(works)), [len(rows) - 1 for _, rows in works])
    pause = acts.start[after] - free
    if width == _OF_DEVICES:
        begins = begins_of_devices(graph, after)
        pause[acts.start[after] <= begins] = 0  # until then, the device ran work begun earlier
    return Pauses(
        np.array([key for key, _ in works], np.int64).reshape(-1, width), window, place, before, last, after, free,
        graph.time[2 * after] - acts.start[after] + free, np.maximum(0, pause), _by_host(graph, after, free),
    )  # fmt: skip


def _lasts(graph: DependencyGraph, rows: Array, width: int) -> int:
    """Return how long the window of a place lasts, ns, given its work by start."""
    acts = graph.activities
    first = rows[:1]
    begins = acts.start[first]
    if width == _OF_DEVICES:
        begins = np.maximum(begins, begins_of_devices(graph, first))
    end = acts.end[rows].max()
    return int(end - begins[0])


def _of_place(graph: DependencyGraph, work: Array) -> tuple[Array, Array, Array, Array]:
    """Return the columns `before`, `last`, `after` and `free` of one place, given its work by start."""
    end = graph.activities.end[work]
    busy_until = np.maximum.accumulate(end)
    last = np.maximum.accumulate(np.where(end == busy_until, np.arange(len(work)), 0))
    return work[:-1], work[last[:-1]], work[1:], busy_until[:-1]


def _by_host(graph: DependencyGraph, work: Array, free: Array) -> npt.NDArray[np.bool_]:
    """Return whether the host enqueued each piece of work too late, for a place that was free at some moment."""
    acts, binding = graph.activities, graph.binding[2 * work]
    pause = np.maximum(0, acts.start[work] - free)
    call = acts.cause[work]
    launched = (call >= 0) & (acts.kind[call] == ActivityKind.LAUNCH)
    under_way = launched & (np.minimum(acts.end[call], acts.start[work]) - free > pause / 2)
    allowed = acts.start[work] - graph.gap[2 * work]
    by_launch = (binding >= 0) & (graph.edges.kind[binding] == EdgeKind.LAUNCH)
    return under_way | (by_launch & (allowed - free > pause / 2))
