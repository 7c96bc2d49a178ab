from __future__ import annotations

import string
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core import names as forms
from htagraph.core.names import (
    LONGEST_READ,
    is_mangled,
    readable_name,
    selecting_name,
    short_name,
    sibling_names,
    stable_name,
    step_number,
    template_arguments,
)
from htagraph.core.naming import exact_glob
from htagraph.graph.selection import named

needs_library = pytest.mark.skipif(sys.version_info < (3, 11), reason="the library needs Python 3.11")

ANSWERS: dict[Callable[[str], Any], dict[str, Any]] = {
    step_number: {
        "ProfilerStep#0": 0, "ProfilerStep#551": 551, "ProfilerStep#7 (train)": 7, "ProfilerStep": None,
        "ProfilerStep#": None, "my ProfilerStep#3": None, "ProfilerStep#12345678901234567890": None,
    },
    short_name: {
        "void at::native::vectorized_elementwise_kernel<4, at::A<int>>(int, at::A<int>)":
            "at::native::vectorized_elementwise_kernel",
        "void (anonymous namespace)::softmax<float>(float*)": "softmax",
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)": "ncclKernel_AllReduce_RING_LL_Sum_float",
        "void plain": "plain",
        "operator()(int) const": "operator()",
        "void at::(anonymous namespace)::Add::operator()<float>(float*) const": "at::Add::operator()",
    } | {name: name for name in (
        "ampere_sgemm_128x64_nn", "Memcpy DtoH (Device -> Pinned)", "triton_poi_fused_add_0", "<unknown>",
        "## forward ##", "Torch-Compiled Region: 0/1", "",
    )},
    is_mangled: {"_Z4gemmPf": True, "gemm": False, "": False},
    template_arguments: {
        "void f<4, A<int, B>>(int, C<D>)": ["4", "A<int, B>", "int", "C<D>"],
        "f": [],
        "operator()(int)": ["int"],
        "void f<g()::{lambda(int)#1}>()": ["g()::{lambda(int)#1}"],
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("read", "name", "answer"), [(read, *each) for read, answers in ANSWERS.items() for each in answers.items()]
)
def test_what_a_name_says(read: Callable[[str], Any], name: str, answer: object) -> None:
    assert read(name) == answer


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


# names that the linker mangled

MANGLED = {
    "_ZN5cudnn25bn_fw_tr_1C11_kernel_NCHWIffLi128ELb1ELi1ELb1EEEv17cudnnTensorStructPKT_":
        "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 128, true, 1, true>(cudnnTensorStruct, float const*)",
    "_ZN2at6native40_GLOBAL__N__0b46c3ea_8_Shape_cu_85d9f36c3catIfEEvPT_":
        "void at::native::(anonymous namespace)::cat<float>(float*)",
    "_Z4gemmI13__nv_bfloat16EvPT_": "void gemm<__nv_bfloat16>(__nv_bfloat16*)",
}  # fmt: skip


@needs_library
@pytest.mark.parametrize("name", MANGLED)
def test_a_mangled_name_is_readable(name: str) -> None:
    assert readable_name(name) == MANGLED[name]
    assert stable_name(name) == MANGLED[name]


@pytest.mark.parametrize("name", MANGLED)
def test_the_short_form_of_a_mangled_name_needs_no_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_library = short_name(name)
    short_name.cache_clear()
    monkeypatch.setattr(forms, "_demangled", lambda _: "")
    without = short_name(name)
    short_name.cache_clear()
    assert without == with_library == short_name(MANGLED[name])


@pytest.mark.parametrize("name", [*MANGLED, "_Z!damaged", "a*[2]", "_Z" + "P" * LONGEST_READ, "_ZN1aIiE1fEv"])
def test_what_a_what_if_is_given_selects_the_name_and_no_other(name: str) -> None:
    others = [name, name + "x", "gemm", *MANGLED.values()]
    chosen = [other for other, fits in zip(others, named(others, exact_glob(name)), strict=True) if fits]
    assert {selecting_name(other) for other in chosen} == {selecting_name(name)}


def _substitution(number: int) -> str:
    digits = string.digits + string.ascii_uppercase
    text = ""
    while number > 1 or (number and not text):
        number -= not text
        text = digits[number % 36] + text
        number //= 36
    return f"S{text}_"


BOMB = "_Z1f1AIiiE" + "".join(f"S_I{2 * _substitution(number)}E" for number in range(1, 34))
"""A name of 350 letters of a function whose last parameter has 2**34 types."""


@pytest.mark.parametrize("name", [BOMB, "_Z1f" + "P" * 2000 + "i", "_Z1f" + "1AI" * 500 + "i" + "E" * 500])
def test_a_hostile_name_takes_neither_time_nor_memory(name: str) -> None:
    start = time.process_time()
    assert len(readable_name(name)) <= max(2**17, len(name))
    assert short_name(name) == "f"
    assert time.process_time() - start < 1


# names that would look alike

PARTS = st.sampled_from(
    ["int", "float", "at::Add<float>", "at::Add<half>", "g()::{lambda(int)#1}", "g()::{lambda(int)#2}", "4"]
)
SIGNATURES = st.builds(
    lambda base, parts: f"void {base}<{', '.join(parts)}>(int)", st.sampled_from("fg"), st.lists(PARTS)
)


@given(st.lists(SIGNATURES, unique=True))
def test_different_names_look_different_and_equal_names_alike(names: list[str]) -> None:
    shown = sibling_names([*names, *names])
    assert len(set(shown)) == len(names)
    assert shown[: len(names)] == shown[len(names) :]
    assert all(text.startswith(short_name(name)) for text, name in zip(shown, names, strict=False))


def test_siblings_are_told_apart_by_their_functors() -> None:
    kernel = (
        "void at::native::vectorized_elementwise_kernel<4, {0}, std::array<char*, 2>>(int, {0}, std::array<char*, 2>)"
    )
    functors = [
        "at::native::CUDAFunctor_add<float>",
        "at::native::FillFunctor<float>",
        "at::native::gelu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda(float)#1}",
        "void at::native::gpu_kernel_impl<at::native::copy_kernel(int)::{lambda(half)#1}>(int)::{lambda(int)#1}",
        "at::native::BinaryFunctor<float, float, float, at::native::MulFunctor<float>>",
        "at::native::BinaryFunctor<float, float, float, at::native::DivFunctor<float>>",
    ]
    shown = sibling_names([kernel.format(functor) for functor in functors])
    assert [text.removeprefix("at::native::vectorized_elementwise_kernel") for text in shown] == [
        "<CUDAFunctor_add>", "<FillFunctor>", "<gelu_kernel(float)>", "<copy_kernel(half)>",
        "<BinaryFunctor, MulFunctor>", "<BinaryFunctor, DivFunctor>",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("kernel_Gemm_object_at_0x7f2a14c0__tile", "kernel_Gemm_object_at_0x7f990000__tile"),
        ("f<_INTERNAL_0b46c3ea_8_a_cu_85d9f36c_12::g>", "f<_INTERNAL_1c46c3ea_8_a_cu_95d9f36c_12::g>"),
        ("_Z4gemmPf", "gemm(float*)"),
    ],
)
@needs_library
def test_the_stable_name_of_a_kernel_is_that_of_another_run(one: str, other: str) -> None:
    assert stable_name(one) == stable_name(other)
