"""Sends and receives that were started at once, as one kernel without arguments: the only peer of each batch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.graph.activities import Activities

__all__ = ["only_peer", "values"]


def only_peer(acts: Activities, rows: Array, described_by: Array, nameless: Array) -> npt.NDArray[np.int64]:
    """Return the rank that each of some kernels exchanged data with, by the calls that named it; -1 where none did.

    Sends and receives that are started at once (batch_isend_irecv) are recorded one by one without a kernel, and run
    as one kernel without arguments, which the end of the batch launches. Only batches with one peer count.

    Args:
        acts: of all ranks.
        rows: the activities that communicate.
        described_by: the activity that has the arguments of each row, -1 for none.
        nameless: which rows have no arguments, and no name that is a collective's.
    """
    out = np.full(len(rows), -1, np.int64)
    argument = acts.args.get("src_rank")
    kernels = np.flatnonzero(nameless & (acts.cause[rows] >= 0))
    if argument is None or not len(kernels):
        return out
    transfers = np.setdiff1d(argument.rows, np.concatenate((described_by, rows))).astype(np.int64)  # without a kernel
    launches = np.unique(acts.cause[rows[kernels]]).astype(np.int64)
    low, high = _peers_before(acts, transfers, launches)
    at = np.searchsorted(launches, acts.cause[rows[kernels]])
    out[kernels] = np.where(low[at] == high[at], high[at], -1)
    return out


def _peers_before(acts: Activities, transfers: Array, launches: Array) -> tuple[Array, Array]:
    """Return the lowest and the highest peer of the transfers recorded on a thread since the launch before each launch.

    A batch is those transfers and the launch that ends it; without any, the lowest is above the highest.
    """
    source, target = values(acts, "src_rank", transfers), values(acts, "dst_rank", transfers)
    rank = acts.rank[transfers]
    peer = np.where(source == rank, target, np.where(target == rank, source, -1))
    calls = np.concatenate((transfers, launches))
    is_launch = np.arange(len(calls)) >= len(transfers)
    order = np.lexsort((is_launch, acts.start[calls], acts.lane[calls]))
    begins_batch = np.concatenate(([False], is_launch[order][:-1] | (np.diff(acts.lane[calls][order]) != 0)))
    batch = np.empty(len(calls), np.int64)
    batch[order] = np.cumsum(begins_batch)
    low, high = np.full(len(calls), np.iinfo(np.int64).max), np.full(len(calls), -1, np.int64)
    np.minimum.at(low, batch[~is_launch], peer)
    np.maximum.at(high, batch[~is_launch], peer)
    return low[batch[is_launch]], high[batch[is_launch]]


def values(acts: Activities, column: str, rows: Array, missing: int = -1) -> Array:
    """Return an argument of some activities, `missing` where they lack it or `rows` is -1."""
    argument = acts.args.get(column)
    if argument is None or not len(argument.rows):
        return np.full(len(rows), missing, np.int64)
    order = np.argsort(argument.rows, kind="stable")
    keys = argument.rows[order]
    at = np.minimum(np.searchsorted(keys, rows), len(keys) - 1)
    return np.where(keys[at] == rows, argument.values[order][at], np.array(missing).astype(argument.values.dtype))
