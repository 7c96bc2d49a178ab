"""Flows from operators to the times of their work on a device → one External id for both ends of each flow.

The profiler before Kineto (`torch.autograd.profiler` with `use_kineto=False`, and PyTorch up to 1.7) recorded no calls.
Each of its flows begins where an operator begins and ends where an event of the device begins.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from htagraph.trace.columns import Events, Flows, SparseColumn
from htagraph.trace.kineto.node_flows import begun

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
    begin, finish = flows.whole()
    rows = np.arange(len(table))
    operator = begun(table, rows, flows.lane[begin], flows.time[begin])
    work = begun(table, rows, flows.lane[finish], flows.time[finish])
    is_linked = (operator >= 0) & (work >= 0) & (operator != work)
    operator = operator[is_linked]
    work = work[is_linked]
    external = table.arg(_EXTERNAL).copy()
    is_free = (external[operator] < 0) & (external[work] < 0)
    number = operator[is_free] + 1
    external[operator[is_free]] = number
    external[work[is_free]] = number
    linked = np.flatnonzero(external >= 0).astype(np.int32)
    column = SparseColumn(linked, external[linked], -1)
    return replace(table, args={**table.args, _EXTERNAL: column})
