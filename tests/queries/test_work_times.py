from __future__ import annotations

import numpy as np

from htagraph.queries.work_times import work_times
from tests.strategies import COMPUTE, kernel, launch, load, op


def test_kernels_have_their_durations_and_operators_their_self_times() -> None:
    """Of ranks 0 to 2, the last and the first are asked for, in that order."""
    events = {
        rank: [op("outer", 0, 100), op("inner", 10, 40), launch(20, 5, 1), kernel(COMPUTE, 60, 7 + rank, 1)]
        for rank in range(3)
    }
    graph = load(events)
    ranks = np.array([2, 0])
    _, place, time = work_times(graph, ranks, device=True)
    assert dict(zip(place.tolist(), time.tolist(), strict=True)) == {0: 9000.0, 1: 7000.0}
    rows, place, time = work_times(graph, ranks, device=False)
    names = [graph.names[name] for name in graph.activities.name[rows].tolist()]
    assert sorted(zip(place.tolist(), names, time.tolist(), strict=True)) == [
        (0, "inner", 35000.0), (0, "outer", 60000.0), (1, "inner", 35000.0), (1, "outer", 60000.0),
    ]  # fmt: skip
