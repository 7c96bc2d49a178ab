from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.whatif.changes.jitter import drawn
from tests.strategies import load, op
from tests.whatif.changes.made import Piece, made
from tests.whatif.changes.simulated import recorded, small


def _chain(count: int, ns: int) -> hg.DependencyGraph:
    return load([op(f"op{i}", i * ns, ns) for i in range(count)])


@pytest.mark.slow
def test_the_mean_stays_and_the_spread_is_sigma() -> None:
    graph = _chain(1, 1000)
    samples = hg.what_if(graph).jitter(sigma=0.2, runs=4000).run().samples_ns
    assert samples.mean() == pytest.approx(1_000_000, rel=0.01)
    assert samples.std() == pytest.approx(200_000, rel=0.05)


def test_many_independent_parts_average_out() -> None:
    samples = hg.what_if(_chain(100, 10)).jitter(sigma=0.2, runs=300).run().samples_ns
    assert samples.std() / samples.mean() == pytest.approx(0.02, rel=0.2)


def test_the_last_of_many_ranks_is_late() -> None:
    pieces = [Piece("gemm", 7, 1000, rank=rank, call_ns=0) for rank in range(16)]
    outcome = hg.what_if(made(pieces)).jitter(sigma=0.1, runs=400, kind="computation").run()
    assert outcome.p50_ns == pytest.approx(1000 * (1 + 0.1 * 1.77), rel=0.02)  # expected maximum of 16 normal draws
    assert outcome.p99_ns > outcome.p50_ns
    assert outcome.makespan_ns == outcome.baseline_ns


def test_members_of_a_collective_share_their_draw() -> None:
    pieces = [Piece("nccl", 7, 1000, rank=rank, collective=i) for rank in range(4) for i in range(2)]
    scenario = hg.what_if(made(pieces)).jitter(sigma=0.3, runs=3, kind="communication")
    for state in drawn(scenario.state):
        changed = state.lag[state.lag != scenario.state.lag]
        assert len(changed) == 8
        assert len(np.unique(changed)) == 2


def test_a_seed_is_repeatable_and_two_differ() -> None:
    scenario = hg.what_if(_chain(5, 10))
    one, again, other = (scenario.jitter(sigma=0.2, runs=5, seed=seed).run().samples_ns for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_no_noise_is_the_prediction() -> None:
    graph, _ = recorded(small("gpu_bound"))
    outcome = hg.what_if(graph).scale(factor=0.5, kind="computation").jitter(sigma=0, runs=2).run()
    assert outcome.samples_ns.tolist() == [outcome.makespan_ns] * 2
    assert outcome.p50_step_ns == outcome.p99_step_ns == outcome.mean_step_ns


def test_samples_need_jitter() -> None:
    with pytest.raises(SelectionError, match=r"add \.jitter"):
        _ = hg.what_if(_chain(1, 1)).run().samples_ns
