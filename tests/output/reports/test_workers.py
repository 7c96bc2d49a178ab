"""The report on a job whose ranks lie with workers."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.output.reports.workers import job_report, job_stragglers_report
from tests.reach import DATA, graph_of


@pytest.mark.slow
def test_its_figures_are_those_of_the_graph_and_nothing_is_missing() -> None:
    with ThreadPoolExecutor(2) as workers:
        report = job_report(hg.load(DATA / "demo", engine=workers), top=2)
    graph = graph_of(DATA / "demo")
    assert report.figures["makespan_us"] == hg.replay(graph).makespan_ns / 1000
    idle_us = hg.temporal_breakdown(graph)["idle_us"].sum()
    assert report.tables["time_by_rank"]["idle_us"].sum() == pytest.approx(idle_us)
    assert report.tables["critical_path"]["share_percent"].sum() == pytest.approx(100)
    assert not any("missing" in sentence for sentence in report.sentences)


def test_the_first_sentence_says_which_ranks_are_missing(tmp_path: Path) -> None:
    for rank in (0, 2, 3):
        shutil.copy(DATA / "demo" / f"rank-{rank}.json.gz", tmp_path)
    with ThreadPoolExecutor(2) as workers:
        report = job_report(hg.load(tmp_path, engine=workers))
    assert report.sentences[0].startswith("3 ranks answered; missing are rank 1 (no file of it was given)")
    assert report.to_dict()["results"]["missing"] == [{"rank": 1, "file": "", "why": "no file of it was given"}]


@pytest.mark.slow
def test_stragglers_alone_are_those_of_the_summary() -> None:
    with ThreadPoolExecutor(2) as workers:
        job = hg.load(DATA / "demo", engine=workers)
        summary, stragglers = job_report(job), job_stragglers_report(job)
    assert stragglers.tables["stragglers"].equals(summary.tables["stragglers"])
    assert stragglers.figures["straggler"] == 2
    assert stragglers.sentences == summary.sentences[-1:]
    assert stragglers.sentences[0].startswith("Rank 2 is the straggler: 100 % of all waiting")


def test_a_reader_sees_parts_of_the_time_with_their_shares() -> None:
    with ThreadPoolExecutor(2) as workers:
        report = job_report(hg.load(DATA / "demo", engine=workers))
    assert report.brief is not None
    shown = report.brief["time_by_rank"].set_index("rank")
    assert shown.loc[2, "computation ms (%)"] == "17.7 (71 %)"  # as `htagraph summary data/demo` says
