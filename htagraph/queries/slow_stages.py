"""Which stage of a pipeline takes longer than the others: stages do different work, so that is no straggler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.own_steps import own_steps
from htagraph.queries.peers import rank_roles

__all__ = ["SlowStage", "slow_stage"]

_MIN_SHARE_OF_STEPS = 0.8
"""Share of the steps in which the stage takes longest, at least. Chosen: of stages that take turns by chance none is
named; a step that went another way hides nothing. It cannot be doubled."""


@dataclass(frozen=True)
class SlowStage:
    """The stage that takes longest, and what each stage does by itself in a step: without waits and transfers."""

    ranks: tuple[int, ...]
    """The ranks of the stage: one, or the same stage of several pipelines."""
    own_ns: float
    """What they do by themselves in a step, median over them and the steps."""
    others: tuple[int, ...]
    """The ranks of the other stages."""
    least_ns: float
    """The same of the other stage that does least."""
    most_ns: float
    """The same of the other stage that does most."""
    even: dict[int, float]
    """By rank of all stages: the factor by which its own work changes if all stages of a pipeline do equally much."""
    steps: int
    """Steps that were compared."""


def slow_stage(graph: DependencyGraph) -> SlowStage | None:
    """Return the stage that takes longer than every other one in most steps; None if there is none, or no pipeline.

    Ranks that send to each other one by one are stages (`rank_roles`). A job has a stage of each number in every
    pipeline; these do the same work and are compared with the other numbers together.

    Args:
        graph: the job.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> slow_stage(graph) is None  # its ranks are replicas
        True
    """
    roles, pipeline = rank_roles(graph)
    staged = np.flatnonzero(np.bincount(pipeline)[pipeline] > 1)
    stages, at = np.unique(roles[staged], return_inverse=True)
    if len(stages) < 2:
        return None
    work = own_steps(graph).work[staged]
    work = work[:, ~np.isnan(work).any(axis=0)]
    if not work.shape[1]:
        return None
    by_stage = np.stack([np.median(work[at.ravel() == number], axis=0) for number in range(len(stages))])
    own = np.median(by_stage, axis=1)
    slow = int(own.argmax())
    if (by_stage.argmax(axis=0) == slow).mean() < _MIN_SHARE_OF_STEPS or own[slow] <= 0 or own.min() <= 0:
        return None
    ranks = np.array(graph.ranks)[staged]
    rest = np.delete(own, slow)
    return SlowStage(
        ranks=tuple(ranks[at.ravel() == slow].tolist()),
        own_ns=float(own[slow]),
        others=tuple(ranks[at.ravel() != slow].tolist()),
        least_ns=float(rest.min()),
        most_ns=float(rest.max()),
        even=dict(zip(ranks.tolist(), (own.mean() / own)[at.ravel()].tolist(), strict=True)),
        steps=work.shape[1],
    )
