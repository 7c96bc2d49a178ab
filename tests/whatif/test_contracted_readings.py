"""The skeleton of each reading predicts what that reading predicts, for any factors."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

import htagraph as hg
from htagraph.queries.replay import predict, without_unexplained
from htagraph.whatif.contracted_readings import contracted_readings, shares_links_differently
from htagraph.whatif.interval import UNEXPLAINED_PAUSES
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


def makespan_under(outcome: Outcome, cause: str) -> float:
    """Return the makespan under a reading as `htagraph.whatif.interval` replays it, ns."""
    state = outcome.links.state
    if cause == UNEXPLAINED_PAUSES:
        gap = without_unexplained(state.graph, state.gap)
    else:
        state = under(DOUBTS[cause], state) or state
        gap = state.gap
    time = predict(state.graph, state.lag, gap, state.head)
    return float(time[1::2].max(where=state.graph.awake, initial=0)) - outcome.baseline.origin_ns


@pytest.mark.parametrize("start", ["recorded", "perfect_overlap"])
def test_each_reading_predicts_what_its_replay_does(start: str) -> None:
    graph = graph_of(DATA / "gloo_ddp")
    scenario = hg.what_if(graph) if start == "recorded" else hg.what_if(graph).perfect_overlap()
    readings, missing = contracted_readings(graph, scenario.state, CLASSES, 2)
    assert not missing
    assert len(readings) > 1
    generator = random.Random(5)
    for _ in range(DRAWS):
        factors = {name: generator.choice([0.0, 0.5, 1.0, 1.0, 2.0]) for name in CLASSES}
        outcome = changed(scenario, factors)
        assert readings[0].skeleton.makespan_ns(factors) == pytest.approx(outcome.makespan_ns, rel=1e-4)
        values = list(factors.values())
        for reading in readings[1:]:
            switches = {
                f"whole {each}": float(math.prod(values[number] for number in each) == 1) for each in reading.whole
            }
            expected = makespan_under(outcome, reading.cause)
            assert reading.skeleton.makespan_ns(factors | switches) == pytest.approx(expected, rel=1e-3)


def test_without_any_change_each_reading_is_the_recording() -> None:
    graph = graph_of(DATA / "gloo_ddp")
    readings, _ = contracted_readings(graph, hg.what_if(graph).state, CLASSES, 2)
    recorded = hg.what_if(graph).run().baseline_ns
    for reading in readings:
        assert round(reading.skeleton.makespan_ns() * reading.ratio) == recorded


def test_transfers_on_one_stream_share_nothing() -> None:
    assert not shares_links_differently(hg.what_if(graph_of(DATA / "demo")).state)
