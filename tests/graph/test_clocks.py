"""Clock offsets and drift: recovered where they were put in, untouched where clocks are right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

import htagraph as hg
from htagraph.graph import clocks as module
from htagraph.graph.activities import Activities, common_time
from htagraph.graph.clock_fits import BarrierTimes
from htagraph.graph.clocks import Clock, agreement_ns, corrected, estimate_clocks, shared_clocks
from htagraph.graph.construction.matching.match import match
from htagraph.graph.tolerances import LIMITS
from htagraph.simulate import REGIMES, Job, simulate
from tests.graph.construction.matching.test_match import OFFSETS, loaded, made, matched, recorded, with_clocks_off
from tests.host_jobs import host_job, transfer
from tests.reach import SHARED


@pytest.mark.slow
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("args", [True, False])
def test_injected_offsets_are_recovered(regime: str, args: bool) -> None:  # noqa: FBT001
    done, graph = with_clocks_off(regime, args=args, era="2026")
    spread_ns = 1000 * done.job.end_spread_us
    for clock in estimate_clocks(graph.ranks, matched(graph)):
        assert abs(clock.offset_ns - 1000 * (OFFSETS[clock.rank] - OFFSETS[clock.gauge])) <= spread_ns
        assert clock.gauge == 0
        assert clock.collectives > 0


@pytest.mark.slow
def test_right_clocks_stay_untouched(tmp_path: Path) -> None:
    graph = loaded(simulate(Job(ranks=4)), tmp_path)
    for clock in estimate_clocks(graph.ranks, matched(graph)):
        assert (clock.offset_ns, clock.drift_ppm) == (0, 0)


@pytest.mark.slow
def test_drift_is_seen_in_a_long_window(tmp_path: Path) -> None:
    drift = (0.0, 400.0, -250.0)
    job = Job(ranks=3, steps=20, layers=2, clock_drift_ppm=drift, clock_offsets_us=(0.0, 50.0, 0.0), kernel_us=300.0)
    graph = loaded(simulate(job), tmp_path)
    acts = recorded(graph)
    clocks = estimate_clocks(graph.ranks, matched(graph))
    assert [clock.drift_ppm for clock in clocks] == pytest.approx(drift, abs=25)
    time = common_time(acts, clocks)
    found = matched(graph)
    for number in np.flatnonzero(found.barrier):
        rows = found.members.activity[found.collective == number]
        assert np.ptp(time[2 * rows + 1]) <= 4_000


@pytest.mark.slow
def test_ranks_that_met_nobody_have_clocks_of_their_own(tmp_path: Path) -> None:
    """Of a pipeline of pairs, two ranks that share no group are two islands."""
    done = simulate(Job(ranks=4, tp=2, pp=1, steps=2))
    graph = loaded(done, tmp_path, ranks=(0, 3))
    for clock in estimate_clocks(graph.ranks, matched(graph)):
        assert (clock.offset_ns, clock.uncertainty_ns, clock.collectives, clock.gauge) == (0, -1, 0, -1)


def test_correction_is_the_same_for_one_moment_and_for_columns() -> None:
    clocks = (Clock(0), Clock(3, offset_ns=700, drift_ppm=12.5, reference_ns=1_000_000))
    times = np.array([5, 2_000_000, 987_654_321])
    for clock in clocks:
        rank = np.full(3, clock.rank)
        expected = [
            t - round((t - clock.reference_ns) * clock.drift_ppm / 1e6) - clock.offset_ns for t in times.tolist()
        ]
        assert corrected(clocks, rank, times).tolist() == clock.common(times).tolist() == expected


def test_what_is_claimed_covers_the_truth() -> None:
    """Groups of few or many all-reduces, whose ends scatter, on clocks that are off or right."""
    covered = []
    for seed in range(40):
        draw = np.random.default_rng(seed)
        ranks, count = int(draw.integers(2, 5)), int(draw.integers(1, 12))
        offset = draw.choice([0.0, 3e3, 2e6]) * draw.uniform(-1, 1, ranks)
        scatter = draw.choice([1e3, 2e4, 1e5])
        start = 5e6 * np.arange(count) + draw.exponential(3e5, (ranks, count))
        end = start.max(axis=0) + draw.uniform(5e4, 4e5, count) + draw.uniform(0, scatter, (ranks, count))
        times = {
            rank: [
                [(int(s + offset[rank]), int(e + offset[rank])) for s, e in zip(start[rank], end[rank], strict=True)]
            ]
            for rank in range(ranks)
        }
        for clock in estimate_clocks(range(ranks), match(*made(times), {})):
            if clock.gauge >= 0 and clock.rank != clock.gauge:
                error = abs(clock.offset_ns - (offset[clock.rank] - offset[clock.gauge]))
                covered.append(error <= clock.uncertainty_ns)
    assert len(covered) > 50
    assert np.mean(covered) >= 0.95


def test_agreement_is_unknown_between_gauges_and_adds_up_between_others() -> None:
    clocks = (Clock(0, uncertainty_ns=0, gauge=0), Clock(1, uncertainty_ns=7, gauge=0),
              Clock(2, uncertainty_ns=5, gauge=0), Clock(3, uncertainty_ns=0, gauge=3), Clock(4))  # fmt: skip
    expected = {(0, 1): 7, (1, 2): 12, (0, 1, 2): 7, (0, 3): -1, (0, 4): -1, (4,): 0, (0, 9): -1}
    assert {ranks: agreement_ns(clocks, ranks) for ranks in expected} == expected


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.exists(), reason="no shared traces")
@pytest.mark.parametrize("folder", ["megatron_tp8_a100", "torchrec_v100_equal", "torchrec_v100_leading_missing"])
def test_offsets_injected_into_real_traces_are_recovered(folder: str) -> None:
    graph = hg.load(SHARED / folder)
    acts = recorded(graph)
    before = {clock.rank: clock for clock in estimate_clocks(graph.ranks, matched(graph))}
    moved = replace(graph, activities=_moved(acts))
    after = estimate_clocks(graph.ranks, matched(moved))
    for clock in after:
        put_in = 1000 * (OFFSETS[clock.rank] - OFFSETS[clock.gauge])
        spread = max(1_000, before[clock.rank].uncertainty_ns, clock.uncertainty_ns)
        assert abs(clock.offset_ns - before[clock.rank].offset_ns - put_in) <= spread


def _moved(acts: Activities) -> Activities:
    """Return the activities on clocks that are off."""
    offset = np.array([round(1000 * each) for each in OFFSETS])
    return replace(acts, start=acts.start + offset[acts.rank])


def test_ranks_of_one_host_that_only_send_and_receive_share_its_clock() -> None:
    graph = host_job({0: transfer("send", 1, 100, 150), 1: transfer("recv", 0, 90, 152)})
    assert [(clock.gauge, clock.offset_ns, clock.uncertainty_ns) for clock in graph.clocks] == [
        (0, 0, 0),
        (0, 0, 1_000),
    ]
    assert agreement_ns(graph.clocks, (0, 1)) == 1_000


def times(groups: list[list[int]], ahead: list[float], *, each: int = 8) -> BarrierTimes:
    """Return `each` collectives of each group of ranks whose clocks are ahead by some ns, their ends within 1 µs."""
    draw = np.random.default_rng(0)
    members = [column for group in groups for _ in range(each) for column in group]
    sizes = np.repeat([len(group) for group in groups], each)
    row, column = np.repeat(np.arange(len(sizes)), sizes), np.array(members)
    arrival = 1e7 * row + draw.uniform(0, 5e5, len(row)) + np.array(ahead)[column]
    end = 1e7 * row + 6e5 + draw.uniform(0, 1e3, len(row)) + np.array(ahead)[column]
    return BarrierTimes(row, column, end, arrival, end, ranks=len(ahead), origin=0)


def counted(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Return what counts the pairs of ranks that are compared."""
    compared = Mock(wraps=module._one_clock)
    monkeypatch.setattr(module, "_one_clock", compared)
    return compared


def in_grid(ranks: int, wide: int = 4) -> list[list[int]]:
    """Return groups as jobs have: rows and columns of a grid of ranks."""
    grid = np.arange(ranks).reshape(-1, wide)
    return [*grid.tolist(), *grid.T.tolist()]


@pytest.mark.parametrize("ahead", [
    [0.0] * 8, [0.0, 9e6] * 4, [0.0] * 7 + [9e6], [0.0] * 4 + [9e6] * 4, [0.0, 0.0, 4e6, 4e6, 9e6, 9e6, 0.0, 0.0],
])  # fmt: skip
@pytest.mark.parametrize("groups", [[list(range(8))], in_grid(8)])
def test_neighbours_find_the_clocks_that_all_pairs_find(
    groups: list[list[int]], ahead: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    barriers = times(groups, ahead)
    of_all_pairs = shared_clocks([5] * 8, barriers)
    monkeypatch.setattr(module, "LIMITS", replace(LIMITS, host_ranks=7))
    assert shared_clocks([5] * 8, barriers) == of_all_pairs


def test_each_pair_of_a_small_host_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = counted(monkeypatch)
    units, contradicted = shared_clocks([0] * 16 + [1] * 4, times(in_grid(20), [0.0] * 20, each=1))
    assert (units, contradicted) == ([list(range(16)), list(range(16, 20))], set())
    assert compared.call_count == 16 * 15 // 2 + 4 * 3 // 2


def test_comparisons_grow_with_the_members_of_collectives(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = Mock(return_value=True)
    monkeypatch.setattr(module, "_one_clock", compared)
    counts = []
    for ranks in (72, 144, 288):
        groups = in_grid(ranks)
        assert shared_clocks([0] * ranks, times(groups, [0.0] * ranks, each=1))[0] == [list(range(ranks))]
        counts.append(compared.call_count)
        compared.reset_mock()
        assert counts[-1] <= LIMITS.host_neighbours * sum(map(len, groups))
    assert counts[2] < 2.1 * counts[1] < 4.5 * counts[0]


@pytest.mark.parametrize("clocks", [3, 33, 100])
def test_a_large_host_that_is_several_is_told_apart(clocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = counted(monkeypatch)
    ahead = [1e8 * (each // -(-100 // clocks)) for each in range(100)]
    units, contradicted = shared_clocks([3] * 100, times([list(range(100))], ahead))
    assert contradicted == {3}
    assert [[ahead[each] for each in unit] for unit in units] == [[a] * ahead.count(a) for a in sorted(set(ahead))]
    assert compared.call_count <= LIMITS.host_neighbours * 100 + LIMITS.host_ranks**2 // 2


def test_more_clocks_than_small_hosts_have_ranks_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rank then has a clock of its own, which is never wrong."""
    monkeypatch.setattr(module, "LIMITS", replace(LIMITS, host_ranks=19))
    ahead = [1e8 * (each % 10) for each in range(20)]
    assert shared_clocks([3] * 20, times([list(range(20))], ahead))[0] == [[each] for each in range(20)]
    monkeypatch.setattr(module, "LIMITS", replace(LIMITS, host_ranks=20))
    assert shared_clocks([3] * 20, times([list(range(20))], ahead))[0] == [[each, each + 10] for each in range(10)]
