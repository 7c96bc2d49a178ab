"""Matches: which activities of different ranks are members of one collective, and what each member waited for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import ActivityKind
from htagraph.graph.activities import Activities
from htagraph.graph.clocks import Clock, corrected

if TYPE_CHECKING:
    from htagraph.graph.construction.matching.match import Found

__all__ = ["Matches", "with_joins"]

Array: TypeAlias = npt.NDArray[Any]

_FROM_ROOT: Final = ("broadcast", "scatter")
_TO_ROOT: Final = ("reduce", "gather")
_TRANSFER_SHARE = 0.8  # of the usual transfer: less cannot lie between an arrival and an end that waited for it
_TRANSFER_PERCENTILE = 10
_TRANSFER_MOST = 10.0  # times the least: a longer one is not believed where a shorter is thinkable
_MANY = 8  # messages of one size, to know their least transfer
_ROOT_GAIN = 0.8
_MOST = 0.8
_VIOLATED = 0.01
_TOLERANCE_NS = 2_000


@dataclass(frozen=True, eq=False)
class Matches:
    """The matched collectives of a job. Arrays of one length describe the members, the others the collectives.

    Members are ordered by collective, and within a collective by arrival on the common clock.

    Example:
        >>> Matches.none().count
        0
    """

    activity: npt.NDArray[np.int32]
    """Per member: its activity."""
    collective: npt.NDArray[np.int32]
    """Per member: its collective, 0 to `count` - 1."""
    join: npt.NDArray[np.int32]
    """Per member: the JOIN activity that its end waited for; -1 where it waited for nobody."""
    feeds: npt.NDArray[np.int32]
    """Per member: the first JOIN activity that waited for its arrival; -1 where none did."""
    bytes: npt.NDArray[np.int64]
    """Per member: the size of the message, of all its parts; -1 where unknown."""
    op: tuple[str, ...]
    """Per collective: ``all_reduce``, ``all_gather``, ``reduce_scatter``, ``broadcast``, ``all_to_all``,
    ``send_recv``, ``barrier``, ``reduce``, ``gather`` or ``scatter``."""
    group: tuple[str, ...]
    """Per collective: a label of its process group."""
    key: tuple[str, ...]
    """Per collective: how its members were found: ``comms_id``, ``pg+seq``, ``pg+order`` or ``lane+order``."""
    size: npt.NDArray[np.int32]
    """Per collective: how many members its group has; 0 where unknown."""

    @property
    def count(self) -> int:
        """How many collectives were matched."""
        return len(self.op)

    @staticmethod
    def none() -> Matches:
        """Return the matches of a job without any."""
        empty = np.empty(0, np.int32)
        return Matches(empty, empty, empty, empty, np.empty(0, np.int64), (), (), (), empty)


@dataclass(frozen=True, eq=False)
class _Meeting:
    """The members of all collectives, ordered by collective and arrival, on the common clock."""

    rows: Array
    """Rows of `Found.members`."""
    collective: Array
    rank: Array
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    first: Array
    """Where each collective begins."""


def with_joins(activities: Activities, found: Found, clocks: Sequence[Clock]) -> tuple[Activities, Matches]:
    """Return the activities with the JOINs of matched collectives behind them, and the matches.

    Of a barrier there is one JOIN: all ends wait for all arrivals. The ends of an all-to-all wait for the arrivals
    that come before them by more than no transfer at all, so that it may have several JOINs, one after the other. What
    has a root waits for the root (broadcast, scatter), or only the root waits (reduce, gather), where it can be told.

    Args:
        activities: of all ranks, on their own clocks.
        found: the matched collectives.
        clocks: of the ranks.
    """
    meeting = _meeting(found, clocks)
    if not len(meeting.rows):
        return activities, Matches.none()
    counts, waits, slack = _terms(found, meeting)
    awaited = np.flatnonzero(counts)
    last = _last_awaited(meeting, awaited, slack)
    rest = meeting.end - np.maximum(meeting.start[awaited[last]], meeting.start)
    if (odd := (slack > 0) & (rest > _TRANSFER_MOST * slack)).any():  # rather a short transfer than such a long one
        last = _last_awaited(meeting, awaited, np.where(odd, slack // 2, slack))
    last[~waits] = -1
    joins = np.unique(last[last >= 0])
    row = len(activities) + np.arange(len(joins))
    join = np.where(last >= 0, row[np.minimum(np.searchsorted(joins, last), len(joins) - 1)] if len(joins) else -1, -1)
    feeds = np.full(len(last), -1, np.int64)
    after = np.searchsorted(joins, np.arange(len(awaited)))
    valid = after < len(joins)
    owner = meeting.collective[awaited]
    valid[valid] = owner[joins[after[valid]]] == owner[valid]
    feeds[awaited[valid]] = row[after[valid]]
    arriver = awaited[joins]
    members = found.members
    matches = Matches(
        members.activity[meeting.rows].astype(np.int32), meeting.collective.astype(np.int32), join.astype(np.int32),
        feeds.astype(np.int32), members.bytes[meeting.rows], found.op, found.group, found.key,
        found.size.astype(np.int32),
    )  # fmt: skip
    return _appended(activities, members.activity[meeting.rows[arriver]], meeting.start[arriver]), matches


def _meeting(found: Found, clocks: Sequence[Clock]) -> _Meeting:
    rows = np.flatnonzero(found.collective >= 0)
    members = found.members
    rank = members.rank[rows]
    start, end = corrected(clocks, rank, members.start[rows]), corrected(clocks, rank, members.end[rows])
    order = np.lexsort((rows, start, found.collective[rows]))
    collective = found.collective[rows][order]
    first = np.searchsorted(collective, np.arange(len(found)))
    return _Meeting(rows[order], collective, rank[order], start[order], end[order], first)


def _terms(found: Found, meeting: _Meeting) -> tuple[Array, Array, Array]:
    """Return per member: whether ends wait for its arrival, whether its end waits, and ns that must lie between."""
    counts, waits = np.ones(len(meeting.rows), np.bool_), np.ones(len(meeting.rows), np.bool_)
    slack = np.zeros(len(meeting.rows), np.int64)
    op, barrier = np.array(found.op), found.barrier
    loose = ~barrier[meeting.collective]
    for team in np.unique(found.team[meeting.collective[loose]]).tolist():
        mine = loose & (found.team[meeting.collective] == team)
        for word in np.unique(op[meeting.collective[mine]]).tolist():
            which = np.flatnonzero(mine & (op[meeting.collective] == word))
            root = _root(meeting, which, word)
            if root >= 0 and word in _FROM_ROOT:
                counts[which] = meeting.rank[which] == root
            elif root >= 0:
                waits[which] = meeting.rank[which] == root
            elif root == -1:
                slack[which] = _least_transfer(found, meeting, which)
    return counts, waits, slack


def _root(meeting: _Meeting, which: Array, word: str) -> int:
    """Return the rank that is the root of a group's collectives; -2 where they look like barriers, -1 if unknown.

    Under the true rule, what is left after the last arrival awaited is the bare transfer, which varies least.
    """
    if word not in _FROM_ROOT + _TO_ROOT:
        return -1
    _, line = np.unique(meeting.collective[which], return_inverse=True)
    ranks, column = np.unique(meeting.rank[which], return_inverse=True)
    start, end = (np.full((int(line.max()) + 1, len(ranks)), np.nan) for _ in range(2))
    origin = int(meeting.start[which].min())
    start[line.ravel(), column.ravel()] = meeting.start[which] - origin
    end[line.ravel(), column.ravel()] = meeting.end[which] - origin
    start, end = (times[np.isfinite(start).all(axis=1)] for times in (start, end))
    if not len(start):
        return -1
    everybody = np.broadcast_to(start.max(axis=1)[:, None], start.shape)
    costs = {-2: _variation(end, everybody)}
    for at in range(len(ranks)):
        if word in _FROM_ROOT:
            costs[at] = _variation(end, np.maximum(start, start[:, [at]]))
        else:
            alone = start.copy()
            alone[:, at] = start.max(axis=1)
            costs[at] = _variation(end, alone)
    least = min(costs.values())
    best = min((at for at in costs if at >= 0 and costs[at] <= least / _ROOT_GAIN), default=-2)  # as a rule the lowest
    if not np.isfinite(costs[best]):
        return -1
    if costs[best] > _ROOT_GAIN * costs[-2] or len(start) < 2:
        return -2 if np.isfinite(costs[-2]) else -1
    return int(ranks[best])


def _variation(end: Array, awaited: Array) -> float:
    """Return how much the time from the last arrival awaited to the end varies; infinite where it is negative."""
    rest = end - awaited
    if (rest < -_TOLERANCE_NS).sum() > _VIOLATED * rest.size:
        return float("inf")
    return float(np.quantile(np.abs(rest - np.median(rest, axis=0)), _MOST)) + 1.0


def _least_transfer(found: Found, meeting: _Meeting, which: Array) -> npt.NDArray[np.int64]:
    """Return the least time from an arrival to an end that waited for it: whoever arrives last waits for nobody.

    That of messages of one size, where many tell, else the least of all: too much would cut true waits off.
    """
    size = found.members.bytes[meeting.rows[which]]
    is_last = np.append(meeting.collective[which][1:] != meeting.collective[which][:-1], True)
    lasts = (meeting.end - meeting.start)[which]
    out = np.full(len(which), int(_TRANSFER_SHARE * lasts[is_last].min()), np.int64)
    for each in np.unique(size[size >= 0]).tolist():
        usual = lasts[is_last & (size == each)]
        if len(usual) >= _MANY:
            out[size == each] = int(_TRANSFER_SHARE * np.percentile(usual, _TRANSFER_PERCENTILE))
    return out


def _last_awaited(meeting: _Meeting, awaited: Array, slack: Array) -> npt.NDArray[np.int64]:
    """Return for each member the last of its collective in `awaited` (position there) that its end can have waited for.

    At least its own, if that is among them; -1 where there is none.
    """
    base = meeting.start[meeting.first][meeting.collective]
    arrival, end = meeting.start - base, meeting.end - base - slack
    span = int(max(arrival.max(), end.max())) + 2
    keys = meeting.collective[awaited] * span + arrival[awaited]
    last = np.searchsorted(keys, meeting.collective * span + np.maximum(end, -1), side="right") - 1
    begin = np.searchsorted(meeting.collective[awaited], meeting.collective)
    last = np.where(last >= begin, last, -1)
    own = np.full(len(meeting.rows), -1, np.int64)
    own[awaited] = np.arange(len(awaited))
    return np.asarray(np.maximum(last, own))


def _appended(acts: Activities, arriver: Array, moment: Array) -> Activities:
    """Return the activities and behind them a JOIN for each of some arrivals."""
    count = len(arriver)
    none = np.full(count, -1, np.int32)
    joins: dict[str, Array] = {
        "rank": none, "kind": np.full(count, ActivityKind.JOIN, np.int8), "name": acts.name[arriver],
        "category": acts.category[arriver], "lane": none, "start": moment, "duration": np.zeros(count, np.int64),
        "step": acts.step[arriver], "parent": none, "cause": none, "event": none,
    }  # fmt: skip
    longer: dict[str, Any] = {name: np.concatenate((getattr(acts, name), column)) for name, column in joins.items()}
    return replace(acts, **longer)
