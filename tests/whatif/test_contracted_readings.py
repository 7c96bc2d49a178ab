"""The skeleton of each reading predicts what that reading predicts, for any factors."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

import htagraph as hg
from htagraph.core.kinds import EdgeKind
from htagraph.queries.replay import predict, without_unexplained
from htagraph.whatif.contracted_readings import contracted_readings, shares_links_differently
from htagraph.whatif.interval_cause import IntervalCause
from htagraph.whatif.outcome import Outcome
from htagraph.whatif.readings import DOUBTS, under
from htagraph.whatif.scenario import Scenario
from tests.reach import DATA, graph_of

CLASSES: dict[str, dict[str, Any]] = {
    "host": {"kind": "host"}, "untraced": {"kind": "untraced"}, "rank": {"rank": 1, "kind": ["host"]},
    "transfers": {"kind": ["communication", "host_communication"]},
}  # fmt: skip
DRAWS = 6


def changed(start: Scenario, factors: dict[str, float]) -> Outcome:
    """Return the prediction of `hg.what_if` for some factors."""
    for name, factor in factors.items():
        if factor != 1:
            start = start.scale(factor=factor, **CLASSES[name])
    return start.run()


def makespan_under(outcome: Outcome, cause: IntervalCause) -> float:
    """Return the makespan under a reading as `htagraph.whatif.interval` replays it, ns."""
    state = outcome.links.state
    if cause is IntervalCause.UNEXPLAINED_PAUSES:
        gap = without_unexplained(state.graph, state.gap)
    else:
        state = under(DOUBTS[cause], state) or state
        gap = state.gap
    time = predict(state.graph, state.lag, gap, state.head)
    return float(time[1::2].max(where=state.graph.awake, initial=0)) - outcome.baseline.origin_ns


def job_with_doubts(name: str) -> Scenario:
    """Return a recording whose waits are guesses, or that has other readings by itself."""
    graph = graph_of(DATA / name)
    if name == "demo":
        return hg.what_if(graph).perfect_overlap()
    if name == "gloo_ddp":
        confidence = graph.edges.confidence.copy()
        confidence[graph.edges.kind == EdgeKind.THREAD] = 50
        graph = graph.replace(edges=replace(graph.edges, confidence=confidence))
    return hg.what_if(graph)


@pytest.mark.parametrize(("name", "classes"), [("gloo_ddp", 4), ("gpu_demo/train", 2)])
def test_each_reading_predicts_what_its_replay_does(name: str, classes: int) -> None:
    scenario, chosen = job_with_doubts(name), dict([*CLASSES.items()][:classes])
    readings, missing = contracted_readings(scenario.state.graph, scenario.state, chosen, 2)
    assert not missing
    assert len(readings) > 1
    generator = random.Random(5)
    for _ in range(DRAWS):
        factors = {name: generator.choice([0.0, 0.5, 1.0, 1.0, 2.0]) for name in chosen}
        outcome = changed(scenario, factors)
        assert readings[0].skeleton.makespan_ns(factors) == pytest.approx(outcome.makespan_ns, rel=1e-4)
        for reading in readings[1:]:
            expected = makespan_under(outcome, reading.cause)
            assert reading.skeleton.makespan_ns(factors) == pytest.approx(expected, rel=1e-3)


def test_without_any_change_each_reading_is_the_recording() -> None:
    graph = job_with_doubts("gloo_ddp").state.graph
    readings, _ = contracted_readings(graph, hg.what_if(graph).state, CLASSES, 2)
    recorded = hg.what_if(graph).run().baseline_ns
    for reading in readings:
        assert round(reading.skeleton.makespan_ns() * reading.ratio) == recorded


def test_transfers_on_one_stream_share_nothing() -> None:
    assert not shares_links_differently(hg.what_if(graph_of(DATA / "demo")).state)
