"""Whether work for which a better way is known is recognized by its evidence, and other work is left alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.findings.bound import BOUND
from htagraph.findings.change import usual_us
from htagraph.findings.changes import changes_of
from htagraph.findings.reach import REACH
from htagraph.findings.remedy import REMEDY
from htagraph.findings.results import Results
from htagraph.findings.verdict import claims_of
from htagraph.trace.readers import Recorder
from htagraph.whatif.options import criteria
from tests.host_jobs import host_job, tensor_args
from tests.reach import DATA, SHARED, graph_of
from tests.strategies import COMPUTE, Json, annotation, kernel, launch, load, op, runtime, step


def found(events: list[Json] | dict[int, list[Json]]) -> dict[str, str]:
    return {claim.about: REMEDY.short(claim) for claim in REMEDY.when(Results(load(events)))}


def copying(memory: str) -> list[Json]:
    name = f"Memcpy HtoD ({memory} -> Device)"
    copy = kernel(name, 20, 900, 1) | {"cat": "gpu_memcpy"}
    copy["args"]["bytes"] = 9_000_000
    loader = annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 5)
    return [loader, runtime("cudaMemcpyAsync", 10, 920, 1), copy, launch(940, 5, 2), kernel(COMPUTE, 950, 100, 2)]


def test_copies_from_pageable_memory_are_named_with_their_speed_and_pinned_ones_are_not() -> None:
    words = found(copying("Pageable"))["pageable copies"]
    assert words.startswith("Memcpy HtoD (Pageable -> Device) copies 9.0 MB in 900.0 µs, at 10 GB/s")
    assert "pageable copies" not in found(copying("Pinned"))


def allocating(*calls: str) -> list[Json]:
    events = []
    for at in range(3):
        events += [op("aten::mm", 1000 * at, 800)]
        events += [runtime(name, 1000 * at + 100 * (1 + i), 90) for i, name in enumerate(calls)]
    return events


def test_memory_given_back_and_asked_for_again_is_a_retry_and_asking_alone_is_not() -> None:
    words = found(allocating("cudaFree", "cudaMalloc"))["allocator"]
    assert words.startswith("The allocator gives memory back and asks for it again: its calls take 540.0 µs; without")
    assert not found(allocating("cudaMalloc", "cudaMalloc"))


def optimizing(runs: int) -> list[Json]:
    events = [annotation("Optimizer.step#AdamW.step", 0, 1000)]
    for at in range(9):
        events += [launch(100 * at + 10, 60, at + 1), kernel(COMPUTE, 100 * at + 80, runs, at + 1)]
    return events


def test_an_optimizer_of_small_kernels_is_named_and_one_that_keeps_the_device_busy_is_not() -> None:
    words = found(optimizing(5))["optimizer"]
    assert words.startswith("Optimizer.step#AdamW.step launches 9 kernels each time, which run 45.0 µs of the 1.00 ms")
    assert not found(optimizing(90))


@given(st.integers(2, 6), st.integers(2, 12), st.integers(0, 40))
def test_what_an_optimizer_launches_is_that_of_a_usual_time(steps: int, kernels: int, more: int) -> None:
    """Without steps in the file: the first time makes states, with kernels that no later time has."""
    events: list[Json] = []
    at = number = 0
    for turn in range(steps):
        count = kernels + more * (turn == 0)
        events.append(annotation("Optimizer.step#AdamW.step", at, 100 * count + 50))
        for place in range(count):
            number += 1
            begin = at + 100 * place
            events += [launch(begin + 10, 60, number), kernel(COMPUTE, begin + 80, 5, number)]
        at += 100 * count + 60
    words = found(events)["optimizer"]
    lasted = f"{(100 * kernels + 50) / 1000:.2f} ms" if kernels > 9 else f"{100 * kernels + 50:.1f} µs"
    assert f"launches {kernels} kernels each time, which run {5 * kernels:.1f} µs of the {lasted}" in words


@pytest.mark.skipif(not SHARED.is_dir(), reason="real traces are not in reach")
def test_an_old_recording_has_no_fused_optimizer() -> None:
    """PyTorch of 2021 has no ``fused=True`` for SGD, which came with 2.3."""
    results = Results(graph_of(SHARED / "kineto" / "resnet50_2021.pt.trace.json.gz"))
    assert "optimizer" not in {claim.about for claim in REMEDY.when(results)}


@pytest.mark.skipif(not SHARED.is_dir(), reason="real traces are not in reach")
def test_retries_of_a_real_job_are_those_of_its_file() -> None:
    """Its ranks have 16 calls of cudaFree and 21 of cudaMalloc each, all but few in the first of three steps."""
    results = Results(hg.load(SHARED / "torchrec_v100_equal"))
    (claim,) = [each for each in REMEDY.when(results) if each.about == "allocator"]
    assert REMEDY.short(claim).startswith("In step 4, the allocator gives memory back and asks for it again")
    assert results.usual == [5, 6]
    assert results.bound.cause == "computation"


@pytest.mark.parametrize(("elements", "compute_us", "named"), [(1000, 0, True), (10**7, 0, False), (1000, 5, False)])
def test_small_messages_in_a_row_could_be_one(elements: int, compute_us: int, *, named: bool) -> None:
    """Each is launched behind the one before; with computation between, or large ones, nobody is told to join them."""
    events: list[Json] = []
    for at in range(40):
        talk = kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 100 * at + 20, 90, at + 1, 20)
        talk["args"] |= {"In msg nelems": elements, "dtype": "Float", "Collective name": "allreduce"}
        talk["args"] |= {"Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Group size": 2}
        events += [launch(20 * at, 5, at + 1), talk]
        for more in range(4 if compute_us else 0):
            events += [launch(20 * at + 10 + 2 * more, 1, 1000 + 4 * at + more)]
            events += [kernel(COMPUTE, 100 * at + 30 + 6 * more, compute_us, 1000 + 4 * at + more)]
    words = found({0: events, 1: events}).get("messages", "")
    assert bool(words) == named
    assert not words or "runs 40 times in a row, each with 4.0 kB; with one call" in words


def test_products_in_single_precision_are_told_by_their_kernels() -> None:
    events = [launch(0, 5, 1), kernel("ampere_sgemm_128x64_tn", 10, 900, 1)]
    words = found(events)["single precision"]
    assert (
        "are 100 % of computation (ampere_sgemm_128x64_tn); with such products twice as fast, the job would take "
        "450.0 µs less" in words
    )


@pytest.mark.parametrize(
    ("name", "is_named"),
    [
        ("void precomputed_convolve_sgemm<__nv_bfloat16, 1024, 5>(int, __nv_bfloat16 const*)", False),
        ("void precomputed_convolve_sgemm<float, 1024, 5>(int, float const*)", True),
        ("void cudnn::detail::dgrad_engine<float, 512, 6>(int, float const*)", True),
    ],
)
def test_types_in_a_name_count_before_words(name: str, is_named: bool) -> None:  # noqa: FBT001
    words = found([launch(0, 5, 1), kernel(name, 10, 900, 1)])
    assert ("single precision" in words) == is_named


def test_products_in_single_precision_are_tried_without_products_of_like_names() -> None:
    narrow = "void convolve_sgemm<__nv_bfloat16, 5>(int)"
    single = ["ampere_sgemm_128x64_tn", "void dgrad_engine<float, 5>(int, a,name=b)"]
    events = [launch(10 * at, 5, at + 1) for at in range(3)]
    events += [kernel(name, 100 + 1000 * at, 900, at + 1) for at, name in enumerate([narrow, *single])]
    graph = load(events)
    claim = next(claim for claim in REMEDY.when(Results(graph)) if claim.about == "single precision")
    assert claim.change is not None
    chosen = [criteria(option.rpartition(":")[0]) for option in claim.change.options[1::2]]
    rows = [graph.names[graph.activities.name[row]] for given in chosen for row in graph.select(**given).activities]
    assert sorted(rows) == sorted(single)


@pytest.mark.skipif(not SHARED.is_dir(), reason="real traces are not in reach")
def test_advice_is_what_the_device_can_do_and_the_first_is_tried() -> None:
    first = hg.changes(hg.load(SHARED / "hta" / "ns_resolution")).first
    assert first is not None
    assert first.action == "Use autocast with float16."
    assert first.change is not None


@pytest.mark.parametrize(("grids", "is_one"), [((8, 8, 8), True), ((8, 16, 24), False)])
def test_elementwise_kernels_of_one_size_in_a_row_can_be_fused(grids: tuple[int, ...], *, is_one: bool) -> None:
    events: list[Json] = []
    for at, grid in enumerate(grids):
        work = kernel("void at::native::vectorized_elementwise_kernel<4>(int)", 10 + 100 * at, 100, at + 1)
        work["args"] |= {"grid": [grid, 1, 1], "block": [128, 1, 1]}
        events += [launch(at, 0.5, at + 1), work]
    words = found(events)
    assert (
        not is_one or "100 % of the device's work, many in a row with one size; with one kernel" in words["pointwise"]
    )
    assert is_one == ("pointwise" in words)


@pytest.mark.skipif(not SHARED.is_dir(), reason="real traces are not in reach")
def test_an_operator_far_below_the_roof_is_what_to_change_first() -> None:
    results = Results(hg.load(SHARED / "tracelens" / "torch_compile_triton.json.gz"))
    (claim,) = REMEDY.when(results)
    assert "flash_attention reaches 23 % of the device's peak rate (8x16x4096x128" in REMEDY.short(claim)
    assert REMEDY.advice(claim).startswith("Try other kernels for aten::_scaled_d…_flash_attention:")


def test_the_gain_is_that_of_the_change_that_is_named() -> None:
    graph = hg.load(DATA / "gpu_demo" / "train")
    (claim,) = REMEDY.when(Results(graph))
    assert claim.about == "optimizer"
    target = "Optimizer.step#AdamW.step"
    outcome = hg.what_if(graph).fuse(op=target).scale(factor=REACH["optimizer"].likely, op=target, kind="host").run()
    assert claim.figure == usual_us(outcome)


def test_a_loop_of_short_operators_and_code_compiled_in_each_step_say_what_to_change() -> None:
    one_by_one = [op(f"aten::{('select', 'item')[at % 2]}", 3 * at, 2) for at in range(2000)]
    words = found([*one_by_one, op("aten::mm", 6000, 900)])
    assert words["loops"].startswith("aten::select and aten::item run 2,000 times, in rows of short calls (2.0 µs each")
    assert "loops" not in found([*one_by_one[:300], op("aten::mm", 6000, 900)])
    steps = [step(at, 1000 * at, 990) for at in range(4)]
    compiling = [op("_compile.compile_inner (dynamo_timed)", 1000 * at + 10, 900) for at in range(4)]
    assert "Code is compiled anew in every step; without compilation" in found(steps + compiling)["compiling"]
    assert "compiling" not in found(steps + compiling[:2])


@pytest.mark.parametrize(("most", "named"), [(500, True), (50_000, False)])
def test_collectives_of_hosts_in_a_row_are_one_where_bytes_are_little_of_their_time(most: int, *, named: bool) -> None:
    """Each takes 100 µs, but the last: so no byte takes longer than that one's do."""
    events: list[Json] = []
    for at in range(40):
        count, took = (50_000, 120) if at == 39 else (most, 100)
        call = op("c10d::allreduce_", 130 * at + 1, 2, **tensor_args(count))
        talk = annotation("gloo:all_reduce", 130 * at + 4, took, 7)
        talk["args"] = {"Input Dims": [[count]], "Input type": ["float"]}
        events += [call, talk]
    results = Results(host_job({0: events, 1: events}))
    claims = REMEDY.when(results)
    words = {claim.about: REMEDY.short(claim) for claim in claims}.get("calls", "")
    assert words.startswith("c10d::allreduce_ runs 40 times in a row" if named else "")
    assert bool(words) == named
    said = claims_of(results)
    first = changes_of(results).first
    assert first is not None
    assert first.options[0] == ("--remove" if named else "--network"), "the larger gain is tried"
    assert ("without them the job takes" in BOUND.whole(said[0])) != named


def test_a_program_without_pytorch_gets_advice_without_its_interfaces() -> None:
    claims = REMEDY.when(Results(load(copying("Pageable"))))
    claim = next(claim for claim in claims if claim.about == "pageable copies")
    assert "pin_memory=True" in REMEDY.advice(claim)
    plain = REMEDY.advice(replace(claim, recorder=Recorder("nsys", has_pytorch=False)))
    assert plain == "Pin the memory (cudaHostAlloc), and copy without waiting (cudaMemcpyAsync)."
