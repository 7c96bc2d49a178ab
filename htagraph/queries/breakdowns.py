"""Breakdowns: durations grouped by name, over ranks or over classes, and time by operator, module or annotation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array, marked, run_starts
from htagraph.core.kinds import ActivityKind
from htagraph.core.parents import ancestors, deepest_first, depth_first
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import bound_times, only_waiting

__all__ = ["OwnerOf", "kind_words", "statistics", "time_by_owner"]

OwnerOf: TypeAlias = Callable[[DependencyGraph, npt.ArrayLike], npt.NDArray[np.int64]]
"""Returns the owner of each of some activities, -1 for none: `operator_of`, `module_of`."""
_SUMMED = ("count", "host_us", "host_self_us", "device_count", "device_us", "device_total_us")
"""The figures of a group of owners."""
_BOUNDS = ("at_most_us", "total_at_most_us")
"""The parts of device times that are upper bounds, as their durations were cut; left out where no duration was."""


def statistics(durations: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return one row per group, in the order of first appearance, with the statistics of its durations.

    A group has equal `keys`; durations are in ``ns`` (int64). The columns are the keys, ``count`` (int64),
    ``total_us``, ``mean_us``, ``min_us``, ``max_us`` and ``std_us`` (float64; sample standard deviation, 0 for a single
    one). Where any duration has a ``bound_ns`` (int64: the duration if it is an upper bound, else 0), the sum of these
    is ``at_most_us``.
    """
    table = durations.groupby(list(keys), sort=False)["ns"].agg(["count", "sum", "mean", "min", "max", "std"])
    times_us = table.drop(columns="count").astype("float64").fillna(0.0) / 1000
    times_us.columns = pd.Index(["total_us", "mean_us", "min_us", "max_us", "std_us"])
    if "bound_ns" in durations and durations["bound_ns"].any():
        times_us["at_most_us"] = durations.groupby(list(keys), sort=False)["bound_ns"].sum() / 1000
    return table[["count"]].join(times_us).reset_index()


def time_by_owner(graph: DependencyGraph, owner_of: OwnerOf, members: Array, group: Array) -> pd.DataFrame:
    """Return the host and device time of owners, summed by group. Each moment of work has one owner, or none.

    Python frames that only wait for another thread or process do no work.

    Args:
        graph: the job.
        owner_of: returns the owner of each activity; for an owner's parent, the next owner around that owner.
        members: which activities are owners even if they own no time (bool for every activity).
        group: the group that each activity belongs to as an owner (int for every activity).

    Returns:
        One row per rank and group, and one per rank for what has no owner: ``rank`` (int64), ``owner`` (int64: an
        activity of the group, -1 for none), `_SUMMED` and ``share_percent``. Rows come by rank, most device time first,
        then most self time, then by owner. Device time that is an upper bound is part of the times, but neither of the
        order nor of shares; `_BOUNDS` have this part, where any duration was cut.
    """
    acts = graph.activities
    ranks = np.array(graph.ranks, np.int64)
    nobody = len(acts) + np.searchsorted(ranks, acts.rank)  # a row per rank, after those of the activities
    size = len(acts) + len(ranks)
    self_ns = np.where(acts.on_device | only_waiting(graph), 0, graph.own_time)
    device, host = np.flatnonzero(acts.on_device), np.flatnonzero(self_ns > 0)
    of_device, of_host = (_places(owner_of(graph, rows), nobody[rows]) for rows in (device, host))
    own = np.bincount(of_device, acts.duration[device], size).astype(np.int64)
    self_of = np.bincount(of_host, self_ns[host], size).astype(np.int64)
    bound = np.bincount(of_device, bound_times(graph)[device], size).astype(np.int64)
    counts = np.bincount(of_device, minlength=size)
    owners, above = _owners(graph, owner_of, _asked(members, of_device, of_host))
    outermost, total = _outermost(owners, above, group), _with_inner(above, own)[owners]
    total_bound = _with_inner(above, bound)[owners]
    table = pd.DataFrame(
        {
            "rank": acts.rank[owners].astype(np.int64),
            "group": group[owners],
            "owner": owners,
            "count": 1,
            "host_us": np.where(outermost, acts.duration[owners], 0),
            "host_self_us": self_of[owners],
            "device_count": counts[owners],
            "device_us": own[owners],
            "device_total_us": np.where(outermost, total, 0),
            "at_most_us": bound[owners],
            "total_at_most_us": np.where(outermost, total_bound, 0),
        }
    )
    rest = slice(len(acts), size)
    nobodys = pd.DataFrame(
        {
            "rank": ranks,
            "group": -1,
            "owner": -1,
            "count": 0,
            "host_us": 0,
            "host_self_us": self_of[rest],
            "device_count": counts[rest],
            "device_us": own[rest],
            "device_total_us": own[rest],
            "at_most_us": bound[rest],
            "total_at_most_us": bound[rest],
        }
    )
    nobodys = nobodys[(nobodys["host_self_us"] > 0) | (nobodys["device_count"] > 0)]
    return _grouped(pd.concat((table, nobodys), ignore_index=True))


def kind_words(graph: DependencyGraph, owners: Array) -> Array:
    """Return the word for the kind of each owner, empty for -1."""
    words = np.array([*(kind.label for kind in ActivityKind), ""], object)
    kinds = np.append(graph.activities.kind.astype(np.int64), len(ActivityKind))
    return words[kinds[owners]]


def _places(owner: Array, nobody: Array) -> Array:
    return np.where(owner >= 0, owner, nobody)


def _asked(members: Array, *places: Array) -> Array:
    """Return the activities that are owners or at one of the places, ascending."""
    asked = np.asarray(members, np.bool_).copy()
    for each in places:
        asked[each[each < len(asked)]] = True
    return np.flatnonzero(asked)


def _owners(graph: DependencyGraph, owner_of: OwnerOf, some: Array) -> tuple[Array, Array]:
    """Return (these owners and all owners around them, the next owner around each owner, else -1)."""
    above = owner_of(graph, graph.tree.parent)
    known = marked(some, len(above)) | ancestors(above, some)
    return np.flatnonzero(known), np.where(known, above, -1)


def _with_inner(above: Array, own: Array) -> Array:
    """Return the time of each owner, including that of all owners inside it."""
    total = own[: len(above)].copy()
    for level in deepest_first(above):
        np.add.at(total, above[level], total[level])
    return total


def _outermost(owners: Array, above: Array, group: Array) -> Array:
    """Return which owners are inside no other owner of their group."""
    up = above[owners]
    up = np.where(up >= 0, np.searchsorted(owners, up), -1)  # what is around an owner is an owner
    first, size = depth_first(up, np.argsort(up, kind="stable"))
    order = np.lexsort((first, group[owners]))
    family = np.cumsum(marked(run_starts(group[owners][order]), len(order))) * 2 * len(order)
    ends = np.maximum.accumulate(family + (first + size)[order])
    outermost = np.ones(len(owners), np.bool_)
    outermost[order[1:]] = ends[:-1] <= (family + first[order])[1:]
    return outermost


def _grouped(rows: pd.DataFrame) -> pd.DataFrame:
    keys = ["rank", "group"]
    summed = (*_SUMMED, *_BOUNDS)
    table = rows.groupby(keys, as_index=False, sort=False).agg({"owner": "first"} | dict.fromkeys(summed, "sum"))
    table["known_us"] = table["device_us"] - table["at_most_us"]
    order = ["known_us", "host_self_us"]
    table = table.sort_values(["rank", *order, "owner"], ascending=[True, False, False, True], ignore_index=True)
    busy = table.groupby("rank")["known_us"].transform("sum")
    table["share_percent"] = 100 * table["known_us"] / busy.where(busy > 0)
    of_time = [column for column in summed if column.endswith("_us")]
    table = table.drop(columns=["group", "known_us"]).assign(**{column: table[column] / 1000 for column in of_time})
    return table if table["at_most_us"].any() else table.drop(columns=list(_BOUNDS))
