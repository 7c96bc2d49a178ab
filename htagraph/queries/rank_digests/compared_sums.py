"""What sums of work by name tell about the ranks of a job, where single activities are not known."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.queries.rank_digests.work_sums import ALL_NAMES, WorkSums
from htagraph.queries.rank_speed import speed_of_sums

__all__ = ["alone_ns", "counts_of", "excess_by_side", "speed_among"]


def counts_of(sums: Sequence[WorkSums], places: Array) -> npt.NDArray[np.float64]:
    """Return how many operators of each name some ranks have in a step, a row per rank.

    Args:
        sums: by rank, its work by name.
        places: the positions of these ranks.
    """
    some = [sums[place] for place in places.tolist()]
    names = np.unique(np.concatenate([each.program for each in some]))
    counts = np.zeros((len(some), len(names)))
    for row, each in enumerate(some):
        np.add.at(counts[row], np.searchsorted(names, each.program), each.instances / each.steps)
    return counts


def speed_among(sums: Sequence[WorkSums], places: Array, steps: Array, device: bool) -> npt.NDArray[np.float64]:  # noqa: FBT001 - a `SpeedOf`
    """Return what `rank_speed` does: how long some ranks take for the same work, by rank and step, ns.

    Args:
        sums: by rank, its work by name.
        places: the positions of these ranks.
        steps: the numbers of the steps, ascending.
        device: True to compare kernels, False to compare operators.
    """
    parts = []
    for row, place in enumerate(places.tolist()):
        each = sums[place]
        some = (each.device == int(device)) & np.isin(each.step, steps)
        parts.append(np.stack([np.full(int(some.sum()), row), *(
            column[some] for column in (each.name, each.step, each.calls, each.total))]))  # fmt: skip
    row, name, step, calls, total = np.concatenate(parts, axis=1)
    present, step = np.unique(step, return_inverse=True)
    known = name != ALL_NAMES
    names, code = np.unique(name[known], return_inverse=True)
    shape = (len(places), len(names), len(present))
    times, count, whole = np.zeros(shape), np.zeros(shape, np.int64), np.zeros(len(places))
    cell = row[known], code.ravel(), step.ravel()[known]
    np.add.at(times, cell, total[known])
    np.add.at(count, cell, calls[known])
    np.add.at(whole, row[~known], total[~known])
    out = np.full((len(places), len(steps)), np.nan)
    speed = speed_of_sums(times, count, whole)
    if speed is not None:
        out[:, np.searchsorted(steps, present)] = speed
    return out


def alone_ns(sums: Sequence[WorkSums], at: int, steps: Array) -> float:
    """Return how long a rank works in a step on what no other rank does, ns: median over steps, of the larger side.

    Of each name, as many calls are its own as it has more than every other rank.

    Args:
        sums: by rank, its work by name.
        at: the position of the rank.
        steps: the steps in which it is slow.
    """
    own = sums[at]
    most: dict[tuple[int, int, int], int] = {}
    for place, each in enumerate(sums):
        if place != at:
            some = np.isin(each.name, own.name) & np.isin(each.step, steps)
            for *key, calls in zip(*(column[some].tolist() for column in each[3:7]), strict=True):
                side, name, step = key
                most[side, name, step] = max(most.get((side, name, step), 0), calls)
    times = {(side, int(step)): 0.0 for side in (0, 1) for step in steps.tolist()}
    for side, name, step, calls, total in zip(*(column.tolist() for column in own[3:8]), strict=True):
        if name != ALL_NAMES and (side, step) in times:
            times[side, step] += total * max(calls - most.get((side, name, step), 0), 0) / calls
    by_side = [[time for (side, _), time in times.items() if side == each] for each in (0, 1)]
    return max((float(np.median(each)) for each in by_side if each), default=0.0)


def excess_by_side(sums: Sequence[WorkSums], at: int, peers: Array, steps: Array) -> tuple[float, float]:
    """Return by how much a rank's (kernels, operators) take longer in a step than its peers', ns: median over steps.

    Args:
        sums: by rank, its work by name.
        at: the position of the rank.
        peers: the positions of those that it is compared with.
        steps: the steps to look at.
    """
    out = []
    for side in (1, 0):
        times = np.full((1 + len(peers), len(steps)), np.nan)
        for row, place in enumerate([at, *peers.tolist()]):
            each = sums[place]
            some = (each.device == side) & (each.name == ALL_NAMES) & np.isin(each.step, steps)
            times[row, np.searchsorted(steps, each.step[some])] = each.total[some]
        known = np.isfinite(times).all(axis=0)
        beyond = times[0, known] - np.median(times[1:, known], axis=0) if len(peers) else np.zeros(0)
        out.append(float(np.median(beyond)) if len(beyond) else 0.0)
    return out[0], out[1]
