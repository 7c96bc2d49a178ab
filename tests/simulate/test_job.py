"""Each change does what it says, and moves nothing else."""

import numpy as np
import pytest

from htagraph.simulate import (
    Category,
    Change,
    Job,
    RemoveKernels,
    RemoveSync,
    ScaleHost,
    ScaleKernels,
    ScaleLaunches,
    ScaleLoader,
    ScaleNetwork,
    ScaleOptimizer,
    SetNetwork,
    Simulated,
    SlowRank,
    simulate,
)
from htagraph.simulate.simulated import RankEvents

JOB = Job(ranks=2, steps=2, layers=2, loader_us=400.0)
BASE = simulate(JOB)
DEVICE = (Category.KERNEL, Category.GPU_MEMCPY, Category.GPU_MEMSET)


def changed(*changes: Change) -> Simulated:
    return simulate(JOB.model_copy(update={"changes": changes}))


def durations(rank: RankEvents) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    result: np.ndarray[tuple[int], np.dtype[np.int64]] = rank.end_ns - rank.start_ns
    return result


def named(rank: RankEvents, part: str, *categories: Category) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    chosen = rank.select(*categories)
    return chosen[np.array([part in name for name in rank.name[chosen]], np.bool_)]


@pytest.mark.parametrize(
    "change",
    [
        ScaleKernels(factor=1.0),
        ScaleHost(factor=1.0),
        ScaleLaunches(factor=1.0),
        ScaleNetwork(factor=1.0),
        SetNetwork(),
        SetNetwork(latency_us=JOB.network_latency_us, gb_s=JOB.network_gb_s),
        ScaleLoader(factor=1.0),
        ScaleOptimizer(factor=1.0),
        SlowRank(rank=0, factor=1.0),
        RemoveSync(name="nothing"),
        RemoveKernels(name="nothing"),
        ScaleKernels(factor=9.0, ranks=(), steps=None),
        ScaleKernels(factor=9.0, steps=(17,)),
    ],
    ids=lambda change: str(change.change),
)
def test_a_change_of_nothing_changes_nothing(change: Change) -> None:
    again = changed(change)
    for before, after in zip(BASE.ranks, again.ranks, strict=True):
        assert np.array_equal(before.start_ns, after.start_ns)
        assert np.array_equal(before.end_ns, after.end_ns)


def test_scaled_kernels_take_that_much_longer_and_no_others() -> None:
    after = changed(ScaleKernels(name="*gemm*", factor=2.0, ranks=(1,), steps=(1,)))
    for before, now in zip(BASE.ranks, after.ranks, strict=True):
        kernels = now.select(*DEVICE)
        local = kernels[now.lane[kernels] == 7]
        gemms = np.isin(local, named(now, "gemm", Category.KERNEL)) & (now.step[local] == 1) & (now.rank == 1)
        factor = np.where(gemms, 2.0, 1.0)
        assert np.abs(durations(now)[local] - durations(before)[local] * factor).max() <= 1


def test_kinds_of_device_work_are_told_apart() -> None:
    after = changed(ScaleKernels(what="memcpy", factor=3.0))
    for before, now in zip(BASE.ranks, after.ranks, strict=True):
        copies, others = now.select(Category.GPU_MEMCPY), now.select(Category.GPU_MEMSET)
        assert np.abs(durations(now)[copies] - 3 * durations(before)[copies]).max() <= 2
        assert np.array_equal(durations(now)[others], durations(before)[others])


def test_removed_kernels_take_no_time() -> None:
    after = changed(RemoveKernels(name="*flash*"))
    for rank in after.ranks:
        assert (durations(rank)[named(rank, "flash", Category.KERNEL)] == 0).all()
        assert (durations(rank)[named(rank, "gemm", Category.KERNEL)] > 0).all()


@pytest.mark.parametrize("latency_factor", [0.0, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("factor", [0.0, 0.5, 3.0])
def test_the_network_scales_bytes_and_latency_and_not_waits(factor: float, latency_factor: float) -> None:
    exact = JOB.model_copy(update={"jitter": 0.0, "end_spread_us": 0.0})
    change = ScaleNetwork(factor=factor, latency_factor=latency_factor)
    after = simulate(exact.model_copy(update={"changes": (change,)}))
    for collective in after.truth.collectives:
        moved = collective.bytes * 2 * (JOB.ranks - 1) / JOB.ranks
        transfer_ns = latency_factor * JOB.network_latency_us * 1e3 + factor * moved / JOB.network_gb_s
        assert {member.transfer_ns for member in collective.members} == {round(transfer_ns)}


def test_a_network_without_latency_is_its_bandwidth() -> None:
    job = JOB.model_copy(
        update={"jitter": 0.0, "end_spread_us": 0.0, "changes": (SetNetwork(latency_us=0, gb_s=50.0),)}
    )
    for collective in simulate(job).truth.collectives:
        moved = collective.bytes * 2 * (JOB.ranks - 1) / JOB.ranks
        assert {member.transfer_ns for member in collective.members} == {round(moved / 50.0)}


def test_no_launch_overhead() -> None:
    after = changed(ScaleLaunches(factor=0.0, latency_factor=0.0))
    for rank in after.ranks:
        assert (durations(rank)[named(rank, "cudaLaunchKernel", Category.CUDA_RUNTIME)] == 0).all()
    assert after.mean_step_ns < BASE.mean_step_ns


def test_a_free_loader() -> None:
    rank = changed(ScaleLoader(factor=0.0)).ranks[0]
    waits = named(rank, "DataLoader", Category.USER_ANNOTATION)
    assert len(waits) == JOB.steps
    assert (durations(rank)[waits] < 5000).all()


def test_host_work_of_one_op() -> None:
    after = changed(ScaleHost(op="aten::as_strided", factor=4.0))
    for before, now in zip(BASE.ranks, after.ranks, strict=True):
        ops = named(now, "aten::as_strided", Category.CPU_OP)
        assert np.abs(durations(now)[ops] - 4 * durations(before)[ops]).max() <= 4
        others = named(now, "aten::_foreach_mul_", Category.CPU_OP)
        assert np.array_equal(durations(now)[others], durations(before)[others])


def test_a_removed_sync_waits_for_nothing() -> None:
    after = changed(RemoveSync())
    kinds = {link.kind for link in after.truth.dependencies}
    assert not kinds & {"host_sync", "memcpy_sync"}
    assert after.mean_step_ns <= BASE.mean_step_ns
    last = changed(RemoveSync(name="cudaDeviceSynchronize"))
    assert last.mean_step_ns == BASE.mean_step_ns


def test_the_optimizer_alone() -> None:
    rank = changed(ScaleOptimizer(factor=3.0)).ranks[0]
    steps = named(rank, "Optimizer.step", Category.USER_ANNOTATION)
    kernels = named(rank, "multi_tensor", Category.KERNEL)
    before = BASE.ranks[0]
    assert np.abs(durations(rank)[steps] / durations(before)[steps] - 3).max() < 0.01
    assert np.abs(durations(rank)[kernels] - 3 * durations(before)[kernels]).max() <= 2


@pytest.mark.parametrize("what", ["kernels", "host", "loader"])
def test_a_slow_rank_slows_the_job(what: str) -> None:
    slow = SlowRank.model_validate({"rank": 1, "what": what, "factor": 3.0})
    as_change = changed(slow)
    as_straggler = simulate(JOB.model_copy(update={"slow_ranks": (slow,)}))
    assert as_change.mean_step_ns == as_straggler.mean_step_ns > BASE.mean_step_ns


def test_changes_compose() -> None:
    once = changed(ScaleKernels(factor=4.0))
    twice = changed(ScaleKernels(factor=2.0), ScaleKernels(factor=2.0))
    assert once.mean_step_ns == twice.mean_step_ns


def test_one_parameter_leaves_all_other_draws() -> None:
    """Launch costs and kernel durations do not move when the network or the format changes."""
    other = JOB.model_copy(update={"network_gb_s": 9.0, "with_stack": True, "cuda_sync": False, "era": "2024"})
    for before, after in zip(BASE.ranks, simulate(other).ranks, strict=True):
        for categories in ((Category.GPU_MEMCPY, Category.GPU_MEMSET), (Category.CPU_OP,)):
            old, new = before.select(*categories), after.select(*categories)
            names = before.name[old] != "aten::item"
            still = names & (before.name[old] != "aten::_local_scalar_dense")
            assert np.array_equal(durations(before)[old][still], durations(after)[new][still])


def test_more_layers_leave_the_draws_of_the_first() -> None:
    more = simulate(JOB.model_copy(update={"layers": 3}))
    old, new = BASE.ranks[0], more.ranks[0]
    first, again = (durations(rank)[named(rank, "layer_norm_kernel", Category.KERNEL)][:4] for rank in (old, new))
    assert np.array_equal(first, again)
