"""Which rank is the straggler: slow by its own steps, and charged most of the waiting. One answer for all that ask.

`htagraph stragglers`, the summary, the ranking of opportunities and ``--fix-straggler auto`` name the same rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.core.statistics import others_median
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.blame import CAUSES, Blame, blame_of, chains_of
from htagraph.queries.peers import peers
from htagraph.queries.replay import predict
from htagraph.queries.slow_ranks import SlowRanks, slow_ranks
from htagraph.queries.weights import initial, own_time, with_factor

__all__ = ["NOBODY", "SavedBy", "Straggler", "charges_of", "named_among", "straggler_among", "straggler_of"]

SavedBy: TypeAlias = Callable[[int, float, tuple[str, ...]], int]
"""By how much a job is shorter, ns, if a rank's work of some kinds takes a multiple of its time: given the rank, the
multiple, the kinds."""
NOBODY = ("recording", "clocks")
"""Causes for which no rank is charged."""
_MIN_STEP_SHARE = 0.004
"""Share of a step by which a straggler's own steps take longer than its peers' on average, at least.

Chosen: less is not worth a repair, as devices of one kind differ by that much. Doubled, a rank whose kernels are 1 %
slower in a job that computes for half of the time is not named."""
_MOST = 0.5
"""Share from which a part is the larger one: of what a rank exceeds its peers by, or of the waiting charged to it. It
cannot be doubled."""
_FROM_ONE = ("broadcast", "scatter")
"""Operations by which one rank gives its result to all others, which have to wait for it."""


@dataclass(frozen=True)
class Straggler:
    """Which rank holds up the others, and what is known where none is named."""

    rank: int | None
    """The straggler; None for none."""
    serves: int | None = None
    """The rank that takes longer as it does work that no other rank does, for whose result all others wait: the
    program has it so, and it is no straggler. None for none."""
    charged_most: int | None = None
    """The rank that most waiting is charged to; None where nobody is charged."""


def straggler_of(graph: DependencyGraph, slow: SlowRanks | None = None) -> Straggler:
    """Return which rank holds up the others.

    Args:
        graph: the job.
        slow: result of `slow_ranks`, where it is known already.

    Example:
        >>> import htagraph as hg
        >>> straggler_of(hg.load("data/demo")).rank
        2
    """
    if len(graph.ranks) < 2:
        return Straggler(None)
    blame = blame_of(graph, chains_of(graph))
    return straggler_among(graph, slow or slow_ranks(graph), blame)


def charges_of(graph: DependencyGraph, blame: Blame) -> npt.NDArray[np.int64]:
    """Return the waiting charged to each rank by cause, an index into `CAUSES`, ns; 0 where nobody is charged."""
    by_cause = np.zeros((len(graph.ranks), len(CAUSES)), np.int64)
    np.add.at(by_cause, (np.searchsorted(graph.ranks, blame.rank), blame.cause), blame.charged)
    by_cause[:, [CAUSES.index(word) for word in NOBODY]] = 0
    return by_cause


def straggler_among(graph: DependencyGraph, slow: SlowRanks, blame: Blame) -> Straggler:
    """Return which rank is slower than its peers by more than chance, if no other is charged more beyond its own.

    Somebody must wait for it, unless nobody can be charged for any wait.

    Args:
        graph: the job.
        slow: how much longer its ranks take for their steps.
        blame: what they are charged.
    """
    return named_among(graph, slow, blame, partial(_saved_ns, graph), lambda at: _alone_ns(graph, at, slow))


def named_among(
    graph: DependencyGraph, slow: SlowRanks, blame: Blame, saved_ns: SavedBy, alone_ns: Callable[[int], float]
) -> Straggler:  # fmt: skip
    """Return what `straggler_among` does, of a job whose work is looked at elsewhere.

    Args:
        graph: the job, of which ranks, waits and collectives are read.
        slow: how much longer its ranks take for their steps.
        blame: what they are charged.
        saved_ns: by how much the job is shorter if a rank, a stage of a pipeline, is as fast as the others.
        alone_ns: how long a rank, given by position, works in a step on what no other rank does, ns.
    """
    by_cause = charges_of(graph, blame)
    charged = by_cause.sum(axis=1)
    most = int(graph.ranks[int(charged.argmax())]) if charged.any() else None
    if not slow.slow.any():
        return Straggler(None, charged_most=most)
    at = int(slow.slow.argmax())
    others = others_median(charged, slow.roles)
    by_design = np.nan_to_num(others)  # a stage that takes longer is charged in all replicas
    nobody = bool(len(blame.cause)) and bool((blame.cause == CAUSES.index("clocks")).all())
    beyond = charged - by_design
    holds_up = slow.in_slow[at] * slow.when[at].mean() >= _MIN_STEP_SHARE * slow.lasted_ns
    if slow.stage is None:
        holds_up &= beyond[at] >= max(beyond.max(), 0 if nobody else 1)
    else:
        whole = int(graph.time.max()) - graph.origin_ns  # charges of stages are mostly by design
        saved = saved_ns(graph.ranks[at], 1 / slow.stage.ratio, slow.stage.kinds) if charged[at] > 0 else 0
        holds_up &= charged[at] > 0 and saved >= _MIN_STEP_SHARE * whole
    if not holds_up or by_cause[at, CAUSES.index("network")] > _MOST * charged[at]:
        return Straggler(None, charged_most=most)
    if _is_waited_for(graph, graph.ranks[at]) and alone_ns(at) > _MOST * slow.in_slow[at]:
        return Straggler(None, graph.ranks[at], most)
    return Straggler(graph.ranks[at], charged_most=most)


def _saved_ns(graph: DependencyGraph, rank: int, factor: float, kinds: tuple[str, ...]) -> int:
    """Return by how much the job is shorter if kinds of work of a rank take a multiple of their time, ns."""
    state = initial(graph)
    fixed = with_factor(state, own_time(state, {"rank": rank, "kind": list(kinds)}), factor)
    return int(graph.time.max()) - int(predict(graph, fixed.lag, fixed.gap).max())


def _is_waited_for(graph: DependencyGraph, rank: int) -> bool:
    """Return whether others wait for a rank mostly in operations by which it gives its result to them."""
    waits, matches = graph.waits, graph.matches
    if matches is None:
        return False
    rows = np.flatnonzero((waits.collective >= 0) & (waits.late >= 0) & (waits.wait > 0))
    rows = rows[graph.activities.rank[waits.late[rows]] == rank]
    gives = np.isin(np.array(matches.op)[waits.collective[rows]], _FROM_ONE)
    wait = waits.wait[rows]
    return bool(wait[gives].sum() > _MOST * wait.sum())


def _alone_ns(graph: DependencyGraph, at: int, slow: SlowRanks) -> float:
    """Return how long a rank works in a step on what no other rank does, ns: median over the steps where it is slow."""
    acts = graph.activities
    alone = of_kinds(acts.kind, (ActivityKind.OP, ActivityKind.COMPUTATION)) & (peers(graph) < 0)
    rows = np.flatnonzero(alone & (acts.rank == graph.ranks[at]))
    device = acts.kind[rows] == ActivityKind.COMPUTATION
    own = np.where(device, acts.duration[rows], graph.own_time[rows])
    steps = slow.steps[slow.when[at]]
    sums = [[own[(acts.step[rows] == step) & (device == side)].sum() for step in steps] for side in (True, False)]
    return float(np.median(sums, axis=1).max())
