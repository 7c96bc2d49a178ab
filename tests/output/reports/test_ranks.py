"""What ranks do together, and what decides the job's end."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.findings.phrases import time_text
from htagraph.output.reports.ranks import critical_path_report, opportunity_titles, path_titles, plan_report
from htagraph.whatif.options import criteria
from tests.reach import REPOSITORY
from tests.strategies import load, op, step

DEMO = str(REPOSITORY / "data" / "demo")
Results = Callable[..., dict[str, Any]]


@pytest.mark.slow
def test_transfers_that_prevail_suggest_another_network(simulated: Callable[[str], str], results: Results) -> None:
    said = results("collectives", simulated("communication_bound"))["conclusions"]
    assert said[-1].endswith("--network 0.5")


def test_collectives_are_summed_up_or_shown_each(results: Results) -> None:
    found = results("collectives", DEMO, "--each")
    (row,) = found["collectives"]
    parts = found["parts"]
    assert len(parts) == row["ranks"] * row["collectives"]
    assert row["wait_us"] + row["transfer_us"] + row["excess_us"] == pytest.approx(row["total_us"])
    assert sum(part["wait_us"] for part in parts) == pytest.approx(row["wait_us"])
    assert found["last_arrivals"][0]["last_rank"] == 2


def test_parts_that_no_other_rank_matches_are_told(results: Results) -> None:
    found = results("collectives", DEMO, "--ranks", "1")
    assert "could not be matched" in " ".join(found["conclusions"])
    assert found["collectives"][0]["op"] == "all_reduce"


def test_the_straggler_of_the_demo_is_named_with_its_cause(results: Results) -> None:
    found = results("stragglers", DEMO)
    assert found["straggler"] == 2
    assert found["stragglers"][0]["cause"] == "kernels"
    assert sum(row["blamed_us"] for row in found["stragglers"]) == pytest.approx(found["total_wait_us"])
    assert "Rank 2 is the straggler" in found["conclusions"][0]


def test_lateness_by_chance_has_no_straggler_but_a_first_suspect(
    simulated: Callable[[str], str], results: Results
) -> None:
    found = results("stragglers", simulated("gpu_bound"))
    assert found["straggler"] is None
    most = max(found["stragglers"], key=lambda row: row["blamed_us"])
    assert f"rank {most['rank']} (" in found["conclusions"][0]
    assert found["conclusions"][1].startswith(f"Rank {most['rank']}: ")


def test_one_rank_alone_has_nobody_to_wait_for(results: Results) -> None:
    assert "Only one rank" in results("stragglers", DEMO, "--ranks", "0")["conclusions"][0]


@pytest.mark.slow
def test_an_opportunity_is_what_the_same_change_gives(results: Results) -> None:
    rows = [row for row in results("plan", DEMO, "--top", "4")["opportunities"] if row["target"]]
    for row in rows:
        (prediction,) = results("what-if", DEMO, "--scale", f"{row['target']}:0")["prediction"]
        assert prediction["saved_us"] == pytest.approx(row["gain_us"], abs=0.01)
        assert criteria(row["target"])


def test_opportunities_have_one_base_and_the_percentage_of_a_step_that_is_said() -> None:
    graph = hg.load(REPOSITORY / "data" / "gloo_ddp")
    brief = plan_report(graph, [], full=True).brief or {}
    shown = brief["opportunities"].set_index("name").loc["aten::mm"]
    assert shown["time_us"] >= shown["critical_us"] >= shown["gain_us"] == pytest.approx(137_500, rel=0.01)
    assert f"{shown['gain_per_step_percent']:.0f}" == "50"  # of 91.3 ms, the mean of three steps, 45.8 ms


def test_nothing_worth_the_work_is_said_so(tmp_path: Path, results: Results) -> None:
    path = tmp_path / "rank-0.json"
    path.write_text('{"traceEvents": []}')
    assert results("plan", str(path))["conclusions"][0] == "No change that is known would gain 2 %."


def test_a_job_in_which_all_happens_at_one_moment_has_no_share_before_the_steps(
    tmp_path: Path, results: Results
) -> None:
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 1, "tid": 1, "ts": 5, "dur": 0}
    work = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5, "dur": 0}
    path = tmp_path / "rank-0.json"
    path.write_text(json.dumps({"traceEvents": [step, work]}))
    assert results("plan", str(path))["conclusions"][0] == "No change that is known would gain 2 %."
    assert "All durations are 0" in json.dumps(results("summary", str(path))["head"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("regime", "bound"),
    [("gpu_bound", "computation"), ("host_bound", "host code"), ("communication_bound", "transfers between ranks")],
)
def test_the_path_names_what_bounds_the_job_and_a_change_that_helps(
    regime: str, bound: str, simulated: Callable[[str], str], results: Results
) -> None:
    said = results("critical-path", simulated(regime))["conclusions"]
    assert said[1].startswith(f"Bound by {bound}")
    if regime == "gpu_bound":  # its kernels multiply in low precision already: no command makes them faster
        assert said[-1].startswith("No change with a known way was found.")
        assert "htagraph what-if" not in said[-1]
        return
    line = shlex.split(said[-1].partition(": htagraph ")[2])
    (prediction,) = results(*line)["prediction"]
    saved_us = prediction["baseline_step_us"] - prediction["predicted_step_us"]
    gain_us = results("plan", simulated(regime))["first"]["gain_us"]
    assert saved_us > 0
    assert gain_us["low"] <= saved_us <= gain_us["high"]
    assert time_text(gain_us["high"]) in said[-1] or f" {time_text(saved_us)} " in said[-1]


@pytest.mark.slow
def test_a_faster_network_never_saves_more_than_the_path_allows(
    simulated: Callable[[str], str], results: Results
) -> None:
    found = results("critical-path", simulated("communication_bound"))
    (row,) = [row for row in found["shares"] if row["key"] == "communication"]
    (prediction,) = results("what-if", simulated("communication_bound"), "--network", "0.5")["prediction"]
    assert 0 < prediction["saved_us"] <= row["time_us"] / 2


def test_the_segments_of_the_path_sum_to_its_makespan(results: Results) -> None:
    found = results("critical-path", DEMO, "--segments")
    assert sum(row["duration_us"] for row in found["segments"]) == pytest.approx(found["makespan_us"], abs=1e-6)
    assert len(found["segments"]) == found["segments_count"]


@pytest.mark.slow
def test_a_step_has_a_path_of_its_own(results: Results) -> None:
    whole, part, same = (results("critical-path", DEMO, *more) for more in ([], ["--step", "6"], ["--steps", "6-6"]))
    assert part == same
    assert 0 < part["makespan_us"] < 0.5 * whole["makespan_us"]


def test_top_limits_each_group_of_shares(results: Results) -> None:
    rows = results("critical-path", DEMO, "--top", "2")["shares"]
    assert {group: sum(row["group"] == group for row in rows) for group in ("category", "operator")} == {
        "category": 2, "operator": 2,
    }  # fmt: skip


def test_no_cell_of_a_readers_table_is_blank(run: Any) -> None:
    ran = run("critical-path", DEMO, "--segments", "--format", "md")
    rows = [line for line in ran.out.splitlines() if line.startswith("| ")]
    assert rows
    assert [row for row in rows if "|  |" in row] == []


def steps_behind(earlier_us: float) -> hg.DependencyGraph:
    """Return the graph of a job with two steps of 100 µs each behind earlier work of a length."""
    begin = earlier_us
    return load([
        op("aten::mm", 0, earlier_us), step(1, begin, 100), op("aten::mm", begin + 1, 98),
        step(2, begin + 100, 100), op("aten::mm", begin + 101, 98),
    ])  # fmt: skip


def test_titles_name_the_time_before_the_first_step_where_percentages_hold_that_time() -> None:
    late = steps_behind(300)
    scope = "(of the whole recording, 60 % of it before the first step)"
    report = critical_path_report(hg.critical_path(late), ["x"])
    assert report.titles["path_category"] == f"Critical path by category {scope}"
    assert opportunity_titles(late)["opportunities"].endswith(scope)
    at_once = steps_behind(1)
    assert path_titles(hg.critical_path(at_once)) == {}
    assert opportunity_titles(at_once) == {}
    of_steps = hg.critical_path(late, [1, 2])
    assert path_titles(of_steps) == {}
