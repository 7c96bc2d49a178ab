"""The test of time: true members pass it, members of another run do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from htagraph.graph.construction.matching import timing_check as trial
from htagraph.graph.construction.matching.members import Members, members_of
from htagraph.graph.construction.matching.timing_check import Team, aligned, times
from tests.graph.construction.matching.test_match import made


def meetings(seed: int, ranks: int, count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Return (arrivals, ends) by (rank, meeting), ns, whole."""
    draw = np.random.default_rng(seed)
    arrival = np.zeros((ranks, count))
    end, now = arrival.copy(), np.zeros(ranks)
    for i in range(count):
        arrival[:, i] = now + draw.exponential(80_000, ranks) + 5_000
        end[:, i] = arrival[:, i].max() + draw.uniform(20_000, 60_000) + draw.uniform(0, 1_500, ranks)
        now = end[:, i] + draw.uniform(1_000, 300_000)
    return arrival.astype(np.int64), end.astype(np.int64)


def team_of(arrival: np.ndarray, end: np.ndarray) -> tuple[Members, Team]:
    """Return all-reduces at some times, and the team in which the i-th of each rank are one collective."""
    ranks, count = arrival.shape
    acts, names = made({r: [list(zip(arrival[r].tolist(), end[r].tolist(), strict=True))] for r in range(ranks)})
    return members_of(acts, names), Team(np.arange(ranks * count).reshape(ranks, count), "world", "pg+order", ranks)


@pytest.mark.parametrize("skew", [0, 4_000_000])
def test_those_who_met_pass_whatever_their_clocks(skew: int) -> None:
    arrival, end = meetings(1, 4)
    offset = skew * np.arange(4)[:, None]
    members, team = team_of(arrival + offset, end + offset)
    kept, complaints = trial.tested(members, [team])
    assert complaints == []
    assert kept[0].rows.tolist() == team.rows.tolist()


def test_the_rank_of_another_run_is_left_out_and_named() -> None:
    arrival, end = meetings(1, 4)
    other_arrival, other_end = meetings(9, 4)
    arrival[2], end[2] = other_arrival[2], other_end[2]
    members, team = team_of(arrival, end)
    kept, complaints = trial.tested(members, [team])
    assert members.rank[kept[0].rows[:, 0]].tolist() == [0, 1, 3]
    assert [(what, rank) for what, _, _, rank in complaints] == [("collectives_refused", 2)]


def test_two_that_never_met_are_refused_as_a_group() -> None:
    arrival, end = (np.stack([one[0], other[1]]) for one, other in zip(meetings(1, 2), meetings(9, 2), strict=True))
    members, team = team_of(arrival, end)
    kept, complaints = trial.tested(members, [team])
    assert kept == []
    assert [(what, count, rank) for what, _, count, rank in complaints] == [("collectives_refused", 60, -1)]


def test_offsets_and_drift_are_taken_off_the_times() -> None:
    arrival, end = meetings(1, 3)
    factor, offset = 1 + 1e-4 * np.arange(3)[:, None], 5_000_000 * np.arange(3)[:, None]
    members, team = team_of((arrival * factor + offset).astype(np.int64), (end * factor + offset).astype(np.int64))
    raw, _ = times(members, team.rows)
    assert np.ptp(raw, axis=0).min() > 5_000_000
    straight, _ = aligned(*times(members, team.rows), np.ones(60, np.bool_))
    assert np.median(np.ptp(straight, axis=0)) < 2_500


def test_groups_on_host_threads_are_kept_however_far_apart_they_end() -> None:
    """The last bytes reach one rank 18 ms after another, on a slow link, and whoever arrives late ends late."""
    arrival, end = meetings(1, 3)
    end = end + np.array([0, 18_000_000, 400_000])[:, None] + (arrival - arrival.min(axis=0)) // 2
    members, team = team_of(arrival, end)
    kept, complaints = trial.tested(replace(members, on_host=np.ones(len(members), np.bool_)), [team])
    assert complaints == []
    assert kept[0].rows.tolist() == team.rows.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_what_the_others_show_is_found_without_comparing_all_pairs(seed: int) -> None:
    draw = np.random.default_rng(seed)
    values = draw.integers(0, 50, (7, 40)).astype(np.float64)
    values[draw.random(values.shape) < 0.3] = np.nan
    middle = trial._median_of_others(values)
    known = np.where(np.isfinite(values), values, -np.inf)
    largest = trial._largest_of_others(known)
    for line in range(len(values)):
        others = np.delete(values, line, axis=0)
        some = np.isfinite(values[line]) & np.isfinite(others).any(axis=0)
        assert np.array_equal(np.isfinite(middle[line]), some)
        assert np.array_equal(middle[line, some], np.nanmedian(others[:, some], axis=0))
        assert np.array_equal(largest[line], np.delete(known, line, axis=0).max(axis=0))
