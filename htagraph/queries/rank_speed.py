"""How fast each rank does work of the same names, where ranks do different amounts of it by design.

The stages of a pipeline have different layers. A slow device or host takes longer for whatever it does; a stage with
more to do takes longer for some of it. So the name counts whose ratio to the other ranks is smallest.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import work_times

__all__ = ["MIN_SHARE_OF_NAME", "rank_speed", "speed_of_sums"]

MIN_SHARE_OF_NAME = 0.03
"""Share of the compared time that a name takes on every rank, at least. Chosen: rare names vary too much by chance.
Doubled, fewer names are compared, and a rank that is slow in all of them by design is more likely."""
_MIN_NAMES = 3
"""Names that are needed: one or two can be slower by design. Chosen. Doubled, jobs of few operators are not judged."""


def rank_speed(graph: DependencyGraph, ranks: Array, steps: Array, *, device: bool) -> npt.NDArray[np.float64]:
    """Return how long some ranks take for the same work, by rank and step, ns: the time as if all names were as fast.

    Each name's mean time is divided by the median of the ranks; the smallest of these ratios, times the time that ranks
    usually spend in these names in a step, is the rank's value. NaN where too few names are common.

    Args:
        graph: the job.
        ranks: the ranks to compare, as positions in `graph.ranks`.
        steps: the numbers of the steps, ascending.
        device: True to compare kernels, False to compare the self times of operators.
    """
    step_of = graph.activities.step
    out = np.full((len(ranks), len(steps)), np.nan)
    rows, place, time = work_times(graph, ranks, device=device)
    some = (step_of[rows] >= 0) & np.isin(step_of[rows], steps)
    if not some.any():
        return out
    rows, place, time = rows[some], place[some], time[some]
    present, step = np.unique(step_of[rows], return_inverse=True)
    names, name = np.unique(graph.activities.name[rows], return_inverse=True)
    shape = (len(ranks), len(names), len(present))
    cell = np.ravel_multi_index((place, name.ravel(), step.ravel()), shape)
    total = np.bincount(cell, time, int(np.prod(shape))).reshape(shape)
    count = np.bincount(cell, minlength=int(np.prod(shape))).reshape(shape)
    speed = speed_of_sums(total, count, total.sum(axis=(1, 2)))
    if speed is not None:
        out[:, np.searchsorted(steps, present)] = speed
    return out


def speed_of_sums(total: Array, count: Array, whole: Array) -> npt.NDArray[np.float64] | None:
    """Return what `rank_speed` does, by rank and step; None where too few names are common.

    Args:
        total: the time by rank, name and step, ns.
        count: how many activities that is the time of.
        whole: the time of each rank in all names, ns.
    """
    of_rank = total.sum(axis=2) / np.maximum(whole, 1)[:, None]
    common = (of_rank >= MIN_SHARE_OF_NAME).all(axis=0) & (count > 0).all(axis=(0, 2))
    if common.sum() < _MIN_NAMES:
        return None
    mean = total[:, common] / count[:, common]
    usual = float(np.median(total[:, common].sum(axis=1)))
    return np.asarray((mean / np.median(mean, axis=0)).min(axis=1) * usual)
