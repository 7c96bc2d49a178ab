"""Bytes and words at addresses are those that numpy and Python see there."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.trace.reading.scan.memory import byte, first_byte, put, word


@numba.njit
def at(address: int, value: int) -> Any:
    """Return the byte and the word at an address, and the first byte of a value with a bit; put the value behind."""
    put(address + 8, value)
    return byte(address), word(address), first_byte(np.uint64(value))


texts = st.binary(min_size=24, max_size=24)


@given(text=texts, start=st.integers(0, 8))
def test_a_byte_is_unsigned_and_a_word_has_its_first_byte_lowest(text: bytes, start: int) -> None:
    memory = np.frombuffer(text, np.uint8).copy()
    found = at(memory.ctypes.data + start, 1)
    assert found[0] == text[start]
    assert found[1] == int.from_bytes(text[start : start + 8], "little")


@given(text=texts, start=st.integers(0, 8), value=st.integers(-(2**63), 2**63 - 1))
def test_eight_bytes_are_written_and_no_others(text: bytes, start: int, value: int) -> None:
    memory = np.frombuffer(text, np.uint8).copy()
    at(memory.ctypes.data + start, value)
    assert memory.tobytes() == text[: start + 8] + value.to_bytes(8, "little", signed=True) + text[start + 16 :]


@given(st.integers(1, 2**63 - 1))
def test_the_first_byte_is_that_of_the_lowest_bit(value: int) -> None:
    memory = np.zeros(16, np.uint8)
    low_first = value.to_bytes(8, "little")
    assert at(memory.ctypes.data, value)[2] == next(i for i, each in enumerate(low_first) if each)
