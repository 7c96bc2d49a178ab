from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core.naming import LINEAR
from tests.strategies import COMPUTE, COPY, Json, annotation, complete, jobs, kernel, launch, load, op, step


def linear(start: int, first: int, *names: str, stream: int = 7) -> list[Json]:
    """Return an operator of 10 µs that launches kernels of 2 µs each."""
    launches = [launch(start + 1 + i, 1, first + i) for i in range(len(names))]
    kernels = [kernel(name, start + 20 + 2 * i, 2, first + i, stream) for i, name in enumerate(names)]
    return [op(LINEAR, start, 10), *launches, *kernels]


def rows(graph: DependencyGraph, *args: Any, **options: Any) -> list[tuple[Any, ...]]:
    table = hg.kernel_patterns(graph, *args, **options)
    columns = ["rank", "pattern", "kernels", "count", "kernel_us", "operator_us"]
    return list(table[columns].itertuples(index=False, name=None))


def test_equal_sequences_are_one_pattern_the_most_frequent_first() -> None:
    events = [*linear(0, 1, COMPUTE, COPY, COMPUTE), *linear(50, 10, "a", "b", "c"), *linear(100, 20, "a", "b", "c")]
    graph = load(events)
    assert rows(graph) == [
        (0, "aten::linear|a|b|c", 3, 2, 12.0, 20.0),
        (0, f"aten::linear|{COMPUTE}|{COPY}|{COMPUTE}", 3, 1, 6.0, 10.0),
    ]
    example = int(hg.kernel_patterns(graph)["example"].iloc[0])
    assert graph.activities.start[example] - graph.origin_ns == 50_000


def test_occurrences_with_less_work_do_not_count() -> None:
    graph = load([*linear(0, 1, "a", "b")])
    assert rows(graph) == []
    assert rows(graph, min_length=2) == [(0, "aten::linear|a|b", 2, 1, 4.0, 10.0)]


def test_an_operator_within_another_that_matches_does_not_count_again() -> None:
    events = [*linear(5, 1, "a", "b", "c"), op("aten::linear_outer", 0, 30)]
    assert [row[1] for row in rows(load(events))] == ["aten::linear_outer|a|b|c"]


def test_the_sequence_is_that_of_the_works_starts_over_all_streams() -> None:
    events = [op("x", 0, 9), launch(1, 1, 1), launch(3, 1, 2), kernel("late", 40, 2, 1), kernel("early", 20, 2, 2, 20)]
    assert [row[1] for row in rows(load(events), "x", min_length=2)] == ["x|early|late"]


def test_annotations_have_patterns_too_and_ranks_have_their_own() -> None:
    events = [annotation("## forward ##", 0, 30), *linear(5, 1, "a", "b", "c")]
    found = rows(load({0: events, 3: events}), "forward")
    assert found == [(rank, "## forward ##|a|b|c", 3, 1, 6.0, 30.0) for rank in (0, 3)]


def test_backward_work_belongs_to_the_annotation_that_called_it() -> None:
    engine = op("autograd::engine::evaluate_function: MmBackward0", 5, 9, tid=2)
    work = [complete("cuda_runtime", "cudaLaunchKernel", 6, 1, 2, correlation=1), kernel("a", 20, 2, 1)]
    events = [step(1, 0, 50), annotation("## backward ##", 2, 30), engine, *work]
    assert [row[1] for row in rows(load(events), "backward", min_length=1)] == ["## backward ##|a"]


def test_what_only_awaits_the_device_is_no_work() -> None:
    wait = complete("cuda_sync", "Stream Wait Event", 15, 1, 7, stream=7, device=0, correlation=1)
    assert [row[1] for row in rows(load([*linear(0, 1, "a", "b", "c"), wait]))] == ["aten::linear|a|b|c"]


def _slow(graph: DependencyGraph, text: str, least: int) -> Counter[tuple[int, str]]:
    """Count patterns activity by activity."""
    acts, names = graph.activities, graph.names
    found: Counter[tuple[int, str]] = Counter()
    below: dict[int, list[int]] = {}
    for work in [i for i in range(len(acts)) if acts.on_device[i] and acts.cause[i] >= 0]:
        at, root = int(acts.cause[work]), -1
        while at >= 0:
            root = at if text in names[acts.name[at]] and acts.kind[at] <= hg.ActivityKind.PYTHON else root
            at = int(acts.parent[at])
        if root >= 0:
            below.setdefault(root, []).append(work)
    for root, works in below.items():
        if len(works) >= least:
            ordered = sorted(works, key=lambda work: (acts.start[work], work))
            found[int(acts.rank[root]), "|".join(names[acts.name[i]] for i in (root, *ordered))] += 1
    return found


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
@pytest.mark.parametrize("text", ["aten", "forward"])
def test_patterns_are_those_that_the_slow_walk_finds(text: str, job: dict[int, list[Json]]) -> None:
    graph = load(job)
    table = hg.kernel_patterns(graph, text, min_length=2)
    found = dict(zip(zip(table["rank"], table["pattern"], strict=True), table["count"], strict=True))
    assert found == dict(_slow(graph, text, 2))


def test_what_is_no_text_or_length_is_refused() -> None:
    graph: Any = load([op("a", 0, 1)])
    with pytest.raises(TypeError, match="operator=None"):
        hg.kernel_patterns(graph, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="min_length='x'"):
        hg.kernel_patterns(graph, min_length="x")  # type: ignore[arg-type]
