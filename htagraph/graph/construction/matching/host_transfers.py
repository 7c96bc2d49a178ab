"""Which communication on host threads belongs together: sends and receives by partner, tag and order, the rest by step.

All members of a process group ask for its collectives in one order: within a step of one number, the n-th of a rank
belongs to the n-th of every other. A send ends once its data has left, a receive once it has come, so their ends may
lie a whole transfer apart. But with every backend in reach neither can end before the other has begun. Of one rank's
sends to another, the n-th belongs to the n-th receive there; only heads and tails may be missing from a recording.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.graph.construction.matching.members import Members
from htagraph.graph.construction.matching.timing_check import Team
from htagraph.graph.tolerances import LIMITS

__all__ = ["host_collectives", "host_transfers"]


_Complaint: TypeAlias = tuple[str, str, int, int]


def host_transfers(members: Members) -> tuple[list[Team], list[_Complaint]]:
    """Return (the pairs of sends and receives on hosts, complaints about those that contradict time).

    Args:
        members: the communication of all ranks, on their own clocks.
    """
    rows = np.flatnonzero(members.host_transfer)
    teams: list[Team] = []
    complaints: list[_Complaint] = []
    for group in np.unique(members.group[rows]).tolist():
        own = rows[members.group[rows] == group]
        send, receive = own[members.way[own] > 0], own[members.way[own] < 0]
        if group < 0 or not len(send) or not len(receive):
            continue
        shift = _shift(members, send, receive)
        grid = _grid(send, receive, shift)
        broken = _broken(members, grid)
        label = members.groups[group]
        if broken.sum() > max(1.0, LIMITS.damaged * grid.shape[1]):
            why = f"{label}: {int(broken.sum())} of {grid.shape[1]} sends and receives would end before the other began"
            complaints.append(("collectives_refused", f"{why}; not linked", grid.shape[1], -1))
            continue
        teams.append(Team(_by_rank(members, grid[:, ~broken]), label, "pg+order", 2))
    return teams, complaints


def host_collectives(members: Members) -> list[Team]:
    """Return the collectives on hosts of each known group whose ranks asked for the same in nearly every step.

    Where a rank has fewer in a step (a record was lost), their kinds, sizes and ends show which are missing. Groups in
    which more differs are left out: other evidence has to align them.

    Args:
        members: the communication of all ranks.
    """
    rows = np.flatnonzero(members.on_host & ~members.host_transfer & (members.group >= 0))
    teams = []
    for group in np.unique(members.group[rows]).tolist():
        own = rows[members.group[rows] == group]
        own = own[np.lexsort((members.asked[own], members.step[own], members.rank[own]))]
        ranks, line = np.unique(members.rank[own], return_inverse=True)
        new = (np.diff(members.rank[own]) != 0) | (np.diff(members.step[own]) != 0)
        first = np.maximum.accumulate(np.where(np.append(True, new), np.arange(len(own)), 0))
        place = np.stack([members.step[own], np.arange(len(own)) - first])
        column = np.unique(place, axis=1, return_inverse=True)[1].ravel()
        grid = np.full((len(ranks), int(column.max()) + 1), -1, np.int64)
        grid[line.ravel(), column] = own
        grid = _mended(members, grid) if len(ranks) > 1 else grid
        if len(ranks) > 1 and _same_in_every_step(members, grid):
            asked = np.where(grid >= 0, members.asked[grid], np.iinfo(np.int64).max).min(axis=0)
            grid = grid[:, np.argsort(asked, kind="stable")]
            teams.append(Team(grid, members.groups[group], "pg+order", int(members.group_size[group])))
    return teams


def _same_in_every_step(members: Members, grid: Array) -> bool:
    """Return whether ranks that have a step have the same collectives in it, and some steps are of several ranks.

    Where a rank has fewer in a step, the others fit.
    """
    held = grid >= 0
    step = np.where(held, members.step[grid], -2).max(axis=0)
    label = np.where(held, members.label[grid], -1)
    has_step = np.stack([np.isin(step, step[line]) for line in held])
    shared = (has_step & (step >= 0)).sum(axis=0) > 1
    lost = (has_step & ~held)[:, step >= 0].sum() <= LIMITS.lost * held.sum()
    outside = (held == has_step)[:, step < 0].all()
    return bool(((label == label.max(axis=0)) | ~held).all() and lost and outside and shared.any())


def _mended(members: Members, grid: Array) -> Array:
    """Return the table of a group's collectives with those of ranks that lack some of a step where they fit best.

    Args:
        members: the communication of all ranks.
        grid: a row per rank, a column per step and place in it; -1 where a rank has none.
    """
    held = grid >= 0
    step = np.where(held, members.step[grid], -2).max(axis=0)
    has_step = np.stack([np.isin(step, step[line]) for line in held])
    label = np.where(held, members.label[grid], -1)
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
                grid[line, columns] = -1
                grid[line, columns[at]] = own
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


def _by_rank(members: Members, grid: Array) -> Array:
    """Return the rows of a pair in the order of their ranks."""
    return grid if not grid.size or members.rank[grid[0, 0]] <= members.rank[grid[1, 0]] else grid[::-1]


def _grid(send: Array, receive: Array, shift: int) -> Array:
    """Return sends and receives side by side: send i beside receive i + shift."""
    low, high = max(0, -shift), min(len(send), len(receive) - shift)
    return np.stack([send[low:high], receive[low + shift : high + shift]])


def _shift(members: Members, send: Array, receive: Array) -> int:
    """Return by how many places receives are ahead of sends, because one of the recordings begins later.

    Where steps are numbered, both sides of a pair are in the same step. Else the shift is the one that time contradicts
    least and that leaves out fewest; of equal ones, the one that needs the smallest error of the clocks, and under
    which the receives end soonest after both sides have begun.
    """
    shifts = np.arange(1 - len(send), len(receive))
    middle = (len(receive) - len(send)) // 2
    shifts = shifts[np.argsort(np.abs(shifts - middle), kind="stable")][: LIMITS.compared]
    most = min(len(send), len(receive))
    costs = [_cost(members, _grid(send, receive, int(shift)), most) for shift in shifts]
    return int(shifts[min(range(len(costs)), key=costs.__getitem__)])


def _cost(members: Members, grid: Array, most: int) -> tuple[float, float, float, float]:
    """Return what speaks against a shift, weightiest first: other steps, contradictions, clock error, delay.

    Args:
        members: all communication.
        grid: sends and receives side by side.
        most: how many pairs there can be; those that the shift leaves out count as contradicted.
    """
    step = members.step[grid]
    numbered = (step >= 0).all(axis=0)
    same = float((step[0] == step[1])[numbered].mean()) if numbered.any() else 1.0
    clock = _clock(members, grid)
    contradicted = float(_broken(members, grid).sum()) + most - grid.shape[1]
    delay = float(np.median(members.end[grid[1]] - clock - _begin(members, grid, clock)))
    return (0.0 if same >= LIMITS.nearly_all else 1.0 - same), contradicted / most, abs(clock), delay


def _clock(members: Members, grid: Array) -> float:
    """Return by how much the receiver's clock must be ahead of the sender's, ns; 0 where that fits nearly all pairs."""
    least = float(np.quantile(members.start[grid[1]] - members.end[grid[0]], 1 - LIMITS.damaged)) - LIMITS.two_clocks_ns
    most = float(np.quantile(members.end[grid[1]] - members.start[grid[0]], LIMITS.damaged)) + LIMITS.two_clocks_ns
    return 0.0 if least <= 0 <= most or least > most else least if least > 0 else most


def _broken(members: Members, grid: Array) -> npt.NDArray[np.bool_]:
    """Return which pairs end on one side before they begin on the other, whatever the clocks show."""
    clock = _clock(members, grid)
    end = np.minimum(members.end[grid[0]], members.end[grid[1]] - clock)
    return np.asarray(_begin(members, grid, clock) > end + LIMITS.two_clocks_ns)


def _begin(members: Members, grid: Array, clock: float) -> Array:
    """Return when both sides of each pair have begun, ns on the sender's clock."""
    return np.asarray(np.maximum(members.start[grid[0]], members.start[grid[1]] - clock))
