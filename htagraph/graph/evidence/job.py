"""RecordedJob: the input of the edge rules."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask
from htagraph.core.errors import Issue
from htagraph.core.naming import DEFAULT_NAMING, Naming, is_backward, names_that
from htagraph.graph.activities import Activities, Lane, common_time
from htagraph.trace.columns import Trace

if TYPE_CHECKING:
    from htagraph.graph.clocks import Clock
    from htagraph.graph.evidence.calls import Calls
    from htagraph.graph.evidence.device_waits import Polled
    from htagraph.graph.evidence.host_communication import HostCalls
    from htagraph.graph.evidence.loads import Loads
    from htagraph.graph.evidence.outside import Outside
    from htagraph.graph.evidence.serial_devices import SerialWork
    from htagraph.graph.evidence.waits import AwaitRows, Returns
    from htagraph.graph.matches import Matches

__all__ = ["RecordedJob"]


@dataclass(frozen=True, eq=False)
class RecordedJob:
    """The input of the edge rules: the activities of all ranks, and the order of starts and ends on each thread."""

    activities: Activities
    names: tuple[str, ...]
    lanes: tuple[Lane, ...]
    traces: Mapping[int, Trace]
    boundaries: npt.NDArray[np.int32]
    """The vertices of host activities, sorted by (lane, time)."""
    at_work: npt.NDArray[np.int32]
    """For each of `boundaries`: the innermost operator or call that runs right after it (annotations do not count), or
    -1."""
    issues: tuple[Issue, ...]
    naming: Naming = DEFAULT_NAMING
    clocks: tuple[Clock, ...] = ()
    matches: Matches | None = None
    refused: dict[str, tuple[Issue, ...]] = field(default_factory=dict)
    """By rule: issues about all that it left out. The rules fill it while they run."""
    returns: dict[int, Returns] = field(default_factory=dict, init=False)
    """By rank: how soon its blocking calls return. `waits.returns` fills it."""

    @cached_property
    def calls(self) -> Calls:
        """The runtime calls in the order in which they enqueued work."""
        from htagraph.graph.evidence.calls import Calls

        return Calls.of(self)

    @cached_property
    def await_rows(self) -> AwaitRows:
        """The cuda_sync rows, which name by ids who waited for which work."""
        from htagraph.graph.evidence.waits import await_rows

        return await_rows(self.calls)

    @cached_property
    def polled(self) -> Polled:
        """Which moments of host threads wait for the device by asking again and again."""
        from htagraph.graph.evidence.device_waits import polled

        return polled(self.calls)

    @cached_property
    def host_calls(self) -> HostCalls:
        """Which operator asked for each piece of communication on host threads."""
        from htagraph.graph.evidence.host_communication import host_calls

        return host_calls(self.activities, self.names, self.naming)

    @cached_property
    def loaders(self) -> npt.NDArray[np.int32]:
        """For each stretch of `slices`: the annotation or operator of the data loader whose time it is, or -1."""
        from htagraph.graph.evidence.threads import loaders

        return loaders(self)

    @cached_property
    def loads(self) -> Loads:
        """How long calls of data loaders take, and the pace of the loaders' workers."""
        from htagraph.graph.evidence.loads import loads

        return loads(self)

    @cached_property
    def outside(self) -> Outside:
        """Waits of threads for processes outside the recording."""
        from htagraph.graph.evidence.outside import outside

        return outside(self)

    @cached_property
    def serial_work(self) -> SerialWork:
        """Kernels and waits behind work of another stream, on devices that execute one thing at a time."""
        from htagraph.graph.evidence.serial_devices import serial_work

        return serial_work(self)

    @cached_property
    def forward_thread(self) -> Ints:
        """For each activity: the thread whose forward operator it is the backward of, 0 or less for none."""
        return self.activities.arg("fwd_thread_id")

    @cached_property
    def backward_names(self) -> Mask:
        """Which of `names` are names of backward operators."""
        return names_that(is_backward, self.names)

    def boundaries_of(self, rank: int) -> slice:
        """Return which of `boundaries` are of a rank's threads, as a slice."""
        of_rank = self.activities.of_rank(rank)
        first, last = (bisect_left(self.boundaries, 2 * row) for row in (of_rank.start, of_rank.stop))
        return slice(first, last)

    @cached_property
    def worker_loads(self) -> tuple[Array, Array]:
        """The stretches in which a thread waits for workers of a data loader: (moments they begin at, its regions)."""
        from htagraph.graph.evidence.threads import worker_loads

        return worker_loads(self)

    @cached_property
    def time(self) -> Ints:
        """The time of each vertex on the common clock, ns."""
        return common_time(self.activities, self.clocks)

    def stream_lanes(self, rank: Array, device: Array, stream: Array) -> Ints:
        """Return the lane of each (rank, device, stream), -1 where the job has none."""
        keys, place = np.unique(np.stack((rank, device, stream)), axis=1, return_inverse=True)
        found = [self._streams.get((own, ordinal, number), -1) for own, ordinal, number in keys.T.tolist()]
        return np.array(found, np.int64)[place.ravel()]

    def forget(self) -> None:
        """Free the evidence, most of which refers to the job: both would stay until Python looks for circles."""
        for name in vars(self).keys() - self.__dataclass_fields__.keys() - {"polled", "time"}:
            del vars(self)[name]

    @cached_property
    def _streams(self) -> dict[tuple[int, int, int], int]:
        return {(lane.rank, lane.device, lane.stream): i for i, lane in enumerate(self.lanes) if lane.stream >= 0}

    def moment(self, vertex: Array) -> Ints:
        """Return when vertices were recorded, on the common clock, ns."""
        return self.time[vertex] if self.clocks else self.activities.moment(vertex)

    @cached_property
    def slices(self) -> tuple[Array, Array, Array]:
        """The stretches between successive moments of each thread: (source, target, running activity or -1)."""
        source, target = self.boundaries[:-1], self.boundaries[1:]
        lane = self.activities.lane
        of_boundary = lane[self.boundaries >> 1]
        same = of_boundary[:-1] == of_boundary[1:]
        return source[same], target[same], self.at_work[:-1][same]
