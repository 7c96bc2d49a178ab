"""What the frames of several kernels share."""

from __future__ import annotations

from htagraph.core.kinds import ActivityKind
from htagraph.graph.construction.captured import Frame, shared, work_kinds

OP, MODULE = ActivityKind.OP, ActivityKind.PYTHON
LINEAR = Frame(1, OP, "aten::linear"), Frame(2, OP, "aten::addmm", shapes=(b"[[8, 4]]",))


def test_operators_are_counted_from_the_innermost_one() -> None:
    other = Frame(7, OP, "aten::addmm", shapes=(b"[[8, 4]]",))
    assert shared([LINEAR, (other,)]) == LINEAR[1:]
    assert shared([LINEAR, LINEAR[:1]]) == ()


def test_shapes_that_differ_are_not_known() -> None:
    other = Frame(7, OP, "aten::addmm", shapes=(b"[[2, 4]]",))
    assert shared([LINEAR, (other,)])[0].shapes is None


def test_an_outer_module_is_not_said_to_do_the_work_of_an_inner_one() -> None:
    model = Frame(0, MODULE, "nn.Module: Model_0")
    one, two = ((model, Frame(i, MODULE, f"nn.Module: Linear_{i}"), *LINEAR) for i in (5, 6))
    assert shared([one, two]) == LINEAR


def test_the_module_of_a_forward_operator_counts_as_well() -> None:
    frames = [Frame(3, OP, "AddmmBackward0", modules=(Frame(i, MODULE, f"nn.Module: Linear_{i}"),)) for i in (5, 6)]
    assert shared([(frames[0],), (frames[1],)])[0].modules == ()


def test_calls_and_kernels_have_kinds() -> None:
    assert work_kinds(["cudaMemcpyAsync", "Memset (Device)", "cuLaunchKernel"]) == ("cpy", "set", "kernel")
