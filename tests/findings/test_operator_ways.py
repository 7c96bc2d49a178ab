"""Convolutions, random numbers and optimizers are recognized by what was recorded of them."""

from __future__ import annotations

import pytest

from htagraph.findings.changes import changes_of
from htagraph.findings.operator_ways import convolutions_in, random_numbers_in, usual_work
from htagraph.findings.preconditions import GO_TO_DEVICE, SHAPES_COME_AGAIN
from htagraph.findings.results import Results
from tests.strategies import Json, annotation, kernel, launch, load, op, runtime


def convolving(count: int, *, sizes: int = 1, name: str = "aten::cudnn_convolution") -> list[Json]:
    """Return convolutions, each with a kernel of 1 ms, of some sizes of inputs in turn."""
    events: list[Json] = []
    for number in range(1, count + 1):
        size = 8 * (1 + number % sizes)
        call = op(name, 30 * number, 20)
        call["args"] |= {"Input Dims": [[size, 3, 224, 224]]}
        events += [call, launch(30 * number + 5, 5, number)]
        events += [kernel("cudnn::implicit_gemm", 1000 * number, 1000, number)]
    return events


@pytest.mark.parametrize(("count", "sizes", "is_advised"), [(40, 1, True), (5, 1, False), (40, 20, False)])
def test_many_convolutions_of_few_sizes_may_try_kernels(count: int, sizes: int, *, is_advised: bool) -> None:
    found = changes_of(Results(load(convolving(count, sizes=sizes))))
    actions = [row.action for row in found if "cudnn.benchmark" in row.action]
    assert bool(actions) == is_advised
    assert all("channels_last" in action for action in actions)


def test_a_job_that_tries_kernels_already_is_not_told_to() -> None:
    assert convolutions_in(load(convolving(40))) is not None
    assert convolutions_in(load([*convolving(40), runtime("cudnnFindConvolutionForwardAlgorithm", 1, 5)])) is None
    assert convolutions_in(load(convolving(40, name="aten::mkldnn_convolution"))) is None


def test_shapes_that_were_not_recorded_are_to_be_checked() -> None:
    graph = load([op("aten::cudnn_convolution", 0, 10)])
    assert SHAPES_COME_AGAIN.holds(graph, graph.select(kind="op").activities) is None


def making(*, copies: bool = True, direction: str = "Pageable -> Device") -> list[Json]:
    """Return random numbers of the host, each followed by a copy to the device and work there."""
    events: list[Json] = []
    for turn in range(5):
        begin = 2000 * turn
        events += [op("aten::rand", begin, 1000), op("aten::uniform_", begin + 10, 980)]
        if copies:
            events += [op("aten::to", begin + 1100, 100), runtime("cudaMemcpyAsync", begin + 1110, 80, 2 * turn + 1)]
            to = "HtoD" if direction == "Pageable -> Device" else "DtoH"
            name = f"Memcpy {to} ({direction})"
            events.append(kernel(name, begin + 1120, 60, 2 * turn + 1) | {"cat": "gpu_memcpy"})
        events += [op("aten::mm", begin + 1300, 100), launch(begin + 1310, 5, 2 * turn + 2)]
        events += [kernel("some_kernel", begin + 1400, 100, 2 * turn + 2)]
    return events


def test_random_numbers_of_the_host_that_are_copied_are_better_made_on_the_device() -> None:
    found = changes_of(Results(load(making())))
    (row,) = [row for row in found if row.change and row.change.name == "random numbers from the device"]
    assert row.gain is not None
    assert row.gain.value_us == pytest.approx(5 * 980, rel=0.05)
    assert "device='cuda'" in row.action
    assert "does not say" not in row.action


def test_one_copy_among_many_weights_is_no_reason_to_move_all_of_a_name() -> None:
    weights = [op("aten::uniform_", 20_000 + 1000 * number, 900) for number in range(16)]
    assert random_numbers_in(load(making())) is not None
    assert random_numbers_in(load([*making(), *weights])) is None


def test_random_numbers_that_stay_on_the_host_are_left_alone() -> None:
    assert random_numbers_in(load(making(copies=False))) is None
    graph = load(making(direction="Device -> Pageable"))
    assert GO_TO_DEVICE.holds(graph, graph.select(kind="op").activities) is False
    assert random_numbers_in(load([op("aten::uniform_", 0, 90), op("aten::to", 100, 20)])) is None


def test_the_usual_work_of_regions_is_that_of_most_of_them() -> None:
    events: list[Json] = []
    for turn, count in enumerate((9, 3, 3, 3)):
        events.append(annotation("Optimizer.step#SGD.step", 1000 * turn, 500))
        for place in range(count):
            number = 100 * turn + place + 1
            begin = 1000 * turn + 30 * place
            events += [launch(begin + 5, 5, number), kernel("some_kernel", begin + 15, 10, number)]
    graph = load(events)
    work = usual_work(graph, graph.select(name="Optimizer.step#*", kind="annotation").activities)
    assert (work.kernels, work.ran_us, work.lasted_us) == (3, 30, 500)
