"""Peers: the same activity on other ranks or in other steps; and roles: the ranks that do the same work by design."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, coded, spread
from htagraph.core.computing import once
from htagraph.core.kinds import ADDED, ActivityKind, of_kinds
from htagraph.core.naming import transfer_direction
from htagraph.core.statistics import MOST, SEVERAL
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["alike", "are_stages", "extra_region", "lane_roles", "peers", "program_of", "rank_roles"]

Program: TypeAlias = tuple[Array, Array, int]
"""What a rank runs: names of its operators, how often each occurs in its steps, how many steps these are."""
_PAIR_OPERATION = "send_recv"
_MIN_SHARED = 0.7
"""Share of the usual activities of a role that a rank has too, at least: others run another program.

Chosen: ranks of one program differ by what shapes make of kernels' names, and a straggler may do more, but not less.
Doubled, nobody has a role."""


def peers(graph: DependencyGraph, across: Literal["rank", "step"] = "rank") -> npt.NDArray[np.int64]:
    """Return the groups of activities that are the same one on several ranks, or in several steps.

    Two activities are peers if they have the same name and kind, run on lanes of the same role (see `lane_roles`) in
    the same step (across ranks) or on the same rank (across steps), and are each the k-th of that name there in the
    order of time. What is in a region that one rank alone has is the same as nothing outside of this region. Instances
    are counted from the begin of the step; before the first step and between steps, from the end of that stretch,
    because recordings miss the first events rather than the last. Where one rank lacks an instance, the later ones of
    that name in that step are compared with a neighbour of the same name.

    Args:
        graph: the job.
        across: ``"rank"`` or ``"step"``; across steps, activities outside all steps have no peers.

    Returns:
        A group number per activity (int64); -1 for activities without a peer and for those that the graph adds.

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
    group = np.full(len(graph.activities), -1, np.int64)
    if across == "rank" and len(graph.ranks) < 2:
        return group
    rows, what, part, count = _places(graph, by_rank=across == "rank")
    if len(rows):
        number = _placed(coded(what, part), count)
        group[rows] = np.where(np.bincount(number)[number] > 1, number, -1)
    return group


def alike(graph: DependencyGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the groups of activities that do the same work on any rank and in any step, by name and by place.

    Returns:
        Two numbers per activity (int64). Activities of the same name, kind and lane role share the first; those that
        are also the k-th of that name in their step share the second (outside steps, the peers do). -1 for activities
        that the graph adds.

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
        place[rows] = _placed(coded(what, np.where(graph.activities.step[rows] >= 0, 0, part)), count)
    return name, place


@once
def lane_roles(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return a role number per lane (int64), which lanes of different ranks share if they do the same work.

    Thread ids, and often stream ids, differ between ranks. The lanes of each rank are matched one to one with the roles
    known so far: those with most activities of the same names in common first, on ties the same stream id, then the
    order of appearance. A lane that has nothing in common with any role left gets a new one.
    """
    acts = graph.activities
    rows = acts.lane[: acts.ranked].astype(np.int64)
    code, count = np.unique(rows * len(graph.names) + acts.name[: acts.ranked], return_counts=True)
    lane, name = np.divmod(code, max(1, len(graph.names)))
    stream = np.array([each.stream for each in graph.lanes], np.int64)
    owner = np.array([each.rank for each in graph.lanes], np.int64)[lane]
    role = np.full(len(graph.lanes), -1, np.int64)
    known = np.zeros((4, 0), np.int64)  # names that ran on lanes of each role: role, name, count and lane
    founders = 0
    for rank in np.unique(owner):
        of_rank = owner == rank
        here = np.array((lane[of_rank], name[of_rank], count[of_rank]))
        _match_lanes(here, known, stream, role)
        new = np.unique(here[0])
        new = new[role[new] < 0]
        role[new] = founders + np.arange(len(new))
        founders += len(new)
        known = np.concatenate((known, (role[here[0]], here[1], here[2], here[0])), axis=1)
        known = known[:, np.sort(np.unique(known[0] * len(graph.names) + known[1], return_index=True)[1])]
    empty = role < 0
    role[empty] = founders + np.arange(int(empty.sum()))
    return role


def rank_roles(
    graph: DependencyGraph, program: Callable[[int], Program] | None = None
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (a number per rank, shared by ranks that do the same work by design, a number shared by a pipeline's).

    Ranks that send to each other one by one (the stages of a pipeline) have different roles; the n-th rank of one
    pipeline has the role of the n-th of another. The first and the last stage of three or more send and receive less
    than those between; where all ranks send and receive as much in a step, in a ring or all to all, they are no stages
    but do the same work. A rank that lacks much of what the others of its role do runs something else, and has a role
    of its own.

    Args:
        graph: the job.
        program: returns what a rank runs, given its position in `graph.ranks`; by its activities if not given.
    """
    program = program or partial(program_of, graph)
    size = len(graph.ranks)
    pipeline = _pipelines(graph)
    members = np.bincount(pipeline, minlength=size)
    place = np.zeros(size, np.int64)
    for number in np.flatnonzero(members > 1).tolist():
        place[pipeline == number] = np.arange(members[number])
    role = members[pipeline] * size + place
    for number in np.unique(role).tolist():
        rows = np.flatnonzero(role == number)
        if len(rows) > 1:
            other = rows[~_same_program(_per_step_counts([program(row) for row in rows.tolist()]))]
            role[other] = -1 - other
    return np.unique(role, return_inverse=True)[1].astype(np.int64), pipeline


def _places(graph: DependencyGraph, *, by_rank: bool) -> tuple[Array, Array, Array, Array]:
    """Return (activities that can have peers, number of what each does, part that is shared, how many precede it)."""
    # without `by_rank`, lanes take the place of roles, and the part that is shared is the whole rank
    acts = graph.activities
    part, from_end = _parts(graph)
    wanted = ~of_kinds(acts.kind, ADDED)
    if not by_rank:
        wanted &= acts.step >= 0
    rows = np.flatnonzero(wanted)
    if not len(rows):
        return rows, rows, rows, rows
    lane = lane_roles(graph)[acts.lane[rows]] if by_rank else acts.lane[rows]
    # steps are numbers on the time line, the rest has places of its own beyond them
    shared, own = (part[rows], acts.rank[rows]) if by_rank else (acts.rank[rows], part[rows])
    numbered = by_rank & (acts.kind[rows] == ActivityKind.STEP)  # their names number them
    region = extra_region(graph)[rows] if by_rank else lane  # what only one rank does is no peer of what others do
    what = coded(np.where(numbered, -1, acts.name[rows]), acts.kind[rows], lane, region)
    return rows, what, shared, _occurrence(coded(what, shared, own), acts.start[rows], from_end[rows])


@once
def extra_region(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return, for each activity, the name of the region around it that a rank alone has; -1 where most ranks have one.

    Where most have, regions are called by their ranks, and are the same work.
    """
    acts, names = graph.activities, len(graph.names)
    region = acts.kind == ActivityKind.ANNOTATION
    rank, name = np.divmod(np.unique(acts.rank[region].astype(np.int64) * names + acts.name[region]), max(1, names))
    alone = np.bincount(name, minlength=names)[name] == 1
    if not alone.any() or len(np.unique(rank[alone])) > MOST * len(graph.ranks):
        return np.full(len(acts), -1)
    around = graph.tree.nearest(region & np.isin(acts.name, name[alone]), np.arange(len(acts)))
    return np.where(around >= 0, acts.name[around], -1).astype(np.int64)


def _match_lanes(of_rank: Array, known: Array, stream: Array, role: Array) -> None:
    """Write into `role` the roles that a rank's lanes have most in common with, each role once."""
    known = known[:, np.argsort(known[1], kind="stable")]
    first, last = (np.searchsorted(known[1], of_rank[1], side=side) for side in ("left", "right"))
    mine, theirs = spread(first, last)
    if not len(mine):
        return
    lane, number = of_rank[0][mine], known[0][theirs]
    _, example, pair = np.unique(lane * (number.max() + 1) + number, return_index=True, return_inverse=True)
    common = np.zeros(len(example), np.int64)
    np.add.at(common, pair, np.minimum(of_rank[2][mine], known[2][theirs]))
    lane, number, other = lane[example], number[example], known[3][theirs[example]]
    taken: set[int] = set()
    for i in np.lexsort((number, lane, stream[lane] != stream[other], -common)).tolist():
        if role[lane[i]] < 0 and int(number[i]) not in taken:
            role[lane[i]] = number[i]
            taken.add(int(number[i]))


def _parts(graph: DependencyGraph) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return (the part of the recording that each activity is in, whether instances there are counted from the end)."""
    # parts are the steps, by number, and the stretches outside: -1 - n where n steps of the rank began before
    acts = graph.activities
    part = acts.step.astype(np.int64)
    outside = part < 0
    begin = np.where(acts.cause >= 0, acts.start[acts.cause], acts.start)  # for device work, when it was launched
    last = np.zeros(len(acts), np.bool_)
    for rank in graph.ranks:
        of_rank = acts.of_rank(rank)
        marks = of_rank.start + np.flatnonzero(acts.kind[of_rank] == ActivityKind.STEP)
        rows = of_rank.start + np.flatnonzero(outside[of_rank])
        before = np.searchsorted(np.sort(acts.start[marks]), begin[rows], side="right")
        part[rows] = -1 - before
        last[rows] = (before == len(marks)) & (len(marks) > 0)
    return part, outside & ~last


def _occurrence(what: Array, start: Array, from_end: Array) -> npt.NDArray[np.int64]:
    """Return, for each row, how many rows of the same `what` start before it, or after it where `from_end`."""
    from htagraph.core.counting import occurrences  # numba takes a moment to load

    place, sizes = occurrences(what, int(what.max()) + 1, start)
    return np.where(from_end, sizes[what] - 1 - place, place) if from_end.any() else place


def _placed(group: Array, count: Array) -> npt.NDArray[np.int64]:
    """Return a number per row, by group and then by count; the counts of each group are 0 up to some number."""
    most = np.zeros(int(group.max()) + 2, np.int64)
    np.maximum.at(most[1:], group, count + 1)
    placed: npt.NDArray[np.int64] = np.cumsum(most)[group] + count
    return placed


def _pipelines(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return a number per rank, which ranks share that sends between pairs connect, unless they exchange in turn."""
    number = np.arange(len(graph.ranks))
    pairs, step, activity = _pairs(graph)
    crosses = _crosses(graph, pairs, step, activity)
    for one, other in np.unique(pairs, axis=0).tolist():
        number[number == number[other]] = number[one]
    sends = _per_step(pairs, step, len(number))
    for each in np.unique(number).tolist():
        rows = np.flatnonzero(number == each)
        in_turn = len(rows) >= SEVERAL and len(np.unique(sends[rows])) == 1
        if in_turn or (len(rows) > 1 and crosses[np.isin(pairs[:, 0], rows)].mean() > MOST):
            number[rows] = rows
    return number


def are_stages(graph: DependencyGraph) -> bool:
    """Return whether every rank sends to others, and also receives, as the stages of pipelines do.

    Workers that only send to one rank, or only receive from it, wait by another design.
    """
    pairs, _, activity = _pairs(graph)
    way = np.array([transfer_direction(name) for name in graph.names], np.int8)[graph.activities.name[activity]]
    both = np.intersect1d(pairs[way >= 0], pairs[way <= 0])  # of a kernel that is named after neither, it may be both
    return len(both) == len(graph.ranks) and bool((np.bincount(_pipelines(graph)) != 1).all())


def _crosses(graph: DependencyGraph, pairs: Array, step: Array, activity: Array) -> npt.NDArray[np.bool_]:
    """Return, for each send, whether its two ranks both send in its step before they have what the other sends."""
    # a stage of a pipeline sends back in a step what it makes of what it got there
    acts, ranks = graph.activities, max(len(graph.ranks), 1)
    way = np.array([transfer_direction(name) for name in graph.names], np.int8)[acts.name[activity]].ravel()
    both = np.unique(np.stack([np.sort(pairs, axis=1) @ [ranks, 1], step]), axis=1, return_inverse=True)[1].ravel()
    of_rank = 2 * np.repeat(both, 2) + (pairs == pairs.max(axis=1, keepdims=True)).ravel()
    first = np.full((2, 2 * (int(both.max(initial=-1)) + 1)), np.iinfo(np.int64).max)
    begin, end = acts.start[activity.ravel()], acts.end[activity.ravel()]
    for row, time, sign in ((first[0], begin, 1), (first[1], end, -1)):
        np.minimum.at(row, of_rank[way == sign], time[way == sign])
    before = (first[0] < first[1]) & (first[1] < np.iinfo(np.int64).max)
    return np.asarray(before.reshape(-1, 2).all(axis=1)[both])


def _pairs(graph: DependencyGraph) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return (the positions of the two ranks of each send that was matched, its step, the activities of both)."""
    matches, acts = graph.matches, graph.activities
    if matches is None:
        return np.zeros((0, 2), np.int64), np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
    size = np.bincount(matches.collective, minlength=matches.count)
    pairs = np.array([op == _PAIR_OPERATION for op in matches.op], np.bool_) & (size == 2)
    rows = np.flatnonzero(pairs[matches.collective])
    rows = rows[np.argsort(matches.collective[rows], kind="stable")]
    activity = matches.activity[rows].astype(np.int64).reshape(-1, 2)
    place = np.searchsorted(graph.ranks, acts.rank[activity.ravel()]).reshape(-1, 2)
    return place, acts.step[activity].max(axis=1).astype(np.int64), activity


def _per_step(pairs: Array, step: Array, ranks: int) -> npt.NDArray[np.float64]:
    """Return the median sends and receives of each rank by step: steps at the ends of a recording may lack some."""
    steps, at = np.unique(step, return_inverse=True)
    counts = np.zeros((ranks, len(steps)))
    np.add.at(counts, (pairs, at.ravel()[:, None]), 1)
    return np.median(counts, axis=1) if len(steps) else np.zeros(ranks)


def program_of(graph: DependencyGraph, place: int) -> Program:
    """Return how often each operator occurs in the steps of the rank at a position; kernels in a job without operators.

    In a recording without steps, the whole counts as one.
    """
    acts = graph.activities
    of_rank = acts.of_rank(graph.ranks[place]) if graph.ranks else slice(0, 0)
    alike = acts.kind[of_rank] == _counted_kind(graph)
    names, steps = acts.name[of_rank][alike], acts.step[of_rank][alike]
    if (steps >= 0).any():
        names, steps = names[steps >= 0], steps[steps >= 0]
    found, count = np.unique(names, return_counts=True)
    return found, count.astype(np.int64), max(len(np.unique(steps)), 1)


@once
def _counted_kind(graph: DependencyGraph) -> ActivityKind:
    return ActivityKind.OP if (graph.activities.kind == ActivityKind.OP).any() else ActivityKind.COMPUTATION


def _per_step_counts(programs: Sequence[Program]) -> npt.NDArray[np.float64]:
    """Return how often each name occurs in a step, a row per rank: recordings may have different numbers of steps."""
    every = np.unique(np.concatenate([names for names, _, _ in programs]))
    counts = np.zeros((len(programs), len(every)))
    for row, (names, count, steps) in zip(counts, programs, strict=True):
        np.add.at(row, np.searchsorted(every, names), count / steps)  # digests number names by hashes, two may be equal
    return counts


def _same_program(counts: Array) -> npt.NDArray[np.bool_]:
    """Return which ranks have most of what is usual among them, or for two ranks of what the one that does less has."""
    usual = np.median(counts, axis=0) if len(counts) > 2 else counts.min(axis=0)
    total = usual.sum() if len(counts) > 2 else counts.sum(axis=1).min()
    if not total:  # nothing is usual, and so nothing is lacking
        return np.ones(len(counts), np.bool_)
    shared = np.minimum(counts, usual).sum(axis=1) / total
    return np.asarray(shared >= _MIN_SHARED)
