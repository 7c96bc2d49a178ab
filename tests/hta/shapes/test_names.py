"""HTA's name lists."""

from __future__ import annotations

import pytest

from htagraph.hta.shapes.names import is_step, memory_type, shorten, step_of


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::fill<float>(float*, int)", "at::native::fill"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD (Pinned -> Device)"),
        ("aten::add", "aten::add"),
        ("f<a<b>, c>(int)", "f"),
        ("operator-> x(y)", "x"),
        ("a) b", "a) b"),
        ("(a) b", "b"),
    ],
)
def test_short_names(name: str, short: str) -> None:
    assert shorten(name) == short


def test_kinds_of_copies() -> None:
    names = ("Memset (Device)", "Memcpy DtoH (x)", "fill")
    assert [memory_type(name) for name in names] == ["Memset", "Memcpy DtoH", "Memcpy Unknown"]


def test_steps_have_numbers() -> None:
    assert (step_of("ProfilerStep#12"), step_of("ProfilerStep # 3"), step_of("other")) == (12, 3, -1)
    assert [is_step(name) for name in ("ProfilerStep#1", "a ProfilerStep#1")] == [True, False]
