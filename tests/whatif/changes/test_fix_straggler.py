from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.analyses.stragglers import stragglers
from htagraph.core.kinds import ActivityKind, EdgeKind, GapKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.peers import alike
from htagraph.queries.replay import predict
from htagraph.queries.weights import State, initial
from htagraph.simulate import Job, ScaleKernels, ScaleLoader, SlowRank, simulate
from htagraph.whatif.changes.fix_straggler import fix_straggler
from tests.analyses.test_stragglers import run
from tests.reach import DATA, graph_of
from tests.strategies import Json, complete, load, op, step
from tests.whatif.changes.made import Piece, made, places
from tests.whatif.changes.simulated import recorded

module = sys.modules["htagraph.whatif.changes.fix_straggler"]  # the package has a function of this name
TO: dict[str, Callable[[list[int]], float]] = {"median": statistics.median, "mean": statistics.mean, "min": min}


def _time(state: State) -> np.ndarray:
    return predict(state.graph, state.lag, state.gap, state.head)


def _chains(durations: list[list[int]]) -> DependencyGraph:
    """Return a job where every rank does one thing after another, and all wait for all at the end."""
    rows = [(rank, f"op{i}", ns) for rank, row in enumerate(durations) for i, ns in enumerate(row)]
    acts = pd.DataFrame(rows, columns=["rank", "name", "duration_ns"])
    width = len(durations[0])
    links = [(rank * width + i, rank * width + i + 1) for rank in range(len(durations)) for i in range(width - 1)]
    return DependencyGraph.from_frames(acts, pd.DataFrame(links, columns=["source", "target"], dtype=int))


@pytest.mark.slow
@given(st.data())
@settings(max_examples=30)
def test_work_takes_what_it_takes_elsewhere_where_that_is_less(data: st.DataObject) -> None:
    ranks, width = data.draw(st.integers(2, 5)), data.draw(st.integers(1, 5))
    row = st.lists(st.integers(0, 1000), min_size=width, max_size=width)
    durations = data.draw(st.lists(row, min_size=ranks, max_size=ranks))
    slow = data.draw(st.integers(0, ranks - 1))
    graph = _chains(durations)
    for to, peers in TO.items():
        time = _time(fix_straggler(initial(graph), rank=slow, to=to))  # type: ignore[arg-type]
        fixed = [list(row) for row in durations]
        for i in range(width):
            others = [durations[rank][i] for rank in range(ranks) if rank != slow]
            fixed[slow][i] = min(fixed[slow][i], int(peers(others)))
        assert np.diff(time.reshape(-1, 2)).ravel().tolist() == [ns for row in fixed for ns in row]


@pytest.mark.slow
@given(st.lists(st.lists(st.integers(1, 1000), min_size=3, max_size=3), min_size=2, max_size=5))
@settings(max_examples=15)
def test_auto_is_the_rank_whose_fix_makes_the_job_shortest(durations: list[list[int]]) -> None:
    graph = _chains(durations)
    every = [int(_time(fix_straggler(initial(graph), rank=rank)).max()) for rank in range(len(durations))]
    state = fix_straggler(initial(graph), rank="auto")
    assert int(_time(state).max()) == min(every) <= int(graph.time.max())
    if every.count(min(every)) == 1:
        assert state.notes[-1].startswith(f"rank {every.index(min(every))} had")


def test_auto_is_the_rank_that_stragglers_names_or_else_charges_most() -> None:
    """One answer everywhere, and a note where there is none."""
    even = run(Job(ranks=4, steps=3, layers=1, seed=3))
    charged = stragglers(even).to_frame().set_index("rank")["blamed_us"]
    (note,) = fix_straggler(initial(even), rank="auto").notes
    assert note.startswith(f"rank {charged.idxmax()} had")
    assert note.endswith("beyond chance (htagraph stragglers), this one is charged most waiting")
    demo = graph_of(DATA / "demo")
    (note,) = fix_straggler(initial(demo), rank="auto").notes
    assert note.startswith(f"rank {stragglers(demo).straggler} had")
    assert "beyond chance" not in note


def test_transfers_and_launch_latencies_are_no_work_of_the_rank() -> None:
    def rank(number: int, transfer: int) -> list[Piece]:
        return [Piece("a", 7, 100, rank=number), Piece("nccl", 7, transfer, rank=number, collective=0)]

    graph = made([*rank(0, 50), *rank(1, 500)])
    state = fix_straggler(initial(graph), rank=1)
    assert state.lag.tolist() == initial(graph).lag.tolist()


def test_a_slow_kernel_shrinks_the_waits_of_the_others() -> None:
    pieces: list[Piece] = []
    for number, ns in enumerate((100, 900, 100)):
        talk = len(pieces)
        pieces += [Piece("a", 7, ns, rank=number), Piece("nccl", 8, 50, waits=(talk,), rank=number, collective=0)]
    graph = made(pieces)
    works = places(pieces)[1]
    time = _time(fix_straggler(initial(graph)))
    assert graph.time[2 * works[1] + 1] == 5 + 900 + 50
    assert [int(time[2 * works[i] + 1]) for i in (1, 3, 5)] == [155, 155, 155]


def test_untraced_host_time_is_work_too() -> None:
    graph = graph_of(DATA / "demo")
    state = initial(graph)
    host = (graph.gap_kind == GapKind.HOST_UNTRACED) & (np.repeat(graph.activities.rank, 2) == 1)
    slow = State(graph, state.lag, np.where(host, 10 * state.gap, state.gap), state.head)
    fixed = fix_straggler(slow, rank=1)
    assert fixed.gap[host].sum() < 0.15 * slow.gap[host].sum()
    assert np.array_equal(fixed.gap[~host], slow.gap[~host])


def test_nothing_gets_slower_and_other_ranks_keep_their_weights() -> None:
    graph = graph_of(DATA / "demo")
    state = initial(graph)
    fixed = fix_straggler(state, rank=2, to="mean")
    assert (fixed.lag <= state.lag).all()
    assert (fixed.gap <= state.gap).all()
    owner = graph.edges.activity[fixed.lag != state.lag]
    assert set(graph.activities.rank[owner].tolist()) == {2}


def test_work_that_the_others_do_not_have_stays_and_is_reported() -> None:
    acts = pd.DataFrame({"rank": [0, 1, 1], "name": ["a", "a", "own"], "duration_ns": [10, 30, 2_000_000]})
    graph = DependencyGraph.from_frames(acts, pd.DataFrame({"source": [1], "target": [2]}))
    state = fix_straggler(initial(graph), rank=1)
    assert state.notes == (
        "rank 1 had 0.000 ms of work beyond its peers' median, counting only what is slower on it; "
        "2.000 ms without peers stay",
    )
    assert int(_time(state).max()) == 2_000_010


STRAGGLERS = [
    ("kernels", SlowRank(rank=2, what="kernels", factor=1.5), {}),
    ("one kernel class", SlowRank(rank=1, what="kernels", name="*gemm*", factor=1.4), {"data_strategy": "fsdp"}),
    ("host", SlowRank(rank=3, what="host", factor=2.0), {"kernel_us": 25.0}),
    ("loader", SlowRank(rank=0, what="loader", factor=20.0), {}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("what", "slow", "options"), STRAGGLERS, ids=[each[0] for each in STRAGGLERS])
def test_the_job_without_its_straggler_takes_what_was_predicted(
    what: str, slow: SlowRank, options: dict[str, Any], tmp_path: Path
) -> None:
    job = Job(ranks=4, steps=4, layers=3, **options)
    recorded = simulate(job.model_copy(update={"slow_ranks": (slow,)}))
    recorded.write(tmp_path, level=1, truth=False)
    outcome = hg.what_if(hg.load(tmp_path)).apply(fix_straggler).run()
    truth = simulate(job).mean_step_ns
    assert recorded.mean_step_ns > 1.02 * truth, what
    assert outcome.notes[-1].startswith(f"rank {slow.rank} had"), what
    assert outcome.mean_step_ns == pytest.approx(truth, rel=0.01), what


@pytest.mark.slow
@pytest.mark.parametrize("factor", [0.5, 2])
@pytest.mark.parametrize("threshold", ["_MAX_RANKS_TRIED", "_MIN_STANDARD_ERRORS", "_FLOOR_NS"])
def test_the_straggler_and_its_fix_stay_whatever_the_thresholds(
    threshold: str, factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Halved and doubled: the rank stays, and the mean step stays within 1 % of the job without the slow rank."""
    job = Job(ranks=4, steps=4, layers=3)
    graph, slow_step = recorded(job.model_copy(update={"slow_ranks": (SlowRank(rank=2, factor=1.5),)}))
    _, truth = recorded(job)
    assert slow_step > 1.02 * truth
    monkeypatch.setattr(module, threshold, type(getattr(module, threshold))(factor * getattr(module, threshold)))
    outcome = hg.what_if(graph).fix_straggler().run()
    assert outcome.notes[-1].startswith("rank 2 had")
    assert outcome.mean_step_ns == pytest.approx(truth, rel=0.01)


@pytest.mark.slow
def test_a_higher_bar_of_standard_errors_never_fixes_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """What doubling changes: of noise alone, less is taken for slowness."""
    graph, _ = recorded(Job(ranks=4, steps=4, layers=3, jitter=0.1))
    fixed = []
    for errors in (0.0, 1.5, 3.0, 6.0):
        monkeypatch.setattr(module, "_MIN_STANDARD_ERRORS", errors)
        state = fix_straggler(initial(graph), rank=0)
        fixed.append(int((graph.edges.lag - state.lag).sum() + (graph.gap - state.gap).sum()))
    assert fixed == sorted(fixed, reverse=True)
    assert fixed[0] > 2 * fixed[-1]


STALL = ScaleLoader(factor=60.0, ranks=(1,), steps=(2,))


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("jitter", [0.03, 0.15])
def test_a_stall_is_no_straggler(ranks: int, jitter: float, tmp_path: Path) -> None:
    """One step in which the loader of rank 1 stalls hides the slow kernels of rank 0, and stays when they are fixed."""
    job = Job(ranks=ranks, steps=4, layers=3, jitter=jitter, changes=(STALL,))
    recorded = simulate(job.model_copy(update={"slow_ranks": (SlowRank(rank=0, factor=1.4),)}))
    recorded.write(tmp_path, level=1, truth=False)
    graph = hg.load(tmp_path)
    truth = simulate(job).mean_step_ns
    stalled = simulate(job.model_copy(update={"changes": ()})).mean_step_ns
    assert truth > 1.1 * stalled
    assert recorded.mean_step_ns > 1.02 * truth
    outcome = hg.what_if(graph).fix_straggler().run()
    assert any(note.startswith("rank 0 had") for note in outcome.notes)
    assert outcome.mean_step_ns == pytest.approx(truth, rel=0.01)
    other = hg.what_if(graph).fix_straggler(rank=1).run()
    assert other.mean_step_ns == pytest.approx(recorded.mean_step_ns, rel=0.01)


@pytest.mark.slow
def test_a_place_in_the_step_that_is_slow_every_time_is_fixed_alone(tmp_path: Path) -> None:
    simulate(Job(ranks=2, steps=4, layers=4)).write(tmp_path, level=1, truth=False)
    graph = hg.load(tmp_path)
    name, place = alike(graph)
    acts, state = graph.activities, initial(graph)
    gemm = next(i for i in np.flatnonzero(acts.kind == ActivityKind.COMPUTATION) if "gemm" in graph.names[acts.name[i]])
    rank = acts.rank[graph.edges.activity]
    at = np.where(graph.edges.kind == EdgeKind.BODY, graph.edges.activity, -1)
    chosen = (at >= 0) & (rank == 1) & (place[at] == place[gemm])
    others = (at >= 0) & (rank == 1) & (name[at] == name[gemm]) & ~chosen
    assert chosen.sum() == 4 < others.sum()
    slow = State(graph, np.where(chosen, 3 * state.lag, state.lag), state.gap, state.head)
    fixed = fix_straggler(slow, rank=1)
    assert fixed.lag[chosen].sum() == pytest.approx(state.lag[chosen].sum(), rel=0.1)
    assert fixed.lag[others].sum() > 0.9 * state.lag[others].sum()


def test_a_rank_that_is_slow_in_some_steps_is_as_fast_as_its_peers_there_too() -> None:
    """Its kernels take 1.5 times as long in each third step; the truth is the same job without."""
    late = ScaleKernels(factor=1.5, ranks=(1,), steps=(1, 4, 7))
    job = Job(ranks=4, steps=9, layers=1, seed=11)
    graph, slow_ns = recorded(job.model_copy(update={"changes": (late,)}))
    true = simulate(job).mean_step_ns
    assert slow_ns > 1.05 * true
    assert hg.what_if(graph).fix_straggler().run().mean_step_ns == pytest.approx(true, rel=0.01)


def test_a_rank_that_now_and_then_loses_its_core_becomes_as_fast_as_its_peer() -> None:
    """Every operator takes as long as on the other rank, typically: only the sums of the steps differ."""
    each, lost, count, steps = 2000, 9000, 10, 8
    job = {}
    for rank in (0, 1):
        events, at = [], 0
        for number in range(steps):
            begin = at
            for i in range(count):
                takes = each + 17 * ((7 * i + 5 * number + rank) % 5) + lost * (rank and (i + 3 * number) % count < 2)
                events.append(op(f"work{i}", at, takes))
                at += takes + 10
            meets = max(at, begin + count * (each + 80) + 2 * lost + 100)
            events += [op("c10d::allreduce_", at, 20), op("optimize", meets + 1010, 200)]
            events.append(complete("user_annotation", "gloo:all_reduce", at + 10, meets + 1000 - at - 10, tid=77))
            events.append(step(number, begin, meets + 1300 - begin))
            at = meets + 1310
        job[rank] = events
    graph = load(job)
    outcome = hg.what_if(graph).fix_straggler(rank=1).run()
    assert outcome.saved_ns > 0.8 * steps * 2 * 1000 * lost
    assert hg.what_if(graph).fix_straggler(rank=0).run().saved_ns < 0.05 * outcome.saved_ns


def test_a_rank_whose_host_is_slow_delays_its_transfers_less_when_it_is_fixed() -> None:
    job: dict[int, list[Json]] = {0: [], 1: []}
    at = 0
    for number, transfer in enumerate((1000, 7000, 4000, 10_000, 1000, 7000)):
        for rank, events in job.items():
            takes = 3000 if rank else 1000  # µs
            events += [op(f"work{i}", at + i * takes, takes - 10) for i in range(4)]
            events += [op("c10d::allreduce_", at + 4 * takes, 20), op("optimize", at + 12_100 + transfer, 200)]
            moved = at + 12_050 + transfer - (at + 4 * takes + 10)
            events.append(complete("user_annotation", "gloo:all_reduce", at + 4 * takes + 10, moved, tid=77))
            events.append(step(number, at, 12_400 + transfer))
        at += 12_410 + transfer
    saved_ms = hg.what_if(load(job)).fix_straggler(rank=1).run().saved_ns / 1e6
    assert saved_ms == pytest.approx(6 * 4 * 2 + (6 + 3 + 9 + 6) * 2 / 3, rel=0.05)
