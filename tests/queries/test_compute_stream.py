"""Collectives on the streams of computation, against the definition in plain Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph import ActivityKind, DependencyGraph
from htagraph.queries.compute_stream import collectives_on_compute_streams
from tests.findings.test_compute_stream import rank_of
from tests.reach import JOBS, LARGE_BYTES, graph_of, label
from tests.strategies import load

SMALL = [path for path in JOBS if path.is_dir() or path.stat().st_size < LARGE_BYTES]


def slow_members(graph: DependencyGraph) -> set[int]:
    acts = graph.activities
    time: dict[tuple[int, int], int] = {}
    for row in range(len(acts)):
        if acts.on_device[row] and acts.kind[row] == ActivityKind.COMPUTATION:
            lane = (int(acts.rank[row]), int(acts.lane[row]))
            time[lane] = time.get(lane, 0) + int(acts.duration[row])
    main = {
        lane
        for (rank, lane), spent in time.items()
        if 2 * spent > sum(all_ for (of, _), all_ in time.items() if of == rank)
    }
    return {
        row
        for row in range(len(acts))
        if acts.on_device[row] and acts.kind[row] == ActivityKind.COMMUNICATION and int(acts.lane[row]) in main
    }


@pytest.mark.slow
@pytest.mark.parametrize("path", SMALL, ids=label)
def test_the_members_are_those_of_the_definition(path: Path) -> None:
    graph = graph_of(path)
    found = collectives_on_compute_streams(graph)
    assert (set() if found is None else set(found.activity.tolist())) == slow_members(graph)


def test_a_stream_with_half_of_the_computation_is_none() -> None:
    found = collectives_on_compute_streams(load({0: rank_of(7), 1: rank_of(20)}))
    assert found is not None
    assert len(found.activity) == 5
    assert found.share == pytest.approx(0.5, abs=0.1)
