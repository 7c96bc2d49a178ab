from __future__ import annotations

import pytest
from pydantic import ValidationError

from htagraph.trace.events import Counter, Flow, Metadata, TraceSpan, parse_event
from tests.trace.events.made import event


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
