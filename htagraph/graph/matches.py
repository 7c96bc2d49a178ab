"""Matches: which activities of different ranks are members of one collective, and what each member waited for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, inverse_of
from htagraph.core.kinds import ActivityKind
from htagraph.graph.accept import confidence, of_agreement
from htagraph.graph.activities import Activities
from htagraph.graph.clocks import FROM_ROOT, TO_ROOT, Clock, corrected
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.graph.construction.matching.match import Matching

__all__ = ["PAIR", "Matches", "with_joins"]

PAIR: Final = "send_recv"
"""The operation with two members."""


@dataclass(frozen=True, eq=False)
class Matches:
    """The matched collectives of a job: some arrays are over the members, others over the collectives.

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
    """Per member: the JOIN activity that its end waits for; -1 if it waits for no other member."""
    feeds: npt.NDArray[np.int32]
    """Per member: the first JOIN activity that waits for its arrival; -1 if none does."""
    bytes: Ints
    """Per member: the size of the whole message; -1 if unknown."""
    op: tuple[str, ...]
    """Per collective: ``all_reduce``, ``all_gather``, ``reduce_scatter``, ``broadcast``, ``all_to_all``,
    ``send_recv``, ``barrier``, ``reduce``, ``gather`` or ``scatter``."""
    group: tuple[str, ...]
    """Per collective: a label of its process group."""
    key: tuple[str, ...]
    """Per collective: how its members were matched: ``comms_id``, ``pg+seq``, ``pg+order`` or ``lane+order``."""
    size: npt.NDArray[np.int32]
    """Per collective: how many members its group has; 0 if unknown."""

    @cached_property
    def label(self) -> Ints:
        """Per collective: the number of its group and operation."""
        numbers: dict[tuple[str, str], int] = {}
        both = zip(self.group, self.op, strict=True)
        return np.array([numbers.setdefault(each, len(numbers)) for each in both], np.int64)

    @property
    def count(self) -> int:
        """How many collectives were matched."""
        return len(self.op)

    @staticmethod
    def none() -> Matches:
        """Return the matches of a job without collectives."""
        empty = np.empty(0, np.int32)
        return Matches(empty, empty, empty, empty, np.empty(0, np.int64), (), (), (), empty)


class _Meeting(NamedTuple):
    """The members of all collectives, ordered by collective and arrival, on the common clock."""

    rows: Array
    """Rows of `Matching.members`."""
    collective: Array
    rank: Array
    start: Ints
    end: Ints
    first: Array
    """Where each collective begins."""


def with_joins(activities: Activities, matching: Matching, clocks: Sequence[Clock]) -> tuple[Activities, Matches]:
    """Return the activities followed by the JOINs of the matched collectives, and the matches.

    A JOIN is the moment when the last of the awaited members arrives. A barrier has one JOIN: all ends wait for all
    arrivals. An end of an all-to-all waits for the arrivals that come at least a transfer time before it, so there may
    be several JOINs, one after the other. In a broadcast or scatter the ends wait for the root; in a reduce or gather
    only the root waits. Where the root is not known, the collective is treated as a barrier or like an all-to-all.
    """
    meeting = _meeting(activities, matching, clocks)
    if not len(meeting.rows):
        return activities, Matches.none()
    counts, waits, slack = _terms(matching, meeting)
    awaited = np.flatnonzero(counts)
    last = _last_awaited(meeting, awaited, slack)
    rest = meeting.end - np.maximum(meeting.start[awaited[last]], meeting.start)
    odd = (slack > 0) & (rest > LIMITS.transfer_ratio * slack)
    if odd.any():  # a shorter least transfer time is more likely than so long a transfer
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
    members = matching.members
    matches = Matches(
        members.activity[meeting.rows].astype(np.int32), meeting.collective.astype(np.int32), join.astype(np.int32),
        feeds.astype(np.int32), members.bytes[meeting.rows], matching.op, matching.group, matching.key,
        matching.size.astype(np.int32),
    )  # fmt: skip
    last_member, acts = members.activity[meeting.rows[arriver]], activities
    followed = acts.followed_by(
        kind=ActivityKind.JOIN, name=acts.name[last_member], category=acts.category[last_member],
        start=meeting.start[arriver], step=acts.step[last_member],
    )  # fmt: skip
    return followed, matches


def _meeting(acts: Activities, matching: Matching, clocks: Sequence[Clock]) -> _Meeting:
    rows = np.flatnonzero(matching.collective >= 0)
    members = matching.members
    rank = members.rank[rows]
    activity = members.activity[rows]
    start, end = (corrected(clocks, rank, times[activity]) for times in (acts.start, acts.end))
    order = np.lexsort((rows, start, matching.collective[rows]))
    collective = matching.collective[rows][order]
    first = np.searchsorted(collective, np.arange(len(matching)))
    return _Meeting(rows[order], collective, rank[order], start[order], end[order], first)


def _terms(matching: Matching, meeting: _Meeting) -> tuple[Array, Array, Array]:
    """Return per member: whether ends wait for its arrival, whether its end waits, the least ns between the two."""
    counts, waits = np.ones(len(meeting.rows), np.bool_), np.ones(len(meeting.rows), np.bool_)
    slack = np.zeros(len(meeting.rows), np.int64)
    op, barrier = np.array(matching.op), matching.barrier | (np.array(matching.op) == PAIR)
    loose = ~barrier[meeting.collective]
    loose &= ~_by_known_root(matching, meeting, op, (counts, waits, slack))
    for team in np.unique(matching.team[meeting.collective[loose]]).tolist():
        of_team = loose & (matching.team[meeting.collective] == team)
        for word in np.unique(op[meeting.collective[of_team]]).tolist():
            which = np.flatnonzero(of_team & (op[meeting.collective] == word))
            pattern, root = _root_of(meeting, which, word)
            if pattern is _Pattern.UNKNOWN and _waits_for_all(matching, meeting, which):
                continue
            if pattern is _Pattern.FROM_ROOT:
                counts[which] = meeting.rank[which] == root
            elif pattern is _Pattern.TO_ROOT:
                waits[which] = meeting.rank[which] == root
            elif pattern is _Pattern.UNKNOWN:
                slack[which] = _least_transfer(matching, meeting, which)
    return counts, waits, slack


def _by_known_root(matching: Matching, meeting: _Meeting, op: Array, terms: tuple[Array, Array, Array]) -> Array:
    """Return the members of collectives whose calls name the root; enter into the terms of `_terms` who waits for whom.

    Where ends come before the arrivals that they would have to wait for, the name is not taken at its word.
    """
    counts, waits, slack = terms
    root = matching.members.root[meeting.rows]
    word = op[meeting.collective] if len(op) else np.empty(0, "<U1")
    known = (root >= 0) & np.isin(word, FROM_ROOT + TO_ROOT)
    if not known.any():
        return known
    arrival = np.full(len(matching), np.iinfo(np.int64).min)
    of_root = known & (meeting.rank == root)
    arrival[meeting.collective[of_root]] = meeting.start[of_root]
    from_root = known & np.isin(word, FROM_ROOT)
    early = from_root & (meeting.end < arrival[meeting.collective] - LIMITS.tick_ns)
    known &= ~np.isin(meeting.collective, meeting.collective[early])
    team = matching.team[meeting.collective]
    for each in np.unique(team[known & from_root]).tolist():
        which = np.flatnonzero(known & from_root & (team == each))
        if _root_waits(meeting, which, root):
            slack[which] = _least_transfer(matching, meeting, which)
            from_root[which] = False
    counts[known & from_root] = (meeting.rank == root)[known & from_root]
    waits[known & np.isin(word, TO_ROOT)] = (meeting.rank == root)[known & np.isin(word, TO_ROOT)]
    return known


def _root_waits(meeting: _Meeting, which: Array, root: Array) -> bool:
    """Return whether roots that send go on only when their receivers are there: their ends follow the last arrivals.

    A backend on hosts may hand a message over when the receiver asks for it. The ends then lie a usual transfer behind
    the last arrivals, as those who arrive last show it. By chance they lie anywhere in the time that the root takes.
    """
    lasts = meeting.end - meeting.start
    is_last = np.append(meeting.collective[1:] != meeting.collective[:-1], True)  # such a member waits for nobody
    transfer = float(np.quantile(lasts[which][is_last[which]], LIMITS.typical)) + LIMITS.turn_ns
    last = np.zeros(len(meeting.first), np.int64)
    last[meeting.collective[is_last]] = meeting.start[is_last]
    sends = which[(meeting.rank[which] == root[which]) & ~is_last[which]]
    sends = sends[lasts[sends] > transfer + LIMITS.turn_ns]
    rest = meeting.end[sends] - last[meeting.collective[sends]]
    near = (rest >= -LIMITS.turn_ns) & (rest <= transfer)
    chance = (transfer + LIMITS.turn_ns) / lasts[sends]
    return len(sends) > 0 and confidence(of_agreement(near, chance), natural=True) > 0


def _waits_for_all(matching: Matching, meeting: _Meeting, which: Array) -> bool:
    """Return whether members on hosts, of collectives without a root, all end after all have arrived.

    Host backends exchange every message of an all-to-all before any member ends, unless it is empty.
    """
    if not matching.members.on_host[meeting.rows[which]].all() or not len(which):
        return False
    last = np.full(len(matching), np.iinfo(np.int64).min)
    np.maximum.at(last, meeting.collective[which], meeting.start[which])
    early = meeting.end[which] < last[meeting.collective[which]] - LIMITS.tick_ns
    return bool(early.sum() <= LIMITS.damaged * len(which))


class _Pattern(Enum):
    """Who waits for whom in a collective that need not be a barrier."""

    FROM_ROOT = "every end waits for the arrival of the root"
    TO_ROOT = "the end of the root waits for every arrival"
    BARRIER = "every end waits for every arrival"
    UNKNOWN = "an end waits for the arrivals that come early enough before it"


def _root_of(meeting: _Meeting, which: Array, word: str) -> tuple[_Pattern, int]:
    """Return who waits for whom in a group's collectives of one operation, and the rank of the root, -1 for none.

    Under the true pattern, the time from the last awaited arrival to the end is only the transfer, which varies least.
    If several ranks explain the ends about equally well, the lowest one is the root, because it usually is rank 0.
    """
    if word not in FROM_ROOT + TO_ROOT:
        return _Pattern.UNKNOWN, -1
    ranks, start, end = _times_by_rank(meeting, which)
    if not len(start):
        return _Pattern.UNKNOWN, -1
    last = start.max(axis=1)[:, None]
    as_barrier = _variation(end, np.broadcast_to(last, start.shape))
    columns = np.arange(len(ranks))
    if word in FROM_ROOT:
        by_root = [_variation(end, np.maximum(start, start[:, [root]])) for root in columns]
    else:
        by_root = [_variation(end, np.where(columns == root, last, start)) for root in columns]
    least = min(as_barrier, *by_root)
    root = next((root for root, variation in enumerate(by_root) if variation <= least / LIMITS.gain), -1)
    variation = by_root[root] if root >= 0 else as_barrier
    if not np.isfinite(variation):
        return _Pattern.UNKNOWN, -1
    if root >= 0 and variation <= LIMITS.gain * as_barrier and len(start) > 1:
        return (_Pattern.FROM_ROOT if word in FROM_ROOT else _Pattern.TO_ROOT), int(ranks[root])
    return (_Pattern.BARRIER if np.isfinite(as_barrier) else _Pattern.UNKNOWN), -1


def _times_by_rank(meeting: _Meeting, which: Array) -> tuple[Array, Array, Array]:
    """Return (ranks, starts, ends) of some members: times in ns by (collective, rank), of collectives without gaps."""
    _, line = np.unique(meeting.collective[which], return_inverse=True)
    ranks, column = np.unique(meeting.rank[which], return_inverse=True)
    start, end = (np.full((int(line.max()) + 1, len(ranks)), np.nan) for _ in range(2))
    origin = int(meeting.start[which].min())
    start[line.ravel(), column.ravel()] = meeting.start[which] - origin
    end[line.ravel(), column.ravel()] = meeting.end[which] - origin
    complete = np.isfinite(start).all(axis=1)
    return ranks, start[complete], end[complete]


def _variation(end: Array, awaited: Array) -> float:
    """Return how much the time from the last awaited arrival to the end varies, ns; infinite if too often negative."""
    rest = end - awaited
    if (rest < -LIMITS.tick_ns).sum() > LIMITS.damaged * rest.size:
        return float("inf")
    return float(np.quantile(np.abs(rest - np.median(rest, axis=0)), LIMITS.typical)) + 1.0


def _least_transfer(matching: Matching, meeting: _Meeting, which: Array) -> Ints:
    """Return for each member the least time from an arrival to an end that waits for it, ns.

    It comes from the members that arrived last, which wait for nobody. Sizes with enough messages have their own; the
    others use the least of all sizes, because too large a value would lose true waits.
    """
    size = matching.members.bytes[meeting.rows[which]]
    is_last = np.append(meeting.collective[which][1:] != meeting.collective[which][:-1], True)
    lasts = (meeting.end - meeting.start)[which]
    out = np.full(len(which), int(LIMITS.typical * lasts[is_last].min()), np.int64)
    for message in np.unique(size[size >= 0]).tolist():
        usual = lasts[is_last & (size == message)]
        if len(usual) >= LIMITS.few:
            out[size == message] = int(LIMITS.typical * np.quantile(usual, 1 - LIMITS.nearly_all))
    return out


def _last_awaited(meeting: _Meeting, awaited: Array, slack: Array) -> Ints:
    """Return for each member the last arrival of its collective that its end can have waited for.

    It is a position in `awaited`, -1 without any. A member's own arrival, if it is in `awaited`, always counts.
    """
    base = meeting.start[meeting.first][meeting.collective]
    arrival, end = meeting.start - base, meeting.end - base - slack
    span = int(max(arrival.max(), end.max())) + 2
    keys = meeting.collective[awaited] * span + arrival[awaited]
    last = np.searchsorted(keys, meeting.collective * span + np.maximum(end, -1), side="right") - 1
    begin = np.searchsorted(meeting.collective[awaited], meeting.collective)
    last = np.where(last >= begin, last, -1)
    return np.asarray(np.maximum(last, inverse_of(awaited, len(meeting.rows))))
