"""Rows of the scan say what the text says; times are rounded as `times` rounds them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from htagraph.trace.kineto.scan.events import (
    CATEGORY,
    DECLINED,
    DURATION,
    DURATION_ABSENT,
    DURATION_SLIP,
    DURATION_STYLE,
    FIELDS,
    FLAGS,
    ID,
    ID_IS_NUMBER,
    ID_IS_SPAN,
    MAX_KEYS,
    NAME,
    NEEDS_EXACT,
    NO_SPAN,
    OFFSET,
    PHASE,
    PROCESS,
    SCANNED,
    SPAN,
    START,
    START_ABSENT,
    START_SLIP,
    START_STYLE,
    STOP,
    STYLE_BITS,
    THREAD,
    UNKNOWN,
    key_kind,
    key_number,
    key_table,
)
from htagraph.trace.kineto.scan.grammar import PADDING
from htagraph.trace.kineto.scan.scanner import argument_keys, span_text
from htagraph.trace.kineto.times import EXACT_FLOAT_US, FractionStyle, numbers_to_ns, text_to_ns
from tests.trace.kineto.scan.scanned import scan

# times


wholes = (
    st.integers(0, 2000) | st.integers(2**43 - 3, 2**43 + 3) | st.integers(2**53 - 3, 2**53 + 3)
    | st.integers(1_711_900_000_000_000, 1_711_900_000_000_999) | st.integers(0, 10**18)
)  # fmt: skip
fractions = (
    st.text("0123456789", max_size=9) | st.text("059", max_size=9)
    | st.builds("{:03}{}".format, st.integers(0, 999), st.sampled_from(["5", "50", "500001", "49"]))
)  # fmt: skip
decimals = st.builds(
    lambda whole, fraction, sign: f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}",
    wholes, fractions, st.sampled_from(["", "-"]),
)  # fmt: skip


def one(text: str, *, exact: bool) -> Any:
    """Return the row of an event with equal start and duration, None if it is not scanned."""
    found = scan(f'{{"ts":{text},"dur":{text}}}', exact=exact)
    return found.rows[0] if found.result == SCANNED else None


@given(decimals)
@example("12.0005")
@example("12.0015")
@example("-12.0025")
@example("1711900000000012.5")
@example("8796093022208.0005")
def test_exact_times_are_those_of_decimal_texts(text: str) -> None:
    row, style = one(text, exact=True), FractionStyle()
    digits = sum(map(str.isdigit, text))
    if row is None:
        assert digits > 19 or abs(Decimal(text)) >= 2**53
        return
    padded, unpadded = text_to_ns([text], style)
    assert row[START] == row[DURATION] == padded[0]
    assert row[START] - row[START_SLIP] == row[DURATION] - row[DURATION_SLIP] == unpadded[0]
    varied = len(text.partition(".")[2]) < 3
    expected = varied + 2 * (style.decimal > 0) + 4 * (style.trailing_zero > 0) if "." in text else 0
    for first in (START_STYLE, DURATION_STYLE):
        assert (row[FLAGS] >> first) & ((1 << STYLE_BITS) - 1) == expected


@given(decimals | st.floats(-(2.0**43), 2.0**43).map(repr) | st.floats(-1e6, 1e6).map(lambda each: f"{each:.12e}"))
@example("12.0005")
@example("0.0005")
@example("8796093022207.9995")
@example("8796093022207.999")
@example("-1e-3")
@example("1.8446744073709551621e19")
def test_times_as_floats_are_those_of_numbers(text: str) -> None:
    row, value = one(text, exact=False), json.loads(text)
    if row is None:
        digits = sum(map(str.isdigit, text.partition("e")[0]))
        assert abs(value) >= EXACT_FLOAT_US or digits > 15 or "e" in text
        return
    assert type(value) is int or abs(value) < EXACT_FLOAT_US
    assert row[START] == row[DURATION] == numbers_to_ns([value])[0]


@given(st.integers(0, (2**43 - 1) * 1000), st.integers(0, 3))
def test_every_time_of_a_profiler_is_scanned(ns: int, places: int) -> None:
    text = f"{Decimal(ns).scaleb(-3):.{places}f}"
    for exact in (False, True):
        assert one(text, exact=exact)[START] == round(Decimal(text) * 1000)


@pytest.mark.parametrize("text", ["8796093022208.5", "-8796093022208.5", "8.7960930222085e12"])
def test_starts_that_a_float_would_round_are_asked_for_as_decimals(text: str) -> None:
    assert scan(f'{{"ts":{text},"dur":1}}').result == NEEDS_EXACT
    assert scan(f'{{"dur":{text},"ts":1.5}}').result == SCANNED
    assert scan(f'{{"ts":{text},"dur":1}}', exact=True).result == (DECLINED if "e" in text else SCANNED)


def test_starts_since_1970_with_nanoseconds_are_asked_for_as_decimals() -> None:
    assert scan('{"ts":1712195495519689.047,"dur":63.813}').result == NEEDS_EXACT  # more digits than a float holds
    assert scan('{"ts":1712195495519689.047,"dur":63.813}', exact=True).result == SCANNED


@pytest.mark.parametrize("exact", [False, True])
def test_the_last_of_equal_keys_counts_and_null_is_absent(exact: bool) -> None:  # noqa: FBT001
    text = '{"ts":1.50,"ts":null,"dur":null,"dur":2.125,"ph":"X","ph":"i","name":"a","name":"b","cat":"c","cat":null}'
    (row,) = scan(text, exact=exact).rows
    assert (row[START], row[START_SLIP], row[DURATION], row[PHASE]) == (0, 0, 2125, ord("i"))
    assert (row[FLAGS], row[CATEGORY]) == (START_ABSENT, NO_SPAN)
    assert span_text(np.frombuffer(text.encode(), np.uint8), row[NAME]) == b'"b"'


def test_what_an_event_lacks_is_absent() -> None:
    (row,) = scan("{}").rows
    assert row[FLAGS] == START_ABSENT | DURATION_ABSENT
    assert np.flatnonzero(row).tolist() == [STOP, FLAGS]


# other fields


_labels = st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False) | st.none()
_events = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from("XiIsfMBE"), "name": st.text(max_size=9), "cat": st.text(max_size=9), "pid": _labels,
        "tid": _labels, "id": _labels | st.lists(st.integers(), max_size=2), "x": _labels, "bp": st.just("e"),
    },
)  # fmt: skip


@given(made=st.lists(_events, max_size=4), indent=st.sampled_from([None, 0, 2, "\t"]))
def test_spans_are_the_values_as_written(made: list[dict[str, Any]], indent: Any) -> None:
    text = json.dumps(made, indent=indent)[1:-1]
    found, memory = scan(text), np.frombuffer(text.encode() + bytes(1), np.uint8)
    assert (found.result, len(found.rows)) == (SCANNED, len(made))
    for row, event in zip(found.rows, made, strict=True):
        assert json.loads(text[row[OFFSET] : row[STOP]]) == event
        assert chr(row[PHASE]) == event.get("ph", "\0")
        for column, key in ((NAME, "name"), (CATEGORY, "cat"), (PROCESS, "pid"), (THREAD, "tid")):
            written = span_text(memory, row[column])
            assert written == (json.dumps(event[key]).encode() if key in event else b"")
        kind, identity = row[FLAGS] & (ID_IS_NUMBER | ID_IS_SPAN), event.get("id")
        if type(identity) is int and 0 <= identity < 2**63:
            assert (kind, row[ID]) == (ID_IS_NUMBER, identity)
        elif identity is None:
            assert kind == 0
        else:
            assert kind == ID_IS_SPAN
            assert json.loads(span_text(memory, row[ID])) == identity


# arguments

KEYS = [key.name for key in argument_keys(calls=True)]
_values = (
    st.integers(-(2**64), 2**65) | st.integers(-9, 9) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4) | st.none() | st.lists(st.integers(), max_size=2)
)  # fmt: skip
_STORED = {"int64": np.int64, "uint64": np.uint64, "float64": np.float64}
_SEVERAL = st.lists(st.tuples(st.sampled_from([*KEYS, *FIELDS, "x"]), _values), max_size=6)


@given(st.lists(_SEVERAL, max_size=3))
def test_arguments_are_values_of_their_type_or_spans(made: list[list[tuple[str, Any]]]) -> None:
    texts = [", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in args) for args in made]
    text = ", ".join(f'{{"args": {{{args}}}}}' for args in texts)
    found, memory = scan(text), np.frombuffer(text.encode() + bytes(1), np.uint8)
    assert found.result == SCANNED
    left = {(number, key): value for number, args in enumerate(made) for key, value in args if key in KEYS}
    for event, key, bits in found.args.tolist():
        name, field = KEYS[key & (SPAN - 1)], argument_keys(calls=True)[key & (SPAN - 1)].field
        value, kind = left.pop((event, name)), _STORED.get(field.column.dtype)
        if key & SPAN or kind is None:
            assert json.loads(span_text(memory, bits)) == value
        else:
            assert np.array([bits]).view(kind)[0] == value
        fits = kind is not None and type(value) is int and (0 if kind is np.uint64 else -(2**53)) <= value <= 2**53
        assert not (fits and key & SPAN)
    assert not left


def test_more_events_or_arguments_than_there_is_room_for_are_declined() -> None:
    text = ",".join(['{"ph":"X"}'] * 5)
    assert [scan(text, room=room).result for room in (5, 4)] == [SCANNED, DECLINED]
    text = ",".join(['{"args":{"stream":1}}'] * 5)
    assert [scan(text, room=room).result for room in (5, 4)] == [SCANNED, DECLINED]


REAL = {
    "events": [(name, 0) for name in FIELDS],
    **{f"calls={calls}": [(key.name, key.kind) for key in argument_keys(calls=calls)] for calls in (False, True)},
}
TABLES = {name: key_table(keys) for name, keys in REAL.items()}


@numba.njit
def asked(start: int, stop: int, table: int) -> Any:
    key = key_number(start, stop, table)
    return key, key_kind(key, table) if key >= 0 else -1


def number_and_kind(table: Any, key: str, behind: bytes = b'": 1') -> tuple[int, int]:
    """Return the number and the kind of a key that stands in a text before and behind others."""
    written = key.encode()
    text = np.frombuffer(b'"Device Id": 1, "' + written + behind + PADDING, np.uint8)
    start = text.ctypes.data + 17
    number, kind = asked(start, start + len(written), table.ctypes.data)
    return int(number), int(kind)


def near(key: str) -> set[str]:
    """Return keys that resemble one: shorter, longer, and with another letter at each place."""
    other = {key[:at] + ("x" if key[at] != "x" else "y") + key[at + 1 :] for at in range(len(key))}
    parts = {key[:at] for at in range(len(key))} | {key[at:] for at in range(1, len(key))}
    longer = {key + more for more in (" ", "s", "x" * 8, key)}
    return other | parts | longer | {key.upper(), key.lower(), key[:8] + "x" * len(key[8:]), "\u00e9" + key[1:]}


@pytest.mark.parametrize("name", REAL)
def test_each_key_is_found_by_its_number_and_kind(name: str) -> None:
    assert [number_and_kind(TABLES[name], key) for key, _ in REAL[name]] == [
        (number, kind) for number, (_, kind) in enumerate(REAL[name])
    ]


@pytest.mark.parametrize("name", REAL)
def test_what_resembles_a_key_is_none(name: str) -> None:
    known = {key: number for number, (key, _) in enumerate(REAL[name])}
    candidates = {each for key in known for each in near(key)}
    assert len(candidates - set(known)) > 10 * len(known)
    assert {key: number_and_kind(TABLES[name], key)[0] for key in candidates} == {
        key: known.get(key, UNKNOWN) for key in candidates
    }


@given(behind=st.binary(max_size=8))
def test_what_follows_a_key_does_not_matter(behind: bytes) -> None:
    for number, (key, _) in enumerate(REAL["events"]):
        assert number_and_kind(TABLES["events"], key, behind)[0] == number


_texts = st.text("abc\u00e9", min_size=1, max_size=20)


@given(keys=st.sets(_texts, max_size=MAX_KEYS), others=st.lists(_texts, max_size=20))
def test_a_table_of_any_keys_answers_as_a_dict(keys: set[str], others: list[str]) -> None:
    listed = sorted(keys)
    hashed = {(len(key.encode()), key.encode()[:8], key.encode()[-8:]) for key in listed}
    if len(hashed) < len(listed):
        return  # refused, see below
    table, known = key_table([(key, 3) for key in listed]), {key: number for number, key in enumerate(listed)}
    for key in [*listed, *others]:
        assert number_and_kind(table, key)[0] == known.get(key, UNKNOWN)


@pytest.mark.parametrize(
    "keys",
    [
        [f"key {number}" for number in range(MAX_KEYS + 1)], [""], ["x" * 49], ["one", "one"],
        ["a" * 20, "a" * 9 + "b" + "a" * 10],
    ],
)  # fmt: skip
def test_keys_that_no_table_can_tell_apart_are_refused(keys: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htagraph.trace.kineto.scan.events._MAX_TRIES", 100)
    with pytest.raises(ValueError, match=r"two keys share|a table takes 64 keys of 1 to 48 bytes"):
        key_table([(key, 0) for key in keys])
