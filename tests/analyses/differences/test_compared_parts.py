"""The compared part of two jobs, against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph.analyses.differences.compared_parts import chance_us, parts_of
from tests.reach import DATA, graph_of
from tests.strategies import Job, jobs, load, op, step


@pytest.mark.slow
@given(jobs())
@settings(max_examples=15)
def test_repeats_are_the_pairs_of_rank_and_step_that_have_activities(job: Job) -> None:
    graph = load(job)
    part, _ = parts_of(graph, graph, None, None, None)
    acts = graph.activities
    recorded = [i for i in range(len(acts)) if hg.ActivityKind(acts.kind[i]).label not in ("boundary", "join")]
    if graph.steps:
        assert part.steps  # without first ones that warm up
        assert part.steps == graph.steps[-len(part.steps) :]
        recorded = [i for i in recorded if acts.step[i] in part.steps]
        pairs = {(int(acts.rank[i]), int(acts.step[i])) for i in recorded}
    else:
        assert part.steps is None
        pairs = {(int(acts.rank[i]), -1) for i in recorded}
    assert part.activities.tolist() == recorded
    assert part.repeats == max(1, len(pairs))


@pytest.mark.parametrize(
    ("steps", "steps_after", "chosen"),
    [
        (None, None, [(5, 6, 7), (5, 6, 7)]), (6, None, [(6,), (6,)]), ([5, 7], None, [(5, 6, 7), (5, 6, 7)]),
        (5, 7, [(5,), (7,)]), (None, [6, 7], [(5, 6, 7), (6, 7)]),
    ],
)  # fmt: skip
def test_steps_go_from_the_first_to_the_last_given(
    steps: object, steps_after: object, chosen: list[tuple[int, ...]]
) -> None:
    graph = load([step(n, 10 * n, 10) for n in (5, 6, 7)])
    parts = parts_of(graph, graph, steps, steps_after, None)  # type: ignore[arg-type]
    assert [part.steps for part in parts] == chosen
    assert [part.count for part in parts] == [len(numbers) for numbers in chosen]


@pytest.mark.parametrize(("ranks", "chosen"), [(None, (0, 1, 2, 3)), (2, (2,)), ([1, 3], (1, 3)), (np.int64(1), (1,))])
def test_ranks_are_those_given(ranks: object, chosen: tuple[int, ...]) -> None:
    graph = graph_of(DATA / "demo")
    part, _ = parts_of(graph, graph, None, None, ranks)  # type: ignore[arg-type]
    assert part.chosen_ranks == chosen
    assert set(graph.activities.rank[part.activities].tolist()) == set(chosen)


def test_whole_jobs_are_compared_if_one_has_no_steps() -> None:
    plain, stepped = load([op("a", 0, 9)]), load([step(1, 0, 10), op("a", 0, 9), op("b", 20, 9)])
    for pair in ((plain, stepped), (stepped, plain)):
        parts = parts_of(*pair, None, None, None)
        assert [(part.steps, part.count, part.repeats) for part in parts] == [(None, 1, 1)] * 2
    assert len(parts[0].activities) == 3


def test_an_error_names_the_job() -> None:
    graph = load([step(1, 0, 10), op("a", 0, 9)])
    with pytest.raises(hg.SelectionError, match=r"the job after: .*step 2"):
        parts_of(graph, graph, 1, 2, None)
    with pytest.raises(hg.SelectionError, match=r"the job before: .*rank 7"):
        parts_of(graph, graph, None, None, 7)
    with pytest.raises(TypeError, match="the job after is a str, not a DependencyGraph"):
        parts_of(graph, "graph", None, None, None)  # type: ignore[arg-type]


def of_lengths(*lengths: int) -> hg.DependencyGraph:
    events, at = [], 0
    for i, length in enumerate(lengths):
        events += [step(i + 1, at, length), op("work", at, length)]
        at += length
    return load(events)


def test_chance_is_students_limit_of_the_spread_of_steps() -> None:
    """By hand: from the begins of steps, 100, 90, 110 and 90, and the same; s² = 91.67, t(0.995, 6) = 3.707."""
    uneven = of_lengths(100, 90, 110, 90, 110)
    assert chance_us(parts_of(uneven, uneven, None, None, None)) == pytest.approx(
        3.707 * (2 * 91.67 / 4) ** 0.5, rel=1e-3
    )
    even = of_lengths(100, 100, 100, 100)
    assert chance_us(parts_of(even, even, None, None, None)) == 0


def test_too_few_steps_have_no_spread() -> None:
    for lengths in ((100,), (100, 50)):
        one = of_lengths(*lengths)
        assert chance_us(parts_of(one, one, None, None, None)) == 0
    bare = load([op("a", 0, 9)])
    assert chance_us(parts_of(bare, bare, None, None, None)) == 0


def test_what_the_profiler_does_after_the_last_step_is_no_spread_of_steps() -> None:
    even = of_lengths(100, 100, 100, 100)
    events = [
        event for i in range(4) for event in (step(i + 1, 100 * i, 100), op("work", 100 * i, 100 + 900 * (i == 3)))
    ]
    longer = load(events)
    assert chance_us(parts_of(even, longer, None, None, None)) == 0
