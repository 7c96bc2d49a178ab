"""Rows of the compiled scan, against the messages that they were made from."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from htagraph.simulate.next_pftrace import message, packet
from htagraph.trace.pftrace import scan
from htagraph.trace.pftrace.events import PacketEvents, event_rows
from tests.trace.pftrace.made import packets_in

KEYS = {"a", "b", "stream id"}


def scanned(*fields: tuple[int, Any], kind: int = scan.TRACK_EVENT, wanted: set[str] = KEYS) -> PacketEvents:
    packets, _ = packets_in(packet((8, 5), (10, 1), (kind, message(*fields))))
    return event_rows(packets, wanted)


def notes_of(events: PacketEvents) -> list[tuple[str, int, Any]]:
    return [
        (events.texts[key], form, events.texts[value] if form == scan.TEXT else value)
        for key, form, value in zip(*(column.tolist() for column in events.notes[1:]), strict=True)
    ]


def test_a_track_event_gives_type_track_name_and_category() -> None:
    events = scanned((9, 1), (11, 2**63), (23, "name"), (22, "first"), (22, "second"))
    column = events.columns[:, 0]
    assert column[scan.TYPE] == scan.BEGIN
    assert column[scan.TRACK] == -(2**63)
    assert [events.texts[column[each]] for each in (scan.NAME, scan.CATEGORY)] == ["name", "first"]
    interned = scanned((9, 7), (10, 4), (3, 8), (3, 9)).columns[:, 0]
    assert interned[[scan.TYPE, scan.NAME_IID, scan.CATEGORY_IID]].tolist() == [0, 4, 8]
    assert scanned((3, b"\x05\x06")).columns[scan.CATEGORY_IID, 0] == 5  # packed


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "other"]), st.integers(-(2**63), 2**63 - 1)), max_size=9))
def test_arguments_with_wanted_keys_are_kept(args: list[tuple[str, int]]) -> None:
    events = scanned((9, 1), *((4, message((10, key), (4, value))) for key, value in args))
    assert notes_of(events) == [(key, scan.NUMBER, value) for key, value in args if key in KEYS]


@given(st.text(max_size=30) | st.integers(-(2**70), 2**70).map(str))
def test_a_text_that_is_a_number_becomes_it(text: str) -> None:
    events = scanned((6, message((1, "stream id"), (2, text))), kind=scan.STAGE_EVENT)
    ((key, form, value),) = notes_of(events)
    assert key == "stream id"
    assert str(value) == text
    assert (form == scan.NUMBER) == (text.lstrip("-").isascii() and text.isascii() and is_plain(text))


def is_plain(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isdigit() and len(digits) <= scan.MOST_DIGITS and str(int(text)) == text


def test_values_of_each_form() -> None:
    values: list[tuple[int, Any]] = [(2, 1), (3, 2**64 - 1), (5, 0.5), (6, "text"), (17, 3), (12, message((4, 2)))]
    events = scanned((9, 1), *((4, message((10, "a"), value)) for value in values))
    forms = [scan.NUMBER, scan.UNSIGNED, scan.FLOAT, scan.TEXT, scan.TEXT, scan.RAW]
    assert events.notes.form.tolist() == forms
    assert events.notes.value[1] == -1
    assert float(events.notes.value[2:3].view(np.float64)[0]) == 0.5


def test_waits_each_by_itself_and_packed() -> None:
    events = scanned((18, 4), (18, b"\x05\x80\x01"), (1, 9), (2, 30), kind=scan.STAGE_EVENT)
    assert events.awaited.tolist() == [4, 5, 128]
    assert events.waiting.tolist() == [0, 0, 0]
    assert events.columns[[scan.EVENT, scan.DURATION], 0].tolist() == [9, 30]


def test_a_body_that_cannot_be_read_is_marked() -> None:
    for kind, body in ((scan.TRACK_EVENT, b"\x22\x03\x50"), (scan.STAGE_EVENT, b"\x32\x7f")):
        packets, _ = packets_in(packet((8, 5), (10, 1), (kind, body)))
        assert event_rows(packets, KEYS).columns[scan.TYPE].tolist() == [scan.UNREADABLE]
    for inner in (b"\x22\x01\x50", b"\x1a\x01\xff"):
        packets, _ = packets_in(packet((8, 5), (10, 1), (scan.TRACK_EVENT, inner)))
        assert event_rows(packets, KEYS).columns[scan.TYPE].tolist() == [scan.UNREADABLE]
