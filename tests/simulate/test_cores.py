"""Hosts with few cores, judged by the events alone: who runs, who waits, and for whom."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.simulate import Category, CoreWait, Job, RankEvents, ScaleHost, Simulated, simulate
from tests.simulate.test_laws import SMALL

SYNC_NS = 2500
WAKE_NS = 12_000
PYTHON_NS = 5000
STEADY = Job(
    steps=2, layers=2, jitter=0.0, item="pinned", optimizer="fused", sync_us=SYNC_NS / 1e3,
    thread_wake_us=WAKE_NS / 1e3, python_us=PYTHON_NS / 1e3, start_skew_us=300.0,
)  # fmt: skip
"""A job whose calls and hand-overs cost the same every time, so that the rest of each is a wait."""


class Stretch(NamedTuple):
    """Time in which a rank's host thread runs without blocking, true ns."""

    rank: int
    start_ns: int
    end_ns: int


def stretches(rank: RankEvents) -> list[Stretch]:
    """Return the stretches of one rank: it blocks in synchronizing calls, and while another thread of it wakes."""
    host = rank.select(Category.CPU_OP, Category.USER_ANNOTATION, Category.CUDA_RUNTIME, Category.CUDA_DRIVER)
    host = host[np.argsort(rank.start_ns[host], kind="stable")]
    start_ns = int(rank.start_ns[host[0]])
    made, before, latest_ns = [], int(host[0]), start_ns
    main = int(rank.lane[host[0]])
    for event in host.tolist():
        if rank.lane[event] != rank.lane[before]:
            resumes_ns = int(rank.start_ns[event]) - PYTHON_NS * (rank.lane[event] == main)
            made.append(Stretch(rank.rank, start_ns, latest_ns))
            start_ns = resumes_ns
            latest_ns = resumes_ns
        blocks_ns = int(rank.start_ns[event]) + SYNC_NS
        if "Synchronize" in rank.name[event] and rank.end_ns[event] > blocks_ns:
            made.append(Stretch(rank.rank, start_ns, blocks_ns))
            start_ns = int(rank.end_ns[event])
        if rank.category[event] != Category.USER_ANNOTATION:  # open around both threads
            latest_ns = max(latest_ns, int(rank.end_ns[event]))
        before = event
    if latest_ns > start_ns:
        made.append(Stretch(rank.rank, start_ns, latest_ns))
    return made


def threads_at_once(running: list[Stretch], begin_ns: int, end_ns: int) -> tuple[int, int]:
    """Return the fewest and the most threads that run at once between two moments."""
    moments = {begin_ns, *(t for stretch in running for t in stretch[1:] if begin_ns < t < end_ns)}
    counts = [sum(s.start_ns <= moment < s.end_ns for s in running) for moment in moments]
    return min(counts), max(counts)


def of_host(done: Simulated, host: int) -> tuple[list[Stretch], list[CoreWait]]:
    """Return the stretches of the ranks of one host, and the waits for its cores."""
    size = done.job.gpus_per_node
    running = [one for rank in done.ranks if rank.rank // size == host for one in stretches(rank)]
    return running, [wait for wait in done.truth.core_waits if wait.rank // size == host]


jobs = st.builds(
    lambda ranks, cores, seed, host_us, kernel_us, strategy, node: STEADY.model_copy(
        update={
            "ranks": ranks, "cores_per_host": cores, "seed": seed, "host_us_per_op": host_us, "kernel_us": kernel_us,
            "data_strategy": strategy, "gpus_per_node": node,
        }
    ),
    st.integers(2, 4), st.integers(1, 3), st.integers(0, 9), st.sampled_from([2.0, 7.0, 20.0]),
    st.sampled_from([5.0, 120.0]), st.sampled_from(["ddp", "fsdp"]), st.sampled_from([2, 8]),
)  # fmt: skip


@given(jobs)
def test_no_more_threads_run_than_the_host_has_cores(job: Job) -> None:
    done = simulate(job)
    assert job.cores_per_host is not None
    for host in range(-(-job.ranks // job.gpus_per_node)):
        running, _ = of_host(done, host)
        begin_ns, end_ns = min(s.start_ns for s in running), max(s.end_ns for s in running)
        assert threads_at_once(running, begin_ns, end_ns)[1] <= job.cores_per_host


@given(jobs)
def test_a_thread_waits_only_while_all_cores_are_busy(job: Job) -> None:
    done = simulate(job)
    for host in range(-(-job.ranks // job.gpus_per_node)):
        running, waits = of_host(done, host)
        for wait in waits:
            assert threads_at_once(running, wait.ready_ns, wait.start_ns)[0] == job.cores_per_host


@given(jobs)
def test_who_is_ready_first_gets_the_next_core(job: Job) -> None:
    done = simulate(job)
    for host in range(-(-job.ranks // job.gpus_per_node)):
        _, waits = of_host(done, host)
        order = sorted(waits, key=lambda wait: (wait.ready_ns, wait.rank))
        starts = [wait.start_ns for wait in order]
        assert starts == sorted(starts)


@given(jobs)
def test_a_wait_is_as_long_as_the_call_returns_late(job: Job) -> None:
    """A call returns a fixed time after the device work that it waits for, or later by a wait for a core."""
    done = simulate(job)
    waits = {(wait.rank, wait.start_ns): wait.start_ns - wait.ready_ns for wait in done.truth.core_waits}
    for link in done.truth.dependencies:
        if link.kind != "host_sync":
            continue
        rank = done.ranks[link.rank_u]
        row = {int(position): index for index, position in enumerate(rank.position)}
        work, call = row[link.event_u], row[link.event_v]
        returned = int(rank.end_ns[call])
        waited = waits.get((link.rank_u, returned), 0)
        assert returned - waited >= rank.end_ns[work] + 4000
        assert waited == 0 or returned - waited > rank.start_ns[call] + SYNC_NS


@pytest.mark.parametrize("name", ["ddp", "fsdp", "tensor", "pipeline", "short queue", "blocking", "graphed forward"])
def test_a_core_for_each_rank_changes_nothing(name: str) -> None:
    job = SMALL[name]
    before, after = simulate(job), simulate(job.model_copy(update={"cores_per_host": job.ranks}))
    assert [before.text(rank) for rank in range(job.ranks)] == [after.text(rank) for rank in range(job.ranks)]
    assert after.truth.core_waits == ()


def test_one_core_for_two_ranks_that_never_block_runs_one_after_the_other() -> None:
    job = Job(ranks=2, steps=2, layers=1, tp=1, pp=1, item="none", thread_wake_us=0.0, cores_per_host=1, jitter=0.0)
    done = simulate(job)
    first, second = done.ranks
    last = first.select(Category.CUDA_RUNTIME)[-1]  # waits for the device, which waits for the other rank
    own_end = first.start_ns[last] + SYNC_NS
    host = second.select(Category.CPU_OP, Category.USER_ANNOTATION)
    assert second.start_ns[host].min() == own_end
    (wait, *_) = done.truth.core_waits
    assert (wait.rank, wait.start_ns) == (1, own_end)


def test_ranks_of_other_hosts_have_cores_of_their_own() -> None:
    job = STEADY.model_copy(update={"ranks": 4, "gpus_per_node": 1})
    before, after = simulate(job), simulate(job.model_copy(update={"cores_per_host": 1}))
    assert all(before.text(rank) == after.text(rank) for rank in range(4))


def test_a_slower_operator_of_one_rank_delays_the_other() -> None:
    job = STEADY.model_copy(update={"ranks": 2, "cores_per_host": 1, "kernel_us": 2.0, "host_us_per_op": 20.0})
    slower = job.model_copy(update={"changes": (ScaleHost(op="aten::mm", factor=3.0, ranks=(0,)),)})
    more = simulate(slower).truth.core_waits
    fewer = simulate(job).truth.core_waits
    waited = [sum(wait.start_ns - wait.ready_ns for wait in waits if wait.rank == 1) for waits in (fewer, more)]
    assert waited[1] > waited[0]
