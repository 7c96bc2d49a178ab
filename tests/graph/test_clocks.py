"""Clock offsets and drift: recovered where they were put in, untouched where clocks are right."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph.graph.activities import Activities, common_time
from htagraph.graph.clocks import Clock, agreement_ns, corrected, estimate_clocks
from htagraph.graph.construction.matching.match import match
from htagraph.simulate import REGIMES, Job, simulate
from tests.graph.construction.matching.test_match import OFFSETS, loaded, made, matched, recorded, with_clocks_off
from tests.host_jobs import host_job, transfer
from tests.reach import SHARED


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("args", [True, False])
def test_injected_offsets_are_recovered(regime: str, args: bool) -> None:  # noqa: FBT001
    done, graph = with_clocks_off(regime, args=args, era="2026")
    spread_ns = 1000 * done.job.end_spread_us
    for clock in estimate_clocks(graph.ranks, matched(graph)):
        assert abs(clock.offset_ns - 1000 * (OFFSETS[clock.rank] - OFFSETS[clock.gauge])) <= spread_ns
        assert clock.gauge == 0
        assert clock.collectives > 0


def test_right_clocks_stay_untouched(tmp_path: Path) -> None:
    graph = loaded(simulate(Job(ranks=4)), tmp_path)
    for clock in estimate_clocks(graph.ranks, matched(graph)):
        assert (clock.offset_ns, clock.drift_ppm) == (0, 0)


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
