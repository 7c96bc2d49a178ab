from __future__ import annotations

from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.flops import Cost, cost_of

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
    assert cost_of("attention", shapes) == Cost(scores + values, (0, 1, 2), b * h * q * v)
    back = Cost(3 * scores + 2 * values, (0, 1, 2, 3), sum(map(prod, shapes)))
    assert cost_of("attention_backward", [[b, h, q, v], *shapes]) == back


@pytest.mark.parametrize(
    ("formula", "shapes"),
    [("mm", []), ("mm", [[2, 3], [4, 5]]), ("mm", [[], []]), ("linear", [[2, 3], [4]]), ("convolution", [[2, 3], [4]]),
     ("attention", [[2, 3]]), ("no such formula", []), ("convolution_backward", [[1], [2], [3]])],
)  # fmt: skip
def test_shapes_that_do_not_fit_have_no_cost(formula: str, shapes: list[list[int]]) -> None:
    assert cost_of(formula, shapes, None) is None
