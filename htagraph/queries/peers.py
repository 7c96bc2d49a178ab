"""The same activity on every rank, or in every step: what a straggler is compared with."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.kinds import ActivityKind
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["alike", "lane_roles", "peers"]

Array: TypeAlias = npt.NDArray[Any]
_ADDED = (ActivityKind.BOUNDARY, ActivityKind.JOIN)


def peers(graph: DependencyGraph, across: Literal["rank", "step"] = "rank") -> npt.NDArray[np.int64]:
    """Return which activities are the same one on other ranks, or in other steps.

    Two are the same if they have the same name and kind, ran on lanes of the same role (see `lane_roles`) in the same
    step (across ranks) or on the same rank (across steps), and are there the k-th of that name in the order of time.
    Instances are counted from the step's beginning, and outside steps from the end of the stretch before the next
    step: recordings miss what came first, not what came last. An instance that is missing on one rank leaves the
    others aligned; those after it within its step are then compared with a neighbour of the same name.

    Args:
        graph: the job.
        across: ``"rank"`` or ``"step"``; across steps, what lies outside all steps has no peers.

    Returns:
        A group number per activity; -1 for those that have no peer, and for what the graph added.

    Raises:
        ValueError: `across` is something else.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> steps = graph.select(kind="step", step=5).activities
        >>> len(set(peers(graph)[steps].tolist()))
        1
    """
    if across not in ("rank", "step"):
        msg = f"across={across!r}: choose 'rank' or 'step'"
        raise ValueError(msg)
    rows, what, part, count = _places(graph, by_rank=across == "rank")
    group = np.full(len(graph.activities), -1, np.int64)
    if len(rows):
        number = _coded(what, part, count)
        group[rows] = np.where(np.bincount(number)[number] > 1, number, -1)
    return group


def alike(graph: DependencyGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return which activities do the same on any rank and in any step, coarsely and finely.

    Returns:
        A number per activity that those of the same name, kind and role of lane share; and one that those of them share
        that are the same in their step, the k-th of that name. Outside steps the second is `peers`' group. -1 for what
        the graph added.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> steps = graph.select(kind="step").activities
        >>> [len(set(number[steps].tolist())) for number in (graph.activities.step, *alike(graph))]
        [3, 1, 1]
    """
    rows, what, part, count = _places(graph, by_rank=True)
    name, place = np.full((2, len(graph.activities)), -1, np.int64)
    if len(rows):
        name[rows] = what
        place[rows] = _coded(what, np.where(graph.activities.step[rows] >= 0, 0, part), count)
    return name, place


def _places(graph: DependencyGraph, *, by_rank: bool) -> tuple[Array, Array, Array, Array]:
    """Return (activities that can have peers, a number for what each does, part that is shared, how many precede it).

    Without `by_rank` what they do is told apart by lane, and the part that is shared is the whole rank.
    """
    acts = graph.activities
    part, from_end = _parts(graph)
    wanted = ~np.isin(acts.kind, _ADDED)
    if not by_rank:
        wanted &= acts.step >= 0
    rows = np.flatnonzero(wanted)
    if not len(rows):
        return rows, rows, rows, rows
    lane = lane_roles(graph)[acts.lane[rows]] if by_rank else acts.lane[rows]
    # steps are numbers on the time line, the rest has places of its own beyond them
    shared, own = (part[rows], acts.rank[rows]) if by_rank else (acts.rank[rows], part[rows])
    numbered = by_rank & (acts.kind[rows] == ActivityKind.STEP)  # their names number them
    what = _coded(np.where(numbered, -1, acts.name[rows]), acts.kind[rows], lane)
    return rows, what, shared, _occurrence(_coded(what, shared, own), acts.start[rows], from_end[rows])


def lane_roles(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return a number per lane that lanes of different ranks share where they do the same.

    Thread ids, and often stream ids, differ between ranks. Each rank's lanes are matched one to one with the roles
    known so far by what they have in common: most activities of the same names first, of equals the same stream id,
    else the order in which they appear. A lane that has nothing in common with a role left over founds its own.
    """
    acts = graph.activities
    rows = acts.lane[: acts.ranked].astype(np.int64)
    code, counts = np.unique(rows * len(graph.names) + acts.name[: acts.ranked], return_counts=True)
    content = pd.DataFrame({"lane": code // len(graph.names), "name": code % len(graph.names), "count": counts})
    stream = np.array([lane.stream for lane in graph.lanes], np.int64)
    owner = np.array([lane.rank for lane in graph.lanes], np.int64)
    role = np.full(len(graph.lanes), -1, np.int64)
    known = content.iloc[:0].assign(role=np.zeros(0, np.int64))  # what lanes of each role did, on any rank
    founders = 0
    content["rank"] = owner[content["lane"]]
    for _, mine in content.groupby("rank", sort=True):
        _match_lanes(mine, known, stream, role)
        new = np.unique(mine["lane"])
        new = new[role[new] < 0]
        role[new] = founders + np.arange(len(new))
        founders += len(new)
        known = pd.concat([known, mine.assign(role=role[mine["lane"]])]).drop_duplicates(["role", "name"])
    empty = role < 0
    role[empty] = founders + np.arange(int(empty.sum()))
    return role


def _match_lanes(mine: pd.DataFrame, known: pd.DataFrame, stream: Array, role: Array) -> None:
    """Give a rank's lanes the roles that they have most in common with, each role once."""
    both = mine.merge(known, on="name", suffixes=("", "_known"))
    if not len(both):
        return
    both["common"] = np.minimum(both["count"], both["count_known"])
    pairs = both.groupby(["lane", "role"]).agg({"common": "sum", "lane_known": "first"}).reset_index()
    pairs["other_stream"] = stream[pairs["lane"]] != stream[pairs["lane_known"]]
    best = np.lexsort((pairs["role"], pairs["lane"], pairs["other_stream"], -pairs["common"]))
    taken: set[int] = set()
    for lane, number in zip(
        pairs["lane"].to_numpy()[best].tolist(), pairs["role"].to_numpy()[best].tolist(), strict=True
    ):
        if role[lane] < 0 and number not in taken:
            role[lane] = number
            taken.add(number)


def _parts(graph: DependencyGraph) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return (the part of the recording each activity lies in, whether its instances are counted from the end).

    Parts are the steps, and the stretches outside: -1 - n before which n steps of the rank began.
    """
    acts = graph.activities
    part = acts.step.astype(np.int64)
    outside = part < 0
    begin = np.where(acts.cause >= 0, acts.start[acts.cause], acts.start)  # device work: when it was launched
    last = np.zeros(len(acts), np.bool_)
    for rank in graph.ranks:
        mine = acts.of_rank(rank)
        marks = mine.start + np.flatnonzero(acts.kind[mine] == ActivityKind.STEP)
        rows = mine.start + np.flatnonzero(outside[mine])
        before = np.searchsorted(np.sort(acts.start[marks]), begin[rows], side="right")
        part[rows] = -1 - before
        last[rows] = (before == len(marks)) & (len(marks) > 0)
    return part, outside & ~last


def _coded(*columns: Array) -> npt.NDArray[np.int64]:
    """Return small numbers that are equal exactly where all columns are."""
    code = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        low = int(column.min())
        wide = int(column.max()) - low + 1
        if int(code.max()) >= np.iinfo(np.int64).max // wide:
            code = np.unique(code, return_inverse=True)[1]
        code = code * wide + (column.astype(np.int64) - low)
    return np.unique(code, return_inverse=True)[1].astype(np.int64)


def _occurrence(what: Array, start: Array, from_end: Array) -> npt.NDArray[np.int64]:
    """Return for each row how many rows of the same `what` come before it in time, or after it."""
    order = np.lexsort((start, what))
    sizes = np.bincount(what)
    first = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    place = np.empty(len(what), np.int64)
    place[order] = np.arange(len(what)) - first[what[order]]
    return np.where(from_end, sizes[what] - 1 - place, place)
