"""Names of copies and memsets from arguments and names."""

from __future__ import annotations

import pytest

from htagraph.core.transfers import copy_name, fill_name


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("Memcpy", ("DtoH", "device", "pageable"), "Memcpy DtoH (Device -> Pageable)"),
        ("Memcpy", ("2", "3", "1"), "Memcpy DtoH (Device -> Pageable)"),  # CUPTI's numbers
        ("Memcpy", ("", "device", "pinned"), "Memcpy DtoH (Device -> Pinned)"),  # the kinds of memory say it
        ("Memcpy", ("0", "pinned", "pinned"), "Memcpy HtoH (Pinned -> Pinned)"),
        ("Memcpy", ("HtoD", "managed", "unknown"), "Memcpy HtoD (Managed -> Unknown)"),
        ("Memcpy", ("DtoD", "device", "device_static"), "Memcpy DtoD (Device -> Device Static)"),
        ("Memcpy HtoD (Pageable -> Device)", ("DtoH", "device", "pageable"), "Memcpy DtoH (Device -> Pageable)"),
        ("Memcpy HtoD (Pageable -> Device)", ("", "", ""), "Memcpy HtoD (Pageable -> Device)"),
        ("Memcpy", ("unknown", "unknown", "0"), "Memcpy"),
        ("Memcpy", ("99", "99", "99"), "Memcpy"),
    ],
)
def test_arguments_come_before_the_name(name: str, arguments: tuple[str, str, str], expected: str) -> None:
    assert copy_name(name, *arguments) == expected


@pytest.mark.parametrize(
    ("name", "memory", "expected"),
    [
        ("Memset", "3", "Memset (Device)"),
        ("Memset", "managed", "Memset (Managed)"),
        ("Memset (Array)", "", "Memset (Array)"),
    ],
)
def test_a_memset_has_its_kind_of_memory(name: str, memory: str, expected: str) -> None:
    assert fill_name(name, memory) == expected
