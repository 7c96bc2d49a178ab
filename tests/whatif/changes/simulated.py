"""Simulated jobs, recorded and read once, and how far a prediction is from the truth."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.simulate import REGIMES, Change, simulate
from htagraph.simulate.job import Job
from htagraph.whatif.scenario import Scenario


@cache
def recorded(job: Job) -> tuple[DependencyGraph, float]:
    """Return a job's graph and mean step time; written and read once."""
    with tempfile.TemporaryDirectory() as folder:
        done = simulate(job)
        done.write(folder, level=1, truth=False)
        return hg.load(folder), done.mean_step_ns


def error(job: Job, change: Callable[[Scenario], Scenario], truth: Change) -> float:
    """Return |predicted - true| / true of the mean step time."""
    graph, _ = recorded(job)
    true = simulate(job.model_copy(update={"changes": (truth,)})).mean_step_ns
    return abs(change(hg.what_if(graph)).run().mean_step_ns - true) / true


def small(regime: str) -> Job:
    """Return a regime's job with two ranks and three steps."""
    return REGIMES[regime]().model_copy(update={"ranks": 2, "steps": 3, "slow_ranks": (), "layers": 3})
