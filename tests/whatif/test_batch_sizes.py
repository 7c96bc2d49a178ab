from __future__ import annotations

from htagraph.queries.kernel_costs import Call
from htagraph.whatif.batch_sizes import layout_of, recorded_batch, resized_calls


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
    assert recorded_batch([(Call("aten::gelu", [[1, 141, 512]], [], None), 1.0)]) == [1]
