"""Set the duration: each selected activity takes a given time."""

from __future__ import annotations

from typing import Any

import numpy as np

from htagraph.core.arrays import marked
from htagraph.core.kinds import TRANSFERS, ActivityKind
from htagraph.queries.change_scope import no_match
from htagraph.queries.weights import State, checked, of_kind, own_time, weighed
from htagraph.whatif.rewire import with_scope_note

__all__ = ["set_duration"]

_MAX_DURATION_NS = 3600 * 10**9
"""The longest duration that can be set, ns.

Chosen: an hour is longer than any activity, and thousands of them still fit into 64 bits of ns. Doubled, only the
error for a slip of units comes later."""


def set_duration(state: State, /, *, ns: float, **criteria: Any) -> State:  # noqa: ANN401 - those of graph.select
    """Return the state in which each selected activity takes `ns`.

    The self time of an operator becomes `ns`, shared over its slices in proportion. The transfer of a collective
    becomes `ns` and its wait is derived; device work, and communication without known partners, takes `ns` as a whole.

    Args:
        ns: at least 0.
        **criteria: which activities; see `DependencyGraph.select`. Regions have no duration of their own.

    Raises:
        SelectionError: nothing with time of its own meets the criteria, or `ns` is negative or not finite.
    """
    total = round(checked(ns, "ns", most=_MAX_DURATION_NS))
    time = own_time(state, criteria, loader=True)
    rows = time.edges
    if not len(rows):
        raise no_match(state.graph, criteria)
    owner, lag = _operators(state, rows, criteria), np.maximum(state.lag[rows], 0)
    transfer = of_kind(state.graph, *TRANSFERS)[rows]
    slices = np.flatnonzero(~transfer)
    new = np.full(len(rows), total, np.int64)  # a transfer, whatever else its member does meanwhile
    new[slices] = _shared_out(owner[slices], lag[slices], total)
    beside = slices[np.isin(owner[slices], owner[transfer])]
    new[beside] = np.minimum(lag[beside], new[beside])  # what a member does by itself is no part of its transfer
    return with_scope_note(weighed(state, rows, new), state, time, criteria, "set")


def _operators(state: State, rows: np.ndarray, criteria: dict[str, Any]) -> np.ndarray:
    """Return whose time each lag is: that of Python frames in a named operator is the operator's."""
    graph = state.graph
    owner = graph.edges.activity[rows].astype(np.int64)
    if criteria.get("name") is None or criteria.get("op") is not None:
        return owner
    kind = graph.activities.kind
    frames = np.flatnonzero(kind[owner] == ActivityKind.PYTHON)
    caller = graph.tree.nearest(kind != ActivityKind.PYTHON, owner[frames])
    named = marked(graph.select(**criteria).activities, len(kind) + 1)
    owner[frames] = np.where(named[caller], caller, owner[frames])
    return owner


def _shared_out(owner: np.ndarray, lag: np.ndarray, total: int) -> np.ndarray:
    """Return `total` for each owner, shared out over its slices in proportion to their lags."""
    if not len(owner):
        return lag
    order = np.argsort(owner, kind="stable")
    _, first, count = np.unique(owner[order], return_index=True, return_counts=True)
    weight = lag[order].astype(np.float64)
    whole = np.repeat(np.add.reduceat(weight, first), count)
    done = np.cumsum(weight) - np.repeat(np.cumsum(weight)[first] - weight[first], count)
    upto = np.rint(total * np.divide(done, whole, out=np.zeros(len(done)), where=whole > 0)).astype(np.int64)
    upto[first + count - 1] = total
    share = np.diff(upto, prepend=0)
    share[first] = upto[first]
    out = np.empty_like(lag)
    out[order] = share
    return out
