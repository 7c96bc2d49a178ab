"""Turns as a reading: they widen the interval of a change, and move neither its prediction nor the unchanged job."""

from __future__ import annotations

import numpy as np

import htagraph as hg
from htagraph.whatif.interval_cause import IntervalCause
from htagraph.whatif.turns import moments_in_turns, takes_turns
from tests.graph.evidence.test_turns import beside


def test_a_job_without_turns_has_no_such_reading() -> None:
    assert takes_turns(hg.load("data/demo")) == {}


def test_the_unchanged_job_is_as_recorded() -> None:
    graph = beside("annotation", [0, 100, 200, 300], [36, 38, 42, 44])
    scenario = hg.what_if(graph)
    np.testing.assert_array_equal(moments_in_turns(scenario.state)[IntervalCause.SHARED_INTERPRETER], graph.time)
    outcome = scenario.run()
    assert (outcome.low, outcome.high) == (1, 1)


def test_less_python_beside_other_python_saves_time_of_both() -> None:
    graph = beside("annotation", [0, 100, 200, 300], [36, 38, 42, 44])
    scenario = hg.what_if(graph).scale(factor=0, name="work")
    time = moments_in_turns(scenario.state)[IntervalCause.SHARED_INTERPRETER]
    rows = np.flatnonzero(np.array(graph.names)[graph.activities.name] == "beside")
    lasts_ms = (time[2 * rows + 1] - time[2 * rows]) / 1e6
    assert lasts_ms.tolist() == [18.0, 19.0, 21.0, 22.0]
    outcome = scenario.run()
    assert outcome.makespan_ns == graph.time.max() - graph.time.min()
    assert outcome.high > 1
    assert outcome.interval_cause is IntervalCause.SHARED_INTERPRETER
