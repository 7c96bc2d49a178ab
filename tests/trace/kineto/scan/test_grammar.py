"""The grammar is that of Python's `json`, but for what JSON does not have; numbers are those of `Decimal`."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from htagraph.trace.kineto.scan.grammar import (
    DECIMAL,
    INTEGER,
    PADDING,
    REFUSED,
    SCIENTIFIC,
    blank,
    byte,
    first_byte,
    float_of,
    key_end,
    number,
    put,
    string_end,
    text_address,
    value_behind,
    with_padding,
    word,
)
from tests.trace.kineto.scan.scanned import is_scanned


class Read(NamedTuple):
    """What was found at a place; ends are numbers of bytes, -1 if refused."""

    blank: int
    string: int
    key: int
    behind: int
    number: int
    negative: bool
    digits: int
    scale: int
    written: int
    certain: bool
    float: float


@numba.njit
def _all(at: int) -> Any:
    stop, negative, digits, scale, written = number(at)
    certain, value = float_of(digits, scale)
    return (blank(at), string_end(at), key_end(at), value_behind(at), stop), (
        negative, digits, scale, written, certain, value,
    )  # fmt: skip


def read(text: str | bytes) -> Read:
    memory = np.frombuffer((text.encode("latin-1") if isinstance(text, str) else text) + PADDING, np.uint8)
    base = memory.ctypes.data
    ends, found = _all(base)
    found_ends: Any = (-1 if end == REFUSED else end - base for end in ends)
    return Read(*found_ends, *found)


def is_skipped(value: str | bytes) -> bool:
    """Return True if a value of a key that nobody reads is accepted by `skip_value`, called by the scan."""
    data = value.encode() if isinstance(value, str) else value
    return is_scanned(b'{"x":' + data + b"}")


def is_json(value: str) -> bool:
    try:
        json.loads(f'[{{"x":{value}}}]')
    except ValueError:
        return False
    return True


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
layouts = st.sampled_from([None, 0, 3, "\t", " \r\n" + 9 * " "])


@given(value=values, indent=layouts)
@example(value="\U0001f600 \u00e9 \x7f", indent=None)
def test_any_value_is_skipped(value: Any, indent: Any) -> None:
    assert is_skipped(json.dumps(value, indent=indent))
    assert is_skipped(json.dumps(value, indent=indent, ensure_ascii=False).encode())


_changes = st.sampled_from([*'"\\{}[]:,0-+.eE \x00\x1f\x7fnutx', "\\u00e9", "\\ud800", "\\u00g0", "null", "", "1e5"])


@given(value=values, indent=layouts, data=st.data())
def test_what_is_skipped_is_json_and_json_is_skipped(value: Any, indent: Any, data: st.DataObject) -> None:
    text = json.dumps(value, indent=indent)
    for _ in range(data.draw(st.integers(1, 2))):
        at, gone = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 2))
        text = text[:at] + data.draw(_changes) + text[at + gone :]
    if is_skipped(text):
        assert is_json(text)
    elif not {"\\", "N", "I"} & set(text):  # half a surrogate pair is refused, and NaN and Infinity
        assert not is_json(text)


@pytest.mark.parametrize("depth", [1, 30, 60, 61, 64, 5000])
@pytest.mark.parametrize("brackets", [("[", "]"), ('{"a":', "}"), ('[{"a" : ', "}]")])
def test_brackets_are_followed_to_a_depth(depth: int, brackets: tuple[str, str]) -> None:
    opened, closed = brackets
    text = opened * depth + "1" + closed * depth
    assert is_skipped(text) == (depth * len(closed) <= 60)
    assert not is_skipped(text[:-1])
    assert not is_skipped(text[:-1] + ("]" if closed[-1] == "}" else "}"))


def decimal_texts() -> st.SearchStrategy[str]:
    digits = st.text("0123456789", min_size=1, max_size=12) | st.text("0123456789", min_size=15, max_size=22)
    exponent = st.integers(-30, 30).map(lambda power: f"e{power}") | st.sampled_from(["E+5", "e05", "E-0", "e99999999"])
    return st.builds(
        "{}{}{}{}".format,
        st.sampled_from(["", "-"]),
        digits.map(lambda text: text.lstrip("0") or "0"),
        st.just("") | digits.map(lambda text: f".{text}"),
        st.just("") | exponent,
    )


@given(decimal_texts())
@example("1.8446744073709551621e19")
@example("0.18446744073709551621e20")
@example("9999999999999999999")
@example("9007199254740993")
@example("-0.0")
def test_numbers_are_those_of_decimal_and_float(text: str) -> None:
    found = read(text + ",")
    assert is_skipped(text)
    digits = sum(map(str.isdigit, text.lower().partition("e")[0]))
    assert (found.number != -1) == (digits <= 19)
    if found.number == -1:
        return
    assert (found.number, found.negative) == (len(text), text.startswith("-"))
    assert found.written == (SCIENTIFIC if "e" in text.lower() else DECIMAL if "." in text else INTEGER)
    if "99999999" not in text or found.written != SCIENTIFIC:
        assert Decimal(found.digits).scaleb(found.scale) == abs(Decimal(text))
    if found.certain:
        assert found.float == abs(float(text))
    assert found.certain == (found.digits <= 2**53 and abs(found.scale) <= 22)


@pytest.mark.parametrize(
    "text", ["", "-", "01", "-01", "1.", "1.e5", ".5", "+1", "1e", "1e+", "--1", "e5", "x", "\0", '"1"']
)
def test_what_is_no_number_is_refused(text: str) -> None:
    assert read(text).number == -1
    assert is_skipped(text) == (text == '"1"')


strings = st.text(max_size=20) | st.text('a"\\\x1f\x7f\u00e9 ', max_size=20)


@given(text=strings, behind=st.sampled_from(["", '"', ' : "x"', "\\"]))
def test_a_string_ends_at_its_quote_and_a_key_has_no_escapes(text: str, behind: str) -> None:
    written = json.dumps(text)
    assert read(written + behind).string == len(written)
    assert read(written + behind).key == (-1 if "\\" in written else len(written))
    assert read(written[:-1]).string == -1


@given(text=st.text(" \n\r\t", max_size=30), behind=st.sampled_from(["", "x", "\x0b", "\x00", "\x1f", "\x85", "\xa0"]))
def test_white_space_is_that_of_json(text: str, behind: str) -> None:
    assert read(text + behind).blank == len(text)
    assume(behind != "")
    assert read(f"{text}:{text}{behind}").behind == 2 * len(text) + 1
    assert read(f"{text}{behind}:").behind == -1


@pytest.mark.parametrize(
    ("escape", "good"),
    [
        ("\\ud83d\\ude00", True), ("\\uD83D\\uDE00", True), ("\\ud7ff", True), ("\\ue000", True), ("\\ud83d", False),
        ("\\ude00", False), ("\\ude00\\ud83d", False), ("\\ud83dx", False), ("\\ud83d\\u0041", False),
        ("\\ud83d\\n", False), ("\\u00e", False), ("\\x", False), ("\\u00\x109", False),
    ],
)  # fmt: skip
def test_an_escape_stands_for_a_character(escape: str, good: bool) -> None:  # noqa: FBT001
    text = f'"{escape}"'
    assert read(text).string == (len(text) if good else -1)


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


@pytest.mark.parametrize("content", [b"", b"abc", np.arange(3), bytes(16)])
def test_a_text_has_padding_behind_it_and_no_other_has_an_address(content: Any) -> None:
    text = with_padding(content)
    assert text.tobytes() == (content if isinstance(content, bytes) else content.tobytes()) + PADDING
    assert text_address(text) == text.ctypes.data
    memory = np.full(len(text), 7, np.uint8)
    assert with_padding(content, memory) is memory
    assert memory.tobytes() == text.tobytes()
    memory[-1] = 1
    with pytest.raises(ValueError, match="needs PADDING"):
        text_address(memory)
