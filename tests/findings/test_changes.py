"""Whether there is one list of what to change, in one order, which every command begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from htagraph.findings.change import gain_of, scenario_of
from htagraph.findings.changes import changes_of, ranked
from htagraph.findings.finding import Claim
from htagraph.findings.plan import plan_of
from htagraph.findings.results import Results
from htagraph.findings.verdict import claims_of
from htagraph.output.reports.ranks import plan_report
from tests.findings.claims_by_hand import blocking, gain
from tests.reach import DATASETS, REAL, graph_of, label

JOBS = [*DATASETS, *(path for path in REAL if path.stat().st_size < 400_000)]
"""Jobs on which many replays take little time."""


def test_a_known_way_stands_before_faster_code_that_gains_more() -> None:
    code = gain("aten::mm", 1000.0, 50.0, "operator", target="op=aten::mm")
    first, second = ranked([code, blocking(60.0, 6.0)])
    assert (first.finding, first.is_known) == ("blocking", True)
    assert (second.finding, second.is_known) == ("gain", False)


def test_what_is_surely_gained_counts() -> None:
    loader = gain("data loading", 500.0, 50.0, "phase", is_loader=True, interval=(0.0, 900.0))
    first, second = ranked([loader, blocking(60.0, 6.0)])
    assert first.finding == "blocking"
    assert second.options == ("--free-dataloader",)


def test_a_change_that_two_findings_propose_stands_once() -> None:
    twice = [gain("aten::mm", 100.0, 20.0, "operator", target="op=aten::mm"), gain("aten::mm", 90.0, 18.0, "operator")]
    assert len({row.options for row in ranked(twice)}) == len(ranked(twice))


def test_a_claim_without_a_gain_proposes_nothing() -> None:
    assert ranked([Claim("ranks_missing", "3", 8, "count")]).first is None


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_every_command_begins_with_the_head_of_the_list(path: Path) -> None:
    graph = graph_of(path)
    summary = hg.summarize(graph)
    first = summary.to_dict()["results"]["first"]
    report = plan_report(graph, ["x"])
    assert report.to_dict()["results"]["first"] == first
    if summary.changes.first is not None and summary.changes.first.change is not None:
        (planned,) = plan_report(graph, ["x"], budget=1).to_dict()["results"]["changes"]
        assert first is not None
        assert (planned["change"], planned["scope"]) == (first["change"], first["scope"])
        assert planned["gain_us"] == pytest.approx(first["gain_us"])


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_the_list_is_in_its_order_and_each_gain_is_that_of_its_command(path: Path) -> None:
    results = Results(graph_of(path))
    found = changes_of(results, exact=True)
    known = [row for row in found if row.is_known and row.gain]
    assert [row for row in found if row.gain][: len(known)] == known
    for row in found:
        if row.change is None or row.gain is None or row.finding in ("bound", "device_idle"):
            continue
        outcome = scenario_of(results.warm_graph, row.options).run()
        gained = gain_of(outcome, results.whole).value_us
        if row.gain.scope == "job" and results.steps > 1:  # of other steps than the usual ones
            gained = outcome.saved_ns / 1000
        assert row.gain.low_us <= row.gain.value_us <= row.gain.high_us
        assert row.gain.value_us == pytest.approx(gained, rel=0.02), row.change.name


def test_the_head_does_not_depend_on_who_asks() -> None:
    results = Results(graph_of(JOBS[0]))
    heads = [
        changes_of(results).first,
        changes_of(results, claims_of(results)).first,
        changes_of(results, exact=True).first,
        plan_of(results, 1).proposed[0],
    ]
    assert len(set(heads)) == 1


def test_the_list_is_printed_with_a_line_per_change_and_its_gain() -> None:
    found = hg.changes(graph_of(DATASETS[0]))
    lines = str(found).splitlines()
    assert len(lines) == len(found)
    assert [line.partition(". ")[0] for line in lines] == [str(number) for number in range(1, len(found) + 1)]
    assert all("Change(" not in line for line in lines)
    assert str(ranked([])) == "No change is known to gain anything."
