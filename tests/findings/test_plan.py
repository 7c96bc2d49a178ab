from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.queries.weights import ChangeError
from tests.reach import DATA, graph_of


def test_a_plan_of_times_taken_away_is_the_most_you_could_win() -> None:
    plan = hg.plan(graph_of(DATA / "demo"))
    said = plan.sentences(["data/demo"])
    assert plan.is_most
    assert said[0].startswith("Most you could win per step with 3 changes together: 5.24 ms (60 %; 90 %: ")
    assert said[1] == f"No other 3 changes of the {plan.among} that the findings name save more."
    assert said[-1].startswith("To predict it: ")
    assert plan.interval_us[0] <= plan.saved_us <= plan.interval_us[1]


def test_one_change_is_said_in_the_singular() -> None:
    said = hg.plan(graph_of(DATA / "demo"), budget=1).sentences(["data/demo"])
    assert said[0].startswith("Most you could win per step with 1 change: 1.86 ms")
    assert said[1].startswith("No other change of the ")
    assert said[1].endswith("saves more.")


def test_each_number_of_changes_saves_more() -> None:
    curve = hg.plan(graph_of(DATA / "demo"), budget=16).curve
    assert curve["saved_us"].is_monotonic_increasing
    assert (curve["possible_us"] >= curve["saved_us"]).all()


@pytest.mark.parametrize("budget", [0, 17, 2.5, True, "3"])
def test_a_budget_is_a_whole_number(budget: int) -> None:
    with pytest.raises(ChangeError, match="whole number of changes from 1 to 16"):
        hg.plan(graph_of(DATA / "demo"), budget=budget)
