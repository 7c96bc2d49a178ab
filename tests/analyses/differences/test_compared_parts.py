"""The compared part of two jobs, against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph.analyses.differences.compared_parts import parts_of
from htagraph.graph.measures.steps import usual_step_ns
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
    assert [part.usual_ns(graph.time) for part in parts] == [10_000, 10_000]


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
        assert [(part.steps, part.repeats) for part in parts] == [(None, 1)] * 2
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


def test_one_slow_step_is_no_part_of_the_usual_one() -> None:
    """From the begins of steps: 100, 90, 900, 110 and 105; the last one has no next step, the first may be cut."""
    uneven = of_lengths(100, 90, 900, 110, 105, 300)
    part, _ = parts_of(uneven, uneven, None, None, None)
    assert part.usual_ns(uneven.time) == 105_000
    assert part.weights[1:].tolist() == pytest.approx([0.0, 1 / 3, 0.0, 1 / 3, 1 / 3, 0.0, 0.0])
    assert part.usual_times(part.path()).sum() == pytest.approx(105_000)
    work = uneven.select(name="work").activities
    lasted = uneven.activities.duration[work]
    assert (lasted * part.per_step(work)).sum() == pytest.approx((90_000 + 110_000 + 105_000) / 3)


def test_the_usual_step_is_that_of_the_summary_of_either_job() -> None:
    graph = graph_of(DATA / "demo")
    part, _ = parts_of(graph, graph, None, None, None)
    assert part.usual_ns(graph.time) == usual_step_ns(graph, graph.time)
    assert part.usual_times(part.path()).sum() == pytest.approx(part.usual_ns(graph.time))
