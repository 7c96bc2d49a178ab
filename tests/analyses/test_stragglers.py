from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from functools import cache
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph.analyses.stragglers import Stragglers, _Compared, _of_steps, _times, stragglers
from htagraph.core.errors import time_text
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.blame import CAUSES
from htagraph.simulate import REGIMES, Job, SlowRank, simulate
from htagraph.simulate.job import ScaleKernels
from tests.graph.measures.test_waits import MADE, made
from tests.reach import DATA, DATASETS, SHARED, graph_of, label
from tests.strategies import COMMUNICATE, COMPUTE, Json, kernel, launch, load, op, runtime, step

MODULE = sys.modules["htagraph.analyses.stragglers"]  # the package has the function of that name
DEVICE = Job(ranks=4, steps=3, layers=3, seed=11)
HOST = Job(
    ranks=4,
    steps=3,
    layers=3,
    kernel_us=6.0,
    host_us_per_op=12.0,
    python_us=15.0,
    layer_mb=1.0,
    optimizer="loop",
    seed=12,
)
LOADER = Job(ranks=4, steps=4, layers=2, kernel_us=30.0, loader_us=3000.0, seed=13)
MESH = Job(ranks=8, steps=3, layers=3, tp=2, kernel_us=80.0, seed=14)
STAGES = Job(ranks=4, steps=3, layers=8, parallelism="pipeline", microbatches=4, seed=15)
UNMARKED = {"cuda_sync": False, "group_args": False, "clock_offsets_us": (0.0, 300.0, -250.0, 40.0)}
SLOW = {
    "kernels": (DEVICE, SlowRank(rank=2, factor=1.1), "kernels"),
    "one kernel": (DEVICE, SlowRank(rank=0, factor=1.2, name="*gemm*"), "kernels"),
    "noise": (DEVICE.model_copy(update={"jitter": 0.1, "ranks": 8}), SlowRank(rank=6, factor=1.15), "kernels"),
    "host": (HOST, SlowRank(rank=1, what="host", factor=1.1), "host"),
    "loader": (LOADER, SlowRank(rank=3, what="loader", factor=1.3), "data_loading"),
    "mesh": (MESH, SlowRank(rank=5, factor=1.1), "kernels"),
    "stages": (STAGES, SlowRank(rank=1, factor=1.15), "kernels"),
    "no ids": (DEVICE.model_copy(update=UNMARKED), SlowRank(rank=3, factor=1.2), "kernels"),
}  # fmt: skip


def run(job: Job) -> DependencyGraph:
    with tempfile.TemporaryDirectory() as folder:
        simulate(job).write(folder, level=1, truth=False)
        return hg.load(folder)


def check(found: Stragglers, graph: DependencyGraph) -> None:
    """Assert what holds of every job."""
    table, blame = found.to_frame(), found.blame
    assert table["rank"].tolist() == list(graph.ranks)
    waits = hg.collectives(graph)
    total = (waits.loc[waits["matched"], "wait_us"] * 1000).round().astype(np.int64).sum()
    nobody = blame.loc[blame["cause"] == "recording", "wait_us"]
    assert (blame.loc[nobody.index, "charged_rank"] == -1).all()
    for column in (pd.concat([table["blamed_us"], nobody]), table["waits_us"], blame["wait_us"]):
        assert (column * 1000).round().astype(np.int64).sum() == total == round(found.total_wait_us * 1000)
    by_rank = blame.groupby("charged_rank")["wait_us"].sum().reindex(graph.ranks, fill_value=0.0)
    assert np.allclose(by_rank, table["blamed_us"])
    own = blame.groupby("waiting_rank")["wait_us"].sum().reindex(graph.ranks, fill_value=0.0)
    assert np.allclose(own, table["waits_us"])
    assert set(table["cause"]) | set(blame["cause"]) <= set(CAUSES)
    assert (table["cause_us"] <= table["explained_us"] + 1e-6).all()
    assert (table["explained_us"] <= table["blamed_us"] + 1e-6).all()
    assert table["first_guess"].sum() == int(table["explained_us"].gt(0).any())
    named = blame[blame["activity"] >= 0]
    assert (graph.activities.rank[named["activity"]] == named["charged_rank"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("case", SLOW)
def test_the_slow_rank_and_its_cause_are_found(case: str) -> None:
    job, slow, cause = SLOW[case]
    graph = run(job.model_copy(update={"slow_ranks": (slow,)}))
    found = stragglers(graph)
    check(found, graph)
    row = found.to_frame().set_index("rank").loc[slow.rank]
    assert row["first_guess"]
    assert found.straggler == slow.rank
    assert row["cause"] == cause
    assert row["slower_percent"] == pytest.approx(100 * (slow.factor - 1), abs=100 * 1.5 * job.jitter)
    if slow.name != "*":
        assert slow.name.strip("*") in row["cause_name"]


@pytest.mark.slow
@pytest.mark.parametrize("case", ["kernels", "noise", "host", "loader", "mesh", "stages"])
def test_lateness_by_chance_has_no_straggler(case: str) -> None:
    graph = run(SLOW[case][0])
    found = stragglers(graph)
    check(found, graph)
    assert found.straggler is None


@pytest.mark.slow
def test_a_stage_that_does_more_by_design_is_no_straggler() -> None:
    """The last stage computes the loss within `forward`, and that is where the others' waiting arises."""
    job = REGIMES["pipeline"]().model_copy(update={"steps": 3, "kernel_us": 10.0, "cuda_sync": False})
    assert stragglers(run(job)).straggler is None


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (0.9996, "as long as its peers'"), (1.004, "0.4 % longer than its peers'"), (0.9, "10 % less than its peers'"),
        (1.3, "30 % longer than its peers'"), (10.82, "10.8 times as long as its peers'"),
    ],
)  # fmt: skip
def test_how_much_longer_in_words(ratio: float, words: str) -> None:
    assert _times(ratio) == words


SOME_STEPS = DEVICE.model_copy(
    update={"steps": 9, "layers": 1, "changes": (ScaleKernels(factor=1.5, ranks=(1,), steps=(1, 4, 7)),)}
)
"""A rank whose kernels take 1.5 times as long in each third step."""


def test_a_rank_that_is_slow_in_some_steps_is_named_with_how_many() -> None:
    graph = run(SOME_STEPS)
    found = stragglers(graph)
    check(found, graph)
    row = found.to_frame().set_index("rank").loc[1].to_dict()
    assert found.straggler == 1
    assert row["slow_steps"] == 3
    assert (
        f"{time_text(row['slow_excess_us'])} longer than its peers up to the last collective of 3 of 9 steps"
        in row["evidence"]
    )
    step_us = hg.step_times(graph).groupby("step")["duration_us"].mean().to_numpy()
    slower = step_us[[1, 4, 7]].mean() - np.delete(step_us, [1, 4, 7]).mean()
    assert row["slow_excess_us"] == pytest.approx(slower, rel=0.1)
    assert found.to_frame().set_index("rank").loc[[0, 2, 3], "slow_steps"].tolist() == [0, 0, 0]


def asleep(sleeper: int | None, blocking: str, *, steps: int = 5, when: tuple[int, ...] = ()) -> DependencyGraph:
    """Return a job of four ranks that compute 2 ms and all-reduce; one sleeps 20 ms before it, the others wait for it.

    Args:
        sleeper: the rank that sleeps in Python; None for nobody.
        blocking: the call in which hosts wait for the all-reduce.
        steps: how many.
        when: the steps in which it sleeps; all if none are given.
    """
    rng = np.random.default_rng(3)
    events: dict[int, list[Json]] = {rank: [] for rank in range(4)}
    begin = 100.0
    for number in range(steps):
        ready = {}
        for rank, each in events.items():
            first, second = 2 * number + 1, 2 * number + 2
            sleeps = rank == sleeper and (not when or number in when)
            there = begin + rng.uniform(60, 70) + 20_000 * sleeps
            computed = begin + 20 + rng.normal(2_000, 60)
            each += [op("aten::mm", begin + 5, 40), launch(begin + 15, 5, first), op("c10d::allreduce_", there, 30)]
            each += [kernel(COMPUTE, begin + 20, computed - begin - 20, first), launch(there + 5, 5, second)]
            ready[rank] = (max(there + 15, computed + 1), there + 31)
        end = max(start for start, _ in ready.values()) + 300
        for rank, (start, free) in ready.items():
            events[rank] += [
                kernel(COMMUNICATE, start, end - start, 2 * number + 2),
                runtime(blocking, free, end + 5 - free),
            ]
            events[rank].append(step(number, begin, end + 10 - begin))
        begin = end + 30
    return load(events)


@pytest.mark.parametrize("blocking", ["cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaFree"])
def test_who_sleeps_is_named_and_who_waits_on_its_device_is_not(blocking: str) -> None:
    found = stragglers(asleep(2, blocking))
    row = found.to_frame().set_index("rank").loc[2]
    assert found.straggler == 2
    assert row["step_excess_us"] == pytest.approx(20_000 - 2_000, rel=0.02)
    assert "Python between operators" in row["evidence"]
    assert (found.to_frame().set_index("rank")["waits_us"].drop(2) > 17_000 * 5).all()
    assert stragglers(asleep(None, blocking)).straggler is None
    assert stragglers(asleep(1, blocking, steps=9, when=(1, 4, 7))).straggler == 1


BROADCAST = "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


@pytest.mark.parametrize(("together", "straggler", "serves"), [(COMMUNICATE, 1, None), (BROADCAST, None, 1)])
def test_work_that_no_other_rank_does_is_the_reason(together: str, straggler: int | None, serves: int | None) -> None:
    """Rank 1 works for 500 µs before the collective; all of them do everything else.

    If all wait for its result, the program has it so, and rank 1 is no straggler.
    """
    events: dict[int, list[Json]] = {rank: [] for rank in range(4)}
    for number in range(4):
        begin = 900 * number
        for rank, each in events.items():
            there = begin + 50 + 500 * (rank == 1) + (rank + number) % 3
            each += [step(number, begin, 890), op("aten::mm", begin + 5, 40)]
            each += [op("write_log", begin + 48, 495)] if rank == 1 else []
            each += [launch(there, 5, number + 1), kernel(together, there + 10, begin + 800 - there, number + 1)]
            each += [runtime("cudaDeviceSynchronize", there + 6, begin + 815 - there - 6)]
    found = stragglers(load(events))
    row = found.to_frame().set_index("rank").loc[1]
    assert (found.straggler, found.serves) == (straggler, serves)
    if serves is not None:
        assert found.differences[0].name == "write_log"
        return
    assert (row["cause"], row["cause_name"]) == ("host", "write_log")
    assert "most of it in write_log, which no other rank does" in row["evidence"]


def test_a_stage_that_all_wait_for_by_design_does_not_hide_a_slow_replica() -> None:
    """Two pipelines: the last stages are charged most, and both alike; rank 0 of the first stages is slower."""
    slow = SlowRank(rank=0, factor=1.1)
    job = Job(ranks=4, pp=2, steps=5, layers=2, microbatches=3, jitter=0.01, seed=5, slow_ranks=(slow,))
    found = stragglers(run(job))
    assert found.to_frame()["blamed_us"].to_numpy().argmax() != 0
    assert found.straggler == 0


@pytest.mark.slow
def test_a_slow_host_behind_a_busy_device_delays_nobody() -> None:
    job = DEVICE.model_copy(update={"slow_ranks": (SlowRank(rank=1, what="host", factor=1.1),), "kernel_us": 300.0})
    assert stragglers(run(job)).straggler is None


@pytest.mark.slow
@pytest.mark.parametrize("name", list(MADE))
def test_the_sum_reconciles_on_simulated_jobs(name: str) -> None:
    graph = made(name)[1]
    check(stragglers(graph), graph)


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_the_sum_reconciles_on_our_own_traces(path: Path) -> None:
    check(stragglers(graph_of(path)), graph_of(path))


def test_the_demo_has_a_straggler_with_slow_kernels() -> None:
    found = stragglers(graph_of(DATA / "demo"))
    assert found.straggler == 2
    row = found.to_frame().set_index("rank").loc[2]
    assert (row["cause"], row["late_count"]) == ("kernels", 6)
    assert row["slower_percent"] == pytest.approx(30, abs=3)
    assert row["cause_name"] == ""  # all of its kernels are slow, and none of them is most of it
    assert "kernels take" in row["evidence"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "first", "cause", "straggler"),
    [
        ("megatron_tp8_a100", {0, 6}, "host", None),
        ("torchrec_v100_equal", {2}, "host", None),
        ("torchrec_v100_leading_missing", {2}, "host", 2),
        ("gloo4_cpu", {2}, "host", None),
    ],
)
def test_real_jobs(name: str, first: set[int], cause: str, straggler: int | None) -> None:
    path = SHARED / name
    if not path.is_dir():
        pytest.skip("not in reach")
    graph = graph_of(path)
    found = stragglers(graph)
    check(found, graph)
    table = found.to_frame().sort_values("explained_us", ascending=False)
    assert set(table["rank"].head(len(first))) == first
    assert table["cause"].iloc[0] == cause
    if straggler is not None:
        assert found.straggler == straggler


@pytest.mark.parametrize("events", [{}, {0: []}, {0: [launch(0, 1, 1), kernel(COMPUTE, 3, 5, 1)], 1: []}])
def test_a_job_without_collectives_has_no_waits(events: dict[int, list[dict[str, object]]]) -> None:
    nothing = pd.DataFrame({"source": [], "target": [], "duration_ns": []}).astype("int64")
    graph = load(events) if events else DependencyGraph.from_frames(nothing[["duration_ns"]], nothing)
    found = stragglers(graph)
    assert (found.straggler, found.total_wait_us, len(found.blame)) == (None, 0.0, 0)
    assert found.to_frame()["rank"].tolist() == list(graph.ranks)
    assert found.to_frame().dtypes.to_dict() == stragglers(graph_of(DATA / "demo")).to_frame().dtypes.to_dict()


def test_the_answer_cannot_be_changed_by_its_reader() -> None:
    found = stragglers(graph_of(DATA / "demo"))
    table = found.to_frame()
    table["blamed_us"] = 0.0
    assert found.to_frame()["blamed_us"].sum() > 0


# what decides who is a straggler


@cache
def clear(case: str) -> DependencyGraph:
    if case == "no slow rank":
        return run(DEVICE)
    job, slow, _ = SLOW[case]
    return run(job.model_copy(update={"slow_ranks": (slow,)}))


def test_the_evidence_agrees_with_the_table() -> None:
    row = stragglers(clear("kernels")).to_frame().set_index("rank").loc[2].to_dict()
    percent = 100 * row["slow_excess_us"] / (row["own_step_us"] - row["step_excess_us"])
    assert f"its step takes {percent:.2g} % longer than its peers'" in row["evidence"]
    assert f"({time_text(row['slow_excess_us'])} more" in row["evidence"]
    assert f"wait {time_text(row['blamed_us'])} for it" in row["evidence"]


# in a notebook


def test_a_notebook_shows_the_straggler_and_a_short_table() -> None:
    found = stragglers(graph_of(DATA / "demo"))
    text = found._repr_html_()
    assert "<b>Straggler: rank 2</b>" in text
    assert escape(str(found.to_frame().set_index("rank").loc[2, "evidence"])) in text
    assert text.count("<tr") == 1 + len(found.to_frame())
    assert "<b>No straggler</b>" in stragglers(load([]))._repr_html_()


def test_names_are_escaped_and_many_ranks_are_cut() -> None:
    found = stragglers(graph_of(DATA / "demo"))
    row = found.ranks.assign(cause_name="<script>&", evidence="<b>it</b>")
    text = replace(found, ranks=pd.concat([row] * 9, ignore_index=True))._repr_html_()
    assert "<script>" not in text
    assert "&lt;script&gt;&amp;" in text
    assert "&lt;b&gt;it&lt;/b&gt;" in text
    assert text.count("<tr") == 1 + 8


def test_a_difference_that_no_test_confirms_may_be_chance() -> None:
    row = {"step_excess_us": 25_600.0, "slow": False, "slow_steps": 0, "own_step_us": 1e5}
    compared = _Compared(1, is_like_work=False, has_unsure_clocks=False)
    said = _of_steps(row, compared)
    assert said == "nothing shows, beyond chance, that its own work takes longer than its peers'"


def test_several_slow_ranks_are_a_group() -> None:
    """Half of the ranks, 25 % slower in each step; one rank alone, or ranks that differ by chance, are none."""
    slow = tuple(SlowRank(rank=rank, factor=1.3) for rank in (1, 2))
    job = Job(ranks=4, steps=4, layers=1, slow_ranks=slow)
    assert list(stragglers(run(job)).slow_group) == [1, 2]
    assert not stragglers(run(job.model_copy(update={"slow_ranks": slow[:1]}))).slow_group
    assert not stragglers(run(job.model_copy(update={"slow_ranks": ()}))).slow_group
