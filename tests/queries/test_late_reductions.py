"""Whether reductions behind a backward pass are told from reductions beside it, in jobs whose program is known."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph import DependencyGraph
from htagraph.queries.late_reductions import late_reductions
from tests.host_jobs import host_job, tensor_args
from tests.strategies import Json, annotation, op

STEPS, LAYERS, BACKWARD, REDUCTION = 3, 4, 100, 250
NODE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"


def reduction(begin: int, lasts: int, *, shapes: bool = True) -> list[Json]:
    """Return the operator that asks for an all-reduce, on the main thread, and the all-reduce on a thread of gloo."""
    recorded = annotation("gloo:all_reduce", begin + 1, lasts, tid=9)
    recorded["args"] = {"Input Dims": [[1000]], "Input type": ["float"]} if shapes else {}
    return [op("c10d::allreduce_", begin, 3, **tensor_args(1000, shapes=shapes)), recorded]


def training(program: str, *, shapes: bool = True) -> list[Json]:
    """Return steps that reduce gradients once behind the backward pass, or for each layer beside it."""
    events = list[Json]()
    at = 0
    for _ in range(STEPS):
        events.append(op("aten::mm", at, 50))
        at += 60
        for _ in range(LAYERS):
            events += [op(NODE, at, BACKWARD), op("torch::autograd::AccumulateGrad", at + BACKWARD - 10, 5)]
            if program == "beside":
                events += reduction(at + BACKWARD + 2, BACKWARD - 20, shapes=shapes)
            at += BACKWARD + 10
        if program == "behind":
            events += reduction(at, REDUCTION, shapes=shapes)
        elif program == "forward":
            events += [annotation("Optimizer.step#SGD.step", at, 10), *reduction(at + 20, REDUCTION, shapes=shapes)]
        at += REDUCTION + 20
        if program != "forward":
            events += [op("aten::div", at, 5), annotation("Optimizer.step#SGD.step", at + 10, 20)]
        at += 50
    return events


def job(program: str, *, shapes: bool = True) -> DependencyGraph:
    return host_job({rank: training(program, shapes=shapes) for rank in (0, 1)})


def test_reductions_behind_the_backward_pass_are_late() -> None:
    graph = job("behind")
    late = late_reductions(graph)
    assert late is not None
    names = {graph.names[name] for name in np.unique(graph.activities.name[late.activity]).tolist()}
    assert names == {"gloo:all_reduce"}
    assert len(late.activity) == 2 * STEPS
    assert late.is_all


@pytest.mark.parametrize("program", ["beside", "forward", "none"])
def test_reductions_beside_the_backward_pass_or_of_no_gradients_are_not_late(program: str) -> None:
    assert late_reductions(job(program)) is None
