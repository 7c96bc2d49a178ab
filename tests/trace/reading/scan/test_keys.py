"""A table of keys knows its keys and no others, as a dict does."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.trace.reading.scan.events import FIELDS
from htagraph.trace.reading.scan.grammar import PADDING
from htagraph.trace.reading.scan.keys import MAX_KEYS, UNKNOWN, key_kind, key_number, key_table
from htagraph.trace.reading.scan.scanner import argument_keys

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
    monkeypatch.setattr("htagraph.trace.reading.scan.keys._MAX_TRIES", 100)
    with pytest.raises(ValueError, match=r"two keys share|a table takes 64 keys of 1 to 48 bytes"):
        key_table([(key, 0) for key in keys])
