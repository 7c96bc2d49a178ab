from __future__ import annotations

import pytest

import htagraph as hg
from tests.graph.evidence.test_outside import PACE_US, WORK, learner, paced
from tests.strategies import load, op


def test_nobody_waits_for_what_was_not_recorded() -> None:
    graph = learner(WORK, paced(WORK))
    free = hg.what_if(graph).free_outside().run()
    assert free.makespan_ns == pytest.approx(1000 * (PACE_US + sum(WORK)), rel=0.02), "the first item has no pace"
    with pytest.raises(hg.SelectionError, match="no waits for a data loader"):
        hg.what_if(graph).free_dataloader()


def test_a_job_without_such_waits_is_told_how_they_are_known() -> None:
    with pytest.raises(hg.SelectionError, match="keeps another's pace"):
        hg.what_if(load([op("a", 0, 10)])).free_outside()
