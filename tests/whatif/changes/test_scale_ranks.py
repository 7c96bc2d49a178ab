from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from htagraph.whatif.links import transfers
from tests.whatif.changes.simulated import recorded, small


def test_as_many_ranks_as_there_are_change_nothing() -> None:
    graph, _ = recorded(small("communication_bound"))
    outcome = hg.what_if(graph).scale_ranks(2).run()
    assert np.array_equal(outcome.time, graph.time)
    assert outcome.notes[0].startswith("extrapolation: 2 ranks → 2")


def test_more_ranks_take_longer() -> None:
    graph, _ = recorded(small("communication_bound"))
    makespans = [hg.what_if(graph).scale_ranks(n).run().makespan_ns for n in (2, 4, 16, 128)]
    assert makespans == sorted(makespans)
    assert makespans[-1] > makespans[0]


@pytest.mark.slow
def test_only_groups_asked_for_grow() -> None:
    job = small("tensor").model_copy(update={"tp": 2, "ranks": 4})
    graph, _ = recorded(job)
    found = transfers(hg.what_if(graph).state)
    groups = np.array(found.matches.group)
    data_parallel = np.array(["dp" in group for group in groups])[found.collective]
    outcome = hg.what_if(graph).scale_ranks(64, groups="*dp*").run()
    lag = outcome.state.lag
    assert np.array_equal(lag[found.edges[~data_parallel]], graph.edges.lag[found.edges[~data_parallel]])
    assert (lag[found.edges[data_parallel]] > graph.edges.lag[found.edges[data_parallel]]).any()
    assert len(outcome.notes) == 1
    assert "groups=" in hg.what_if(graph).scale_ranks(64).run().notes[1]


@pytest.mark.slow
def test_late_ranks_are_drawn_from_the_spread_of_arrivals() -> None:
    calm, _ = recorded(small("gpu_bound").model_copy(update={"ranks": 4, "jitter": 0.0}))
    noisy, _ = recorded(small("gpu_bound").model_copy(update={"ranks": 4, "jitter": 0.1}))
    grown = [hg.what_if(graph).scale_ranks(64) for graph in (calm, noisy)]
    extra = [int((scenario.state.gap - scenario.graph.gap).sum()) for scenario in grown]
    assert extra[1] > 10 * max(extra[0], 0)
