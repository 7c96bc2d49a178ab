"""Pickles that would take far more than their size suggests are refused before they are loaded; others are not."""

from __future__ import annotations

import pickle
import struct
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.errors import NotATraceError
from htagraph.trace.profiler_files import pickle_limits
from htagraph.trace.profiler_files.pickle_limits import refuse_excessive

PROTOCOL = b"\x80\x04"
scalars = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text() | st.binary()
)
plain = st.recursive(
    scalars,
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(st.integers(), st.integers()),
)


@given(plain, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_what_python_writes_is_not_refused(value: Any, protocol: int) -> None:
    refuse_excessive(pickle.dumps([value, value, {"a": value}], protocol), "a.pickle")


def test_flat_tuples_may_be_repeated_and_be_keys() -> None:
    pair = (0, 1)
    refuse_excessive(pickle.dumps([pair, pair, {pair: [pair]}]), "a.pickle")


@pytest.mark.parametrize(
    "data",
    [
        PROTOCOL + b"]r" + struct.pack("<I", 2**28 - 1) + b".",
        b"(lp99999999999\n.",
        b"]p-1\n.",
        PROTOCOL + b"]q\xff.",
    ],
)
def test_a_memo_index_beyond_the_values_is_refused(data: bytes) -> None:
    with pytest.raises(NotATraceError, match=r"a\.pickle: .*numbers value"):
        refuse_excessive(data, "a.pickle")


def nested(levels: int, *, memoized: bytes, last: bytes = b"") -> bytes:
    """Return a pickle of a dict whose key is tuples in tuples, each there twice."""
    data = PROTOCOL + b"}K\x01\x85\x94"
    for level in range(levels):
        data += b"(" + memoized + bytes([level]) + memoized + bytes([level]) + last + b"t\x94"
    return data + b"K\x01s."


@pytest.mark.parametrize("last", [b"", b"K\x01"])
def test_tuples_in_tuples_are_not_repeated(last: bytes) -> None:
    assert pickle.loads(nested(10, memoized=b"h", last=last).replace(b"K\x01s.", b"."))
    with pytest.raises(NotATraceError, match="repeats tuples in tuples"):
        refuse_excessive(nested(60, memoized=b"h", last=last), "a.pickle")


def test_no_value_is_doubled() -> None:
    with pytest.raises(NotATraceError, match="repeats values"):
        refuse_excessive(PROTOCOL + b"K\x01\x85" + b"2\x86" * 60 + b".", "a.pickle")


@pytest.mark.parametrize("data", [PROTOCOL + b"\x8f" * 3000, PROTOCOL + b"]" * 9000, pickle.dumps("x" * 100_000)])
def test_memory_has_a_limit_that_the_error_names(data: bytes) -> None:
    refuse_excessive(data, "a.pickle")
    with patch.object(pickle_limits, "MAX_BYTES", 200_000), pytest.raises(NotATraceError, match="MiB of memory"):
        refuse_excessive(data, "a.pickle")


@given(st.binary(max_size=40))
def test_any_bytes_are_scanned_or_refused(data: bytes) -> None:
    try:
        refuse_excessive(PROTOCOL + data, "a.pickle")
    except NotATraceError as error:
        assert "a.pickle" in str(error)
