"""The cuda_sync rows of a trace: what waited for what, by ids, where the profiler recorded it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.naming import names_like
from htagraph.graph.evidence.calls import Calls
from htagraph.trace.columns import Table

__all__ = ["AwaitRows", "await_rows"]

_NO_STREAM = 4_294_967_295
"""How Kineto of 2023 wrote "no stream": -1 as 32 bits without a sign."""


@dataclass(frozen=True, eq=False)
class AwaitRows:
    """The cuda_sync rows of a job, which name by ids what waited for what."""

    rank: npt.NDArray[np.int64]
    correlation: npt.NDArray[np.int64]
    """The correlation id of the waiting call."""
    position: npt.NDArray[np.int64]
    """The position of the waiting call, or where it would be if it is not in the file."""
    lane: npt.NDArray[np.int64]
    """The stream that waits or is waited for; -1 for none or all."""
    record_lane: npt.NDArray[np.int64]
    """The stream where the awaited event was recorded; -1 if unknown."""
    record: npt.NDArray[np.int64]
    """Position of the call that recorded the event; -1 if unknown."""
    awaits_event: npt.NDArray[np.bool_]
    """Whether the call waited for an event, not for a stream or a device."""


def await_rows(calls: Calls) -> AwaitRows:
    """Return the cuda_sync rows of all ranks."""
    streams = {(lane.rank, lane.device, lane.stream): i for i, lane in enumerate(calls.job.lanes)}
    parts = []
    for rank, trace in sorted(calls.job.traces.items()):
        which = trace.in_categories("cuda_sync")
        if which.any():
            parts.append(_await_rows(calls, rank, trace.events.take(which), trace.names, streams))
    names = AwaitRows.__dataclass_fields__
    empty = [np.zeros(0, bool if name == "awaits_event" else np.int64) for name in names]
    return AwaitRows(*(np.concatenate(column) for column in zip(empty, *parts, strict=True)))


def _await_rows(
    calls: Calls, rank: int, table: Table, names: tuple[str, ...], streams: dict[tuple[int, int, int], int]
) -> tuple[Array, ...]:
    """Return the columns of one rank.

    Args:
        calls: the calls of the job.
        rank: the rank.
        table: its cuda_sync rows.
        names: the texts of their names.
        streams: the lane of each (rank, device, stream).
    """
    device = np.maximum(table.arg("device"), 0)

    def lanes(column: str) -> Array:
        on, stream, place = _distinct_pairs(device, table.arg(column))
        numbers = [
            -1 if number in (-1, _NO_STREAM) else streams.get((rank, ordinal, number), -1)
            for ordinal, number in zip(on, stream, strict=True)
        ]
        return np.array(numbers, np.int64)[place]

    correlation, record = table.arg("correlation"), table.arg("wait_on_record")
    record_at = np.where(record > 0, calls.by_correlation(rank, np.maximum(record, 0)), -1)
    awaits_event = names_like(calls.job.naming.event_sync, names, table.name)
    return (
        np.full(len(table), rank, np.int64), correlation, calls.by_correlation(rank, correlation), lanes("stream"),
        lanes("wait_on_stream"), record_at, awaits_event,
    )  # fmt: skip


def _distinct_pairs(first: Array, second: Array) -> tuple[list[int], list[int], Array]:
    """Return the distinct pairs of two columns, as two lists, and the number of each row's pair among them."""
    pairs, place = np.unique(np.stack((first, second)), axis=1, return_inverse=True)
    return pairs[0].tolist(), pairs[1].tolist(), place.ravel()
