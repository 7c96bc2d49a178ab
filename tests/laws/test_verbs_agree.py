"""The verbs agree on one job: how long a step takes, what bounds it, what a change saves, and what no change moves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.findings.change import Whole, gain_of, scenario_of
from htagraph.findings.changes import changes_of
from htagraph.findings.phrases import share_text, time_text
from htagraph.findings.results import Results
from htagraph.findings.uneven_steps import step_text
from htagraph.graph.measures.earlier_work import waits_for_earlier_work
from htagraph.graph.measures.steps import cadence_of, usual_step_ns
from htagraph.output.reports.changes import what_if_report
from htagraph.output.reports.device_time import idle_report
from htagraph.output.reports.ranks import critical_path_report, plan_report
from htagraph.queries.path_segments import LEAD_PERCENT
from htagraph.queries.replay import predict
from htagraph.queries.weights import initial
from htagraph.whatif.changes.infinite_gpu import infinite_gpu
from tests.reach import DATASETS, LARGE_BYTES, REAL, SHARED, graph_of, label

RECORDINGS = sorted((SHARED.parent / "cases" / "recordings").glob("*.json.gz"))
SMALL = [path for path in [*REAL, *RECORDINGS] if path.stat().st_size < LARGE_BYTES]
JOBS = [*DATASETS, *SMALL]


def name_of(path: Path) -> str:
    return path.name if path in RECORDINGS else label(path)


@pytest.mark.parametrize("path", JOBS, ids=name_of)
def test_a_step_takes_as_long_in_the_head_as_in_what_ifs(path: Path) -> None:
    graph = graph_of(path)
    cadence = cadence_of(graph)
    text = step_text(graph)
    assert bool(text) == (cadence is not None)
    if cadence is not None and len(cadence.steps) != 2:  # of two unlike steps, the head has both
        assert f" of {time_text(usual_step_ns(graph, graph.time) / 1000)}" in text


@pytest.mark.parametrize("path", JOBS, ids=name_of)
def test_a_change_of_nothing_leaves_the_largest_part_of_the_path(path: Path) -> None:
    graph = graph_of(path)
    said = " ".join(what_if_report([hg.what_if(graph).run()], [""]).sentences)
    assert "instead of" not in said
    assert "no longer" not in said


@pytest.mark.parametrize("path", JOBS, ids=name_of)
def test_no_change_of_the_device_moves_the_end_of_earlier_work(path: Path) -> None:
    graph = graph_of(path)
    waits = graph.edges.target[waits_for_earlier_work(graph.activities, graph.edges)]
    if not len(waits):
        return
    state = infinite_gpu(initial(graph))
    unchanged = state.lag[waits_for_earlier_work(graph.activities, graph.edges)]
    assert (unchanged == initial(graph).lag[waits_for_earlier_work(graph.activities, graph.edges)]).all()
    time = predict(state.graph, state.lag, state.gap, state.head)
    assert (time[waits] >= time.min() + unchanged).all()


@pytest.mark.parametrize("path", JOBS, ids=name_of)
def test_idle_and_what_if_save_as_much_by_a_loader_that_keeps_up(path: Path) -> None:
    graph = graph_of(path)
    said = " ".join(idle_report(graph, ["x"]).sentences)
    found = re.search(r"never late the job would be ([^%]*%) shorter", said)
    if found:
        outcome = hg.what_if(graph).free_dataloader().run()
        assert found[1] == share_text(100 * outcome.saved_ns / outcome.baseline_ns)


@pytest.mark.parametrize("path", DATASETS, ids=name_of)
def test_what_if_has_the_interval_of_the_list_of_changes(path: Path) -> None:
    results = Results(graph_of(path))
    rows = [row for row in changes_of(results, exact=True) if row.gain and row.options]
    for row in rows:
        if row.finding in ("bound", "device_idle", "gain") or row.gain is None:  # these have further ends
            continue
        outcome = scenario_of(results.warm_graph, row.options).run()
        (predicted,) = what_if_report([outcome], list(row.options)).tables["prediction"].to_dict("records")
        shown = tuple(predicted[column] for column in ("gain_low_us", "gain_us", "gain_high_us"))
        assert shown == pytest.approx((row.gain.low_us, row.gain.value_us, row.gain.high_us)), row.options


@pytest.mark.parametrize("path", DATASETS, ids=name_of)
def test_what_if_has_the_interval_of_findings_and_tells_none_beside_the_saving(path: Path) -> None:
    outcome = hg.what_if(graph_of(path)).infinite_host().run()
    report = what_if_report([outcome], ["--infinite-host"])
    (row,) = report.tables["prediction"].to_dict("records")
    gain = gain_of(outcome, Whole(outcome.baseline_ns, 1))
    assert (row["gain_us"], row["gain_low_us"], row["gain_high_us"]) == (gain.value_us, gain.low_us, gain.high_us)
    (times,) = [sentence for sentence in report.sentences if ", the job would take " in sentence]
    assert not any("saves" in sentence for sentence in report.sentences) or "90 %" not in times


@pytest.mark.parametrize("path", JOBS, ids=name_of)
def test_no_share_is_more_than_its_whole_and_no_figure_is_outside_its_interval(path: Path) -> None:
    summary = hg.summarize(graph_of(path))
    said = " ".join([*summary.verdict, *(line.text for line in summary.head.lines)])
    assert all(float(share.replace(",", "")) <= 100 for share in re.findall(r"([\d.,]+) %", said)), said
    for claim in summary.claims:
        assert claim.unit != "percent" or 0 <= claim.figure <= 100
        low, high = claim.interval or (claim.figure, claim.figure)
        assert low <= claim.figure <= high


@pytest.mark.parametrize("path", JOBS, ids=name_of)
def test_the_bound_is_one_in_summary_critical_path_and_plan(path: Path) -> None:
    graph = graph_of(path)
    summary = hg.summarize(graph)
    bounds = [claim.about for claim in summary.claims if claim.says == "bound"]
    assert bounds == [Results(graph).bound.cause][: len(bounds)]
    for report in (critical_path_report(hg.critical_path(graph), ["x"]), plan_report(graph, ["x"])):
        said = " ".join(report.sentences)
        whole = " ".join(summary.verdict)
        for words in re.findall(r"(?i)bound by ([a-z ]+):", said):
            assert f"ound by {words}:" in whole


@pytest.mark.parametrize("path", JOBS, ids=name_of)
def test_the_bound_is_the_largest_part_of_the_path_and_the_parts_are_all_of_it(path: Path) -> None:
    results = Results(graph_of(path))
    bound = results.bound
    assert sum(bound.causes.values()) == pytest.approx(100.0)
    if not bound.cause or bound.by_workers:
        return
    largest = max(share for cause, share in bound.causes.items() if cause != "head" or len(bound.causes) == 1)
    assert bound.causes[bound.cause] == largest
    assert bound.leaders[0] == bound.cause
    for cause in bound.leaders[1:]:
        assert bound.causes[cause] > largest - LEAD_PERCENT
