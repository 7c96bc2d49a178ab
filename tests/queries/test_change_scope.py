"""Which activities a name stands for, and what is said where nothing matches."""

from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.change_scope import activities_of, kinds_of, untraced_gaps
from htagraph.queries.weights import initial
from tests.strategies import COMPUTE, annotation, complete, kernel, launch, load, op, step


@pytest.fixture(scope="module")
def graph() -> DependencyGraph:
    """A step: Python 0-2, `a` 2-20 with `b` 5-10 inside and a launch 12-13; `phase` 22-40 with `a` 25-30 inside."""
    return load([
        step(1, 0, 50), op("a", 2, 18), op("b", 5, 5), launch(12, 1, 1), kernel(COMPUTE, 15, 7, 1),
        annotation("phase", 22, 18), op("a", 25, 5), launch(33, 1, 2), kernel(COMPUTE, 36, 4, 2),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ({"name": "*gemn*"}, "gemm"),
        ({"name": "phas"}, "'phase'"),
        ({"op": "*PHASE*"}, "'phase'"),
        ({"name": "b", "kind": "computation"}, "without kind it would match op"),
        ({"kind": "memory"}, "without kind it would match annotation, boundary, computation, launch, op, step"),
        ({"stream": 99}, "stream=99"),
        ({"rank": 3}, "its ranks: 0"),
        ({"step": 9}, "its steps: 1"),
        ({"kind": "kernels"}, "choose from"),
        ({"category": "host"}, "the categories are cpu_op, cuda_runtime, kernel, user_annotation"),
        ({"category": "data_loading"}, "free_dataloader"),
        ({"category": "outside"}, "free_outside"),
        ({"kind": "waiting"}, "what critical paths call a wait"),
    ],
)
def test_an_empty_selection_says_what_would_match(
    graph: DependencyGraph, criteria: dict[str, object], expected: str
) -> None:
    with pytest.raises(SelectionError) as caught:
        activities_of(initial(graph), criteria)
    assert expected in str(caught.value)


def _names(graph: DependencyGraph, **criteria: object) -> list[str]:
    rows = np.flatnonzero(activities_of(initial(graph), dict(criteria)))
    return sorted(graph.names[name] for name in graph.activities.name[rows])


@pytest.fixture(scope="module")
def stacks() -> DependencyGraph:
    """Operator `outer` calls Python `f`, which calls operator `inner`, which calls Python `g` and launches a kernel."""
    return load([
        op("outer", 0, 100), complete("python_function", "f", 5, 80), op("inner", 10, 40),
        complete("python_function", "g", 12, 20), launch(35, 2, 1), kernel(COMPUTE, 40, 7, 1),
    ])  # fmt: skip


def test_python_in_an_operator_is_the_operators_own(stacks: DependencyGraph) -> None:
    assert _names(stacks, name="outer") == ["f", "outer"]
    assert _names(stacks, name="inner") == ["g", "inner"]
    assert _names(stacks, regex="^inn") == ["g", "inner"]


def test_the_name_of_a_python_frame_stands_for_all_inside(stacks: DependencyGraph) -> None:
    assert _names(stacks, name="f") == sorted(["f", "inner", "g", "cudaLaunchKernel", COMPUTE])
    assert _names(stacks, name="*", kind="op") == ["f", "g", "inner", "outer"]


def test_untraced_time_has_no_activities(graph: DependencyGraph) -> None:
    assert not activities_of(initial(graph), {"kind": "untraced"}).any()
    assert kinds_of({"kind": ["op", "untraced"]}) == {"op", "untraced"}


@pytest.fixture(scope="module")
def graph_untraced() -> DependencyGraph:
    """Steps with `a`, 3 µs of nothing, `b`, and in `phase` 20 µs of nothing before `c`."""
    events = []
    for number, start in ((1, 0), (2, 50)):
        events += [step(number, start, 50), op("a", start, 5), op("b", start + 8, 12)]
        events += [annotation("phase", start + 20, 30), op("c", start + 40, 10)]
    return load(events)


def _us(graph_untraced: DependencyGraph, **criteria: object) -> list[int]:
    return (graph_untraced.gap[untraced_gaps(graph_untraced, dict(criteria))] // 1000).tolist()


def test_the_gaps_between_operators_are_selected_by_what_is_around_them(graph_untraced: DependencyGraph) -> None:
    assert _us(graph_untraced) == [3, 20, 3, 20]
    assert _us(graph_untraced, step=2) == [3, 20]
    assert _us(graph_untraced, op="phase") == [20, 20]
    assert _us(graph_untraced, after="a", step=1) == [3]
    assert _us(graph_untraced, before="c", rank=0) == [20, 20]
    assert _us(graph_untraced, min_us=4) == [20, 20]
    assert _us(graph_untraced, max_us=4) == [3, 3]


def test_a_change_takes_it_as_a_kind(graph_untraced: DependencyGraph) -> None:
    scenario = hg.what_if(graph_untraced)
    outcome = scenario.scale(kind="untraced", before="c", factor=0.5).run()
    assert outcome.saved_ns == 20_000
    assert outcome.notes == ("scaled 0.04 ms of untraced host time between activities (2 gaps)",)
    assert scenario.remove(kind="untraced").run().saved_ns == 46_000
    assert scenario.scale(kind=("untraced", "op"), factor=0).run().makespan_ns == 0


def test_what_meets_no_gap_is_an_error(graph_untraced: DependencyGraph) -> None:
    with pytest.raises(SelectionError, match="the longest gap is 20 µs, before 'c'"):
        untraced_gaps(graph_untraced, {"min_us": 30})
    with pytest.raises(SelectionError, match="'stream' is no criterion of untraced time"):
        untraced_gaps(graph_untraced, {"stream": 7})
    frames = [complete("python_function", "f", 0, 10), op("a", 0, 5), op("b", 5, 5)]
    with pytest.raises(SelectionError, match="kind='python' has that time"):
        untraced_gaps(load(frames), {})


def test_a_region_of_another_thread_holds_what_it_encloses_in_the_next_step() -> None:
    graph = load([
        step(1, 0, 50), step(2, 50, 50),
        annotation("forward", 40, 40, tid=7), op("early", 42, 4, tid=7), op("late", 60, 10, tid=7),
        op("part", 62, 5, tid=7), op("behind", 85, 5, tid=7),
    ])  # fmt: skip
    assert _names(graph, op="forward") == ["early", "forward", "late", "part"]
    assert _names(graph, op="late") == ["late", "part"]
    assert _names(graph, op="forward", step=2) == ["late", "part"]
    predicted = hg.what_if(graph).scale(factor=0.5, op="forward").run()
    late = [graph.names[name] for name in graph.activities.name].index("late")
    assert predicted.time[2 * late + 1] - predicted.time[2 * late] == 5_000
