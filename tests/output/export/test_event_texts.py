from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from htagraph.output.export.event_texts import EventText, EventTexts, as_event, slice_text

EVENT = {"ph": "X", "name": "a", "cat": "kernel", "pid": 0, "tid": 7, "ts": 1.25, "dur": 2, "args": {"stream": 7}}


def decoded(*events: dict[str, Any]) -> list[Any]:
    return list(EventTexts()(json.dumps(events).encode()))


def test_an_event_taken_apart_is_still_the_event() -> None:
    (event,) = decoded(EVENT)
    assert isinstance(event, EventText)
    assert as_event(event) == EVENT


@pytest.mark.parametrize("critical", ["", "0.5"])
@pytest.mark.parametrize("args", [None, {}, {"stream": 7}])
def test_a_slice_keeps_all_but_its_place_and_times(args: dict[str, Any] | None, critical: str) -> None:
    event: dict[str, Any] = {key: value for key, value in (EVENT | {"args": args}).items() if value is not None}
    if args is None and critical:
        event["args"] = {}
    text = slice_text(decoded(event)[0], b'"pid":1000,"tid":8', "3.125", "4", critical)
    assert text is not None
    expected: dict[str, Any] = event | {"pid": 1000, "tid": 8, "ts": 3.125, "dur": 4}
    if critical:
        expected["args"] = event["args"] | {"critical_us": 0.5}
    assert json.loads(text) == expected


@pytest.mark.parametrize("change", [{"name": 5}, {"name": "C:\\x"}, {"id": 3}, {"args": {"critical_us": 1}}])
def test_a_slice_that_takes_more_than_new_times_is_not_written_as_text(change: dict[str, Any]) -> None:
    assert slice_text(decoded(EVENT | change)[0], b'"pid":1,"tid":2', "3", "4", "0.5") is None


def test_events_with_other_keys_are_dicts() -> None:
    assert decoded(EVENT | {"sf": 1}) == [EVENT | {"sf": 1}]


def test_damage_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        EventTexts()(b'[{"ph": "X", "name": "\\x"}]')
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        EventTexts()(b'[{"ph": "X", "name": "a", "args": {"b": "\xff"}}]')
