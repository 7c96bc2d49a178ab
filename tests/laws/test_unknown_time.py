"""Whether time that may be waiting is called host code or transfer nowhere, in jobs of which the truth is known."""

from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from htagraph.output.reports.ranks import critical_path_report
from htagraph.output.summary import summarize
from htagraph.simulate import Job, simulate
from tests.queries.test_silent_regions import job


@pytest.mark.parametrize(("wait_us", "code"), [(3_000, 63), (12_000, 29)])
def test_the_summary_and_the_path_say_of_a_silent_region_that_nothing_of_it_is_recorded(
    wait_us: int, code: int
) -> None:
    graph = job(wait_us=wait_us)
    why = summarize(graph).head.why[0]
    spent = critical_path_report(hg.critical_path(graph), []).sentences[0]
    for text in (why, spent):
        assert "of which nothing is recorded" in text
        assert "collect" in text
        assert f"{100 - code} %" in text
        assert f"{code} %" in text
        assert "100 %" not in text
    is_mostly_silent = code < 50
    assert why.startswith("Bound by what collect") == is_mostly_silent


def test_of_a_job_of_which_one_rank_was_read_no_answer_says_that_it_is_transferring(tmp_path: Path) -> None:
    simulate(Job(ranks=4, steps=3, layers=2, seed=3)).write(tmp_path)
    graph = hg.load(tmp_path, ranks=[1])
    path = critical_path_report(hg.critical_path(graph), []).sentences
    words = "transfers between ranks"
    told = [text for text in [*path, *summarize(graph).verdict] if words in text]
    assert told
    assert all(f"{words}, or waiting for ranks not recorded" in text for text in told)
