"""Which work makes a rank late, and how it compares with the peers'."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph.queries.blame import CAUSES, blame_of, chains_of
from htagraph.queries.slow_work import largest_upstream, slow_work
from htagraph.simulate import Job, SlowRank
from tests.analyses.test_stragglers import run


def test_a_slow_kernel_is_compared_alone_and_is_upstream_of_the_charges() -> None:
    job = Job(ranks=4, steps=3, layers=3, seed=11, slow_ranks=(SlowRank(rank=0, factor=1.3, name="*gemm*"),))
    graph = run(job)
    chains = chains_of(graph)
    blame = blame_of(graph, chains)
    kernels = CAUSES.index("kernels")
    works = slow_work(graph, chains, blame, np.array([kernels, 0, 0, 0]))
    assert "gemm" in works[0].name
    assert works[0].excess_ns > 0
    assert works[0].slower == pytest.approx(0.3, abs=0.15)
    assert [work.name for work in works[1:]] == [""] * 3
    activity = largest_upstream(chains, blame)
    charged = activity[(blame.rank == 0) & (blame.cause == kernels)]
    assert (graph.activities.rank[charged] == 0).all()
