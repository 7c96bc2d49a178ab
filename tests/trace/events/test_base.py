from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from pydantic import ValidationError

from htagraph.trace.events import parse_event, parse_ranks
from tests.trace.events.made import event


@pytest.mark.parametrize(
    ("ts", "microseconds", "nanoseconds"),
    [
        (5, "5", 5000),
        (12.345, "12.345", 12345),
        ("1606910596297023.125", "1606910596297023.125", 1606910596297023125),
        (0.0005, "0.0005", 0),
        (0.0015, "0.0015", 2),
        (None, None, None),
    ],
)
def test_time_is_exact_microseconds(ts: object, microseconds: str | None, nanoseconds: int | None) -> None:
    parsed = parse_event(event("cpu_op", {}, ts=ts, dur=ts))
    assert parsed.ts == (None if microseconds is None else Decimal(microseconds))
    assert (parsed.ts_ns, parsed.dur_ns) == (nanoseconds, nanoseconds)


@pytest.mark.parametrize("ts", ["abc", "nan", 1e300, "1e999999", [1]])
def test_a_malformed_time_is_named(ts: object) -> None:
    with pytest.raises(ValidationError, match=r"(?s)CpuOp.*\bts\b.*input_value="):
        parse_event(event("cpu_op", {}, ts=ts))


@pytest.mark.parametrize(
    ("cat", "args", "field"),
    [("kernel", {"stream": "seven"}, "stream"), ("cpu_op", {"Input Dims": [["a"]]}, "Input Dims")],
)
def test_a_malformed_argument_is_named(cat: str, args: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError, match=rf"args\.{field}"):
        parse_event(event(cat, args))


def test_thread_ids_written_as_text_equal_those_written_as_numbers() -> None:
    parsed = parse_event(event("Runtime", {}, tid="4093687616", pid="Spans"))
    assert (parsed.tid, parsed.pid) == (4093687616, "Spans")


@pytest.mark.parametrize(
    ("text", "known", "ranks"),
    [
        ("[0, 1]", {}, [0, 1]),
        ("[]", {}, []),
        ([3, 5], {}, [3, 5]),
        (None, {}, None),
        (None, {"start": 2, "stride": 4, "size": 2}, [2, 6]),
        ("[0, 1, ..., 5]", {"size": 6}, [0, 1, 2, 3, 4, 5]),
        ("[0, 1, ..., 5]", {"size": 7}, None),
        ("[0, 1, ..., 5]", {}, None),
        ("[0, 3, ...]", {"start": 0, "stride": 3, "size": 4}, [0, 3, 6, 9]),
        ("[0, 1, ...]", {"start": 0, "stride": 3, "size": 4}, None),
        ("[0, 1, ...]", {"start": -1, "stride": 1, "size": 3}, [0, 1, 2]),
        ("[4, ..., 9]", {"size": 3}, None),
        ("many", {}, None),
    ],
)
def test_ranks(text: str | list[int] | None, known: dict[str, int], ranks: list[int] | None) -> None:
    assert parse_ranks(text, **known) == ranks


def test_ranks_of_an_absurd_group_are_not_rebuilt() -> None:
    assert parse_ranks(None, start=0, stride=1, size=1_000_000) == list(range(1_000_000))
    assert parse_ranks(None, start=0, stride=1, size=1_000_001) is None
