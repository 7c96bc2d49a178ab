"""A small job of two ranks that trains on the host: gradients are summed by gloo after backward."""

from __future__ import annotations

from htagraph.graph.dependency_graph import DependencyGraph
from tests.strategies import Json, complete, load, op, step

GRADIENT = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
STEP_US = 5000


def job(optimizer: str = "optimize") -> DependencyGraph:
    """Return three steps of 5 ms: forward, two gradients with an operator between them, and an all-reduce.

    Times in a step, µs: gradients ready at 1200 and 2200, all-reduce asked for at 2300 and under way from 2350 to 4350,
    `optimizer` from 4400 to 4900.
    """
    return load({rank: [event for number in range(3) for event in _step(number, optimizer)] for rank in (0, 1)})


def _step(number: int, optimizer: str) -> list[Json]:
    at = number * STEP_US
    return [
        step(number, at, STEP_US), op("forward", at, 1000), op(GRADIENT, at + 1100, 100), op("back", at + 1300, 700),
        op(GRADIENT, at + 2100, 100), op("c10d::allreduce_", at + 2300, 20),
        complete("user_annotation", "gloo:all_reduce", at + 2350, 2000, tid=77), op(optimizer, at + 4400, 500),
    ]  # fmt: skip
