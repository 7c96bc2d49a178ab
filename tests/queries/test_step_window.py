"""Whether a step lasts from its start to the next one's, without what a profiler does when it starts late or stops."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph.queries.step_window import StepWindow, step_window
from tests.strategies import COMPUTE, Json, complete, jobs, kernel, launch, load, op, step


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


def test_what_the_profiler_does_behind_the_last_step_is_left_out() -> None:
    assert lengths(load(steps(3, last=400))) == [100, 100, 90]
    assert lengths(load(steps(3, last=100))) == [100, 100, 100]
    assert lengths(load(steps(1, last=400))) == [400]  # no other step says how long its pause may be


def test_device_work_of_the_last_step_belongs_to_it() -> None:
    events = [*steps(3, last=400), launch(210, 5, 1), kernel(COMPUTE, 250, 400, 1)]
    assert lengths(load(events)) == [100, 100, 450]


def test_functions_of_the_profiler_are_no_work() -> None:
    frame = complete("python_function", "torch/profiler/profiler.py(388): stop_trace", 291, 100)
    assert lengths(load([*steps(3, last=400), frame])) == [100, 100, 90]


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
        difference = hg.diff(graph, graph)
        assert window_of(graph).mean(graph.time) == pytest.approx(1000 * difference.before_us)
        assert difference.before.makespan_ns == pytest.approx(difference.step_times()["before_us"].sum() * 1000)
