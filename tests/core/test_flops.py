from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.devices import PEAKS, Peak, peak_of
from htagraph.core.flops import Cost, attended_pairs, cost_of, element_bytes, flop_formula, flop_per_count

_sizes = st.integers(1, 5)


def convolution(stride: object, padding: object, dilation: object, *, transposed: bool = False, groups: int = 1,
                beyond: object = "[0]") -> list[str]:  # fmt: skip
    return ["", "", "", str(stride), str(padding), str(dilation), str(transposed), str(beyond), str(groups)]


@given(_sizes, _sizes, _sizes, _sizes)
def test_products_of_matrices_take_two_operations_per_multiply_add(b: int, m: int, k: int, n: int) -> None:
    multiplied = sum(2 for _ in product(range(b), range(m), range(n), range(k)))
    assert cost_of("bmm", [[b, m, k], [b, k, n]]) == Cost(multiplied, (0, 1), b * m * n)
    assert cost_of("baddbmm", [[b, m, n], [b, m, k], [b, k, n]]) == Cost(multiplied, (0, 1, 2), b * m * n)
    assert cost_of("mm", [[m, k], [k, n]]) == Cost(multiplied // b, (0, 1), m * n)
    assert cost_of("addmm", [[n], [m, k], [k, n], [], []]) == Cost(multiplied // b, (0, 1, 2), m * n)
    assert cost_of("linear", [[b, m, k], [n, k], [n]]) == Cost(multiplied, (0, 1, 2), b * m * n)
    assert cost_of("linear", [[b, m, k], [n, k], []]) == Cost(multiplied, (0, 1), b * m * n)


def outside(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    """Count the places of a kernel in a padded line."""
    reach = dilation * (kernel - 1)
    return len(range(0, size + 2 * padding - reach, stride))


@given(st.integers(4, 9), st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.integers(1, 2))
def test_a_convolution_multiplies_its_kernel_at_every_place(x: int, k: int, s: int, p: int, d: int) -> None:
    places = outside(x, k, s, p, d)
    if places < 1:
        return
    shapes = [[2, 6, x, x], [8, 3, k, k], [], [], [], [], [], [], []]
    cost = cost_of("convolution", shapes, convolution([s, s], [p], [d, d], groups=2))
    assert cost == Cost(2 * 2 * 8 * places**2 * (6 // 2) * k * k, (0, 1), 2 * 8 * places**2)


@given(st.integers(2, 6), st.integers(1, 3), st.integers(1, 3), st.integers(0, 1))
def test_a_transposed_convolution_costs_what_the_convolution_back_costs(x: int, k: int, s: int, p: int) -> None:
    big = (x - 1) * s - 2 * p + k
    if big < k:
        return
    up = cost_of("convolution", [[2, 6, x], [6, 4, k], []], convolution([s], [p], [1], transposed=True))
    down = cost_of("convolution", [[2, 4, big], [6, 4, k], []], convolution([s], [p], [1]))
    assert up is not None
    assert down is not None
    assert up.flop == down.flop
    assert (up.written, down.written) == (2 * 4 * big, 2 * 6 * x)


@pytest.mark.parametrize(("mask", "times"), [("[True, True, False]", 2), ("[False, True, True]", 1)])
def test_a_convolutions_backward_costs_the_forward_once_for_each_gradient(mask: str, times: int) -> None:
    forward = cost_of("convolution", [[2, 6, 9, 9], [8, 6, 3, 3], []], convolution([1, 1], [0, 0], [1, 1]))
    values = ["", "", "", "[8]", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "1", mask]
    back = cost_of("convolution_backward", [[2, 8, 7, 7], [2, 6, 9, 9], [8, 6, 3, 3]], values)
    assert forward is not None
    assert back is not None
    assert back.flop == times * forward.flop
    assert back.written == 8 * 6 * 9 + (times - 1) * 2 * 6 * 81


@given(_sizes, _sizes, _sizes, _sizes, _sizes, _sizes)
def test_attention_is_two_products_and_five_backward(b: int, h: int, q: int, k: int, d: int, v: int) -> None:
    shapes = [[b, h, q, d], [b, h, k, d], [b, h, k, v]]
    scores, values = 2 * b * h * q * d * k, 2 * b * h * q * k * v
    unmasked = ["", "", "", "", "0.", "False"]
    assert cost_of("attention", shapes, unmasked) == Cost(scores + values, (0, 1, 2), b * h * q * v)
    back = Cost(3 * scores + 2 * values, (0, 1, 2, 3, 4), sum(map(prod, shapes)))
    assert cost_of("attention_backward", [[b, h, q, v], *shapes, [b, h, q, v]], unmasked) == back


def seen(queries: int, keys: int, mask: Callable[[int, int], bool]) -> int:
    """Count the pairs of a query and a key that a mask leaves, one by one."""
    return sum(mask(query, key) for query in range(queries) for key in range(keys))


_ARGUMENTS = {  # is_causal in the signatures of PyTorch 2.0 to 2.13, and of flash-attn 2.7
    "scaled_dot_product_attention": ["", "", "", "", "0.10000000000000001", "True", "", "False"],
    "flash": ["", "", "", "0.", "True", "False", "0.125"],
    "efficient": ["", "", "", "", "True", "0.", "True", ""],
    "cudnn": ["", "", "", "", "False", "1.0000000000000001e-05", "True", "False", ""],
    "flash backward": [*[""] * 8, "512", "512", "0.", "True", "", "", "0.125"],
    "efficient backward": [*[""] * 9, "0.", "[True, True, True, False]", "True", ""],
    "cudnn backward": [*[""] * 11, "512", "512", "0.", "True", ""],
    "flash-attn": ["", "", "", "0.", "0.125", "True", "-1", "-1", "0.", "", "False"],
}


@pytest.mark.parametrize("values", _ARGUMENTS.values(), ids=_ARGUMENTS)
@pytest.mark.parametrize(("queries", "keys"), [(5, 5), (2, 5), (5, 2), (1, 4), (4, 1)])
def test_a_causal_mask_leaves_the_pairs_of_its_triangle(values: list[str], queries: int, keys: int) -> None:
    shapes = [[2, 6, queries, 4], [2, 3, keys, 4], [2, 3, keys, 8]]  # two heads of queries share one of keys
    starts, ends = (
        2 * 6 * seen(queries, keys, lambda query, key: key <= query),
        2 * 6 * seen(queries, keys, lambda query, key: key <= query + keys - queries),
    )
    gradient = [2, 6, queries, 8]
    for formula, pairs in (
        ("attention", starts),
        ("attention_to_end", ends),
        ("attention_in_full", 12 * queries * keys),
    ):
        assert flop(formula, shapes, values) == (2 * pairs * 12, False)
    for formula, pairs in (("attention_backward", starts), ("attention_to_end_backward", ends)):
        assert flop(formula, [gradient, *shapes, gradient], values) == (2 * pairs * 28, False)
    turned = [[shape[0], shape[2], shape[1], shape[3]] for shape in (gradient, *shapes)]
    assert flop("flash_attn", turned[1:], values) == (2 * ends * 12, False)
    assert flop("flash_attn_backward", turned, values) == (2 * ends * 28, False)


def flop(formula: str, shapes: list[list[int]], values: Any) -> tuple[int, bool]:
    cost = cost_of(formula, shapes, values)
    assert cost is not None
    return cost.flop, cost.at_most


@given(*[st.integers(0, 6)] * 2, *[st.integers(-1, 7)] * 2, st.sampled_from(["True", "False"]))
def test_a_window_leaves_the_keys_near_a_query(queries: int, keys: int, left: int, right: int, causal: str) -> None:
    def near(query: int, key: int) -> bool:
        distance = key - (query + keys - queries)
        to_right = 0 if causal == "True" else right
        return (left < 0 or distance >= -left) and (to_right < 0 or distance <= to_right)

    values = ["", "", "", "0.", "0.125", causal, str(left), str(right), "0.", "", "False"]
    shapes = [[1, queries, 1, 4], [1, keys, 1, 4], [1, keys, 1, 4]]
    assert flop("flash_attn", shapes, values) == (2 * seen(queries, keys, near) * 8, False)


@pytest.mark.parametrize("values", [None, [], [""] * 8, ["", "", "", "True", "True", "0.125"], ["", "", "", "0.", ""]])
def test_attention_whose_mask_was_not_recorded_has_the_operations_of_all_pairs_at_most(values: Any) -> None:
    shapes = [[2, 3, 5, 4]] * 3
    assert flop("attention", shapes, values) == (2 * 2 * 3 * 25 * 8, True)
    assert flop("attention_backward", [*shapes, shapes[0]], values) == (2 * 2 * 3 * 25 * 20, True)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), _sizes, _sizes)
def test_a_grouped_product_takes_what_its_groups_take(sizes: list[int], k: int, n: int) -> None:
    groups, rows = len(sizes), sum(sizes)
    assert flop("grouped_mm", [[rows, k], [groups, k, n], [groups]], ()) == (sum(2 * m * k * n for m in sizes), True)
    assert flop("grouped_mm", [[groups, k, n], [n, rows], [groups]], ())[0] == 2 * k * n * rows
    assert flop("grouped_mm", [[k, rows], [rows, n], [groups]], ()) == (sum(2 * k * m * n for m in sizes), True)
    assert flop("grouped_mm", [[groups, k, n], [groups, n, 2]], ()) == (2 * groups * k * n * 2, False)


@pytest.mark.parametrize(
    ("formula", "shapes"),
    [("mm", []), ("mm", [[2, 3], [4, 5]]), ("mm", [[], []]), ("linear", [[2, 3], [4]]), ("convolution", [[2, 3], [4]]),
     ("attention", [[2, 3]]), ("attention", [[1, 3, 4, 8], [1, 2, 4, 8], [1, 2, 4, 8]]),
     ("attention", [[1, 2, 4, 8], [1, 2, 4, 8], [1, 2, 5, 8]]), ("grouped_mm", [[2, 3], [4, 5]]),
     ("no such formula", []), ("convolution_backward", [[1], [2], [3]])],
)  # fmt: skip
def test_shapes_that_do_not_fit_have_no_cost(formula: str, shapes: list[list[int]]) -> None:
    assert cost_of(formula, shapes, None) is None


def test_a_list_longer_than_any_shape_is_none_and_takes_no_time() -> None:
    assert cost_of("mm", [[2**62] * 300_000, [2, 3]]) is None


@pytest.mark.parametrize(("queries", "keys"), [*product(range(5), range(5))])
def test_the_pairs_are_those_that_a_walk_over_all_of_them_finds(queries: int, keys: int) -> None:
    for first, last in product([None, *range(-6, 6)], repeat=2):
        if first is not None and last is not None and last < first - 1:
            continue
        found = sum(
            (first is None or key >= query + first) and (last is None or key <= query + last)
            for query, key in product(range(queries), range(keys))
        )
        assert attended_pairs(queries, keys, first=first, last=last) == found


def test_a_long_text_takes_no_longer() -> None:
    assert attended_pairs(10**15, 10**15, last=0) == 10**15 * (10**15 + 1) // 2


@pytest.mark.parametrize(
    ("name", "bandwidth"),
    [("NVIDIA A100-PG509-200", 1555), ("NVIDIA A100-SXM4-80GB", 2039), ("NVIDIA H100 80GB HBM3", 3350),
     ("NVIDIA L40S", 864), ("AMD Instinct MI300X", 5300), ("Tesla V100-SXM2-16GB", 900), ("NVIDIA H100 PCIe", 2000)],
)  # fmt: skip
def test_a_device_is_known_by_words_in_its_name(name: str, bandwidth: float) -> None:
    peak = peak_of(name)
    assert peak is not None
    assert peak.gb_s == bandwidth


def test_other_devices_have_no_known_peak() -> None:
    assert peak_of("") is None
    assert peak_of("NVIDIA Z9000") is None
    assert all(peak.tflop_s(3) == 0 for peak in PEAKS.values())


@pytest.mark.parametrize("name", PEAKS)
def test_smaller_elements_are_never_slower(name: str) -> None:
    peak = PEAKS[name]
    known = [rate for rate in (peak.bits_64, peak.bits_32, peak.tf32, peak.bits_16, peak.bits_8) if rate]
    assert known == sorted(known)
    assert peak.gb_s > 0


def test_throughput_is_chosen_by_the_size_of_an_element() -> None:
    peak = Peak(1000, bits_16=16, bits_32=32, bits_64=64, bits_8=8, tf32=19)
    assert [peak.tflop_s(size) for size in (1, 2, 4, 8, 16)] == [8, 16, 32, 64, 0]
    assert peak.tflop_s(4, tf32=True) == 19


def test_a_word_within_another_word_is_no_device() -> None:
    assert peak_of("NVIDIA XA100") is None
    assert peak_of("NVIDIA A1000") is None


@pytest.mark.parametrize(
    ("name", "formula"),
    [("aten::mm", "mm"), ("aten::matmul", ""), ("aten::_convolution", "convolution"), ("aten::cudnn_convolution", ""),
     ("aten::_scaled_dot_product_flash_attention", "attention_to_end"), ("aten::_flash_attention_forward", ""),
     ("aten::_scaled_dot_product_efficient_attention_backward", "attention_backward"), ("aten::addmm_extra", ""),
     ("aten::_scaled_dot_product_flash_attention_for_cpu", "attention"), ("aten::addmm_", "addmm"),
     ("aten::_scaled_dot_product_flash_attention_for_cpu_backward", "attention_backward"),
     ("aten::_scaled_dot_product_flash_attention_backward", "attention_to_end_backward"),
     ("aten::_scaled_dot_product_attention_math", "attention_in_full"), ("aten::_grouped_mm", "grouped_mm"),
     ("aten::_scaled_grouped_mm_v2", "grouped_mm"), ("flash_attn::_flash_attn_forward", "flash_attn"),
     ("flash_attn::_flash_attn_backward", "flash_attn_backward"), ("flash_attn::_flash_attn_varlen_forward", "")],
)  # fmt: skip
def test_each_operator_has_its_formula(name: str, formula: str) -> None:
    assert flop_formula(name) == formula


def test_types_have_the_size_of_their_elements() -> None:
    assert [element_bytes(name) for name in ("c10::Half", "double", "bool", "Scalar", "")] == [2, 8, 1, 0, 0]


@pytest.mark.parametrize("width", "hfd")
def test_a_multiply_add_counts_as_two_operations(width: str) -> None:
    counter = f"smsp__sass_thread_inst_executed_op_{width}{{}}_pred_on.sum"
    assert [flop_per_count(counter.format(op)) for op in ("fma", "mul", "add", "shift")] == [2, 1, 1, 0]
