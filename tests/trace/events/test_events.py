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

from htagraph.trace import events
from htagraph.trace.events import (
    MODELS,
    Address,
    Args,
    Counter,
    Event,
    Flow,
    Header,
    Int,
    MemoryEvent,
    Metadata,
    MetricArgs,
    OutOfMemory,
    RangeProfiler,
    Ranks,
    UnknownEvent,
    parse_event,
)
from tests.trace.events.made import EVENT_MODELS, args_model, keys_of

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
    code = "from htagraph.trace import events; print(any(m.__pydantic_complete__ for m in events.MODELS.values()))"
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
    st.integers(-(10**15), 10**15),
    st.floats(-1e15, 1e15),
    st.decimals(-(10**15), 10**15, places=3).map(str),
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


def trace_paths() -> list[Path]:
    return sorted(path for path in TRACES.rglob("*.gz") if ".pickle" not in path.suffixes)


def sample(raw: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every seventh event, and the first of each phase, category and set of arguments."""
    seen = set()
    for index, item in enumerate(raw):
        shape = (item.get("ph"), item.get("cat"), *item.get("args", ()))
        if index % 7 == 0 or shape not in seen:
            seen.add(shape)
            yield item


@pytest.mark.skipif(not TRACES.exists(), reason="no shared traces here")
@pytest.mark.parametrize("path", trace_paths(), ids=lambda path: str(path.relative_to(TRACES)))
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
