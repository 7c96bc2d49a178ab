"""The interval of a prediction also holds the ratio of steps that reports print, under every reading of the recording.

A step's ratio is not the makespan's: work at either end of the recording, and work that steps leave behind, count for
one of the two. The oracle replays the job under each reading, and computes the printed step itself.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.core.errors import HtagraphError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import usual_step_ns
from htagraph.queries.replay import predict
from htagraph.whatif.readings import DOUBTS, under
from tests.strategies import Json, annotation, jobs, load, op, step
from tests.whatif.test_first_answers import hedged
from tests.whatif.test_last_parts import summed
from tests.whatif.test_meets import queued

ROUNDING = 1e-6


def paced(work_us: int, pace_us: int, others: int) -> list[Json]:
    """Return steps that fetch an item in each, which a process makes in pace_us; each second step has more work."""
    events: list[Json] = []
    at = 0
    for number in range(12):
        work = work_us + others * (number % 2)
        fetch = max(pace_us - work_us - others // 2 + 150 * (number % 3), 2_100)
        events += [annotation("fetch", at, fetch), op("train", at + fetch, work)]
        events.append(step(number, at - 5, fetch + work + 8))
        at += fetch + work + 20
    return events


def printed_step_ns(outcome: hg.Outcome, graph: DependencyGraph, time: object) -> float:
    """Return the step that reports print, of other moments."""
    least = outcome._least_step_ns
    return max(usual_step_ns(graph, time, outcome.baseline), least)  # type: ignore[arg-type]


def holds_every_reading(outcome: hg.Outcome) -> None:
    if not (outcome.step_ns > 0 and 0 < outcome.speedup < float("inf")):
        return
    for cause, doubt in DOUBTS.items():
        other = under(doubt, outcome.links.state)
        if other is None:
            continue
        time = predict(other.graph, other.lag, other.gap, other.head)
        step_of_reading = printed_step_ns(outcome, other.graph, time)
        if step_of_reading <= 0:
            continue
        factor = outcome.step_ns / step_of_reading
        assert outcome.low <= outcome.speedup * factor * (1 + ROUNDING), cause
        assert outcome.high >= outcome.speedup * factor * (1 - ROUNDING), cause


MADE: list[Callable[[], list[Json]]] = [
    lambda: queued(20_000, 9_000, 1),
    lambda: hedged([45_000], [30_000]),
    lambda: summed([13_000, 26_000, 45_000, 18_000]),
    lambda: paced(12_000, 30_000, 0),
    lambda: paced(10_000, 30_000, 9_000),
]


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("factor", [0.1, 0.4, 2.0])
def test_every_change_of_made_jobs(made: Callable[[], list[Json]], factor: float) -> None:
    graph = load(made())
    names = {graph.names[name] for name in graph.activities.name} & {
        "make",
        "work",
        "primary",
        "backup",
        "rank",
        "train",
        "long",
        "combine",
    }
    assert names
    for name in names:
        holds_every_reading(hg.what_if(graph).scale(factor=factor, op=name).run())


@given(jobs(tidy=True).map(load), st.sampled_from([0.0, 0.3, 3.0]))
@settings(max_examples=25, deadline=None)
def test_drawn_jobs(graph: DependencyGraph, factor: float) -> None:
    try:
        scenario = hg.what_if(graph).scale(factor=factor, kind="op")
    except HtagraphError:
        return
    holds_every_reading(scenario.run())
