"""Waits for cores in predictions; jobs that have some are in tests/laws/test_cores.py."""

from __future__ import annotations

import htagraph as hg
from htagraph.queries.weights import initial
from htagraph.whatif.cores import with_cores


def test_weights_of_a_job_in_which_nobody_waits_for_a_core_stay() -> None:
    state = initial(hg.load("data/demo"))
    assert with_cores(state) is state
