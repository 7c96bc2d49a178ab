"""Pickles that would take far more than their size suggests are refused before they are loaded; others are not."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import struct
from collections import OrderedDict
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from htagraph.core.errors import DamagedTraceError, NotATraceError
from htagraph.trace.profiler_files import pickles
from htagraph.trace.profiler_files.pickles import MAX_DEPTH, read_plain_pickle, refuse_excessive

plain: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


class Harmful:
    """Its unpickling makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


class Persistent(pickle.Pickler):
    def persistent_id(self, obj: object) -> str | None:
        return "elsewhere" if isinstance(obj, str) else None


@given(value=plain, protocol=st.integers(0, pickle.HIGHEST_PROTOCOL), gzipped=st.booleans())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_plain_values_are_read_as_they_were_written(
    value: Any, protocol: int, tmp_path: Path, *, gzipped: bool
) -> None:
    path = tmp_path / "a.pickle"
    data = pickle.dumps([value], protocol)
    path.write_bytes(gzip.compress(data) if gzipped else data)
    assert read_plain_pickle(path) == [value]


@pytest.mark.parametrize("value", [OrderedDict(a=1), Decimal(1), print, Path], ids=repr)
def test_classes_and_functions_are_refused_by_name(value: object, tmp_path: Path) -> None:
    path = tmp_path / "a.pickle"
    path.write_bytes(pickle.dumps({"segments": [value]}))
    with pytest.raises(NotATraceError, match=r"a\.pickle: the pickle names .*plain values only, so it was not loaded"):
        read_plain_pickle(path)


def test_a_harmful_pickle_runs_nothing(tmp_path: Path) -> None:
    path, made = tmp_path / "a.pickle", tmp_path / "made"
    path.write_bytes(pickle.dumps(Harmful(made)))
    with pytest.raises(NotATraceError, match="mkdir"):
        read_plain_pickle(path)
    assert not made.exists()


def test_objects_kept_elsewhere_are_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Persistent(buffer).dump(["text"])
    path = tmp_path / "a.pickle"
    path.write_bytes(buffer.getvalue())
    with pytest.raises(NotATraceError, match="persistent object 'elsewhere'"):
        read_plain_pickle(path)


@pytest.mark.parametrize("cut", range(0, 30, 5))
def test_a_pickle_that_ends_early_is_refused(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.pickle"
    path.write_bytes(pickle.dumps({"segments": [{"device": 0, "blocks": []}]})[:cut])
    with pytest.raises((DamagedTraceError, NotATraceError), match=r"ends early|not a readable"):
        read_plain_pickle(path)


PROTOCOL = b"\x80\x04"
scalars = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text() | st.binary()
)
repeated = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(st.integers(), st.integers())
)


@given(repeated, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_what_python_writes_is_not_refused(value: Any, protocol: int) -> None:
    data = pickle.dumps([value, value, {"a": value}], protocol)
    refuse_excessive(data, "a.pickle")
    assert pickle.loads(data) == [value, value, {"a": value}]


def test_flat_tuples_may_be_repeated_and_be_keys() -> None:
    pair = (0, 1)
    data = pickle.dumps([pair, pair, {pair: [pair]}])
    refuse_excessive(data, "a.pickle")
    assert pickle.loads(data) == [pair, pair, {pair: [pair]}]


def nested(levels: int, *, memoized: bytes, last: bytes = b"") -> bytes:
    """Return a pickle of a dict whose key is tuples in tuples, each there twice."""
    data = PROTOCOL + b"}K\x01\x85\x94"
    for level in range(levels):
        data += b"(" + memoized + bytes([level]) + memoized + bytes([level]) + last + b"t\x94"
    return data + b"K\x01s."


def hidden(under: bytes) -> bytes:
    """Return nested tuples each of which lies under a value that is dropped."""
    return nested(3, memoized=b"h").replace(b"t\x94", b"t" + under + b"\x94")


NUMBERED_ONCE = PROTOCOL + b"K\x01\x85q\x00q\x00h\x00\x85\x94h\x01."
ODDLY_WRITTEN = b"(K\x01tp0\ng+0\n."
MORE = b"]r\0\0\0\x10."  # what would be refused, too


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (PROTOCOL + b"]r" + struct.pack("<I", 2**28 - 1) + b".", "numbers value"),
        (b"(lp99999999999\n.", "numbers value"),
        (b"]p-1\n.", "numbers value"),
        (PROTOCOL + b"]q\xff.", "numbers value"),
        (ODDLY_WRITTEN, "numbers value"),
        (nested(60, memoized=b"h"), "repeats tuples in tuples"),
        (nested(60, memoized=b"h", last=b"K\x01"), "repeats tuples in tuples"),
        (hidden(b"K\x010"), "repeats tuples in tuples"),
        (hidden(b"(K\x011"), "repeats tuples in tuples"),
        (NUMBERED_ONCE, "repeats tuples in tuples"),
        (PROTOCOL + b"K\x01\x85" + b"2\x86" * 60 + b".", "repeats values"),
        (PROTOCOL + b"}Nb" + MORE, "no writer of snapshots"),
        (PROTOCOL + b"C\x01a\x98" + MORE, "no writer of snapshots"),
        (PROTOCOL + b"(" + b"K\x01" * 20_000 + b"t\x940(" + b"h\x00" * 20_000 + b"t.", "MiB of memory"),
    ],
)
def test_what_takes_more_than_its_size_suggests_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(NotATraceError, match=rf"a\.pickle: .*{why}"):
        refuse_excessive(data, "a.pickle")


def test_what_is_refused_would_be_loaded() -> None:
    for last in (b"", b"K\x01"):
        assert pickle.loads(nested(10, memoized=b"h", last=last).replace(b"K\x01s.", b"."))
    assert pickle.loads(NUMBERED_ONCE) == ((1,),)
    assert pickle.loads(ODDLY_WRITTEN) == (1,)
    assert [pickle.loads(PROTOCOL + data + b".") for data in (b"}Nb", b"C\x01a\x98")] == [{}, b"a"]


def test_what_a_tuple_holds_may_be_shared_if_it_cannot_be_a_key() -> None:
    holder: tuple[list[int], dict[str, int]] = ([], {"a": 1})
    data = pickle.dumps([holder, holder, (1, holder[0])])
    refuse_excessive(data, "a.pickle")
    assert pickle.loads(data) == [holder, holder, (1, holder[0])]


@pytest.mark.parametrize(("tuples", "end"), [(MAX_DEPTH, b"K\x01s."), (MAX_DEPTH - 1, b"\x91.")])
def test_tuples_have_few_levels(tuples: int, end: bytes) -> None:
    refuse_excessive(PROTOCOL + b"}(K\x01" + b"\x85" * tuples + end, "a.pickle")
    with pytest.raises(NotATraceError, match="101 levels deep"):
        refuse_excessive(PROTOCOL + b"}(K\x01" + b"\x85" * (tuples + 1) + end, "a.pickle")


@pytest.mark.parametrize(
    "keys", [[2**61 * (1 + i) for i in range(9)], [(i, i) for i in range(9)], [0.5 * i for i in range(9)]]
)
def test_keys_whose_hashes_can_be_chosen_are_few(keys: list[Any]) -> None:
    texts = [str(key) for key in keys]
    for odd in (dict.fromkeys(keys), set(keys), frozenset(keys), [{key: 1} for key in keys]):
        refuse_excessive(pickle.dumps([odd, texts]), "a.pickle")
        with patch.object(pickles, "MAX_ODD_KEYS", 8), pytest.raises(NotATraceError, match="9 of its keys are"):
            refuse_excessive(pickle.dumps(odd, 4), "a.pickle")
    with patch.object(pickles, "MAX_ODD_KEYS", 0):
        refuse_excessive(
            pickle.dumps([dict.fromkeys(texts, keys), dict.fromkeys(range(300)), set(texts)], 4), "a.pickle"
        )


class Counted(bytes):
    """Bytes that count how often one of them is read."""

    reads = 0

    def __getitem__(self, at: Any) -> Any:
        Counted.reads += 1
        return super().__getitem__(at)


@pytest.mark.parametrize(
    "data",
    [b"(" * 5000, b"(" * 2500 + b"t" * 2500, b"I1" + b"1" * 5000, b"]" * 5000, b"K\x01" * 2500, b"g\n" * 2500,
     b"(" + b"K\x01" * 2400 + b"t" + b"\x85" * 200, b"(" + b"N" * 5000 + b"u" * 50],
)  # fmt: skip
def test_the_scan_reads_each_byte_a_few_times(data: bytes) -> None:
    room = len(data) + 1
    Counted.reads = 0
    stack, memo = CountedList([0] * room), CountedList([0] * room)
    pickles._scan(Counted(data), pickles._TABLE, stack, memo)
    assert Counted.reads + stack.reads + memo.reads <= 8 * room


class CountedList(list[int]):
    """A list that counts how often an item is read."""

    reads = 0

    def __getitem__(self, at: Any) -> Any:
        self.reads += 1
        return super().__getitem__(at)


@given(
    st.one_of(repeated.map(pickle.dumps), st.binary(max_size=60), repeated.map(lambda value: pickle.dumps(value, 0)))
)
def test_compiled_it_finds_the_same(data: bytes) -> None:
    with patch.object(pickles, "_COMPILED_FROM", 0):
        compiled = pickles._scanned(data)
    assert compiled == pickles._scanned(data)


@pytest.mark.parametrize("data", [PROTOCOL + b"\x8f" * 3000, PROTOCOL + b"]" * 9000, pickle.dumps("x" * 100_000)])
def test_memory_has_a_limit_that_the_error_names(data: bytes) -> None:
    refuse_excessive(data, "a.pickle")
    with patch.object(pickles, "MAX_BYTES", 200_000), pytest.raises(NotATraceError, match="MiB of memory"):
        refuse_excessive(data, "a.pickle")


@given(st.binary(max_size=40))
def test_any_bytes_are_scanned_or_refused(data: bytes) -> None:
    try:
        refuse_excessive(PROTOCOL + data, "a.pickle")
    except NotATraceError as error:
        assert "a.pickle" in str(error)
