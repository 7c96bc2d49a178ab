"""A critical path folded to as many boxes as a picture can show; together they hold all of its time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import EdgeKind, GapKind
from htagraph.queries.paths import CATEGORIES, CriticalPath

__all__ = ["Box", "Hop", "fold_path", "hops_between", "rows_of"]


_MIN_UNFOLDED_SHARE = 0.01
"""Share of the path from which a segment is a box of its own if there is room; chosen. Doubled, fewer stand alone."""
_OTHER_CATEGORY, _OTHER_ROW = 4, 32
"""How many times dearer it is to fold neighbours of two categories, or of two rows, than of one. Chosen: what is short
joins its own kind first. Doubled, boxes are purer and their sizes differ more."""


@dataclass(frozen=True)
class Box:
    """Consecutive segments of a path that a picture shows as one."""

    first: int
    """Its first segment."""
    end: int
    """The segment behind its last."""
    row: int
    """Where most of its time is: a rank, or in a job of one rank a lane."""
    category: str
    """What most of its time is spent on."""
    start_ns: int
    length_ns: int
    why: str
    """For time that is no work of its own, why it passes, as words that lead to the name; empty for work."""
    name: str
    """The name, in full, of what takes most of its time in that category, or of what that leads to."""
    ranks: dict[int, int]
    """Time by rank, ns, most first."""
    categories: dict[str, int]
    """Time by category, ns, most first."""

    @property
    def count(self) -> int:
        """How many segments it stands for."""
        return self.end - self.first


@dataclass(frozen=True)
class Hop:
    """A change of rank from one box to the next."""

    from_rank: int
    to_rank: int
    edge: str
    """The kind of the edge."""
    waited_ns: int
    """How long the activity that waited had been running by then."""


def fold_path(path: CriticalPath, most: int) -> list[Box]:
    """Return a path as at most so many boxes, in the order of time; their lengths sum to the makespan.

    Consecutive segments of one rank (of one rank's job, one lane) and category are one box, but for segments that take
    a hundredth of the path. If these are too many, neighbours are joined, the shortest first, rather of one category
    than of two, and of one rank than of two.

    Args:
        path: of one rank or of all.
        most: boxes at most, 1 or more.

    Example:
        >>> import htagraph as hg
        >>> path = hg.critical_path(hg.load("data/demo"))
        >>> sum(box.length_ns for box in fold_path(path, 10)) == path.makespan_ns
        True
    """
    parts = path.segments
    if not len(parts):
        return []
    row = rows_of(path)
    alone = parts.length >= max(1, _MIN_UNFOLDED_SHARE * path.makespan_ns)
    new = np.ones(len(parts), np.bool_)
    new[1:] = (np.diff(row) != 0) | (np.diff(parts.category) != 0) | alone[1:] | alone[:-1]
    first = np.flatnonzero(new)
    length = np.add.reduceat(parts.length, first)
    kept = _joined(length.tolist(), row[first].tolist(), parts.category[first].tolist(), most)
    bounds = [*first[kept].tolist(), len(parts)]
    return [_box(path, row, begin, end) for begin, end in pairwise(bounds)]


def rows_of(path: CriticalPath) -> Array:
    """Return the row of a picture that each segment is on: its rank, or its lane where there is one rank."""
    acts, place = path.graph.activities, path.segments.place
    return (acts.rank if len(path.graph.ranks) > 1 else acts.lane)[place].astype(np.int64)


def hops_between(path: CriticalPath, boxes: list[Box]) -> dict[int, Hop]:
    """Return the changes of rank between boxes, by the number of the later box."""
    table, origin = path.hops(), path.graph.origin_ns
    columns = ("at_us", "from_rank", "to_rank", "edge", "waited_us")
    rows = zip(*(table[name].tolist() for name in columns), strict=True)
    by_moment: dict[tuple[int, int], Hop] = {}
    for at_us, come, go, edge, waited in rows:
        by_moment[round(at_us * 1000), go] = Hop(come, go, edge, round(waited * 1000))
    rank = path.graph.activities.rank[path.segments.place]
    found = {}
    for number, box in enumerate(boxes):
        here, before = int(rank[box.first]), int(rank[box.first - 1])
        if number and here != before:
            plain = Hop(before, here, EdgeKind(path.segments.edge[box.first]).label, 0)
            found[number] = by_moment.get((box.start_ns - origin, here), plain)
    return found


def _joined(length: list[int], row: list[int], category: list[int], most: int) -> list[int]:
    """Return the runs that begin a box once neighbours are joined until there are few enough."""
    count = len(length)
    before, behind = list(range(-1, count - 1)), [*range(1, count), -1]
    version = [0] * count

    def cost(one: int) -> float:
        other = behind[one]
        kind = _OTHER_ROW if row[one] != row[other] else _OTHER_CATEGORY if category[one] != category[other] else 1
        return min(length[one], length[other]) * kind

    left = count
    queue = [(cost(one), one, 0, 0) for one in range(count - 1)] if count > most else []
    heapq.heapify(queue)
    while left > max(1, most):
        _, one, own, others = heapq.heappop(queue)
        other = behind[one]
        if own != version[one] or other < 0 or others != version[other]:
            continue
        if length[other] > length[one]:
            row[one], category[one] = row[other], category[other]
        length[one] += length[other]
        behind[one], version[one], version[other] = behind[other], version[one] + 1, -1
        left -= 1
        if behind[one] >= 0:
            before[behind[one]] = one
            heapq.heappush(queue, (cost(one), one, version[one], version[behind[one]]))
        if before[one] >= 0:
            heapq.heappush(queue, (cost(before[one]), before[one], version[before[one]], version[one]))
    return [run for run in range(count) if version[run] >= 0]


def _box(path: CriticalPath, row: Array, first: int, end: int) -> Box:
    parts, some = path.segments, slice(first, end)
    length = parts.length[some]
    ranks = _totals(path.graph.activities.rank[parts.place[some]], length)
    categories = _totals(parts.category[some], length)
    main = next(iter(categories))
    mine = np.flatnonzero(parts.category[some] == main)
    names = _totals(path.graph.activities.name[parts.activity[some]][mine], length[mine])
    mine = mine[path.graph.activities.name[parts.activity[some]][mine] == next(iter(names))]
    why, name = _what(path, first + int(mine[np.argmax(length[mine])]))
    return Box(
        first=first, end=end, row=next(iter(_totals(row[some], length))), category=CATEGORIES[main],
        start_ns=int(parts.start[first]), length_ns=int(length.sum()), why=why, name=name,
        ranks=ranks, categories={CATEGORIES[code]: time for code, time in categories.items()},
    )  # fmt: skip


def _totals(codes: Array, length: Array) -> dict[int, int]:
    """Return the time of each code, most first."""
    kinds, which = np.unique(codes, return_inverse=True)
    time = np.bincount(which, length, len(kinds)).astype(np.int64)
    return {int(kinds[at]): int(time[at]) for at in np.argsort(-time, kind="stable").tolist()}


def _what(path: CriticalPath, at: int) -> tuple[str, str]:
    """Return why a segment's time passes, empty for work, and the name of the work or of what it leads to."""
    parts, names, named = path.segments, path.graph.names, path.graph.activities.name
    gap, edge, before = GapKind(parts.gap[at]), int(parts.edge[at]), names[named[parts.target[at]]]
    if edge < 0:
        return "before recording:", before
    if gap != GapKind.NONE:
        return f"{gap.label.replace('_', ' ')} before", before
    if edge != EdgeKind.BODY:
        return f"{EdgeKind(edge).label.replace('_', ' ')} →", before
    return "", names[named[parts.activity[at]]]
