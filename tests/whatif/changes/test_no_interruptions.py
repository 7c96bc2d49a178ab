"""Whether a job without interruptions is the job that was never interrupted."""

from __future__ import annotations

import pytest

import htagraph as hg
from tests.queries.test_interruptions import MANY, host_job
from tests.strategies import load


def test_the_job_takes_what_it_takes_without_them() -> None:
    graph = load(host_job(MANY))
    outcome = hg.what_if(graph).no_interruptions().run()
    assert outcome.makespan_ns == pytest.approx(hg.what_if(load(host_job({}))).run().makespan_ns, rel=1e-3)
    assert outcome.saved_ns > 0


def test_it_gains_what_its_row_among_the_opportunities_says() -> None:
    graph = load(host_job(MANY))
    table = hg.opportunities(graph)
    row = table[table["name"] == "interruptions of host code"].iloc[0]
    assert row["gain_us"] * 1000 == hg.what_if(graph).no_interruptions().run().saved_ns
    assert row["target"] == ""
