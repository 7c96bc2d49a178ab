from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from htagraph.trace.columns import parse_ranks
from htagraph.trace.kineto.events import (
    CollectiveArgs,
    Counter,
    CpuOp,
    Flow,
    Kernel,
    Metadata,
    MtiaCcpEvent,
    TraceSpan,
    parse_event,
)
from tests.trace.kineto.events.made import event


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


def test_a_counter_is_its_series() -> None:
    parsed = parse_event(event("hardware_counters", {"": 1.5, "dram": "3"}, ph="C"))
    assert isinstance(parsed, Counter)
    assert parsed.args.series == {"": 1.5, "dram": 3}


def test_a_counter_counts_numbers_only() -> None:
    with pytest.raises(ValidationError, match="dram"):
        parse_event(event("hardware_counters", {"dram": "many"}, ph="C"))


def test_a_flow_joins_its_two_ends_by_id() -> None:
    ends = [parse_event(event("fwdbwd", {}, ph=phase, id=written)) for phase, written in (("s", 7), ("f", "7"))]
    assert all(isinstance(end, Flow) for end in ends)
    assert ends[0].id == ends[1].id == 7


def test_a_thread_is_named_by_metadata() -> None:
    named = parse_event(event(None, {"name": "python"}, ph="M", name="thread_name"))
    assert isinstance(named, Metadata)
    assert named.args.name == "python"


def test_the_recorded_window_counts_its_operators() -> None:
    window = parse_event(event("Trace", {"Op count": 12}, pid="Spans"))
    assert isinstance(window, TraceSpan)
    assert window.args.op_count == 12


@given(start=st.integers(0, 99), stride=st.integers(1, 9), size=st.integers(31, 200), given_start=st.booleans())
def test_truncated_ranks_are_rebuilt(*, start: int, stride: int, size: int, given_start: bool) -> None:
    ranks = [start + stride * i for i in range(size)]
    text = f"[{', '.join(map(str, ranks[:29]))}, ..., {ranks[-1]}]"
    known = {"Global rank start": start, "Global rank stride": stride} if given_start else {}
    parsed = parse_event(event("cpu_op", {"Process Group Ranks": text, "Group size": size, **known}))
    assert isinstance(parsed, CpuOp)
    assert parsed.args.process_group_ranks == text
    assert parsed.args.ranks == ranks


@pytest.mark.parametrize(
    ("category", "model"), [("cpu_op", CpuOp), ("kernel", Kernel), ("mtia_ccp_events", MtiaCcpEvent)]
)
def test_operators_and_kernels_have_the_same_arguments_of_collectives(category: str, model: type) -> None:
    written = {"Collective name": "allreduce", "Group size": 2, "Process Group Name": "0", "Seq": 4, "dtype": "Half"}
    parsed = parse_event(event(category, written))
    assert isinstance(parsed, model)
    assert isinstance(parsed.args, CollectiveArgs)
    args = parsed.args
    assert (args.collective_name, args.group_size, args.process_group_name, args.seq, args.dtype) == (
        "allreduce", 2, "0", 4, "Half",
    )  # fmt: skip


def test_without_any_hint_the_ranks_of_a_group_are_unknown() -> None:
    parsed = parse_event(event("kernel", {"Collective name": "allreduce", "Group size": 4}))
    assert isinstance(parsed, Kernel)
    assert parsed.args.ranks is None
