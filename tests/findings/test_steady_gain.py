"""Whether gains that verbs tell are of the steady job, as are those of the list of changes."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.findings.results import Results
from htagraph.findings.steady_gain import steady_gain
from tests.laws.test_start_up import LOAD_US, simulated


def test_start_up_is_no_part_of_a_gain() -> None:
    options = ["--no-launch-overhead"]
    steady = steady_gain(Results(simulated("bound by the host", 0.0)), options)
    starting_job = simulated("bound by the host", LOAD_US)
    starting = steady_gain(Results(starting_job), options)
    assert steady.percent == pytest.approx(starting.percent, abs=1)
    assert (steady.is_without_start_up, starting.is_without_start_up) == (False, True)
    whole = hg.what_if(starting_job).no_launch_overhead().run()
    assert 100 * whole.saved_ns / whole.baseline_ns > starting.percent + 10  # first launches load code
