"""How much of the time of communication is waiting and not transfer: a change of transfers leaves it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, coded
from htagraph.core.computing import once
from htagraph.core.kinds import COMMUNICATION, TRANSFERS, EdgeKind, of_kinds
from htagraph.core.statistics import least_of

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.queries.weights import State

__all__ = ["end_spread", "waiting"]


_OWN_SHARES = ("all_to_all", "send_recv")
"""Operations in which each member receives a message of its own, so that their ends differ by message."""
_MAX_END_SPREAD_NS = 5_000
"""How much later than the first member of a collective another one ends, at most, without this being transfer, ns.

Chosen: the members of one ring end within a few µs of each other (the simulator draws up to 1.5 µs, its traces show
1.25 µs at the 99th percentile); recorded traces show more, which clock errors explain. Doubled, up to 5 µs more of each
transfer do not scale with the network, on the members that end late."""


def end_spread(state: State, rows: Array) -> npt.NDArray[np.int64]:
    """Return how much of each lag is the spread of ends, ns: how much later the member ends than the first one.

    These few microseconds (at most `_MAX_END_SPREAD_NS`) do not depend on the network and are no transfer. In an
    all-to-all and between a send and a receive there is none: each member receives a message of its own.
    """
    late = _late_ends(state.graph)
    if late is None:
        return np.zeros(len(rows), np.int64)
    return np.clip(late[rows].astype(np.int64), 0, np.maximum(state.lag[rows], 0))


@once
def _late_ends(graph: DependencyGraph) -> npt.NDArray[np.int16] | None:
    """Return how much later than the first member of its collective the member of each edge ends, up to the most, ns.

    0 for all that is no collective whose members end together; None where there is none.
    """
    matches, edges = graph.matches, graph.edges
    if matches is None or not matches.count:
        return None
    every = np.flatnonzero((edges.kind == EdgeKind.COLLECTIVE) & (edges.activity >= 0))
    if not len(every):
        return None
    together = np.zeros(len(graph.activities) + 1, np.bool_)
    together[matches.activity] = ~np.isin(np.array(matches.op), _OWN_SHARES)[matches.collective]
    late = np.minimum(edges.lag[every] - least_of(edges.lag[every], edges.source[every]), _MAX_END_SPREAD_NS)
    out = np.zeros(len(edges), np.int16)
    out[every] = np.where(together[edges.activity[every]], late, 0)
    return out


def waiting(state: State, rows: Array) -> npt.NDArray[np.int64]:
    """Return how much of each lag is waiting and not transfer, ns.

    Where the partners of a communication are not in the graph, the shortest one of a name and size is taken as pure
    transfer, and the rest of longer ones as waiting.
    """
    fixed = end_spread(state, rows)
    alone, most = _waits_alone(state.graph)
    if len(alone) and len(rows):
        at = np.minimum(np.searchsorted(rows, alone), len(rows) - 1)
        known = rows[at] == alone
        fixed[at[known]] = np.clip(most[known], 0, np.maximum(state.lag[alone[known]], 0))
    return fixed


@once
def _waits_alone(graph: DependencyGraph) -> tuple[Array, Array]:
    """Return (the edges of communication whose partners are not in the graph, how much of each is waiting, ns)."""
    acts, edges = graph.activities, graph.edges
    matched = np.zeros(len(acts) + 1, np.bool_)
    matched[edges.activity[of_kinds(edges.kind, TRANSFERS)]] = True
    alone = np.append(of_kinds(acts.kind, COMMUNICATION), False) & ~matched
    if not alone.any():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    rows = np.flatnonzero(alone[edges.activity])
    pure = _class_minimum(graph, np.flatnonzero(alone))[edges.activity[rows]]
    return rows, edges.lag[rows] - np.minimum(pure, edges.lag[rows])


def _class_minimum(graph: DependencyGraph, rows: Array) -> npt.NDArray[np.int64]:
    """Return, for each activity of `rows`, the shortest recorded duration of its name and size, ns; 0 for others."""
    acts = graph.activities
    size = (acts.arg(column)[rows] for column in ("in_msg_nelems", "out_msg_nelems"))
    out = np.zeros(len(acts), np.int64)
    if len(rows):
        out[rows] = least_of(acts.duration[rows], coded(acts.name[rows], *size))
    return out
