"""Columns agree with the models, field by field, for every event; odd values never crash the reader."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from htagraph.core.errors import DamagedTraceError, NotATraceError, TraceError
from htagraph.core.transfers import copy_name, fill_name
from htagraph.trace.columns import Events, Trace
from htagraph.trace.kineto import decode, source
from htagraph.trace.kineto.events import BulkField, Event, canonical_category, columns, stored_fields
from htagraph.trace.kineto.read import read_events
from tests.damage import (
    BASE_NS,
    END,
    Json,
    call,
    content,
    document,
    header,
    healthy,
    issues,
    kernel,
    kineto_text,
    loaded,
    names,
    op,
    read,
    written,
)
from tests.reach import DATASETS, REAL, label

FILES = [*(path for folder in DATASETS for path in sorted(folder.glob("*.json*"))), *REAL]
MOST_CHECKED = 1000  # events of a large file whose arguments are compared
_LEGACY = {"CPU functions": "cpu_op", "CUDA functions": "kernel"}


# the oracle


def expected_argument(event: Event, bulk: BulkField) -> int | str:
    name = next((name for name, field, _ in stored_fields(type(event)) if field.column == bulk.column), "")
    value = getattr(event.args, name, None)
    return bulk.column.missing if value is None else value  # type: ignore[return-value]


def category_of(event: Event) -> str:
    return _LEGACY.get(str(event.pid), "") if event.cat is None else canonical_category(event.cat)


def lane_of(event: Event) -> tuple[int | str, int | str]:
    return tuple("" if part is None else part for part in (event.pid, event.tid))  # type: ignore[return-value]


_FOLDED = {"copy_direction", "source_memory", "target_memory", "filled_memory", "original_stream"}
"""Columns that are read into names and streams; see `tests/trace/kineto/test_by_arguments.py`."""


def usual_name(event: Event) -> str:
    """Return the name that a copy or memset has by its arguments; any other event's name."""
    texts = [getattr(event.args, name, None) or "" for name in ("copy_direction", "source_memory", "target_memory")]
    filled = getattr(event.args, "filled_memory", None) or ""
    return fill_name(copy_name(event.name, *texts), filled)


def assert_columns_agree(trace: Trace, models: list[Event], *, base: int, every: int = 1) -> None:
    """Assert that what the columns say is what the models say, arguments at every so many rows."""
    for table, phases in ((trace.events, ("X",)), (trace.instants, ("i", "I"))):
        dropped = sum(issue.count for issue in trace.issues if issue.what in {"time_outlier", "time_corrupt"})
        mine = [
            i for i, event in enumerate(models) if event.ph in phases and (event.ph == "X" or event.cat is not None)
        ]
        assert len(mine) == len(table) + (dropped if table is trace.events else 0)
        chosen = [models[i] for i in table.index]
        assert [trace.names[i] for i in table.name] == [usual_name(event) for event in chosen]
        assert [trace.categories[i] for i in table.category] == [category_of(event) for event in chosen]
        assert [trace.lanes[i] for i in table.lane] == [lane_of(event) for event in chosen]
        assert (table.start - base).tolist() == [event.ts_ns or 0 for event in chosen]
        assert table.duration.tolist() == [max(0, event.dur_ns or 0) for event in chosen]
        assert_arguments_agree(trace, table, chosen, every)


def assert_arguments_agree(trace: Trace, table: Events, models: list[Event], every: int) -> None:
    rows = range(0, len(table), every)
    for bulk in columns():
        if bulk.column.name in _FOLDED:
            continue
        text = bulk.column.dtype == "str"
        if bulk.column.name in table.args:
            values = table.arg(bulk.column.name)
        else:
            values = np.full(len(table), -1 if text else bulk.column.missing)
        for row in rows:
            event, got = models[row], values[row]
            if trace.categories[table.category[row]] not in bulk.categories:
                continue  # the columns of unknown categories have no model
            read_value = ("" if got < 0 else trace.names[got]) if text else got.item()
            expected = expected_argument(event, bulk)
            moved = getattr(event.args, "original_stream", None)
            if bulk.column.name == "stream" and type(moved) is int and -(2**63) <= moved < 2**63 and moved != -1:
                expected = moved
            assert read_value == expected, (bulk.keys, event)


@pytest.mark.slow
@pytest.mark.parametrize("path", FILES, ids=label)
def test_columns_and_models_agree_on_every_trace_in_reach(path: Path) -> None:
    trace, models = read(path), list(read_events(path))
    if trace.facts.base_ns is None and "unpadded_fractions" in issues(trace):
        pytest.skip("models read fractions as decimals")
    every = max(1, len(trace.events) // MOST_CHECKED)
    assert_columns_agree(trace, models, base=trace.facts.origin_ns, every=every)
    assert len(models) == sum(trace.counts.values())


# by Hypothesis

_odd_values = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4) | st.sampled_from(["12", "0x1f", "-1", "inf", "N/A", "3 bytes", "18446744073709551615"])
    | st.lists(st.integers(0, 9), max_size=2) | st.dictionaries(st.text(max_size=1), st.integers(), max_size=1)
)  # fmt: skip
_keys = st.sampled_from(sorted({key for bulk in columns() for key in bulk.keys} | {"name", "other"}))
_categories = st.sampled_from([
    "kernel", "Kernel", "cpu_op", "Operator", "cuda_runtime", "gpu_memcpy", "cuda_sync",
    "mine", "Trace", "mtia_runtime",
])  # fmt: skip
_good = {
    "int64": st.integers(-(2**63), 2**63 - 1) | st.integers(0, 99).map(str) | st.none(),
    "uint64": st.integers(0, 2**64 - 1) | st.integers(0, 99).map(str) | st.none(),
    "float64": st.floats(0, 1e9) | st.integers(0, 99) | st.sampled_from(["1.5", "N/A", "inf"]) | st.none(),
    "str": st.text(max_size=5) | st.integers(0, 99) | st.none(),
}


@st.composite
def sensible_events(draw: st.DrawFn) -> Json:
    cat = draw(_categories)
    bulk = [each for each in columns() if canonical_category(cat) in each.categories]
    chosen = draw(st.lists(st.sampled_from(bulk), max_size=5, unique_by=lambda each: each.column.name)) if bulk else []
    args = {each.keys[0]: draw(_good[each.column.dtype]) for each in chosen}
    where = {"pid": draw(st.integers(0, 2) | st.sampled_from(["", "1", "Spans"])), "tid": draw(st.integers(-1, 2))}
    times = {"ts": draw(st.integers(0, 10**6)) / 1000, "dur": draw(st.none() | st.integers(-5, 99))}
    return {"ph": "X", "cat": cat, "name": draw(st.text(max_size=3)), **where, **times, "args": args}


_FILE = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])


@_FILE
@given(made=st.lists(sensible_events(), max_size=8))
def test_columns_and_models_agree_on_generated_events(made: list[Json], tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", document([*made, END]))
    assert_columns_agree(read(path), list(read_events(path)), base=BASE_NS)


@_FILE
@given(data=st.data())
def test_odd_values_anywhere_are_read_or_refused_by_name(data: st.DataObject, tmp_path: Path) -> None:
    made = healthy(2)
    for _ in range(data.draw(st.integers(1, 3))):
        event = data.draw(st.sampled_from(made))
        if data.draw(st.booleans()):
            event[data.draw(st.sampled_from(["ph", "cat", "name", "pid", "tid", "ts", "dur", "id", "args"]))] = (
                data.draw(_odd_values)
            )
        elif isinstance(event.get("args"), dict):
            event["args"][data.draw(_keys)] = data.draw(_odd_values)
    try:
        trace = loaded(tmp_path, document(made))
    except TraceError as error:
        assert "trace.json" in str(error)
    else:
        assert len(trace.events) <= len(made)


# by hand


@pytest.mark.parametrize(
    ("key", "value", "column", "read_as"),
    [
        ("Comms Id", 2**64 - 1, "comms_id", 2**64 - 1),
        ("Comms Id", 2**63 + 1, "comms_id", 2**63 + 1),
        ("Comms Id", str(2**64 - 1), "comms_id", 2**64 - 1),
        ("correlation", "0x10", "correlation", 16),
        ("external id", 7, "external_id", 7),
        ("External id", 7, "external_id", 7),
        ("stream", -1, "stream", -1),
        ("stream", 4294967295, "stream", 4294967295),
        ("device", None, "device", -1),
        ("correlation", True, "correlation", 1),
        ("correlation", 3.0, "correlation", 3),
    ],
)
def test_arguments_are_read_as_their_models_do(key: str, value: Any, column: str, read_as: int, tmp_path: Path) -> None:
    trace = loaded(tmp_path, document([kernel(1, args={key: value}), kernel(2), END]))
    assert trace.events.arg(column)[0] == read_as
    assert not issues(trace)


@pytest.mark.parametrize("value", [2**64, 2**63, -(2**63) - 1, 10**30])
def test_integers_beyond_64_bits_are_absent_and_reported(value: int, tmp_path: Path) -> None:
    trace = loaded(tmp_path, document([kernel(1, args={"correlation": value, "stream": 7}), kernel(2), END]))
    assert trace.events.arg("correlation").tolist() == [-1, 2]
    assert trace.events.arg("stream").tolist() == [7, 7]
    assert issues(trace) == {"value_out_of_range": 1}


def test_addresses_have_all_64_bits(tmp_path: Path) -> None:
    trace = loaded(tmp_path, document(healthy(1)))
    assert trace.instants.arg("addr").tolist() == [2**63 + 5]
    assert trace.instants.arg("addr").dtype == np.uint64


def test_an_argument_of_another_type_is_missing_and_reported_with_its_first_value(tmp_path: Path) -> None:
    odd = [kernel(number, args={"correlation": value}) for number, value in enumerate(["seven", [1], "x" * 7000], 1)]
    trace = loaded(tmp_path, document([*odd, kernel(4), END]))
    assert trace.events.arg("correlation").tolist() == [-1, -1, -1, 4]
    assert issues(trace) == {"value_unreadable": 3}
    [issue] = [issue for issue in trace.issues if issue.what == "value_unreadable"]
    assert "'correlation'" in issue.detail
    assert "'seven'" in issue.detail


@pytest.mark.parametrize("text", ["inf", "nan", "-nan", "N/A", "Infinity"])
def test_non_finite_texts_are_nobodys_problem(text: str, tmp_path: Path) -> None:
    trace = loaded(tmp_path, document([kernel(1, args={"blocks per SM": text, "warps per SM": text}), END]))
    assert not issues(trace)


@pytest.mark.parametrize(
    ("pids", "lanes"),
    [
        ((7, "7"), [(7, 7)]),
        (("Spans", ""), [("Spans", 7), ("", 7)]),
        ((-1, "-1"), [(-1, 7)]),
        (("GPU 0", 0), [("GPU 0", 7), (0, 7)]),
        (("²", "--1"), [("²", 7), ("--1", 7)]),
    ],
)
def test_processes_may_have_names(pids: tuple[Any, Any], lanes: list[Any], tmp_path: Path) -> None:
    trace = loaded(tmp_path, document([kernel(1, pid=pids[0]), kernel(2, pid=pids[1], tid="7"), END]))
    assert list(trace.lanes) == lanes


def test_thread_names_are_read(tmp_path: Path) -> None:
    assert loaded(tmp_path, document(healthy(1))).thread_names == {(77, 77): "thread 77 (python)"}


def test_many_categories_are_kept_apart(tmp_path: Path) -> None:
    made = [op(i, cat=f"mine {i}") for i in range(300)]
    trace = loaded(tmp_path, document([*made, END]))
    assert [trace.categories[code] for code in trace.events.category] == [event["cat"] for event in made]


def test_a_missing_duration_is_nothing(tmp_path: Path) -> None:
    bare = {key: value for key, value in op(2).items() if key != "dur"}
    for first in (op(1), op(1, ts="0.5")):  # numbers, and texts
        trace = loaded(tmp_path, document([first, bare, END]))
        assert trace.events.duration.tolist() == [30_000, 0]
        assert issues(trace) == {"dur_missing": 1}


def test_flows_keep_their_ends(tmp_path: Path) -> None:
    flows = loaded(tmp_path, document(healthy(1))).flows
    assert (flows.id.tolist(), flows.is_start.tolist()) == ([3, 3], [True, False])
    assert (flows.time - BASE_NS).tolist() == [100_125, 200_125]


def flow(identity: Any, ph: str = "s", **keys: Any) -> Json:
    return {"ph": ph, "id": identity, "pid": 1, "tid": 1, "ts": 1, "cat": "fwdbwd", "name": "fwdbwd", **keys}


@pytest.mark.parametrize("identity", [2**64, "abc", [1], {}, 1.5, -1])
def test_flows_with_odd_ids_are_joined_all_the_same(identity: Any, tmp_path: Path) -> None:
    ids = [identity, 7, "other", identity]
    trace = loaded(tmp_path, document([call(1), *(flow(each) for each in ids), END]))
    assert trace.flows.id.tolist() == [-1, 7, -2, -1]


def test_flows_with_ids_as_text_are_those_with_numbers(tmp_path: Path) -> None:
    trace = loaded(tmp_path, document([call(1), flow("1"), flow(1, "f"), flow("2"), flow("x0"), END]))
    assert trace.flows.id.tolist() == [1, 1, 2, -1]


def test_flows_without_an_id_join_nothing(tmp_path: Path) -> None:
    trace = loaded(tmp_path, document([call(1), flow(None), flow(None, "f"), END]))
    assert trace.flows.id.tolist() == []


@pytest.mark.parametrize("name", [[], {}, None, 5])
def test_instants_may_have_odd_names(name: Any, tmp_path: Path) -> None:
    odd = [{**END, "name": name}, {**END, "ph": "I", "name": name, "cat": "cpu_instant_event"}]
    assert not issues(loaded(tmp_path, document([op(1), *odd, END])))


def test_repeated_keys_have_their_last_value_on_both_paths(tmp_path: Path) -> None:
    text = document([kernel(1), END]).replace('"stream": 7', '"stream": 7, "stream": 8')
    path = written(tmp_path / "a.json", text)
    event = next(itertools.islice(read_events(path), 1))
    assert json.loads(event.args.model_dump_json(by_alias=True))["stream"] == 8
    assert read(path).events.arg("stream").tolist() == [8]


BLANKS = decode._BLANKS  # which is replaced where it is counted what is looked at
SMALL = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read_in_pieces(path: Path, piece: int, block: int) -> Trace:
    with patch.object(source, "PIECE_BYTES", piece), patch.object(decode, "BLOCK_BYTES", block):
        return read(path)


leaves = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=8)
tricky = st.sampled_from([
    '"traceEvents": [', '},{"ph": "X", "name": "', "]}", "}, {", "\\",
    '\\"', "],\n", '"schemaVersion"', "{", "µ\u2028",
])  # fmt: skip
values = st.recursive(
    leaves | tricky,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["name", "ph", "id", "a"]), inner),
    max_leaves=12,
)
times = st.integers(0, 10**9) | st.integers(0, 10**12).map(lambda ns: ns / 1000)


@st.composite
def events(draw: st.DrawFn) -> Json:
    args = draw(st.dictionaries(st.sampled_from(["Input Dims", "Call stack", "x", "y"]), values, max_size=3))
    make = draw(st.sampled_from([op, call, kernel]))
    made = make(draw(st.integers(1, 9)), ts=draw(times), dur=draw(times), name=draw(tricky | st.text(max_size=12)))
    if draw(st.booleans()):
        made["args"] = {**made["args"], **args}
    else:
        del made["args"]
    return {key: made[key] for key in draw(st.permutations(sorted(made)))}


styles = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, 0, 2, "\t"]),
        "separators": st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", " :\r\n ")]),
        "sort_keys": st.booleans(),
        "ensure_ascii": st.booleans(),
    }
)


@pytest.mark.slow
@SMALL
@given(
    made=st.lists(events(), max_size=12),
    style=styles,
    extra=st.dictionaries(st.sampled_from(["aa", "zz", "deviceProperties", "ERROR"]), values, max_size=2),
    form=st.tuples(st.booleans(), st.integers(1, 700), st.integers(16, 700), st.sampled_from(["a.json", "a.json.gz"])),
)
def test_every_serialisation_cut_into_any_pieces_reads_the_same(
    made: list[Json], style: Any, extra: Json, form: tuple[bool, int, int, str], tmp_path: Path
) -> None:
    head, piece, block, name = form
    every = [*made, END]
    plain = read(written(tmp_path / "plain.json", json.dumps({**header(), **extra, "traceEvents": every})))
    parts = [{**header(), **extra}, {"traceEvents": every}]
    root = {**parts[0], **parts[1]} if head else {**parts[1], **parts[0]}
    other = read_in_pieces(written(tmp_path / name, json.dumps(root, **style)), piece, block)
    assert content(other) == content(plain)
    assert plain.counts.get("X", 0) == len(made)
    assert set(issues(other)) <= {"header_key_lost"}  # `extra` may be no list of devices


@SMALL
@given(made=st.lists(events(), min_size=1, max_size=8), style=styles, piece=st.integers(1, 300))
def test_a_bare_list_reads_as_the_events_of_a_document(
    made: list[Json], style: Any, piece: int, tmp_path: Path
) -> None:
    bare = read_in_pieces(written(tmp_path / "a.json", json.dumps([*made, END], **style)), piece, 64)
    plain = read(written(tmp_path / "b.json", json.dumps({"traceEvents": [*made, END]})))
    assert content(bare) == content(plain)
    assert not issues(bare)


@pytest.mark.parametrize("block", [16, 64, 200, 512, 4096])
@pytest.mark.parametrize(
    "text",
    [
        kineto_text(healthy()),
        document(healthy()),
        document(healthy(), indent=1),
        document(healthy(), separators=(",", ":")),
        "\ufeff" + document(healthy()),
        kineto_text(healthy()).replace("\n", "\r\n"),
    ],
    ids=["kineto", "one line", "pretty", "compact", "byte order mark", "crlf"],
)
def test_forms_of_healthy_files_read_alike_without_a_remark(text: str, block: int, tmp_path: Path) -> None:
    trace = read_in_pieces(written(tmp_path / "a.json", text), 100, block)
    assert content(trace) == content(read(written(tmp_path / "plain.json", document(healthy()))))
    assert not trace.issues


@pytest.mark.parametrize(
    "nested",
    [
        [{"name": "x", "ph": "X"}] * 40,
        [[{"ph": "X"}, {"ph": "X"}], {"args": [{"name": "y"}] * 9}],
        {"a": [{"b": [{"c": [{"name": 1}, {"name": 2}]}] * 3}] * 3},
        ['},{"ph":"X"', '"traceEvents": [', "]}", "\n  },\n  {\n"] * 5,
    ],
)
@pytest.mark.parametrize("block", [32, 256, 1 << 20])
def test_lists_of_objects_in_args_are_no_events(nested: Any, block: int, tmp_path: Path) -> None:
    made = [op(1), op(2, args={"x": nested}), kernel(3, args={"stream": 7, "y": nested}), op(4), END]
    for text in (document(made), document(made, separators=(",", ":")), document(made, indent=2), kineto_text(made)):
        trace = read_in_pieces(written(tmp_path / "a.json", text), 64, block)
        assert names(trace) == ["aten::mm", "aten::mm", "gemm<0>", "aten::mm"]
        assert not trace.issues


def test_a_key_of_the_same_name_inside_another_is_not_the_events(tmp_path: Path) -> None:
    root = {**header(), "mine": {"traceEvents": [1, 2], "b": "x"}, "traceEvents": healthy()}
    assert not loaded(tmp_path, json.dumps(root)).issues
    assert (
        content(loaded(tmp_path, json.dumps(root)))["events"]
        == content(loaded(tmp_path, document(healthy())))["events"]
    )


@pytest.mark.parametrize("where", ["before", "after", "inside an event"])
def test_text_larger_than_a_block_is_no_obstacle(where: str, tmp_path: Path) -> None:
    bulk = [{"name": "x" * 50, "id": i, "list": [{"ph": "X"}, {}]} for i in range(70_000)]
    made = healthy(3)
    if where == "inside an event":
        made.insert(4, op(2, args={"External id": 102, "bulk": bulk}))
    root: Json = {**header(), "traceEvents": made}
    if where == "before":
        root = {"bulk": bulk, **root}
    if where == "after":
        root = {**root, "bulk": bulk}
    text = json.dumps(root)
    assert len(text) > decode.BLOCK_BYTES + source.PIECE_BYTES / 2
    trace = loaded(tmp_path, text)
    assert len(trace.events) == sum(event["ph"] == "X" for event in made)
    assert not trace.issues
    assert trace.facts.written.get("bulk") == (None if where == "inside an event" else bulk)


@pytest.mark.parametrize(
    ("text", "events_read"),
    [
        ('{"schemaVersion": 1, "traceEvents": []}', 0),
        ('{"traceEvents":[\n]\n}', 0),
        ("[]", 0),
        (json.dumps({"traceEvents": [event for event in healthy() if event["ph"] == "M"]}), 1),
    ],
)
def test_traces_without_activities_are_read(text: str, events_read: int, tmp_path: Path) -> None:
    trace = loaded(tmp_path, text)
    assert (sum(trace.counts.values()), len(trace.events), issues(trace)) == (events_read, 0, {})


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("[1, 2]", NotATraceError, "does not hold events"),
        ('[{"a": 1}, {"b": 2}, {"c": []}]', NotATraceError, "does not hold events"),
        ('{"traceEvents": [{"a": 1}, {"b": 2}]}', NotATraceError, "does not hold events"),
        ('{"traceEvents": [1, 2]}', NotATraceError, "JSON, but the list does not hold events"),
        ('{"a": 1}', NotATraceError, "without traceEvents"),
        ('{"traceEvents": {}}', NotATraceError, "whose traceEvents are no list"),
        ('"text"', NotATraceError, "not a Kineto trace"),
        ("hello", NotATraceError, "not JSON"),
        ('{"schema": "1.1", "nodes": []}', NotATraceError, "execution trace"),
        ('{"schemaVersion": 1, "deviceProperties": [', DamagedTraceError, "ends before its events"),
        ("   \n ", TraceError, ""),
        ("{" * 5000, TraceError, ""),
        ('{"a":' * 5000, TraceError, ""),
        ("[" * 5000, TraceError, ""),
    ],
)
def test_what_is_no_trace_is_refused_by_name(text: str, error: type[TraceError], words: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=f"trace.json: .*{words}"):
        loaded(tmp_path, text)


@pytest.mark.parametrize("piece", [50, 1000, 1 << 22])
def test_keys_behind_the_events_are_in_the_header(piece: int, tmp_path: Path) -> None:
    late = {"distributedInfo": {"rank": 3, "pg_config": [{"ranks": [0, 1]}, {"ranks": [2]}]}, "x": [1], "y": [[2]]}
    text = json.dumps({"schemaVersion": 1, "traceEvents": healthy(), **late, "baseTimeNanoseconds": BASE})
    trace = read_in_pieces(written(tmp_path / "a.json", text), piece, 300)
    assert trace.facts.rank == 3
    assert trace.events.start.min() == BASE + 100_000
    assert not trace.issues


BASE = 1_719_840_000_000_000_000


def test_positions_are_those_in_the_file(tmp_path: Path) -> None:
    made = healthy(8)
    expected = [number for number, event in enumerate(made) if event["ph"] == "X"]
    for piece, block in itertools.product((33, 512), (64, 700)):
        trace = read_in_pieces(written(tmp_path / "a.json", kineto_text(made)), piece, block)
        assert trace.events.index.tolist() == expected


# text that is not events, without end


def test_text_behind_the_events_is_read_up_to_a_limit(tmp_path: Path) -> None:
    text = document(healthy())
    with patch.object(decode, "_MAX_HEADER_BYTES", 1000):
        trace = read_in_pieces(written(tmp_path / "a.json", text + "x" * 50_000), 100, 64)
        blank = read_in_pieces(written(tmp_path / "b.json", text + " " * 50_000), 100, 64)
    assert issues(trace) == {"tail_too_long": 1, "trailing_bytes": 1}
    assert not issues(blank)
    assert len(trace.events) == len(blank.events) == 18


def test_keys_behind_the_events_are_known_up_to_a_limit(tmp_path: Path) -> None:
    text = document(healthy())[:-1] + ', "a": "' + "x" * 50_000 + '"}'
    with patch.object(decode, "_MAX_HEADER_BYTES", 1000):
        trace = read_in_pieces(written(tmp_path / "a.json", text), 100, 64)
    assert issues(trace) == {"tail_too_long": 1}
    assert trace.facts.written["traceName"] == "a.json"


@pytest.mark.parametrize(
    ("text", "says"), [('{"a": "' + "x" * 9000, "no traceEvents in its first"), (" " * 9000, "white")]
)
def test_a_file_without_events_is_refused_at_a_limit(text: str, says: str, tmp_path: Path) -> None:
    with patch.object(decode, "_MAX_HEADER_BYTES", 1000), pytest.raises(NotATraceError, match=rf"a\.json.*{says}"):
        read_in_pieces(written(tmp_path / "a.json", text), 100, 64)


@pytest.mark.parametrize("begin", ["", "\ufeff"])
@pytest.mark.parametrize("root", ["object", "list"])
def test_white_space_before_the_events_is_looked_at_once(begin: str, root: str, tmp_path: Path) -> None:
    looked_at = 0

    class Blanks:
        def match(self, buffer: bytearray, at: int) -> Any:
            nonlocal looked_at
            found = BLANKS.match(buffer, at)
            looked_at += found.end() - at if found else 0
            return found

    text = document(healthy()) if root == "object" else json.dumps(healthy())
    with patch.object(decode, "_BLANKS", Blanks()):
        trace = read_in_pieces(written(tmp_path / "a.json", begin + " \t\r\n" * 5000 + text), 100, 64)
    assert len(trace.events) == 18
    assert looked_at == 20_000


def test_events_are_looked_for_at_a_few_places_only(tmp_path: Path) -> None:
    seen: list[int] = []

    def loads(text: str, **options: Any) -> Any:
        seen.append(len(text))
        return json.loads(text, **options)

    fake = type("json", (), {"loads": loads, "JSONDecoder": json.JSONDecoder})
    with patch.object(decode, "json", fake), pytest.raises(TraceError, match="not JSON"):
        read(written(tmp_path / "a.json", '{"a":' + '{"traceEvents":[' * 5000))
    assert len(seen) <= decode._MAX_HEADER_TRIES + 1


@pytest.mark.parametrize("end", ["before", "after"])
def test_half_a_surrogate_pair_in_a_root_key_or_value_is_replaced(end: str, tmp_path: Path) -> None:
    keys = '"my\\ud800key": 1, "host_name": "a\\uDFFFb\\u00e9"'
    text = document(healthy())
    text = text[:-1] + f", {keys}}}" if end == "after" else "{" + keys + ", " + text[1:]
    trace = read(written(tmp_path / "a.json", text))
    assert trace.facts.host == "a?bé"
    assert trace.facts.written["my?key"] == 1
    assert not issues(trace)
