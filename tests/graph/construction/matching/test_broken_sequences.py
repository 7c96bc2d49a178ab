"""A record that was lost in the middle of one rank's sequence leaves all other matches as they are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from htagraph.graph.construction.matching.broken_sequences import with_broken
from htagraph.graph.construction.matching.clusters import cluster
from htagraph.graph.construction.matching.host_transfers import _in_order
from htagraph.graph.construction.matching.sequence_alignment import Track
from htagraph.graph.dependency_graph import DependencyGraph
from tests.host_jobs import host_job, tensor_args
from tests.strategies import Json, annotation, op, step

COUNT = 24
TIMES = np.cumsum(np.random.default_rng(5).uniform(30, 90, COUNT))
"""µs: when each collective ends, at irregular distances."""


def track(number: int, keep: list[int], *, late: float = 3.0) -> Track:
    ends = 1000 * TIMES[keep]
    start = ends - 1000 * (10 + late * ((np.array(keep) + number) % 4))
    label = np.array(keep) % 2
    return Track(number, number, np.array(keep), start, ends, label, np.ones(len(keep), np.bool_), 0, certain=True)


@pytest.mark.parametrize("lost", [(9,), (1,), (COUNT - 2,), (7, 8), (5, 16)])
def test_what_lies_behind_a_hole_keeps_its_place(lost: tuple[int, ...]) -> None:
    keep = [place for place in range(COUNT) if place not in lost]
    tracks = [track(0, list(range(COUNT))), track(1, keep), track(2, list(range(COUNT)))]
    every, clusters = with_broken(tracks, cluster(tracks))
    (fellows,) = clusters
    placed = {
        (every[number].rank, row): shift + at - fellows.shift[0]
        for number, shift in fellows.shift.items()
        for at, row in enumerate(every[number].rows.tolist())
    }
    assert len(placed) == 3 * COUNT - len(lost)
    assert all(place == row for (_, row), place in placed.items())


def test_a_sequence_of_another_run_is_not_pressed_into_parts() -> None:
    tracks = [track(0, list(range(COUNT))), track(1, list(range(COUNT)))]
    strange = track(2, list(range(COUNT)))
    strange.end[:] = np.sort(1e9 + 997.0 * (np.arange(COUNT) * 7919 % 1013))
    strange.start[:] = strange.end - 500
    _, clusters = with_broken([*tracks, strange], cluster([*tracks, strange]))
    assert [sorted(each.shift) for each in clusters] == [[0, 1]]


def reduced(lost: tuple[int, int] | None, *, steps: bool, whole: bool) -> DependencyGraph:
    """Return a job of three ranks with 20 all-reduces; of rank 1 one record is lost, or the operator with it."""

    def rank(number: int) -> list[Json]:
        events: list[Json] = [step(i, 400 * i, 390) for i in range(5)] if steps else []
        for i in range(20):
            at = 400 * (i // 4) + 80 * (i % 4) + 10
            if (number, i) == lost and whole:
                continue
            events.append(op("c10d::allreduce_", at + number, 3, **tensor_args(16)))
            if (number, i) != lost:
                events.append(annotation("gloo:all_reduce", at + 5 + number, 50 - number + i % 3, 2))
        return events

    return host_job({number: rank(number) for number in range(3)})


def places(graph: DependencyGraph) -> list[list[float]]:
    """Return when the members of each collective began, µs, without their ranks."""
    matches, acts = graph.matches, graph.activities
    assert matches is not None
    begun = (acts.start[matches.activity] - acts.start.min()) / 1000 - acts.rank[matches.activity]
    return [np.round(begun[matches.collective == each]).tolist() for each in range(matches.count)]


@pytest.mark.parametrize(("steps", "whole"), list(itertools.product([True, False], repeat=2)))
def test_a_lost_record_of_a_host_collective_moves_no_other_match(steps: bool, whole: bool) -> None:  # noqa: FBT001
    found = places(reduced((1, 9), steps=steps, whole=whole))
    assert len(found) == 20
    assert sorted(len(each) for each in found) == [2] + [3] * 19
    assert all(len(set(each)) == 1 for each in found)


def test_places_in_order_are_those_that_cost_least() -> None:
    rng = np.random.default_rng(1)
    for _ in range(50):
        rows, columns = int(rng.integers(1, 4)), int(rng.integers(1, 6))
        cost = np.where(rng.random((rows, columns)) < 0.2, np.inf, rng.integers(0, 9, (rows, columns)))
        options = [list(each) for each in itertools.combinations(range(columns), rows)]
        sums = [cost[np.arange(rows), each].sum() for each in options]
        at = _in_order(cost.astype(float))
        if at is None:
            assert not any(np.isfinite(sums))
        else:
            assert cost[np.arange(rows), at].sum() == min(sums)
            assert (np.diff(at) > 0).all()
