"""The parts of all ranks → one job, with one numbering of activities, names and lanes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.naming import DEFAULT_NAMING, Naming
from htagraph.graph.activities import Activities, Lane
from htagraph.graph.construction.activities import RankPart
from htagraph.graph.evidence.job import Job
from htagraph.trace.columns import TEXTS, SparseColumn

__all__ = ["join"]


def join(ranks: list[RankPart], naming: Naming = DEFAULT_NAMING) -> Job:
    """Return the ranks' activities as one table, with one table of names and one of lanes."""
    ranks = sorted(ranks, key=lambda rank: rank.rest.rank)
    numbering: dict[str, int] = {}
    parts: list[Activities] = []
    lanes: list[Lane] = []
    first = 0
    boundaries, at_work = [], []
    for rank in ranks:
        names = np.array([numbering.setdefault(name, len(numbering)) for name in rank.names], np.int32)
        acts = rank.activities
        args = {
            column: SparseColumn(
                (sparse.rows + np.int32(first)),
                names[sparse.values] if column in TEXTS else sparse.values,
                sparse.missing,
            )
            for column, sparse in acts.args.items()
        }
        shift = np.int32(first)
        parts.append(
            replace(
                acts,
                name=names[acts.name],
                category=names[acts.category],
                lane=acts.lane + np.int32(len(lanes)),
                parent=_moved(acts.parent, shift),
                cause=_moved(acts.cause, shift),
                args=args,
            )
        )
        boundaries.append(rank.boundaries + 2 * shift)
        at_work.append(_moved(rank.at_work, shift))
        lanes += rank.lanes
        first += len(acts)
    traces = {rank.rest.rank: rank.rest for rank in ranks}
    issues = tuple(issue for rank in ranks for issue in rank.issues)
    return Job(
        Activities.concatenate(parts), tuple(numbering), tuple(lanes), traces,
        np.concatenate(boundaries), np.concatenate(at_work), issues, naming,
    )  # fmt: skip


def _moved(rows: Array, by: np.int32) -> npt.NDArray[np.int32]:
    """Return row numbers of a rank as those of the job; -1 stays."""
    return np.where(rows >= 0, rows + by, np.int32(-1)) if by else rows
