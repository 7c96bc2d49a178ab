"""Flows from operators to the times of their work on a device → one External id for both ends of each flow.

The profiler before Kineto (`torch.autograd.profiler` with `use_kineto=False`, and PyTorch up to 1.7) recorded no calls.
Each of its flows begins where an operator begins and ends where an event of the device begins.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from htagraph.core.arrays import Array, Ints
from htagraph.trace.columns import Events, Flows, SparseColumn

__all__ = ["with_operators"]

_EXTERNAL = "external_id"


def with_operators(table: Events, flows: Flows) -> Events:
    """Return the events, in which the ends of each flow have one External id: the work names the operator.

    Args:
        table: the complete events; times as in `flows`. An event that has an External id already keeps the id.
        flows: ends of the flows from operators to work.

    Returns:
        The same events. A flow without an event at both ends links nothing.
    """
    starts = np.flatnonzero(flows.is_start)
    ends = np.flatnonzero(~flows.is_start)
    _, from_start, from_end = np.intersect1d(
        flows.id[starts],
        flows.id[ends],
        return_indices=True,
    )
    operator = _begun(table, flows, starts[from_start])
    work = _begun(table, flows, ends[from_end])
    is_linked = (operator >= 0) & (work >= 0) & (operator != work)
    operator = operator[is_linked]
    work = work[is_linked]
    external = table.arg(_EXTERNAL).copy()
    is_free = (external[operator] < 0) & (external[work] < 0)
    number = operator[is_free] + 1
    external[operator[is_free]] = number
    external[work[is_free]] = number
    rows = np.flatnonzero(external >= 0).astype(np.int32)
    column = SparseColumn(rows, external[rows], -1)
    return replace(table, args={**table.args, _EXTERNAL: column})


def _begun(table: Events, flows: Flows, end: Ints) -> Ints:
    """Return the event that begins on the lane and at the moment of each end of a flow; -1 for none.

    The longest event counts where several events begin there.
    """
    if not len(table):
        return np.full(len(end), -1, np.int64)
    lane = table.lane.astype(np.int64)
    order = np.lexsort((-table.duration, table.start, lane))
    moments, place = np.unique(
        np.concatenate([table.start, flows.time[end]]),
        return_inverse=True,
    )
    place = place.ravel()
    key = lane * len(moments) + place[: len(table)]
    wanted = flows.lane[end].astype(np.int64) * len(moments) + place[len(table) :]
    return _first_of(key[order], order, wanted)


def _first_of(key: Array, rows: Ints, wanted: Array) -> Ints:
    """Return the first row of each wanted key, given the ascending keys of some rows; -1 for none."""
    place = np.searchsorted(key, wanted)
    is_inside = place < len(key)
    first = np.minimum(place, len(key) - 1)
    fits = is_inside & (key[first] == wanted)
    return np.where(fits, rows[first], -1)
