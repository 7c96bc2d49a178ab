"""Messages read one by one, against Google's library."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.simulate.next_pftrace import message
from htagraph.trace.pftrace.messages import UnreadableError, argument_of, fields, signed, text_of

_PLAIN = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=8)
_JSON = st.recursive(
    _PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, min_size=1, max_size=3)
)


def filled(annotation: Any, value: object) -> Any:
    """Fill one of Google's messages with a value."""
    if isinstance(value, bool):
        annotation.bool_value = value
    elif isinstance(value, int):
        annotation.int_value = value
    elif isinstance(value, float):
        annotation.double_value = value
    elif isinstance(value, str):
        annotation.string_value = value
    elif isinstance(value, list):
        for item in value:
            filled(annotation.array_values.add(), item)
    elif isinstance(value, dict):
        for key, item in value.items():
            filled(annotation.dict_entries.add(name=key), item)
    return annotation


@given(st.text(max_size=5), _JSON)
def test_arguments_are_those_that_were_written(name: str, value: object) -> None:
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    written = filled(pb.DebugAnnotation(name=name), value).SerializeToString()
    read = argument_of(written, {}, {})
    assert read == (name, value)


def test_interned_names_and_values() -> None:
    assert argument_of(message((1, 3), (17, 4)), {4: "value"}, {3: "name"}) == ("name", "value")


def test_deep_arguments_end_in_a_mark() -> None:
    inner = message((4, 7))
    for _ in range(5000):
        inner = message((12, inner))
    value = argument_of(inner, {}, {})[1]
    depth = 0
    while isinstance(value, list):
        (value,) = value
        depth += 1
    assert (value, depth) == ("…", 61)


@given(st.binary(max_size=30))
def test_any_bytes_are_fields_or_refused(content: bytes) -> None:
    try:
        found = list(fields(content))
    except UnreadableError:
        return
    assert all(0 <= field.value < 2**64 for field in found)


def test_numbers_and_texts() -> None:
    assert [signed(value) for value in (0, 2**63 - 1, 2**63)] == [0, 2**63 - 1, -(2**63)]
    assert text_of(b"a\xff") == "a\ufffd"
