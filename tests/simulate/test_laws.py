"""Laws that hold for every job, whatever it does."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.simulate import (
    MOMENTS,
    REGIMES,
    Category,
    Change,
    Job,
    ScaleHost,
    ScaleKernels,
    ScaleLaunches,
    ScaleNetwork,
    Simulated,
    SlowRank,
    simulate,
)

DEVICE = (Category.KERNEL, Category.GPU_MEMCPY, Category.GPU_MEMSET)
SMALL = {
    "ddp": Job(ranks=3, steps=2, layers=3, buckets=2, seed=1),
    "fsdp": Job(ranks=2, steps=2, layers=4, data_strategy="fsdp", seed=2),
    "tensor": Job(ranks=2, steps=2, layers=2, parallelism="tensor", seed=3),
    "pipeline": Job(ranks=3, steps=2, layers=3, parallelism="pipeline", microbatches=4, seed=4),
    "three ways": Job(ranks=8, steps=1, layers=2, tp=2, pp=2, microbatches=2, seed=5),
    "exchange": Job(ranks=4, steps=2, layers=1, all_to_all=True, broadcast_buffers=True, seed=6),
    "short queue": Job(ranks=2, steps=2, layers=2, queue_depth=6, item="none", seed=7),
    "blocking": Job(ranks=2, steps=2, layers=2, input_memory="pageable", item="pinned", synchronize="step", seed=8),
    "loop": Job(ranks=2, steps=2, layers=1, optimizer="loop", kernel_us=5.0, jitter=0.2, seed=9),
    "stack": Job(ranks=2, steps=1, layers=2, with_stack=True, record_shapes=True, clip_grad=True, triton=True),
    "alone": Job(ranks=1, steps=2, layers=1, optimizer="fused"),
    "graphed forward": Job(
        ranks=2, steps=2, layers=2, cuda_graph="forward", kernel_us=8.0, synchronize="step", seed=10
    ),
    "graphed optimizer": Job(ranks=2, steps=2, layers=1, cuda_graph="optimizer", optimizer="loop", seed=11),
    "straggler": Job(ranks=3, steps=2, layers=2, slow_ranks=(SlowRank(rank=1, factor=1.5),)),
}


@cache
def done(name: str) -> Simulated:
    return simulate(SMALL[name])


every_job = pytest.mark.parametrize("name", SMALL)


def same(one: Simulated, other: Simulated) -> bool:
    return all(
        np.array_equal(a.start_ns, b.start_ns) and np.array_equal(a.end_ns, b.end_ns)
        for a, b in zip(one.ranks, other.ranks, strict=True)
    )


@every_job
def test_works_of_one_stream_follow_each_other(name: str) -> None:
    for rank in done(name).ranks:
        device = rank.select(*DEVICE)
        for stream in set(rank.lane[device].tolist()):
            works = device[rank.lane[device] == stream]
            assert (rank.start_ns[works][1:] >= rank.end_ns[works][:-1]).all()
            assert (rank.end_ns[works] >= rank.start_ns[works]).all()


@every_job
def test_events_of_one_thread_nest(name: str) -> None:
    for rank in done(name).ranks:
        host = np.flatnonzero(~np.isin(rank.category, DEVICE))
        for thread in set(rank.lane[host].tolist()):
            open_ends: list[int] = []
            latest = -1
            for i in host[rank.lane[host] == thread]:
                start, end = int(rank.start_ns[i]), int(rank.end_ns[i])
                assert start >= latest
                latest = start
                while open_ends and open_ends[-1] <= start:
                    open_ends.pop()
                assert not open_ends or end <= open_ends[-1]
                if end > start:
                    open_ends.append(end)


@every_job
def test_truth_holds_on_the_true_clock(name: str) -> None:
    job = done(name)
    times: list[dict[int, dict[str, int]]] = []
    for rank in job.ranks:
        rows = zip(rank.position.tolist(), rank.start_ns.tolist(), rank.end_ns.tolist(), strict=True)
        times.append({position: {"start": start, "end": end} for position, start, end in rows})
    assert job.truth.dependencies
    for link in job.truth.dependencies:
        before, after = MOMENTS[link.kind]
        assert times[link.rank_v][link.event_v][after] >= times[link.rank_u][link.event_u][before], link


@every_job
def test_every_work_is_late_for_a_known_reason(name: str) -> None:
    """No work starts later than its launch, its stream and its events explain, within the constant lags."""
    job = done(name)
    latest: list[dict[int, int]] = [{} for _ in job.ranks]
    ends = [dict(zip(r.position.tolist(), r.end_ns.tolist(), strict=True)) for r in job.ranks]
    starts = [dict(zip(r.position.tolist(), r.start_ns.tolist(), strict=True)) for r in job.ranks]
    for link in job.truth.dependencies:
        if link.kind in ("launch", "stream", "event_wait"):
            before = (starts if link.kind == "launch" else ends)[link.rank_u][link.event_u]
            latest[link.rank_v][link.event_v] = max(before, latest[link.rank_v].get(link.event_v, 0))
    lag = 2000 * max(job.job.launch_latency_us, job.job.kernel_gap_us, job.job.event_latency_us)
    for rank in job.ranks:
        for i in rank.select(*DEVICE):
            assert rank.start_ns[i] - latest[rank.rank][int(rank.position[i])] <= lag


@every_job
def test_members_of_a_collective_reconcile_and_overlap(name: str) -> None:
    job = done(name)
    for collective in job.truth.collectives:
        assert len(collective.members) == len(collective.ranks)
        ends = []
        for member in collective.members:
            rank = job.ranks[member.rank]
            (i,) = np.flatnonzero(rank.position == member.event)
            assert member.arrival_ns == rank.start_ns[i]
            assert member.arrival_ns + member.wait_ns + member.transfer_ns == rank.end_ns[i]
            assert member.wait_ns >= 0
            assert member.transfer_ns > 0
            ends.append(int(rank.end_ns[i]))
        if collective.kind not in ("all_to_all", "broadcast"):
            assert max(member.arrival_ns for member in collective.members) <= min(ends)
            assert min(member.wait_ns for member in collective.members) == 0
            assert max(ends) - min(ends) <= 1.01 * job.job.end_spread_us * 1000


def test_an_all_to_all_is_no_barrier() -> None:
    job = simulate(SMALL["exchange"].model_copy(update={"steps": 12, "activation_mb": 0.1, "jitter": 0.2}))
    gaps = [
        max(m.arrival_ns for m in c.members) - min(m.arrival_ns + m.wait_ns for m in c.members)
        for c in job.truth.collectives
        if c.kind == "all_to_all"
    ]
    assert max(gaps) > 0


@every_job
def test_a_second_run_is_the_same(name: str) -> None:
    again = simulate(SMALL[name])
    assert same(again, done(name))
    assert again.text(0) == done(name).text(0)


@every_job
def test_no_more_works_than_the_queue_holds(name: str) -> None:
    job = done(name)
    for rank in job.ranks:
        device = rank.select(*DEVICE)
        calls = {
            (int(rank.step[i]), int(rank.correlation[i])): i
            for i in rank.select(Category.CUDA_RUNTIME, Category.CUDA_DRIVER)
        }
        for stream in set(rank.lane[device].tolist()):
            works = device[rank.lane[device] == stream]
            depth = job.job.queue_depth
            for earlier, later in zip(works[:-depth], works[depth:], strict=True):
                call = calls[int(rank.step[later]), int(rank.correlation[later])]
                assert rank.end_ns[call] >= rank.end_ns[earlier]


def test_a_full_queue_blocks_launches() -> None:
    kinds = [link.kind for link in done("short queue").truth.dependencies]
    assert kinds.count("queue_full") > 10
    deep = simulate(SMALL["short queue"].model_copy(update={"queue_depth": 1024}))
    assert "queue_full" not in {link.kind for link in deep.truth.dependencies}


def test_every_kind_of_dependency_occurs_somewhere() -> None:
    found = {link.kind for name in SMALL for link in done(name).truth.dependencies}
    assert found == set(MOMENTS)


@every_job
def test_a_step_starts_with_its_annotation_and_ends_with_its_last_work(name: str) -> None:
    job = done(name)
    for rank in job.ranks:
        previous = 0
        for step in range(job.job.steps):
            start, end = job.step_times()[rank.rank, step]
            inside = rank.step == step
            annotation = np.flatnonzero(inside & (rank.name == "ProfilerStep#"))[0]
            device = rank.select(*DEVICE)
            works = device[rank.step[device] == step]
            assert start == rank.start_ns[annotation] >= previous
            assert end == max(rank.end_ns[annotation], rank.end_ns[works].max())
            previous = start
    assert job.truth.mean_step_ns == job.mean_step_ns > 0


@settings(max_examples=12)
@given(st.sampled_from(sorted(SMALL)), st.floats(1.0, 3.0), st.sampled_from(["kernels", "host", "launches", "network"]))
def test_slower_is_never_faster(name: str, factor: float, what: str) -> None:
    change = {
        "kernels": ScaleKernels(name="*", factor=factor),
        "host": ScaleHost(factor=factor),
        "launches": ScaleLaunches(factor=factor, latency_factor=factor),
        "network": ScaleNetwork(factor=factor, latency_factor=factor),
    }[what]
    slower = simulate(SMALL[name].model_copy(update={"changes": (change,)}))
    for before, after in zip(done(name).ranks, slower.ranks, strict=True):
        assert (after.start_ns >= before.start_ns).all()
        assert (after.end_ns >= before.end_ns).all()


@pytest.mark.parametrize(
    ("regime", "helps"),
    [("gpu_bound", "kernels"), ("host_bound", "host"), ("communication_bound", "network"), ("straggler", "kernels")],
)
def test_regimes_are_what_they_say(regime: str, helps: str) -> None:
    job = REGIMES[regime]()
    halved: dict[str, Change] = {
        "kernels": ScaleKernels(factor=0.5),
        "network": ScaleNetwork(factor=0.5, latency_factor=0.5),
        "host": ScaleHost(factor=0.5),
    }
    times = {
        name: simulate(job.model_copy(update={"changes": (change,)})).mean_step_ns for name, change in halved.items()
    }
    assert min(times, key=lambda name: times[name]) == helps
    assert times[helps] < 0.85 * simulate(job).mean_step_ns


def test_all_but_the_straggler_wait() -> None:
    waits: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for collective in done("straggler").truth.collectives:
        for member in collective.members:
            waits[member.rank].append(member.wait_ns)
    assert sum(waits[1]) < 0.05 * min(sum(waits[0]), sum(waits[2]))
    assert done("straggler").truth.stragglers[0]["rank"] == 1


def test_pipeline_stages_start_one_after_the_other() -> None:
    job = done("pipeline")
    first = [int(rank.start_ns[rank.select(Category.KERNEL)].min()) for rank in job.ranks]
    gemms = []
    for rank in job.ranks:
        kernels = rank.select(Category.KERNEL)
        named = np.array(["gemm" in name for name in rank.name[kernels]])
        gemms.append(int(rank.start_ns[kernels[named]].min()))
    assert all(a < b for a, b in pairwise(gemms)), first
