"""How much time a change takes away."""

from __future__ import annotations

import math

import htagraph as hg
from htagraph.whatif.time_taken import most_per_usual_steps, possible_savings
from tests.strategies import load, op, step


def test_what_only_takes_time_away_saves_at_most_that_time() -> None:
    graph = load([op("a", 0, 100), op("b", 100, 50)])
    assert possible_savings(graph, hg.what_if(graph).scale(name="a", factor=0.5).state) == (0.0, 50_000.0)
    assert possible_savings(graph, hg.what_if(graph).scale(name="a", factor=0.5).state, 60_000.0) == (0.0, 60_000.0)


def test_nothing_limits_what_makes_some_time_longer() -> None:
    graph = load([op("a", 0, 100), op("b", 100, 50)])
    state = hg.what_if(graph).scale(name="a", factor=0.5).scale(name="b", factor=2.0).state
    assert possible_savings(graph, state) is None
    assert most_per_usual_steps(graph, state) == math.inf


def test_time_of_an_odd_step_is_no_saving_of_usual_steps() -> None:
    events, at = [], 0
    for number, lasts in enumerate([90, 90, 400, *[90] * 9]):
        events += [step(number, at, lasts + 10), op("a", at, 10), op("b", at + 10, lasts)]
        at += lasts + 10
    graph = load(events)
    outcome = hg.what_if(graph).scale(name="b", factor=0.0).run()
    most = most_per_usual_steps(graph, outcome.state)
    whole = possible_savings(graph, outcome.state)
    assert whole is not None
    assert most < whole[1]
