"""When a thread waits for gradients that no recorded thread computes."""

from __future__ import annotations

import pytest

from htagraph.graph.measures.backward import Backward, backward_of
from tests.strategies import Json, annotation, load, op

_REGION = annotation("## backward ##", 0, 10_000)


@pytest.mark.parametrize(
    ("inside", "found"),
    [
        ([], Backward(10_000_000, 10_000_000)),
        ([op("aten::ones_like", 0, 100)], Backward(10_000_000, 9_900_000)),
        # a gradient is added up on the thread that asks for it; that says nothing of who computes it
        ([op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 9_000, 100)],
         Backward(10_000_000, 9_900_000)),
        ([op("MmBackward0", 100, 50, tid=99)], Backward(0, 0)),
        ([op("autograd::engine::evaluate_function: MmBackward0", 100, 50)], Backward(0, 0)),
    ],
)  # fmt: skip
def test_empty_time_counts_where_no_gradient_is_computed(inside: list[Json], found: Backward) -> None:
    assert backward_of(load([_REGION, *inside])) == {0: found}


def test_a_pass_that_is_mostly_operators_is_computed_here() -> None:
    (found,) = backward_of(load([_REGION, op("aten::mm", 0, 6_000)])).values()
    assert found == Backward(10_000_000, 4_000_000)
    assert not found.is_computed_elsewhere
    assert Backward(10_000_000, 6_000_000).is_computed_elsewhere


@pytest.mark.parametrize(
    ("name", "is_region"), [("backward", True), ("## backward ##", True), ("ToBackwardness", False), ("bwd", True)]
)
def test_regions_of_the_backward_pass_are_named_so(name: str, *, is_region: bool) -> None:
    (found,) = backward_of(load([annotation(name, 0, 1_000)])).values()
    assert (found.asked_ns > 0) is is_region
