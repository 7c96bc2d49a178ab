from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.naming.display import short_name, stable_name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::vectorized_elementwise_kernel<4, at::A<int>>(int, at::A<int>)",
         "at::native::vectorized_elementwise_kernel"),
        ("void (anonymous namespace)::softmax<float>(float*)", "softmax"),
        ("ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn"),
        ("Memcpy DtoH (Device -> Pinned)", "Memcpy DtoH (Device -> Pinned)"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "ncclKernel_AllReduce_RING_LL_Sum_float"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("<unknown>", "<unknown>"),
        ("## forward ##", "## forward ##"),
        ("Torch-Compiled Region: 0/1", "Torch-Compiled Region: 0/1"),
        ("void plain", "plain"),
        ("operator()(int) const", "operator()"),
        ("void at::(anonymous namespace)::Add::operator()<float>(float*) const", "at::Add::operator()"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_short_name_has_no_arguments_and_no_return_type(name: str, short: str) -> None:
    assert short_name(name) == short


@given(st.text(alphabet="ab:<>(), *"))
def test_a_short_name_is_made_of_letters_of_the_name_and_stays_short(name: str) -> None:
    short = short_name(name)
    assert set(short) <= set(name)
    assert len(short) <= len(name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ProfilerStep#1", "ProfilerStep#2"),
        ("model.py(37): forward", "model.py(41): forward"),
        ("<built-in method mm of Tensor object at 0x7f2a>", "<built-in method mm of Tensor object at 0xbe00>"),
    ],
)
def test_a_stable_name_is_that_of_the_same_thing_in_another_run(one: str, other: str) -> None:
    assert stable_name(one) == stable_name(other)
    assert stable_name(stable_name(one)) == stable_name(one)


@pytest.mark.parametrize("name", ["aten::mm", "model(37)", "void f<4>(int)", "ProfilerStep"])
def test_names_without_numbers_of_a_run_are_stable_already(name: str) -> None:
    assert stable_name(name) == name
