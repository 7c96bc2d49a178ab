"""Readings in which what nobody waited for took nearly as long as it could.

A data loader whose workers had each batch ready, and a message that was there before its receiver asked, took some time
that the recording does not show. It shows how long they took at most, because they were over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.computing import once
from htagraph.core.kinds import ActivityKind, EdgeKind, Provenance
from htagraph.core.naming import has_loader_workers, names_that, transfer_direction
from htagraph.graph.activities import Edges
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import NEVER, State, of_kind
from htagraph.whatif.rewire import with_waits

__all__ = ["SHARE", "Waits", "slow_loaders", "slow_messages", "with_slow_loaders", "with_slow_messages"]


SHARE = 0.9
"""What took an unknown part of a time is taken to have taken this share of it. Source: nine of ten values that are
evenly spread from 0 to 1 are less. It cannot be doubled; at 1, each change of a job whose loader has workers might
gain nothing."""
_CONFIDENCE = 1
"""Percent: confidence of a wait that was not seen. Chosen: it is in no graph that is shown, and no result depends on
it. Doubled, nothing changes."""


class Waits(NamedTuple):
    """Waits that the recording does not show."""

    source: Array
    """The vertex from which each is counted."""
    target: Array
    """The vertex that waits."""
    took: Array
    """The longest that each may last, ns."""
    like: Array
    """The edge whose change each follows."""


_NONE = Waits(*(np.zeros(0, np.int64) for _ in range(4)))


def with_slow_loaders(state: State) -> State | None:
    """Return the state in which data loaders that were never waited for need nearly the time of a step per batch.

    None if there are none: the loader has no workers, or it was waited for, so that its time is known.
    """
    return _with(state, slow_loaders(state.graph))


@once
def slow_loaders(graph: DependencyGraph) -> Waits:
    """Return the batches of loaders that were never waited for, each from where the loader was free for it."""
    edges = graph.edges
    acts = graph.activities
    loads = np.flatnonzero(of_kind(graph, EdgeKind.DATALOADER) & (edges.activity >= 0))
    loads = loads[names_that(has_loader_workers, graph.names)[acts.name[edges.activity[loads]]]]
    produced = edges.provenance[loads] == Provenance.INFERRED
    lane, name = acts.lane[edges.activity[loads]], acts.name[edges.activity[loads]]
    loader = lane.astype(np.int64) * max(len(graph.names), 1) + name
    own = ~produced & ~np.isin(loader, loader[produced])
    fetches, loader = loads[own], loader[own]
    order = np.lexsort((-edges.lag[fetches], edges.activity[fetches]))
    order = order[np.unique(edges.activity[fetches[order]], return_index=True)[1]]  # the longest stretch of each batch
    order = order[np.lexsort((graph.time[edges.target[fetches[order]]], loader[order]))]
    fetches, loader = fetches[order], loader[order]
    follows = np.flatnonzero(np.diff(loader) == 0)
    batch, before = fetches[follows + 1], edges.target[fetches[follows]]
    took = graph.time[edges.target[batch]] - graph.time[before]
    took = np.minimum(took, _of_group(np.median, loader[follows + 1], took))
    return Waits(before, edges.target[batch], took, batch)


def with_slow_messages(state: State) -> State | None:
    """Return the state in which messages between hosts took nearly as long as their receivers left them; None if none.

    Messages of one size to one receiver take equally long: the one that had least time limits them all, so that nothing
    changes for those of which one was waited for.
    """
    return _with(state, slow_messages(state.graph))


@once
def slow_messages(graph: DependencyGraph) -> Waits:
    """Return the messages between hosts, each from the begin of its send."""
    acts, edges, matches = graph.activities, graph.edges, graph.matches
    on_host = acts.kind == ActivityKind.HOST_COMMUNICATION
    if matches is None or not on_host.any():
        return _NONE
    receives = names_that(lambda name: transfer_direction(name) < 0, graph.names)[acts.name]
    pair = np.full(len(acts), -1, np.int64)
    pair[matches.activity] = matches.collective
    sender, size = np.full(matches.count + 1, -1, np.int64), np.full(matches.count + 1, -1, np.int64)
    sends = on_host & ~receives & (pair >= 0)
    sender[pair[sends]] = np.flatnonzero(sends)
    size[matches.collective] = matches.bytes
    owner = edges.activity
    rows = np.flatnonzero(of_kind(graph, EdgeKind.P2P) & (owner >= 0))
    rows = rows[(edges.target[rows] == 2 * owner[rows] + 1) & (on_host & receives)[owner[rows]]]
    rows = rows[sender[pair[owner[rows]]] >= 0]
    start = 2 * sender[pair[owner[rows]]]
    took = graph.time[edges.target[rows]] - graph.time[start]
    alike = np.stack([acts.rank[owner[rows]], acts.rank[start >> 1], size[pair[owner[rows]]]])
    _, number = np.unique(alike, axis=1, return_inverse=True)
    took = np.minimum(took, _of_group(np.min, number.ravel(), took))
    return Waits(start[took > 0], edges.target[rows][took > 0], took[took > 0], rows[took > 0])


def _of_group(statistic: Callable[[Array], Any], number: Array, values: Array) -> npt.NDArray[np.int64]:
    """Return for each value the statistic of all values with its number."""
    out = np.zeros(len(values), np.int64)
    for each in np.unique(number):
        out[number == each] = statistic(values[number == each])
    return out


def _with(state: State, waits: Waits) -> State | None:
    """Return the state with more waits; None if there are none, or if they exclude what was recorded."""
    source, target, took, like = waits
    now, recorded = state.lag[like], state.graph.edges.lag[like]
    kept = now > NEVER
    if not kept.any():
        return None
    source, target, took = source[kept], target[kept], (SHARE * took[kept]).astype(np.int64)
    factor = np.divide(now, recorded, out=np.ones(len(now)), where=recorded > 0)[kept]
    new = Edges.of(
        source, target, took, EdgeKind.THREAD, Provenance.INFERRED, confidence=_CONFIDENCE,
        activity=state.graph.edges.activity[like][kept],
    )  # fmt: skip
    return with_waits(
        state, new, np.rint(took * factor).astype(np.int64), "hidden time"
    )  # None: two exclude each other
