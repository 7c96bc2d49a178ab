"""The list of changes as a table: the rows of `htagraph.changes`, in one unit, sorted as the title says."""

from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from htagraph.findings.change import Gain, PredictedChange
from htagraph.findings.changes import ProposedChange, ProposedChanges
from htagraph.output.render import render_report
from htagraph.output.reports.listed_changes import listed_changes
from htagraph.output.reports.ranks import plan_report
from tests.reach import DATA, DATASETS, graph_of, label

_PLACE = {"known": 0, "not known": 1}


def change(name: str, gain: Gain, action: str = "") -> ProposedChange:
    options = ("--scale", "kind=computation:0.5")
    return ProposedChange("gain", name, action, gain, PredictedChange(name, options, gain))


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_rows_are_the_changes_of_the_job_sorted_as_the_title_says_and_no_two_have_one_name(path: Path) -> None:
    graph = graph_of(path)
    found = hg.changes(graph)
    frame = listed_changes(found, graph).frame
    names = [row.change.name if row.change else row.about for row in found if row.gain]
    assert sorted(frame["change"]) == sorted(names)
    assert len(set(names)) == len(names)
    places = frame["way"].map(_PLACE).tolist()
    assert places == sorted(places)
    for _, rows in frame.groupby("way"):
        assert rows["low_us"].is_monotonic_decreasing


def test_gains_of_steps_and_of_the_job_are_all_told_of_the_job() -> None:
    graph = graph_of(DATA / "demo")
    step = Gain(3000.0, 2800.0, 3100.0, steps=3, makespan_us=26_000.0)
    whole = Gain(5000.0, 4800.0, 5100.0, steps=0, makespan_us=26_000.0)
    found = listed_changes(ProposedChanges((change("a", step), change("b", whole))), graph)
    row = found.frame.set_index("change").loc["a"]
    assert "of the job" in found.title
    assert row["per_step_us"] == pytest.approx(1000.0)
    assert row["gain_us"] == pytest.approx(
        hg.what_if(graph).scale(kind="computation", factor=0.5).run().saved_ns / 1000
    )
    assert row["low_us"] <= row["gain_us"] <= row["high_us"]


def test_the_best_set_stands_before_the_table_and_the_rest_is_asked_for() -> None:
    graph = graph_of(DATA / "demo")
    short = render_report(plan_report(graph, ["demo"]), "table", width=140)
    assert short.index("First: ") < short.index("changes together save") < short.index("What to change")
    assert "Opportunities" not in short
    assert short.rstrip().endswith("htagraph plan demo --full")
    whole = render_report(plan_report(graph, ["demo"], full=True), "table", width=140)
    assert "Opportunities" in whole
    assert "What more changes save" in whole
