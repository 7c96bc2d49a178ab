"""What bounds a job, and how much of it nothing explains: the one definition that every command uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import EdgeKind, GapKind
from htagraph.core.naming import has_loader_workers, names_that

if TYPE_CHECKING:
    from htagraph.queries.paths import CriticalPath, Segments

__all__ = ["Bound", "bound_of"]

Array: TypeAlias = npt.NDArray[Any]
_MIN_WAITING_STEPS = 0.5
"""Share of the calls of a loader with workers that must wait on the path. Chosen: most of them. It cannot be doubled;
at 1, one batch that was ready in time would make the workers look fast enough."""
_MIN_WAIT_SHARE = 0.05
"""Share of the path that waits for workers. Chosen: less than the spread of steps is no bound. Doubled, loaders that
are 5 to 10 % slower than a step are not named as what bounds the job."""


@dataclass(frozen=True)
class Bound:
    """What most of a critical path is spent on.

    `cause` is the category with the largest share of the path, the head (before the first recorded moment) left out;
    or ``data_loading`` where most batches of a loader with worker processes are waited for, and these waits are at
    least 5 % of the path: the workers prepare the next batch while everything else on the path runs, so that they set
    the pace, and a faster host or device only waits longer.
    """

    cause: str
    """A category of `CriticalPath.to_frame`; empty for a path without any time."""
    shares: Mapping[str, float]
    """Percent of the path by category, the largest first; they sum to 100."""
    ranks: Mapping[int, float]
    """Percent of the path by rank, the largest first."""
    by_workers: bool
    """Whether the worker processes of a data loader set the pace."""
    unexplained: Mapping[str, float]
    """Percent of the path by kind of unexplained gap (a word of `GapKind`), the largest first; they sum to the share of
    the category ``gap``."""

    @property
    def unexplained_percent(self) -> float:
        """How much of the path no dependency explains, percent."""
        return self.shares.get("gap", 0.0)


def bound_of(path: CriticalPath) -> Bound:
    """Return what bounds the window of a critical path.

    Example:
        >>> import htagraph as hg
        >>> bound = bound_of(hg.critical_path(hg.load("data/demo")))
        >>> bound.cause, bound.by_workers
        ('computation', False)
    """
    from htagraph.queries.paths import CATEGORIES

    parts = path.segments
    rank = path.graph.activities.rank[parts.place] if len(parts) else np.zeros(0, np.int64)
    shares = {CATEGORIES[code]: share for code, share in _shares(parts.category, parts.length).items()}
    gap = parts.category == CATEGORIES.index("gap")
    total = int(parts.length.sum())
    unexplained = _shares(parts.gap[gap], parts.length[gap], total)
    by_workers = _waits_for_workers(path, parts, parts.category == CATEGORIES.index("data_loading"))
    causes = [category for category in shares if category != "head"] or list(shares)
    return Bound(
        cause="data_loading" if by_workers else causes[0] if causes else "",
        shares=shares,
        ranks={int(key): share for key, share in _shares(rank, parts.length).items()},
        by_workers=by_workers,
        unexplained={GapKind(key).label: share for key, share in unexplained.items()},
    )


def _shares(codes: Array, length: Array, total: int | None = None) -> dict[int, float]:
    """Return the percentage of each code, the largest first."""
    keys, inverse = np.unique(codes, return_inverse=True)
    sums = np.bincount(inverse.ravel(), length, len(keys))  # exact: sums of ns below 2^53
    whole = max(1, int(length.sum()) if total is None else total)
    return {int(keys[i]): 100 * float(sums[i]) / whole for i in np.argsort(-sums, kind="stable")}


def _waits_for_workers(path: CriticalPath, parts: Segments, loading: Array) -> bool:
    """Return whether most batches of a loader with workers are waited for on the path."""
    graph = path.graph
    acts = graph.activities
    owner = graph.edges.activity[graph.edges.kind == EdgeKind.DATALOADER]
    with_workers = names_that(has_loader_workers, graph.names)
    if not len(owner) or not with_workers[acts.name[owner]].any():
        return False
    waits = loading & with_workers[acts.name[parts.activity]]
    total = int(parts.length.sum())
    if parts.length[waits].sum() < _MIN_WAIT_SHARE * total:
        return False
    ranks = np.unique(acts.rank[parts.place[waits]])
    calls = np.unique(owner[with_workers[acts.name[owner]] & np.isin(acts.rank[owner], ranks)])
    inside = (graph.time[2 * calls] >= path.window[0]) & (graph.time[2 * calls + 1] <= path.window[1])
    # of several ranks with loaders the path follows one at a time
    expected = int(inside.sum()) / max(1, len(ranks))
    _, call = np.unique(parts.activity[waits], return_inverse=True)
    waited = np.bincount(call.ravel(), parts.length[waits])
    return int((waited >= _MIN_WAIT_SHARE * total / max(1.0, expected)).sum()) >= _MIN_WAITING_STEPS * expected
