from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
import htagraph.queries.blame as module
from htagraph.core.kinds import EdgeKind
from htagraph.queries.blame import CAUSES, _split, blame_of, chains_of
from htagraph.simulate import Job, SlowRank
from tests.graph.measures.test_waits import MADE, made
from tests.host_jobs import host_job, tensor_args
from tests.strategies import COMMUNICATE, COMPUTE, OTHER, Json, annotation, kernel, launch, load, op

KERNELS = CAUSES.index("kernels")
MADE["slow in one of four groups"] = Job(
    ranks=8, steps=2, layers=3, tp=2, kernel_us=80.0, slow_ranks=(SlowRank(rank=5, factor=1.3),)
)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 10**12)), max_size=30), st.lists(
    st.integers(0, 10**12), min_size=5, max_size=5))  # fmt: skip
def test_a_wait_is_split_to_the_ns(keys: list[tuple[int, int]], waits: list[int]) -> None:
    keys = sorted(keys, key=lambda key: key[0])
    row, excess = np.array([key[0] for key in keys], np.int64), np.array([key[1] for key in keys], np.int64)
    wait = np.array(waits, np.int64)
    charged, given_ = _split(row, excess, wait)
    assert (charged >= 0).all()
    for each in range(5):
        total = int(excess[row == each].sum())
        assert int(charged[row == each].sum()) == given_[each] == min(total, waits[each])
        if total <= waits[each]:
            assert np.array_equal(charged[row == each], excess[row == each])
    assert (charged <= excess + 1).all()  # rounding, of sums


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.5, 2])
@pytest.mark.parametrize("threshold", ["_MAX_LAUNCH_LATENCY_NS", "MAX_HOPS_BACK"])
def test_the_slow_rank_is_blamed_for_its_kernels_whatever_the_thresholds(
    threshold: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Halved and doubled: the rank and the cause stay, and so does the sum; only shares of it move."""
    _, graph = made("slow in one of four groups")
    waits = graph.waits
    monkeypatch.setattr(module, threshold, int(factor * getattr(module, threshold)))
    blame = blame_of(graph, chains_of(graph))
    assert blame.charged.sum() == waits.wait[waits.collective >= 0].sum()
    assert blame.charged[(blame.rank == 5) & (blame.cause == KERNELS)].sum() > 0.95 * waits.wait.sum()


def _late_start(latency_us: float) -> list[Json]:
    """Return a launch whose kernel starts late on an idle stream, behind an operator, and a collective."""
    return [
        op("a", 0, 10), launch(10, 1, 1), kernel(COMPUTE, 10 + latency_us, 50, 1), launch(12, 1, 2),
        kernel(COMMUNICATE, 60 + latency_us, 200 - latency_us, 2),
    ]  # fmt: skip


@pytest.mark.parametrize("limit_us", [10, 20, 40])
def test_a_launch_latency_is_capped_at_the_threshold_and_not_below(
    limit_us: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What doubling changes: a latency of 30 µs is then launch latency in full, and no wait for something else."""
    graph = load({0: _late_start(30), 1: _late_start(30)})
    launches = graph.edges.kind == EdgeKind.LAUNCH
    graph = graph.replace(edges=replace(graph.edges, lag=np.where(launches, 30_000, graph.edges.lag)))
    monkeypatch.setattr(module, "_MAX_LAUNCH_LATENCY_NS", 1000 * limit_us)
    assert (module._binding(graph) is graph.binding) == (limit_us > 30)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MADE))
def test_every_wait_is_charged_in_full(name: str) -> None:
    _, graph = made(name)
    waits = graph.waits
    blame = blame_of(graph, chains_of(graph))
    charged = np.zeros(len(waits), np.int64)
    np.add.at(charged, blame.row, blame.charged)
    assert np.array_equal(charged, np.where(waits.collective >= 0, waits.wait, 0))
    assert (blame.charged > 0).all()
    assert set(blame.rank.tolist()) <= set(graph.ranks)


def test_lateness_is_charged_to_where_it_arose() -> None:
    """Rank 5's partner is late for collectives of rank 5's making, in a group to which rank 5 does not belong."""
    _, graph = made("slow in one of four groups")
    waits = graph.waits
    blame = blame_of(graph, chains_of(graph))
    late = graph.activities.rank[waits.late[blame.row]]
    passed_on = (late != 5) & (blame.rank == 5)
    assert blame.charged[passed_on].sum() > 0
    assert (blame.depth[passed_on] > 0).all()
    assert blame.charged[blame.rank == 5].sum() > 0.95 * waits.wait.sum()
    assert blame.charged[(blame.rank == 5) & (blame.cause == KERNELS)].sum() > 0.95 * waits.wait.sum()


def _rank(first: float, second: float, end: float) -> list[Json]:
    """Return two kernels and a collective on one stream."""
    begin = 10 + first + second
    return [
        launch(0, 1, 1), kernel(COMPUTE, 10, first, 1), launch(2, 1, 2), kernel("second_gemm", 10 + first, second, 2),
        launch(4, 1, 3), kernel(COMMUNICATE, begin, end - begin, 3),
    ]  # fmt: skip


def test_the_excess_over_the_peers_is_charged_and_the_rest_to_nothing() -> None:
    graph = load({0: _rank(100, 50, 300), 1: _rank(100, 50, 300), 2: _rank(100, 90, 300)})
    waits, chains = graph.waits, chains_of(graph)
    blame = blame_of(graph, chains)
    assert waits.wait.tolist() == [40_000, 40_000, 0]
    table = pd.DataFrame({"rank": blame.rank, "cause": blame.cause, "charged": blame.charged})
    assert table["rank"].tolist() == [2, 2]
    assert table["cause"].tolist() == [KERNELS, KERNELS]
    assert table["charged"].tolist() == [40_000, 40_000]
    slow = int(chains.excess.argmax())
    assert graph.names[graph.activities.name[chains.item[slow]]] == "second_gemm"
    assert chains.excess[slow] == 40_000
    assert chains.others[chains.item[slow]] == 50_000


def test_a_rank_that_began_late_is_late_for_no_cause_of_its_work() -> None:
    late = [event | {"ts": event["ts"] + 60} for event in _rank(100, 50, 240)]
    graph = load({0: _rank(100, 50, 300), 1: _rank(100, 50, 300), 2: late})
    blame = blame_of(graph, chains_of(graph))
    assert {(int(rank), CAUSES[cause]) for rank, cause in zip(blame.rank, blame.cause, strict=True)} == {(2, "none")}


def test_nobody_is_charged_for_what_a_late_recording_does_not_hold() -> None:
    """Rank 1's recording begins 30 ms later; both ranks do the same work before each all-reduce."""

    def rank(late: float) -> list[Json]:
        made: list[Json] = []
        for i in range(6):
            at = 100_000.0 * i + (late if i == 0 else 0.0)
            made += [op("aten::mm", at, 20_000), op("c10d::allreduce_", at + 20_010, 5, **tensor_args(8, "True", -1))]
            end = 100_000.0 * i + 60_000
            made.append(annotation("gloo:all_reduce", at + 20_050, end - at - 20_050, OTHER))
        return made

    graph = host_job({0: rank(0.0), 1: rank(30_000.0)})
    waits, chains = graph.waits, chains_of(graph)
    assert waits.wait.max() == pytest.approx(30_000_000, rel=1e-3)
    blame = blame_of(graph, chains)
    first = blame.row == int(waits.wait.argmax())
    assert [CAUSES[cause] for cause in blame.cause[first]] == ["recording"]
    assert blame.rank[first].tolist() == [-1]
    charged = np.zeros(len(waits), np.int64)
    np.add.at(charged, blame.row, blame.charged)
    assert np.array_equal(charged, waits.wait)
    table = hg.stragglers(graph).to_frame()
    assert table["blamed_us"].sum() < 1_000, "and no rank is blamed for it"


def test_nobody_is_charged_by_clocks_whose_agreement_is_unknown() -> None:
    _, graph = made("slow in one of four groups")
    alone = graph.replace(clocks=tuple(replace(each, gauge=each.rank, uncertainty_ns=-1) for each in graph.clocks))
    known, waits = blame_of(graph, chains_of(graph)), alone.waits
    unknown = blame_of(alone, chains_of(alone))
    assert known.charged.sum() == unknown.charged.sum() == waits.wait.sum() > 0
    assert set(unknown.rank.tolist()) == {-1}
    assert {CAUSES[cause] for cause in unknown.cause} == {"clocks"}
    result = hg.stragglers(alone)
    assert not result.to_frame()["blamed_us"].any()
    assert result.straggler == hg.stragglers(graph).straggler == 5, "its steps are its own, whatever its clock"


def _waiting_rank(late_us: Callable[[int], int], turns: int = 6) -> list[Json]:
    """Return a kernel per turn, which starts late by so many µs, and a collective behind the kernel."""
    events: list[Json] = []
    for turn in range(turns):
        now = 3000 * turn
        late = late_us(turn)
        start = now + 12 + late
        events += [launch(now, 4, 2 * turn + 1), kernel(COMPUTE, start, 50, 2 * turn + 1)]
        events += [launch(now + 6, 4, 2 * turn + 2), kernel(COMMUNICATE, start + 52, 2900 - late, 2 * turn + 2)]
    return events


def _in_time(_turn: int) -> int:
    return 0


def test_no_launch_is_charged_for_what_was_probably_not_recorded() -> None:
    late = _waiting_rank(lambda turn: 2000 * (turn > 0))
    graph = load({0: _waiting_rank(_in_time), 1: _waiting_rank(_in_time), 2: late})
    blame = blame_of(graph, chains_of(graph))
    charged = {CAUSES[cause] for cause, ns in zip(blame.cause, blame.charged, strict=True) if ns > 10_000}
    assert charged == {"other_work"}
    assert set(blame.rank.tolist()) == {2}
    assert blame.charged.sum() == pytest.approx(2 * 5 * 2_000_000, rel=0.01)
    row = hg.stragglers(graph).to_frame().set_index("rank").loc[2]
    assert row["cause"] == "other_work"


def test_the_first_run_of_a_kernel_is_no_launch_and_no_other_work() -> None:
    late = _waiting_rank(lambda turn: 500 * (turn == 0))
    graph = load({0: _waiting_rank(_in_time), 1: _waiting_rank(_in_time), 2: late})
    blame = blame_of(graph, chains_of(graph))
    assert {CAUSES[cause] for cause in blame.cause} == {"none"}
    assert set(blame.rank.tolist()) == {2}
