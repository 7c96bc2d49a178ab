"""Communication that a host thread asked for and waits for later: what its thread does in between is work.

An asynchronous send or receive on a host is recorded from the call to the return of its wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind

if TYPE_CHECKING:
    from htagraph.graph.activities import Activities

__all__ = ["blocked_since", "worked_until"]


def blocked_since(acts: Activities, rows: Array) -> npt.NDArray[np.int64]:
    """Return since when the thread of each piece of communication did nothing but wait for it, ns on the rank's clock.

    That is the end of the last operator that the thread began meanwhile, or the end of the last other communication
    that it waited for, if that is later; it is its own end where an operator still runs then, and its start where
    there is neither, as on streams and on a backend's own threads.

    Args:
        acts: the activities of all ranks.
        rows: pieces of communication.

    Example:
        >>> import htagraph as hg
        >>> acts = hg.load("data/demo").activities
        >>> kernels = np.flatnonzero(acts.kind == ActivityKind.COMMUNICATION)
        >>> bool((blocked_since(acts, kernels) == acts.start[kernels]).all())  # a stream does nothing else
        True
    """
    since = np.minimum(worked_until(acts, rows), acts.end[rows])
    every = np.flatnonzero(acts.kind == ActivityKind.HOST_COMMUNICATION)
    if not len(every):
        return since
    ends = np.sort(_moments(acts, every, acts.end[every]))
    own = acts.kind[rows] == ActivityKind.HOST_COMMUNICATION
    before = np.searchsorted(ends, _moments(acts, rows, acts.end[rows])) - 1
    key = np.maximum(_moments(acts, rows, since), np.where(own & (before >= 0), ends[before], 0))
    return np.asarray(since + key - _moments(acts, rows, since))


def worked_until(acts: Activities, rows: Array) -> npt.NDArray[np.int64]:
    """Return when the last operator ended that the thread of each piece of communication began during it, ns.

    What a backend's own thread runs inside a piece of communication is part of that. Where there is no other operator,
    it is the start of the communication.

    Args:
        acts: the activities of all ranks.
        rows: pieces of communication.

    Example:
        >>> import htagraph as hg
        >>> acts = hg.load("data/demo").activities
        >>> worked_until(acts, np.flatnonzero(acts.kind == ActivityKind.HOST_COMMUNICATION)).tolist()  # it has devices
        []
    """
    until = acts.start[rows].astype(np.int64)
    ops = np.flatnonzero(acts.kind == ActivityKind.OP)
    own = np.flatnonzero((acts.kind[rows] == ActivityKind.HOST_COMMUNICATION) & ~np.isin(rows, acts.parent[ops]))
    if not len(own) or not len(ops):
        return until
    members = rows[own]
    ops = ops[np.isin(acts.lane[ops], acts.lane[members])]
    begins = _moments(acts, ops, acts.start[ops])
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], acts.end[ops[order]]
    first = np.searchsorted(begins, _moments(acts, members, acts.start[members]), side="right")
    last = np.searchsorted(begins, _moments(acts, members, acts.end[members]))
    some = last > first
    if some.any():
        spans = np.stack([first[some], last[some]], axis=1).ravel()
        until[own[some]] = np.maximum.reduceat(np.append(ends, 0), spans)[::2]
    return until


def _moments(acts: Activities, rows: Array, time: Array) -> npt.NDArray[np.int64]:
    """Return numbers that order moments on some activities' lanes by lane, then by time (ns on the rank's clock)."""
    origin = int(acts.start[: acts.ranked].min())
    span = int(acts.end[: acts.ranked].max()) - origin + 1
    return np.asarray(acts.lane[rows].astype(np.int64) * span + time - origin)
