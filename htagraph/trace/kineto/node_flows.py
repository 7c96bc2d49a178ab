"""Flows between nodes of CUDA graphs → pairs of events (awaited, waiting).

A flow names the lanes on which both nodes are shown, the end of the node that was waited for and the start of the node
that waited. Both belong to one launch of the graph. Moments are written as float64 of µs, which rounds the end of an
event otherwise than its start and duration: the grain of float64 at these times is the tolerance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask
from htagraph.core.errors import IssueLog
from htagraph.trace.columns import Events, Flows, NodeDependencies

__all__ = ["begun", "node_dependencies"]

_GRAINS = 2
"""Grains of float64 by which the end of a node differs from the flow that leaves it: start, duration and the flow's own
time are rounded by half a grain each, and to ns. Doubled, nodes of one launch that end within some ns are mixed up."""


class _Keyed(NamedTuple):
    """Some events in the order of a group and a moment."""

    rows: Ints
    """Rows of the table, by group, moment and duration."""
    group: Ints
    moment: Ints


class _Left(NamedTuple):
    """The starts of flows."""

    lane: Array
    time: Ints
    launch: Ints
    """The correlation id of the node at the flow's end; -1 for none."""
    target: Ints
    """The node at the flow's end."""


def node_dependencies(
    table: Events,
    flows: Flows,
    log: IssueLog,
    *,
    whole: bool = True,
) -> NodeDependencies:
    """Return the dependencies that flows between nodes draw.

    Args:
        table: the complete events; times as in `flows`.
        flows: ends of the flows between nodes.
        log: gets an issue about flows whose ends are no events, if the table is `whole`.
        whole: whether no event of the file was left out of the table.
    """
    begin, finish = flows.whole()
    launch = table.arg("correlation")
    nodes = np.flatnonzero((table.arg("graph_node_id") > 0) & (launch > 0))
    target = begun(
        table,
        nodes,
        flows.lane[finish],
        flows.time[finish],
    )
    left = _Left(
        flows.lane[begin],
        flows.time[begin],
        np.where(target >= 0, launch[target], -1),
        target,
    )
    source = _ended(table, nodes, launch, left)
    is_matched = (source >= 0) & (target >= 0)
    if whole:
        unpaired = len(flows.id) - 2 * len(begin)
        detail = "dependencies between nodes of CUDA graphs whose nodes are not in the file; left out"
        log.add(
            "dependency_unmatched",
            detail,
            int(np.count_nonzero(~is_matched)) + unpaired,
        )
    return NodeDependencies(
        table.index[source[is_matched]],
        table.index[target[is_matched]],
    )


def begun(table: Events, rows: Ints, lane: Array, time: Array) -> Ints:
    """Return the longest event that begins on each lane at each moment; -1 for none.

    Args:
        table: the complete events.
        rows: the events to choose from. Of events with the same times, the first one counts.
        lane: the lane of each end of a flow.
        time: its moment, ns.
    """
    of_lane = table.lane[rows].astype(np.int64)
    start = table.start[rows]
    duration = table.duration[rows]
    order = np.lexsort((-rows, duration, start, of_lane))
    keyed = _Keyed(
        rows[order],
        of_lane[order],
        start[order],
    )
    place = _last_until(keyed, lane, time)
    if not len(rows):
        return np.full(len(time), -1, np.int64)
    fits = _at(keyed, place, lane) & (keyed.moment[place] == time)
    return np.where(fits, keyed.rows[place], -1)


def _ended(table: Events, nodes: Ints, launch: Array, left: _Left) -> Ints:
    """Return the node of the target's launch that ends nearest to each flow's start on its lane; -1 for none."""
    if not len(nodes) or not len(left.time):
        return np.full(len(left.time), -1, np.int64)
    lanes = int(max(table.lane[nodes].max(), left.lane.max())) + 1
    launches, number = np.unique(launch[nodes], return_inverse=True)
    group = number * lanes + table.lane[nodes]
    order = np.lexsort((table.duration[nodes], table.end[nodes], group))
    keyed = _Keyed(
        nodes[order],
        group[order],
        table.end[nodes][order],
    )
    wanted_launch = np.minimum(
        np.searchsorted(launches, left.launch),
        len(launches) - 1,
    )
    wanted = wanted_launch * lanes + left.lane
    grain = _grain_ns(left.time)
    place = _last_until(keyed, wanted, left.time + grain)
    # a node of length 0 is not what it waits for itself
    place = np.where(
        keyed.rows[np.maximum(place, 0)] == left.target,
        place - 1,
        place,
    )
    fits = _at(keyed, place, wanted) & (np.abs(keyed.moment[place] - left.time) <= grain)
    return np.where(fits, keyed.rows[place], -1)


def _grain_ns(time: Ints) -> int:
    """Return by how much float64 of µs may move the latest of some times, ns."""
    latest_us = float(np.abs(time).max(initial=0)) / 1000
    return 1 + int(np.ceil(_GRAINS * np.spacing(latest_us) * 1000))


def _last_until(keyed: _Keyed, group: Array, moment: Array) -> Ints:
    """Return the place of the last event of each group up to each moment, or the place before the group's first."""
    count = len(keyed.rows)
    groups = np.concatenate([keyed.group, group])
    moments = np.concatenate([keyed.moment, moment])
    is_asked = np.arange(len(groups)) >= count
    order = np.lexsort((is_asked, moments, groups))
    before = np.cumsum(~is_asked[order]) - 1
    place = np.empty(len(group), np.int64)
    asked = is_asked[order]
    place[order[asked] - count] = before[asked]
    return place


def _at(keyed: _Keyed, place: Ints, group: Array) -> Mask:
    """Return whether the event at each place is of each group."""
    if not len(keyed.rows):
        return np.zeros(len(place), np.bool_)
    return (place >= 0) & (keyed.group[place] == group)
