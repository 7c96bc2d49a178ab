"""Laws of the whole schema: it documents itself, what is written reads back equal, and it knows real traces."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pydantic import ValidationError

from htagraph.trace.kineto import events
from htagraph.trace.kineto.events import (
    CATEGORY_ALIASES,
    HOST_BACKENDS,
    HOST_CALLS,
    MODELS,
    Address,
    Args,
    Counter,
    CpuOp,
    Event,
    Flow,
    GpuMemcpy,
    Header,
    Int,
    IterationStart,
    Kernel,
    MemoryEvent,
    Metadata,
    MetricArgs,
    OutOfMemory,
    RangeProfiler,
    Ranks,
    RecordWindowEnd,
    RuntimeCall,
    TraceSpan,
    UnknownEvent,
    call_columns,
    canonical_category,
    columns,
    parse_event,
)
from tests.trace.kineto.events.made import EVENT_MODELS, args_model, event, keys_of

REPOSITORY = Path(__file__).resolve().parents[3]
TRACES = REPOSITORY / os.environ.get("HTAGRAPH_SHARED", "../shared") / "traces"
FREE_FORM = (RangeProfiler, Counter)  # their keys are names of metrics


@pytest.mark.parametrize("model", EVENT_MODELS)
def test_models_document_themselves(model: type[Event]) -> None:
    args = args_model(model)
    assert model.__doc__
    assert args.__doc__
    assert not [name for name, field in args.model_fields.items() if not field.description]
    assert not [name for name, field in args.model_fields.items() if field.is_required()]


@pytest.mark.parametrize("model", EVENT_MODELS)
def test_no_key_belongs_to_two_fields(model: type[Event]) -> None:
    keys = [key for name, field in args_model(model).model_fields.items() for key in keys_of(name, field)]
    assert len(keys) == len(set(keys))


def test_every_model_is_exported() -> None:
    assert {model.__name__ for model in EVENT_MODELS} <= set(events.__all__)


def test_importing_builds_no_validator() -> None:
    code = (
        "from htagraph.trace.kineto import events; print(any(m.__pydantic_complete__ for m in events.MODELS.values()))"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


integers = st.integers(-(2**80), 2**80)


messy_integers = st.one_of(integers, integers.map(str), integers.map(hex), st.integers(0).map("{} bytes".format))


finite = st.floats(allow_nan=False, allow_infinity=False)  # JSON has no other where any value may stand


json_values: SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), integers, finite, st.text()),
    lambda values: st.lists(values, max_size=3),
    max_leaves=3,
)


microseconds = st.one_of(
    st.integers(-(10**15), 10**15), st.floats(-1e15, 1e15), st.decimals(-(10**15), 10**15, places=3).map(str)
)


LEAVES: dict[Any, SearchStrategy[Any]] = {
    Any: json_values,
    int: integers,
    str: st.text(),
    bool: st.booleans(),
    float: finite,
    Decimal: st.decimals(-(10**9), 10**9, places=3).map(str),
    NoneType: st.none(),
}


COERCED: list[tuple[Any, SearchStrategy[Any]]] = [
    (Int, messy_integers),
    (Address, st.one_of(messy_integers, st.text())),
    (float | None, st.one_of(st.none(), st.floats(allow_nan=False))),
    (Ranks, st.one_of(st.text(), st.lists(integers))),
]


def values(annotation: Any) -> SearchStrategy[Any]:
    for coerced, strategy in COERCED:
        if annotation == coerced:
            return strategy
    if get_origin(annotation) in {Union, UnionType}:
        return st.one_of([values(member) for member in get_args(annotation)])
    if get_origin(annotation) is list:
        return st.lists(values(get_args(annotation)[0]), max_size=3)
    if isinstance(annotation, type) and issubclass(annotation, Args):
        return arguments(annotation)
    return LEAVES[annotation]


def arguments(model: type[Args]) -> SearchStrategy[dict[str, Any]]:
    if issubclass(model, MetricArgs):
        return st.dictionaries(st.text(), st.one_of(integers, st.floats(allow_nan=False)), max_size=3)
    fields = {
        key: values(field.annotation) for name, field in model.model_fields.items() for key in keys_of(name, field)[:1]
    }
    extras = st.dictionaries(st.text().map("x:{}".format), json_values, max_size=2)
    return st.builds(lambda known, extra: known | extra, st.fixed_dictionaries({}, optional=fields), extras)


def raw_events(model: type[Event]) -> SearchStrategy[dict[str, Any]]:
    category = next((cat for cat, known in MODELS.items() if known is model), None)
    phase = {Flow: "s", Counter: "C", Metadata: "M", MemoryEvent: "i", OutOfMemory: "i", UnknownEvent: "?"}
    name = {MemoryEvent: "[memory]", OutOfMemory: "[OutOfMemory]"}
    labels = st.one_of(integers, st.text(), integers.map(str))
    return st.fixed_dictionaries(
        {
            "ph": st.just(phase.get(model, "X")),
            "name": st.just(name[model]) if model in name else st.text(),
            "args": arguments(args_model(model)),
        }
        | ({"cat": st.just(category)} if category else {}),
        optional={"pid": labels, "tid": labels, "id": labels, "ts": microseconds, "dur": microseconds},
    )


WAYS: list[Callable[[Event], Any]] = [
    lambda parsed: parsed.model_dump(by_alias=True),
    lambda parsed: parsed.model_dump(by_alias=True, exclude_unset=True),
    lambda parsed: json.loads(parsed.model_dump_json(by_alias=True)),
]


@pytest.mark.parametrize("model", EVENT_MODELS)
@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_what_is_written_reads_back_equal(model: type[Event], data: st.DataObject) -> None:
    parsed = parse_event(data.draw(raw_events(model)))
    assert type(parsed) is model
    for write in WAYS:
        assert parse_event(write(parsed)) == parsed


def sample(raw: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every seventh event, and the first of each phase, category and set of arguments."""
    seen = set()
    for index, item in enumerate(raw):
        shape = (item.get("ph"), item.get("cat"), *item.get("args", ()))
        if index % 7 == 0 or shape not in seen:
            seen.add(shape)
            yield item


@pytest.mark.skipif(not TRACES.exists(), reason="no shared traces here")
@pytest.mark.parametrize(
    "path", sorted(path for path in TRACES.rglob("*.gz") if ".pickle" not in path.suffixes),
    ids=lambda path: str(path.relative_to(TRACES)),
)  # fmt: skip
def test_real_traces_hold_only_what_the_models_declare(path: Path) -> None:
    with gzip.open(path, "rt", errors="replace") as file:
        root = json.load(file, strict=False)
    header = {key: value for key, value in root.items() if key != "traceEvents"} if isinstance(root, dict) else {}
    raw = root.get("traceEvents") if isinstance(root, dict) else root
    if not raw or not isinstance(raw[0], dict):
        pytest.skip("not a trace")
    Header.model_validate(header)
    for item in sample(raw):
        parsed = parse_event(item)
        assert not isinstance(parsed, UnknownEvent), item
        assert not parsed.model_extra, item
        assert isinstance(parsed, FREE_FORM) or not parsed.args.model_extra, item


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
        graph_id graph_node_id original_stream in_msg_nelems out_msg_nelems group_size seq src_rank dst_rank
        total_allocated total_reserved device_type device_id alloc_bytes
    """
    strings = "collective_name copy_direction dtype filled_memory pg_name pg_desc pg_ranks source_memory target_memory"
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

        stream: Int | None = events.base.arg("stream", "Stream", store=events.UNSIGNED)

    class Other(Event):
        """Has it."""

        args: OtherArgs

    monkeypatch.setattr(events, "MODELS", {**MODELS, "other": Other})
    with pytest.raises(TypeError, match=r"column 'stream' is .*uint64.* in category 'other'"):
        columns.__wrapped__()


def test_texts_of_calls_are_no_columns_of_all_operators() -> None:
    assert [bulk.keys[0] for bulk in call_columns()] == ["Input Dims", "Input type", "Concrete Inputs"]
    assert not {bulk.column.name for bulk in call_columns()} & {bulk.column.name for bulk in columns()}
    assert ("c10d::", *(f"{backend}:" for backend in HOST_BACKENDS)) == HOST_CALLS
