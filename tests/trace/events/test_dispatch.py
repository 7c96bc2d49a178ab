from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from htagraph.trace import events
from htagraph.trace.events import (
    CATEGORY_ALIASES,
    HOST_BACKENDS,
    HOST_CALLS,
    MODELS,
    Args,
    Column,
    Counter,
    CpuOp,
    Event,
    Flow,
    GpuMemcpy,
    Int,
    IterationStart,
    Kernel,
    MemoryEvent,
    Metadata,
    OutOfMemory,
    RecordWindowEnd,
    RuntimeCall,
    TraceSpan,
    UnknownEvent,
    call_columns,
    canonical_category,
    columns,
    dispatch,
    parse_event,
)
from tests.trace.events.made import event


@pytest.mark.parametrize(
    ("raw", "model"),
    [
        (event("kernel", {}), Kernel),
        (event("Kernel", {}), Kernel),
        (event("Memcpy", {}), GpuMemcpy),
        (event("Operator", {}), CpuOp),
        (event("Runtime", {}), RuntimeCall),
        (event("Trace", {}, pid="Spans"), TraceSpan),
        (event(None, {}, pid="CPU functions"), CpuOp),
        (event(None, {}, pid="CUDA functions"), Kernel),
        (event(None, {}), UnknownEvent),
        (event("brand_new", {}), UnknownEvent),
        (event("ac2g", {}), UnknownEvent),
        (event("async", {}, ph="f"), Flow),
        (event("fwdbwd", {}, ph="s"), Flow),
        (event("hardware_counters", {"": 1}, ph="C"), Counter),
        (event("cpu_instant_event", {}, ph="i", name="[memory]"), MemoryEvent),
        (event("cpu_instant_event", {}, ph="i", name="[OutOfMemory]"), OutOfMemory),
        (event(None, {}, ph="i", name="Iteration Start: PyTorch Profiler"), IterationStart),
        (event(None, {}, ph="i", name="Record Window End", pid="", tid=""), RecordWindowEnd),
        (event(None, {}, ph="i", name="mine"), UnknownEvent),
        (event("cpu_instant_event", {}, ph="I", name="[memory]"), MemoryEvent),
        (event(None, {}, ph="I", name="Record Window End"), RecordWindowEnd),
        (event(None, {"name": "python"}, ph="M", name="process_name"), Metadata),
        (event("cpu_op", {}, ph="B"), UnknownEvent),
    ],
)
def test_phase_and_category_choose_the_model(raw: dict[str, Any], model: type[Event]) -> None:
    assert type(parse_event(raw)) is model


def test_legacy_categories_lead_to_models() -> None:
    assert set(CATEGORY_ALIASES.values()) <= set(MODELS)


@given(st.one_of(st.text(), st.sampled_from([*MODELS, *CATEGORY_ALIASES])))
def test_canonical_category_is_idempotent_and_ignores_case(cat: str) -> None:
    canonical = canonical_category(cat)
    assert canonical_category(canonical) == canonical
    if canonical in MODELS and cat.isascii():
        assert canonical_category(cat.upper()) == canonical


def test_unknown_events_and_keys_are_kept() -> None:
    parsed = parse_event(event("mine", {"a": [1]}, cname="red"))
    assert (parsed.model_extra, parsed.args.model_extra) == ({"cname": "red"}, {"a": [1]})


def test_an_event_without_phase_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"(?s)UnknownEvent.*\bph\b.*Field required"):
        parse_event({"name": "x"})


def test_columns_are_those_that_the_bulk_path_needs() -> None:
    integers = """
        correlation external_id stream device bytes sequence_number fwd_thread_id wait_on_stream wait_on_record
        graph_id graph_node_id in_msg_nelems out_msg_nelems group_size seq src_rank dst_rank
        total_allocated total_reserved device_type device_id alloc_bytes
    """
    strings = "collective_name dtype pg_name pg_desc pg_ranks"
    expected = (
        dict.fromkeys(integers.split(), "int64")
        | dict.fromkeys(["comms_id", "addr"], "uint64")
        | dict.fromkeys(strings.split(), "str")
        | {"bandwidth_gb_s": "float64"}
    )
    assert {field.column.name: field.column.dtype for field in columns()} == expected


def test_columns_name_their_keys_and_categories() -> None:
    by_name = {field.column.name: field for field in columns()}
    assert by_name["stream"].keys == ("stream", "stream_id")
    assert by_name["external_id"].keys == ("External id", "external id")
    assert "cpu_op" not in by_name["stream"].categories  # there it is an address
    assert all(field.categories <= set(MODELS) for field in columns())


def test_models_that_disagree_on_a_column_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class OtherArgs(Args):
        """Disagrees with the kernel's stream."""

        stream: Annotated[Int | None, Column("stream", "uint64", 0)] = events.base.arg("stream", about="Stream")

    class Other(Event):
        """Has it."""

        args: OtherArgs

    monkeypatch.setattr(dispatch, "MODELS", {**MODELS, "other": Other})
    with pytest.raises(TypeError, match=r"column 'stream' is .*uint64.* in category 'other'"):
        columns.__wrapped__()


def test_texts_of_calls_are_no_columns_of_all_operators() -> None:
    assert [bulk.keys[0] for bulk in call_columns()] == ["Input Dims", "Input type", "Concrete Inputs"]
    assert not {bulk.column.name for bulk in call_columns()} & {bulk.column.name for bulk in columns()}
    assert ("c10d::", *(f"{backend}:" for backend in HOST_BACKENDS)) == HOST_CALLS
