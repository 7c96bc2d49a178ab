"""The parts of ranks under one numbering."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from htagraph.graph.construction.join import join
from tests.graph.construction.test_activities import part
from tests.strategies import COMPUTE, kernel, launch, op


def test_ranks_are_joined_under_one_numbering(tmp_path: Path) -> None:
    one = [op("a", 0, 9), op("b", 1, 2), launch(4, 1, 7), kernel(COMPUTE, 6, 5, 7)]
    other = [op("b", 0, 9), op("new", 1, 2), launch(4, 1, 7), kernel(COMPUTE, 6, 5, 7)]
    job = join([part(other, tmp_path, 1), part(one, tmp_path, 0)])
    acts = job.activities
    assert acts.rank.tolist() == [0] * 4 + [1] * 4, "by rank, whatever their order"
    assert len(set(job.names)) == len(job.names)
    for first in (0, 4):
        work = first + int(np.flatnonzero(acts.on_device[first : first + 4])[0])
        assert job.names[acts.name[acts.cause[work]]] == "cudaLaunchKernel"
        assert first <= acts.cause[work] < first + 4
        assert [job.lanes[lane].rank for lane in acts.lane[first : first + 4]] == [first // 4] * 4
    assert sorted(job.boundaries.tolist()) == [v for v in range(16) if not acts.on_device[v // 2]]
