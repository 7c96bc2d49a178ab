"""How long a step takes, wherever it is given, and which steps say so."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph.graph.measures.steps import (
    StepWindow,
    cadence_of,
    duration_ns,
    mean_step_ns,
    step_window,
    usual_step_ns,
    usual_steps,
    whole_steps,
)
from tests.reach import DATASETS, graph_of
from tests.strategies import COMPUTE, Json, jobs, kernel, launch, load, op, step


def test_it_is_from_the_first_start_on_any_rank_to_the_last_end() -> None:
    job = {0: [step(1, 0, 40), step(2, 40, 50)], 1: [step(1, 10, 40), step(2, 60, 50)]}
    graph = load(job)
    assert mean_step_ns(graph, graph.time) == 110_000 / 2


def test_without_steps_it_is_the_whole() -> None:
    graph = load([op("a", 5, 10), op("b", 20, 10)])
    assert mean_step_ns(graph, graph.time) == 25_000


@pytest.mark.slow
@pytest.mark.parametrize("path", DATASETS, ids=lambda path: path.name)
def test_summaries_and_predictions_give_the_same(path: Path) -> None:
    graph = graph_of(path)
    outcome = hg.what_if(graph).run()
    assert hg.summarize(graph).step_us * 1000 == outcome.baseline_step_ns == outcome.step_ns


@pytest.mark.parametrize(("beside_us", "steps"), [(0, 4), (20, 4), (200, 0)])
def test_steps_count_where_they_cover_the_recording(beside_us: int, steps: int) -> None:
    events = [step(number, 100 * number, 99) for number in range(4)]
    assert whole_steps(load([*events, op("a", 10, 20), op("after", 400, beside_us)])) == steps


def test_without_steps_there_are_none() -> None:
    assert whole_steps(load([op("a", 0, 10)])) == whole_steps(load([])) == 0


@pytest.mark.parametrize(
    ("lengths", "outside_us", "usual"),
    [
        ([400, 100, 100, 100], 0, [1, 2, 3]),
        ([100, 100, 100, 100], 0, []),  # they are the recording
        ([300, 100, 300, 100, 300], 0, []),  # no step is like the median
        ([100, 100, 100, 900, 100, 100], 0, []),  # most of the time is in another step
        ([400, 100, 100, 100], 900, []),  # most of the recording is something else
    ],
)
def test_usual_steps_stand_for_a_recording_that_warms_up(lengths: list[int], outside_us: int, usual: list[int]) -> None:
    events: list[Json] = []
    for number, lasts in enumerate(lengths):
        at = sum(lengths[:number])
        events += [step(number, at, lasts - 1), launch(at, 2, number + 1)]
        events += [kernel(COMPUTE, at + 5, lasts - 10, number + 1)]
    events += [op("after", sum(lengths), outside_us)] if outside_us else []
    graph = load(events)
    assert usual_steps(graph) == usual
    assert not usual or duration_ns(graph, graph.time) == pytest.approx(len(usual) * 100_000, rel=0.05)


def test_ranks_that_number_their_steps_differently_have_them_once() -> None:
    """Of ten steps numbered 2 to 11 on one rank and 102 to 111 on the other, a gain per step was half of what it is."""
    ranks = {rank: [step(100 * rank + number, 100 * number, 99) for number in range(4)] for rank in (0, 1)}
    assert whole_steps(load({rank: [*steps, op("a", 10, 20)] for rank, steps in ranks.items()})) == 4


@pytest.mark.parametrize(
    ("lengths", "usual_us", "warm_up", "odd"),
    [
        ([100, 110, 90, 150], 112.5, 0, []),
        ([400, 100, 110], 105, 1, [0]),
        ([400, 100, 100, 300, 100], 100, 1, [0, 3]),
        ([900, 400, 100, 110, 100, 100], 102.5, 2, [0, 1]),
        ([100, 300, 90, 110, 100], 100, 0, [1]),
        ([100, 110, 90, 3000], 100, 0, []),  # behind the last step may be more than a step
        ([100, 110, 90, 1], 100, 0, []),  # or nothing
        ([9000, 50], 4525, 1, [1]),
        ([100], 100, 0, []),
    ],
    ids=str,
)
def test_the_usual_step_is_the_mean_of_regular_steps(
    lengths: list[int], usual_us: float, warm_up: int, odd: list[int]
) -> None:
    """No first steps that warm up, no odd step, and on a host the last step if it is like the others."""
    events = [op("aten::mm", 0, 1)]
    for number, length in enumerate(lengths):
        events.append(step(number, sum(lengths[:number]), length))
    graph = load(events)
    cadence = cadence_of(graph)
    assert cadence is not None
    assert (cadence.usual_ns / 1000, cadence.warm_up) == (usual_us, warm_up)
    assert cadence.steps[cadence.odd].tolist() == odd
    assert usual_step_ns(graph, graph.time) == cadence.usual_ns


def test_steps_that_are_enqueued_ahead_are_as_long_as_their_device_takes() -> None:
    """The host is done after 30 µs; the device takes 100 for each step, which lasts 110, 200 and 290 from its start."""
    events = []
    for number in range(3):
        events += [step(number, 10 * number, 10), launch(10 * number, 1, number + 1)]
        events.append(kernel(COMPUTE, 10 + 100 * number, 100, number + 1))
    cadence = cadence_of(load(events))
    assert cadence is not None
    assert cadence.usual_ns == 100_000
    assert not cadence.odd.any()
    assert cadence_of(load([])) is None


def window_of(graph: hg.DependencyGraph) -> StepWindow:
    window = step_window(graph)
    assert window is not None
    return window


def lengths(graph: hg.DependencyGraph) -> list[float]:
    return (window_of(graph).lengths(graph.time) / 1000).tolist()


def steps(count: int, *, first: int = 0, last: int = 100, begin: int = 0, length: int = 100) -> list[Json]:
    """Return steps of 100 µs with work in their first 90; the last annotation is `last` long."""
    starts = [begin + length * i for i in range(count)]
    marks = [step(first + i, at, length if i < count - 1 else last) for i, at in enumerate(starts)]
    return [*marks, *(op("aten::add", at, length - 10) for at in starts)]


def test_steps_of_a_recording_last_from_their_start_in_its_json_to_the_next_one() -> None:
    graph = hg.load("data/demo")
    window = window_of(graph)
    events = json.loads(gzip.decompress(Path(f"data/demo/rank-{window.rank}.json.gz").read_bytes()))["traceEvents"]
    marks = [each for each in events if each.get("cat") == "user_annotation" and "ProfilerStep" in each["name"]]
    begins = sorted(float(each["ts"]) for each in marks)
    true = [after - before for before, after in pairwise(begins)]
    assert lengths(graph)[:-1] == pytest.approx(true, abs=2e-3)
    assert window.mean(graph.time) == pytest.approx(window.lengths(graph.time).mean())


def test_device_work_of_the_last_step_belongs_to_it() -> None:
    events = [*steps(3, last=400), launch(210, 5, 1), kernel(COMPUTE, 250, 400, 1)]
    assert lengths(load(events)) == [100, 100, 450]


def test_a_rank_whose_last_step_waits_for_a_profiler_says_nothing() -> None:
    held_up = [*steps(4, last=900), op("gloo:all_reduce", 391, 800)]
    graph = load({0: held_up, 1: steps(4)})
    assert (window_of(graph).rank, lengths(graph)) == (1, [100, 100, 100, 100])


def test_the_slowest_rank_says_how_long_a_step_takes_where_nobody_waits() -> None:
    graph = load({0: steps(4), 1: steps(4, length=150, last=150)})
    assert (window_of(graph).rank, lengths(graph)) == (1, [150] * 4)


def test_steps_before_a_rank_records_are_left_out() -> None:
    graph = load({0: steps(6), 1: steps(4, first=2, begin=200)})
    assert window_of(graph).steps.tolist() == [2, 3, 4, 5]
    assert window_of(load({0: steps(6), 1: steps(1, first=5, begin=500)})).steps.tolist() == [0, 1, 2, 3, 4, 5]


def test_steps_that_are_missing_in_between_count() -> None:
    graph = load([*steps(2), *steps(2, first=4, begin=400)])
    assert window_of(graph).mean(graph.time) == 100_000


def test_a_job_without_steps_has_none() -> None:
    assert step_window(load([op("aten::add", 0, 10)])) is None


@given(jobs(device=False))
@settings(max_examples=15)
def test_a_diff_covers_the_window(events: dict[int, list[Json]]) -> None:
    graph = load(events)
    if graph.steps:
        difference = hg.diff(graph, graph, steps=graph.steps)
        lengths = window_of(graph).lengths(graph.time)
        assert lengths.min() <= round(1000 * difference.before_us) <= lengths.max()
        assert difference.step_times()["before_us"].mean() == pytest.approx(difference.before_us)


@pytest.mark.parametrize(("queued_us", "first_us"), [(500, 100), (20, 600)])
def test_a_first_step_begins_when_its_device_is_done_with_what_was_queued(queued_us: int, first_us: int) -> None:
    events = [kernel(COMPUTE, 500 - queued_us, queued_us)]
    for number in (1, 2, 3):
        at = 100 * (number - 1)
        events += [step(number, at, 100), launch(at + 50, 5, number), kernel(COMPUTE, 500 + at, 100, number)]
    cadence = cadence_of(load(events))
    assert cadence is not None
    assert cadence.lengths.tolist() == [1000 * first_us, 100_000, 100_000]
