"""Communication whose group was recorded on some of its ranks only."""

from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.kinds import COMMUNICATION
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.absent_members import lacks_members, ranks_not_read
from tests.host_jobs import host_job
from tests.strategies import Json, annotation, op


def job(ranks: list[int], group: list[int]) -> DependencyGraph:
    def rank(late: float) -> list[Json]:
        made: list[Json] = []
        for i in range(4):
            at = 1_000 * i
            made += [op("c10d::allreduce_", at, 5), annotation("gloo:all_reduce", at + 50 + late, 500 - late, 2)]
            made += [op("work", at + 560, 400)]
        return made

    return host_job({each: rank(30.0 * each) for each in ranks}, groups=[group])


def test_all_communication_of_a_group_with_an_absent_rank_may_wait_for_it() -> None:
    whole, part = job([0, 1], [0, 1]), job([0, 1], [0, 1, 2])
    assert (ranks_not_read(whole), ranks_not_read(part)) == ((), (2,))
    assert not lacks_members(whole).any()
    talks = np.isin(part.activities.kind, COMMUNICATION)
    assert np.array_equal(lacks_members(part), talks)


def test_a_faster_network_is_promised_no_gain_where_transfers_may_be_waits() -> None:
    outcomes = [hg.what_if(job([0, 1], group)).scale_network(factor=0.1).run() for group in ([0, 1], [0, 1, 2])]
    assert outcomes[0].speedup == outcomes[1].speedup > 1.3
    assert outcomes[0].low > 1.2
    assert outcomes[1].low == pytest.approx(1, abs=0.01)
    assert "waiting for ranks that were not recorded" in outcomes[1].interval_cause
