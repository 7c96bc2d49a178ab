from __future__ import annotations

from htagraph.queries.launched_work import launched
from tests.strategies import COMPUTE, annotation, kernel, launch, load, op


def test_a_launch_is_paired_with_the_work_that_it_launched() -> None:
    graph = load([annotation("a", 0, 90), op("b", 5, 50), launch(10, 2, 1), kernel(COMPUTE, 60, 5, 1)])
    assert [each.tolist() for each in launched(graph)] == [[2], [3]]
