"""How much the mean step of a job differs from run to run."""

from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.whatif.run_spread import call_spread, run_spread
from tests.strategies import Json, load, op, step


def job_of(times: list[list[int]]) -> DependencyGraph:
    """Return a job of steps, each with operators of these lengths, µs, one after the other."""
    events: list[Json] = []
    at = 0
    for number, lengths in enumerate(times):
        begin = at
        for place, lasts in enumerate(lengths):
            events.append(op(f"op {place}", at, lasts))
            at += lasts
        events.append(step(number, begin, at - begin))
    return load(events)


def test_calls_that_never_differ_leave_what_no_run_shows() -> None:
    graph = job_of([[100, 300]] * 6)
    assert call_spread(graph) == 0
    assert run_spread(graph) == 0.004


def test_runs_of_a_job_differ_more_where_its_calls_do() -> None:
    some, more = (
        job_of([[100 + 2 * (each % 3), 300] for each in range(6)]),
        job_of([[90, 300], [110, 270], [95, 330], [105, 300]]),
    )
    assert 0 < call_spread(some) < call_spread(more)
    assert 0.004 < run_spread(some) < run_spread(more) < 0.017


def test_work_that_only_some_steps_have_is_no_difference_of_calls() -> None:
    graph = job_of([[100, 500] if each % 2 else [100] for each in range(8)])
    assert call_spread(graph) == 0


@pytest.mark.parametrize("steps", [[], [[100]], [[100], [150]]])
def test_too_few_steps_show_no_difference_of_calls(steps: list[list[int]]) -> None:
    graph = job_of(steps) if steps else load([op("alone", 0, 10)])
    assert call_spread(graph) == 0


def test_the_floor_of_an_interval_is_wider_for_a_busy_machine() -> None:
    draw = np.random.default_rng(3)
    noise = draw.integers(-30, 31, (12, 20))
    quiet, busy = job_of([[200] * 20] * 12), job_of((200 + noise).tolist())
    widths = [
        np.log(each.high / each.low)
        for each in (hg.what_if(job).scale(name="op 1", factor=0.9).run() for job in (quiet, busy))
    ]
    assert 2 * widths[0] < widths[1]
