"""How sequences of collectives lie side by side: shift and clock offset are recovered where they were put in."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.graph.construction.matching.alignment import Track, fit_pair, pairs, slope, with_holes
from htagraph.graph.construction.matching.clusters import cluster
from htagraph.graph.construction.matching.teams import _in_order
from htagraph.graph.dependency_graph import DependencyGraph
from tests.host_jobs import host_job, tensor_args
from tests.strategies import Json, annotation, op, step


def recorded(seed: int, ranks: int, count: int = 40) -> list[Track]:
    """Return the sequences of ranks that met `count` times, all on one clock, from the first meeting to the last."""
    draw = np.random.default_rng(seed)
    now = np.zeros(ranks)
    arrivals, ends = [], []
    for _ in range(count):
        arrivals.append(now + draw.exponential(80_000, ranks) + 5_000)
        ends.append(arrivals[-1].max() + draw.uniform(20_000, 60_000) + draw.uniform(0, 1_500, ranks))
        now = ends[-1] + draw.uniform(1_000, 300_000)
    return [track(rank, np.array(arrivals)[:, rank], np.array(ends)[:, rank]) for rank in range(ranks)]


def track(number: int, start: np.ndarray, end: np.ndarray, rank: int = -1) -> Track:
    same = np.zeros(len(start), np.int64)
    return Track(
        number, rank if rank >= 0 else number, np.arange(len(start)), start, end, same, same == 0, 0, certain=False
    )


def cut(whole: Track, head: int, offset: float) -> Track:
    """Return a sequence without its first meetings, on a clock that is off."""
    return track(whole.number, whole.start[head:] + offset, whole.end[head:] + offset, whole.rank)


@given(st.integers(0, 10**6), st.integers(0, 6), st.floats(-5e6, 5e6))
@settings(max_examples=60)
def test_a_pair_is_fitted_at_the_true_shift_and_offset(seed: int, head: int, offset: float) -> None:
    a, b = recorded(seed, 2)
    fit = fit_pair(a, cut(b, head, offset))
    assert fit is not None
    assert fit.shift == head
    assert abs(fit.offset - offset) <= 2_000
    turned = fit_pair(cut(b, head, offset), a)
    assert turned is not None
    assert (turned.shift, round(turned.offset)) == (-head, -round(fit.offset))


@pytest.mark.parametrize("period", [0.0, 1.0])
def test_collectives_of_one_step_lie_side_by_side_whatever_ends_suggest(period: float) -> None:
    """On host threads ends lie apart; a whole step later they may seem to fit better."""
    start = np.arange(10) * 1e6
    a = track(0, start, start + 4e5)
    b = track(1, start, start + 4e5 + 1e3 * np.arange(10) % 7 + period * 1e6)
    numbers = np.arange(10) + 3
    first, second = (replace(each, steps=numbers, on_host=True) for each in (a, b))
    fit = fit_pair(first, second)
    assert fit is not None
    assert fit.shift == 0


def test_steps_decide_however_much_is_missing() -> None:
    a, b = recorded(5, 2, count=60)
    numbers = np.arange(60) // 3
    whole = replace(a, steps=numbers)
    for head, tail in ((0, 50), (50, 60), (29, 31), (3, 59)):
        part = Track(
            1, 1, b.rows[head:tail], b.start[head:tail] + 7e6, b.end[head:tail] + 7e6, b.label[head:tail],
            b.barrier[head:tail], 0, certain=True, steps=numbers[head:tail],
        )  # fmt: skip
        fit = fit_pair(whole, part)
        assert fit is not None
        assert fit.shift == head


def test_no_shift_fits_different_operations() -> None:
    a, b = recorded(3, 2)
    other = Track(1, 1, b.rows, b.start, b.end, b.label + 1, b.barrier, 0, certain=False)
    assert fit_pair(a, other) is None


@pytest.mark.parametrize("follows", [0.0, 1.0])
def test_the_slope_is_how_much_ends_follow_arrivals(follows: float) -> None:
    draw = np.random.default_rng(1)
    arrivals, when = draw.normal(0, 100_000, 200), np.arange(200) * 1e6
    ends = follows * arrivals + 0.002 * when + draw.normal(0, 500, 200)
    value, doubt, _, _ = slope(ends, arrivals + 0.002 * when, when)
    assert value == pytest.approx(follows, abs=0.05)
    assert doubt < 0.1


COUNT = 24
TIMES = np.cumsum(np.random.default_rng(5).uniform(30, 90, COUNT))
"""µs: when each collective ends, at irregular distances."""


def track_broken_sequences(number: int, keep: list[int], *, late: float = 3.0) -> Track:
    ends = 1000 * TIMES[keep]
    start = ends - 1000 * (10 + late * ((np.array(keep) + number) % 4))
    label = np.array(keep) % 2
    return Track(number, number, np.array(keep), start, ends, label, np.ones(len(keep), np.bool_), 0, certain=True)


@pytest.mark.parametrize("lost", [(9,), (1,), (COUNT - 2,), (7, 8), (5, 16)])
def test_what_lies_behind_a_hole_keeps_its_place(lost: tuple[int, ...]) -> None:
    keep = [place for place in range(COUNT) if place not in lost]
    tracks = [
        track_broken_sequences(0, list(range(COUNT))),
        track_broken_sequences(1, keep),
        track_broken_sequences(2, list(range(COUNT))),
    ]
    (fellows,) = cluster(tracks)
    every = [fellows.holed.get(each.number, each) for each in tracks]
    placed = {
        (each.rank, row): fellows.shift[each.number] + at - fellows.shift[0]
        for each in every
        for at, row in zip(each.place.tolist(), each.rows.tolist(), strict=True)
    }
    assert len(placed) == 3 * COUNT - len(lost)
    assert all(place == row for (_, row), place in placed.items())


def test_a_sequence_of_another_run_is_not_pressed_into_parts() -> None:
    tracks = [track_broken_sequences(0, list(range(COUNT))), track_broken_sequences(1, list(range(COUNT)))]
    strange = track_broken_sequences(2, list(range(COUNT)))
    strange.end[:] = np.sort(1e9 + 997.0 * (np.arange(COUNT) * 7919 % 1013))
    strange.start[:] = strange.end - 500
    clusters = cluster([*tracks, strange])
    assert [sorted(each.shift) for each in clusters] == [[0, 1]]


def test_equal_distances_leave_the_place_of_a_hole_open() -> None:
    """Under one clock offset or another, any shift fits as well."""
    end = np.arange(20) * 1e6
    whole = track(0, end - 4e5, end)
    assert with_holes(whole, track(1, np.delete(end, 9) - 4e5, np.delete(end, 9))) is None


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


@pytest.mark.parametrize(("rank", "way", "count"), [(1, 0, 1), (0, 0, 0), (1, 1, 0)])
def test_only_different_ranks_and_opposite_ways_are_worth_a_look(rank: int, way: int, count: int) -> None:
    a, b = recorded(3, 2)
    tracks = [
        Track(i, each, t.rows, t.start, t.end, t.label, t.barrier, 0, certain=False, way=way)
        for i, (each, t) in enumerate(((0, a), (rank, b)))
    ]
    assert len(pairs(tracks)) == count
