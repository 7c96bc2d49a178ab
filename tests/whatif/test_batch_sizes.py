from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.queries.kernel_costs import Call
from htagraph.whatif.batch_sizes import layout_of, recorded_batch, resized_calls
from htagraph.whatif.changes.batch import recorded_size
from tests.reach import SHARED


def test_sequence_first_and_heads_scale_and_parameters_do_not() -> None:
    calls = [
        Call("aten::linear", [[64, 4, 96], [96, 96], [96]], [], None), Call("aten::add", [[64, 4, 96]], [], None),
        Call("aten::bmm", [[12, 64, 32], [12, 32, 64]], [], None), Call("aten::view", [[4, 3, 64, 32]], [], None),
    ]  # fmt: skip
    layout = layout_of(calls, 4)
    dims = [resized_calls(call, layout, 8)[0].dims for call in calls]
    assert dims[0] == [[64, 8, 96], [96, 96], [96]]
    assert dims[2] == [[24, 64, 32], [24, 32, 64]]


def test_a_batch_of_one_is_known_by_deep_tensors() -> None:
    assert recorded_batch([(Call("aten::gelu", [[1, 141, 512]], [], None), 1)]) == [1]


def _counted(*calls: tuple[str, list[list[int]], int], tokens: list[int] | None = None) -> list[tuple[Call, int]]:
    made = [(Call(name, dims, ["float"] * len(dims), None), count) for name, dims, count in calls]
    return made if tokens is None else [*made, (Call("aten::sub", [tokens], ["long int"], None), 0)]


SEQUENCE_FIRST = ("aten::gelu", [[128, 4, 256]], 8), ("aten::linear", [[512, 256], [256, 256]], 8)


@pytest.mark.parametrize(
    ("counted", "batch"),
    [
        # batch x heads is a product of dimensions of a view; scores compare the sequence with itself
        (_counted(*SEQUENCE_FIRST, ("aten::bmm", [[32, 128, 128], [32, 128, 64]], 8),
                  ("aten::view", [[128, 4, 8, 64]], 0)), [4]),
        (_counted(*SEQUENCE_FIRST, ("aten::scaled_dot_product_attention", [[4, 8, 128, 64]] * 3, 1)), [4]),
        (_counted(*SEQUENCE_FIRST, tokens=[4, 128]), [4]),
        # a rank with one product beside the model, however long it takes
        (_counted(("aten::mm", [[512, 512], [512, 512]], 2), ("aten::gelu", [[4, 64, 128]], 9)), [4]),
        # a width that all layers have explains as many tensors, and so may a width that equals the batch
        (_counted(("aten::addmm", [[32], [4, 32], [32, 32]], 9), ("aten::mm", [[32, 4], [4, 32]], 9)), [4]),
        (_counted(("aten::linear", [[2048, 64], [64, 64]], 9), ("aten::gelu", [[64, 32, 64]], 9)), [64]),
        (_counted(("aten::gelu", [[6, 4, 32]], 1), ("aten::gelu", [[4, 6, 32]], 1)), [4, 6]),
        (_counted(("aten::fill_", [[16]], 3)), []),
    ],
)  # fmt: skip
def test_the_recorded_batch_is_found(counted: list[tuple[Call, int]], batch: list[int]) -> None:
    assert recorded_batch(counted) == batch


TRUE_SIZES = {
    "megatron_tp8_a100/megatron_kineto_0": 4, "hta/trace_diff/test/test": 1024, "tracelens/h100_qwen": 16,
    "tracelens/mi300_resnet_act_checkpoint": 10, "tracelens/torch_compile_triton": 8, "gloo4_cpu/rank-2": 4,
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE_SIZES)
def test_the_batch_of_recorded_jobs_is_found(name: str) -> None:
    path = SHARED / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("not here")
    assert recorded_size(hg.load(path)) == TRUE_SIZES[name]
