"""Where the window of some steps and ranks begins and ends."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from htagraph.core.errors import SelectionError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.path_window import path_in_window
from tests.strategies import COMPUTE, Job, jobs, kernel, launch, load, op, step


@pytest.fixture(scope="module")
def graph() -> DependencyGraph:
    """Two ranks with steps 1 (from 10 to 30 µs) and 2 (from 30 to 50 µs), whose kernels end 5 and 15 µs later."""

    def rank(late: int) -> list[dict[str, object]]:
        return [
            op("init", 0, 5), step(1, 10, 20), step(2, 30, 20),
            launch(12, 2, 1), kernel(COMPUTE, 15, 20, 1), launch(32, 2, 2), kernel(COMPUTE, 40, 15 + late, 2),
        ]  # fmt: skip

    return load({0: rank(0), 1: rank(10)})


@pytest.mark.parametrize(
    ("steps", "ranks", "begin", "end"),
    [
        (None, None, 0, 65), (1, None, 10, 35), (2, None, 30, 65), ([1, 2], None, 10, 65), (2, 0, 30, 55),
        (None, 0, 0, 55), ([1, 2], [0, 1], 10, 65),
    ],
)  # fmt: skip
def test_a_window_is_from_the_first_begin_to_the_last_end(
    graph: DependencyGraph, steps: object, ranks: object, begin: int, end: int
) -> None:
    path = path_in_window(graph, steps, ranks)  # type: ignore[arg-type]
    assert [(moment - graph.origin_ns) / 1000 for moment in path.window] == [begin, end]
    assert path.segments.length.sum() == path.makespan_ns == 1000 * (end - begin)


def test_a_step_that_is_not_there_is_refused_with_where_to_look(graph: DependencyGraph) -> None:
    with pytest.raises(SelectionError, match="its steps: 1, 2"):
        path_in_window(graph, 7)
    without = load([op("a", 0, 5)])
    with pytest.raises(SelectionError, match="step"):
        path_in_window(without, 1)


def test_a_job_of_nothing_has_an_empty_path() -> None:
    path = path_in_window(load({0: []}))
    assert (path.makespan_ns, len(path.segments)) == (0, 0)


@given(jobs())
@settings(max_examples=20)
def test_each_step_of_a_rank_is_a_window_that_its_path_fills(job: Job) -> None:
    graph = load(job)
    acts = graph.activities
    for rank in graph.ranks:
        for number in sorted({int(n) for n in acts.step[acts.of_rank(rank)] if n >= 0}):
            path = path_in_window(graph, number, rank)
            marks = graph.select(kind="step", step=number, rank=rank).activities
            assert path.window[0] == graph.time[2 * marks].min()
            assert path.window[1] >= graph.time[2 * marks + 1].max()
            assert path.segments.length.sum() == path.makespan_ns
