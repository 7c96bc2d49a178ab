"""Groups matched by ids, steps or order, and the test of time: do starts and ends contradict them?

On host threads, all members of a process group ask for its collectives in one order: within a step of one number,
the n-th of a rank belongs to the n-th of every other. A send ends once its data has left, a receive once it has
come, so their ends may lie a whole transfer apart. But with every backend in reach neither can end before the other
has begun. Of one rank's sends to another, the n-th belongs to the n-th receive there; only heads and tails may be
missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask, coded
from htagraph.core.statistics import others_median
from htagraph.graph.clock_fits import feasible_offsets, fitted, medians
from htagraph.graph.construction.matching.alignment import slope
from htagraph.graph.construction.matching.members import Members
from htagraph.graph.tolerances import LIMITS

__all__ = ["Complaint", "Team", "aligned", "host_collectives", "host_transfers", "tested", "times"]

Complaint: TypeAlias = tuple[str, str, int, int]
"""What was refused, why, how many collectives, and the rank, or -1."""


@dataclass(frozen=True, eq=False)
class Team:
    """The collectives of one group: a row of `rows` per rank, a column per collective, -1 where a rank has none."""

    rows: Ints
    label: str
    key: str
    size: int


def times(members: Members, grid: Array) -> tuple[Array, Array]:
    """Return (ends, starts) as floats since the first start, nan where there is no member."""
    held = grid >= 0
    origin = int(members.start[grid[held]].min()) if held.any() else 0
    return (np.where(held, members.end[grid] - origin, np.nan), np.where(held, members.start[grid] - origin, np.nan))


def aligned(end: Array, start: Array, use: Array) -> tuple[Array, Array]:
    """Return the times less each rank's own offset and drift, as seen in the ends of the columns to use."""
    columns = np.flatnonzero(use & (np.isfinite(end).sum(axis=0) > 1))
    if not len(columns):
        return end, start
    columns = columns[:: -(-len(columns) // LIMITS.collectives)]
    offset, _ = fitted(end[:, columns].T, np.zeros(len(columns)), drifting=False)  # ranks may lack most of the columns
    end, start = end - offset[:, None], start - offset[:, None]
    for turn in range(6):
        off = end[:, columns] - medians(end[:, columns], axis=0)
        for lines, known in _alike(np.isfinite(off)):
            if not known.any():
                continue
            when, value = end[np.ix_(lines, columns[known])], off[np.ix_(lines, known)]
            move, drift = np.median(value, axis=1), _trend(when, value) if turn > 2 else np.zeros(len(lines))
            centre = np.median(when, axis=1)
            for each in (end, start):
                each[lines] -= move[:, None] + drift[:, None] * (each[lines] - centre[:, None])
    return end, start


def _alike(known: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the lines of a mask that are equal, as indices, with that line."""
    lines: dict[bytes, list[int]] = {}
    for number, line in enumerate(np.packbits(known, axis=1)):
        lines.setdefault(line.tobytes(), []).append(number)
    for equal in lines.values():
        yield np.array(equal), known[equal[0]]


def _trend(when: Array, value: Array) -> npt.NDArray[np.float64]:
    """Return by how much the values of each row grow, as the medians of its first and last third show it."""
    third = value.shape[1] // 3
    if value.shape[1] < 2 * LIMITS.proof:
        return np.zeros(len(value))
    run, rise = (np.median(each[:, -third:], axis=1) - np.median(each[:, :third], axis=1) for each in (when, value))
    return np.where(run > 0, rise / np.where(run > 0, run, 1.0), 0.0)


def tested(members: Members, teams: list[Team]) -> tuple[list[Team], list[Complaint]]:
    """Return (the groups that time does not contradict, without the ranks it does, (what, why, count, rank) of it)."""
    kept, issues = [], []
    for team in teams:
        grid, present = team.rows, (team.rows >= 0).sum(axis=0)
        grid = grid[:, present > 1]
        grid = grid[(grid >= 0).any(axis=1)]
        if not grid.size:
            continue
        if team.key.endswith("order") and not members.on_host[grid.max()]:
            grid = _without_neighbours(members, grid)
        grid, complaints = _without_strangers(members, grid, team) if len(grid) > 1 else (grid[:0], [])
        issues += complaints
        if grid.size:
            kept.append(Team(grid, team.label, team.key, team.size))
    return kept, issues


def _without_neighbours(members: Members, grid: Array) -> Array:
    """Return a table matched by order without members that end with the collective before or after their own.

    Where a record was lost, order puts what lies around it beside its neighbours, which they touch in time.
    """
    barrier = np.flatnonzero(members.barrier[grid.max(axis=0)])
    end, _ = aligned(*times(members, grid[:, barrier]), np.ones(len(barrier), np.bool_))
    others = _median_of_others(end)
    apart = np.abs(end - others)
    if len(barrier) < 2 or not np.isfinite(apart).any():
        return grid
    usual = float(np.nanmedian(apart)) + LIMITS.resolution_ns
    edge = np.full((len(end), 1), np.nan)
    beside = [np.hstack((edge, others[:, :-1])), np.hstack((others[:, 1:], edge))]
    nearer = [np.abs(end - other) < apart for other in beside]  # False where either is unknown
    grid = grid.copy()
    grid[:, barrier] = np.where((apart > LIMITS.spreads * usual) & (nearer[0] | nearer[1]), -1, grid[:, barrier])
    grid = grid[:, (grid >= 0).sum(axis=0) > 1]
    return grid[(grid >= 0).any(axis=1)]


def _without_strangers(members: Members, grid: Array, team: Team) -> tuple[Array, list[Complaint]]:
    """Drop ranks that do not fit, then collectives that do not; all of the group where too many remain."""
    issues: list[Complaint] = []
    barrier, on_host = members.barrier[grid.max(axis=0)], bool(members.on_host[grid.max()])
    while len(grid) > 1:
        end, start = _on_one_clock(*times(members, grid), barrier, on_host=on_host)
        broken = _broken(end, start) & barrier
        many = broken.sum() > LIMITS.damaged * max(1, barrier.sum())
        line = _culprit(end, start, barrier) if many else -1 if on_host else _foreigner(end, start, barrier)
        if not many and line < 0:
            grid = grid[:, ~broken]
            break
        if line < 0 or len(grid) == 2:
            why = (
                f"{team.label}: of {int(barrier.sum())} collectives matched by {team.key}, {int(broken.sum())} would "
                "end on one rank before they start on another" if many else
                f"{team.label}: ends of collectives matched by {team.key} follow each rank's own arrivals"
            )  # fmt: skip
            return grid[:0], [*issues, ("collectives_refused", f"{why}; not linked", grid.shape[1], -1)]
        rank = int(members.rank[grid[line].max()])
        why = f"{team.label}: collectives of rank {rank} do not end with those of the other ranks; not linked"
        issues.append(("collectives_refused", why, int((grid[line] >= 0).sum()), rank))
        grid = np.delete(grid, line, axis=0)
        stays = (grid >= 0).sum(axis=0) > 1
        grid, barrier = grid[:, stays], barrier[stays]
    return (grid, issues) if len(grid) > 1 else (grid[:0], issues)


def _on_one_clock(end: Array, start: Array, barrier: Array, *, on_host: bool) -> tuple[Array, Array]:
    """Return (ends, starts) under the clocks that are contradicted least: those recorded, or those that times suggest.

    Collectives on a device end together, which shows the offsets of clocks. Those on host threads do not: the last
    bytes may reach one rank long before another. There only what arrivals allow counts.
    """
    use = barrier if barrier.any() else np.ones(end.shape[1], np.bool_)
    options = [(end, start)]
    if on_host:
        offset = feasible_offsets(end[:, use].T, start[:, use].T)[:, None]
        options.append((end - offset, start - offset))
    else:
        options.insert(0, aligned(end, start, use))
    count = [int((_broken(*option) & barrier).sum()) for option in options]
    return options[int(np.argmin(count))]


def _broken(end: Array, start: Array) -> Mask:
    """Return in which columns a member starts after another has ended."""
    last, first = _arrivals_and_ends(end, start)
    return np.asarray(last.max(axis=0) > first.min(axis=0) + LIMITS.tick_ns)


def _arrivals_and_ends(end: Array, start: Array) -> tuple[Array, Array]:
    """Return (starts, ends), infinitely early and late where there is no member."""
    last, first = (np.where(np.isfinite(x), x, fill) for x, fill in ((start, -np.inf), (end, np.inf)))
    return last, first


def _culprit(end: Array, start: Array, barrier: Array) -> int:
    """Return the row without which fewest barriers are broken; -1 where no row makes much of a difference."""
    arrived, ended = _arrivals_and_ends(end, start)
    last, first = _largest_of_others(arrived), -_largest_of_others(-ended)
    left = [int(((late > soon + LIMITS.tick_ns) & barrier).sum()) for late, soon in zip(last, first, strict=True)]
    best = int(np.argmin(left))
    return best if left[best] <= LIMITS.most * (_broken(end, start) & barrier).sum() else -1


def _foreigner(end: Array, start: Array, barrier: Array) -> int:
    """Return the row whose ends do not keep to the others' ends: it was recorded in another run; -1 for none."""
    end, start = end[:, barrier], start[:, barrier]
    spreads, slopes, reaches = (np.zeros(len(end)) for _ in range(3))
    middle, last = _median_of_others(end), _largest_of_others(np.where(np.isfinite(start), start, -np.inf))
    for line in range(len(end)):
        known = np.isfinite(middle[line])
        if known.sum() < LIMITS.proof:
            continue
        apart = end[line, known] - middle[line, known]
        late = start[line, known] - last[line, known]
        slopes[line], _, spreads[line], reaches[line] = slope(apart, late, end[line, known])
    limit = LIMITS.spreads * (float(np.median(spreads)) + LIMITS.resolution_ns)
    if len(end) == 2:  # there are no others to compare with
        limit = 2.0 * LIMITS.ends_ns
    brought = spreads < LIMITS.most * reaches  # far closer than the arrivals: they did wait for each other
    suspect = (spreads > limit) & ((slopes > LIMITS.slope) | (~brought & (len(end) > 2)))
    return int(np.argmax(np.where(suspect, spreads, -1.0))) if suspect.any() else -1


def _largest_of_others(values: Array) -> Array:
    """Return for each value the largest of the other values in its column; there are at least two rows."""
    second, top = np.sort(np.partition(values, -2, axis=0)[-2:], axis=0)
    largest = np.broadcast_to(top, values.shape).copy()
    largest[values.argmax(axis=0), np.arange(values.shape[1])] = second
    return largest


def _median_of_others(values: Array) -> npt.NDArray[np.float64]:
    """Return for each value the median of the others in its column, nan left out; nan where it or all others are."""
    column = np.where(np.isfinite(values), np.arange(values.shape[1]), -1)
    return others_median(values.ravel(), column.ravel()).reshape(values.shape)


def host_transfers(members: Members, hosts: Mapping[int, int]) -> tuple[list[Team], list[Complaint]]:
    """Return (the pairs of sends and receives on hosts, complaints about those that contradict time).

    `hosts` has the number of each rank's host, where it is known: ranks of one host share its clock.
    """
    rows = np.flatnonzero(members.host_transfer)
    teams: list[Team] = []
    complaints: list[Complaint] = []
    for group in np.unique(members.group[rows]).tolist():
        own = rows[members.group[rows] == group]
        send, receive = own[members.way[own] > 0], own[members.way[own] < 0]
        if group < 0 or not len(send) or not len(receive):
            continue
        one, other = (hosts.get(int(members.rank[each[0]]), -1) for each in (send, receive))
        for one_clock, by_step in product((True, False)[one != other or one < 0 :], (True, False)):
            grid = _fitting(members, send, receive, one_clock=one_clock, by_step=by_step)
            broken = _broken_pairs(members, grid, 0.0 if one_clock else _clock(members, grid))
            if broken.sum() <= LIMITS.damaged * grid.shape[1]:
                break
        label = members.groups[group]
        if broken.sum() > max(1.0, LIMITS.damaged * grid.shape[1]):
            why = f"{label}: {int(broken.sum())} of {grid.shape[1]} sends and receives would end before the other began"
            complaints.append(("collectives_refused", f"{why}; not linked", grid.shape[1], -1))
            continue
        ordered = not grid.size or members.rank[grid[0, 0]] <= members.rank[grid[1, 0]]
        teams.append(Team(grid[:: 1 if ordered else -1, ~broken], label, "pg+order", 2))
    return teams, complaints


def host_collectives(members: Members) -> list[Team]:
    """Return the collectives on hosts of each known group whose ranks asked for the same in nearly every step.

    Where a rank has fewer in a step (a record was lost), their kinds, sizes and ends show which are missing. Groups in
    which more differs are left out: other evidence has to align them.
    """
    rows = np.flatnonzero(members.on_host & ~members.host_transfer & (members.group >= 0))
    teams = []
    for group in np.unique(members.group[rows]).tolist():
        own = rows[members.group[rows] == group]
        own = own[np.lexsort((members.asked[own], members.step[own], members.rank[own]))]
        ranks, line = np.unique(members.rank[own], return_inverse=True)
        new = (np.diff(members.rank[own]) != 0) | (np.diff(members.step[own]) != 0)
        first = np.maximum.accumulate(np.where(np.append(True, new), np.arange(len(own)), 0))
        column = coded(members.step[own], np.arange(len(own)) - first)
        grid = np.full((len(ranks), int(column.max()) + 1), -1, np.int64)
        grid[line.ravel(), column] = own
        grid = _mended(members, grid) if len(ranks) > 1 else grid
        if len(ranks) > 1 and _same_in_every_step(members, grid):
            asked = np.where(grid >= 0, members.asked[grid], np.iinfo(np.int64).max).min(axis=0)
            grid = grid[:, np.argsort(asked, kind="stable")]
            teams.append(Team(grid, members.groups[group], "pg+order", int(members.group_size[group])))
    return teams


def _same_in_every_step(members: Members, grid: Array) -> bool:
    """Return whether ranks that have a step have the same collectives in it, and some steps are of several ranks."""
    held, step, label, has_step = _by_step(members, grid)
    shared = (has_step & (step >= 0)).sum(axis=0) > 1
    lost = (has_step & ~held)[:, step >= 0].sum() <= (1 - LIMITS.nearly_all) * held.sum()
    outside = (held == has_step)[:, step < 0].all()
    return bool(((label == label.max(axis=0)) | ~held).all() and lost and outside and shared.any())


def _by_step(members: Members, grid: Array) -> tuple[Array, Array, Array, Array]:
    """Return (which collectives each rank has, the step of each column, their labels, which ranks have which steps)."""
    held = grid >= 0
    step = np.where(held, members.step[grid], -2).max(axis=0)
    has_step = np.stack([np.isin(step, step[line]) for line in held])
    return held, step, np.where(held, members.label[grid], -1), has_step


def _mended(members: Members, grid: Array) -> Array:
    """Return the table of a group's collectives with those of ranks that lack some of a step where they fit best."""
    held, step, label, has_step = _by_step(members, grid)
    unlike = (((label != label.max(axis=0)) | ~held) & has_step).any(axis=0)
    odd = np.unique(step[unlike & (step >= 0)])
    end = np.where(held, members.end[grid], 0)
    sound = held & ~np.isin(step, odd)
    grid = grid.copy()
    for number in odd.tolist():
        columns = np.flatnonzero(step == number)
        fullest = int(held[:, columns].sum(axis=1).argmax())
        whole = grid[fullest, columns]
        for line in np.flatnonzero(held[:, columns].any(axis=1)).tolist():
            own = grid[line, columns][held[line, columns]]
            both = sound[line] & sound[fullest]
            offset = float(np.median((end[line] - end[fullest])[both])) if both.any() else 0.0
            apart = np.abs((members.end[own][:, None] - members.end[whole]) - offset)
            cost = np.where(members.label[own][:, None] == members.label[whole], apart, np.inf)
            at = _in_order(cost)
            if at is not None:
                free = np.delete(cost, at, axis=1).min(axis=1, initial=np.inf)
                clear = free >= LIMITS.times_worse * cost[np.arange(len(at)), at]
                grid[line, columns] = -1
                grid[line, columns[at[clear]]] = own[clear]
    return grid


def _in_order(cost: Array) -> Array | None:
    """Return ascending columns, one per row of a table of costs, that cost least together; None where none do."""
    rows, columns = cost.shape
    least = np.full((rows + 1, columns + 1), np.inf)
    least[0] = 0.0
    for row in range(rows):
        least[row + 1, 1:] = np.minimum.accumulate(least[row, :-1] + cost[row])
    if not np.isfinite(least[rows, columns]):
        return None
    out = np.zeros(rows, np.int64)
    last = columns
    for row in range(rows, 0, -1):
        last = int(np.searchsorted(-least[row, : last + 1], -least[row, last]))  # the first that costs no more
        out[row - 1] = last - 1
        last -= 1
    return out


def _side_by_side(send: Array, receive: Array, shift: int) -> Array:
    """Return sends and receives side by side: send i beside receive i + shift."""
    low, high = max(0, -shift), min(len(send), len(receive) - shift)
    return np.stack([send[low:high], receive[low + shift : high + shift]])


def _fitting(members: Members, send: Array, receive: Array, *, one_clock: bool, by_step: bool) -> Array:
    """Return sends and receives side by side: one of the recordings may begin later.

    Where steps are numbered alike on both sides, both sides of a pair are in the same step. Else the shift is the one
    that time contradicts least and that leaves out fewest; of equal ones, the one that needs the smallest error of the
    clocks, and under which the receives end soonest after both sides have begun.
    """
    shifts = np.arange(1 - len(send), len(receive))
    middle = (len(receive) - len(send)) // 2
    shifts = shifts[np.argsort(np.abs(shifts - middle), kind="stable")][: LIMITS.compared]
    most = min(len(send), len(receive))

    def cost(shift: int) -> tuple[float, float, float, float]:
        """Return what speaks against a shift: other steps, pairs contradicted or left out, clock error, delay."""
        grid = _side_by_side(send, receive, shift)
        step = members.step[grid]
        numbered = (step >= 0).all(axis=0)
        same = float((step[0] == step[1])[numbered].mean()) if by_step and numbered.any() else 1.0
        clock = 0.0 if one_clock else _clock(members, grid)
        contradicted = float(_broken_pairs(members, grid, clock).sum()) + most - grid.shape[1]
        delay = float(np.median(members.end[grid[1]] - clock - _begin(members, grid, clock)))
        return (0.0 if same >= LIMITS.nearly_all else 1.0 - same), contradicted / most, abs(clock), delay

    return _side_by_side(send, receive, min(shifts.tolist(), key=cost))


def _clock(members: Members, grid: Array) -> float:
    """Return by how much the receiver's clock must be ahead of the sender's, ns; 0 where that fits nearly all pairs."""
    least = float(np.quantile(members.start[grid[1]] - members.end[grid[0]], 1 - LIMITS.damaged)) - LIMITS.two_clocks_ns
    most = float(np.quantile(members.end[grid[1]] - members.start[grid[0]], LIMITS.damaged)) + LIMITS.two_clocks_ns
    return 0.0 if least <= 0 <= most or least > most else least if least > 0 else most


def _broken_pairs(members: Members, grid: Array, clock: float) -> Mask:
    """Return which pairs end on one side before they begin on the other, under some error of the receiver's clock."""
    end = np.minimum(members.end[grid[0]], members.end[grid[1]] - clock)
    return np.asarray(_begin(members, grid, clock) > end + LIMITS.two_clocks_ns)


def _begin(members: Members, grid: Array, clock: float) -> Array:
    """Return when both sides of each pair have begun, ns on the sender's clock."""
    return np.asarray(np.maximum(members.start[grid[0]], members.start[grid[1]] - clock))
