"""Any serialisation of the same events, cut into any pieces, reads the same."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from htagraph.core.errors import DamagedTraceError, NotATraceError, TraceError
from htagraph.trace.columns import Trace
from htagraph.trace.kineto import source, split
from tests.damage import (
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

BLANKS = split._BLANKS  # which is replaced where it is counted what is looked at
SMALL = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read_in_pieces(path: Path, piece: int, block: int) -> Trace:
    with patch.object(source, "PIECE_BYTES", piece), patch.object(split, "BLOCK_BYTES", block):
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
    assert len(text) > split.BLOCK_BYTES + source.PIECE_BYTES / 2
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
    with patch.object(split, "_MAX_HEADER_BYTES", 1000):
        trace = read_in_pieces(written(tmp_path / "a.json", text + "x" * 50_000), 100, 64)
        blank = read_in_pieces(written(tmp_path / "b.json", text + " " * 50_000), 100, 64)
    assert issues(trace) == {"tail_too_long": 1, "trailing_bytes": 1}
    assert not issues(blank)
    assert len(trace.events) == len(blank.events) == 18


def test_keys_behind_the_events_are_known_up_to_a_limit(tmp_path: Path) -> None:
    text = document(healthy())[:-1] + ', "a": "' + "x" * 50_000 + '"}'
    with patch.object(split, "_MAX_HEADER_BYTES", 1000):
        trace = read_in_pieces(written(tmp_path / "a.json", text), 100, 64)
    assert issues(trace) == {"tail_too_long": 1}
    assert trace.facts.written["traceName"] == "a.json"


@pytest.mark.parametrize(
    ("text", "says"), [('{"a": "' + "x" * 9000, "no traceEvents in its first"), (" " * 9000, "white")]
)
def test_a_file_without_events_is_refused_at_a_limit(text: str, says: str, tmp_path: Path) -> None:
    with patch.object(split, "_MAX_HEADER_BYTES", 1000), pytest.raises(NotATraceError, match=rf"a\.json.*{says}"):
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
    with patch.object(split, "_BLANKS", Blanks()):
        trace = read_in_pieces(written(tmp_path / "a.json", begin + " \t\r\n" * 5000 + text), 100, 64)
    assert len(trace.events) == 18
    assert looked_at == 20_000


def test_events_are_looked_for_at_a_few_places_only(tmp_path: Path) -> None:
    seen: list[int] = []

    def loads(text: str, **options: Any) -> Any:
        seen.append(len(text))
        return json.loads(text, **options)

    fake = type("json", (), {"loads": loads, "JSONDecoder": json.JSONDecoder})
    with patch.object(split, "json", fake), pytest.raises(TraceError, match="not JSON"):
        read(written(tmp_path / "a.json", '{"a":' + '{"traceEvents":[' * 5000))
    assert len(seen) <= split._MAX_HEADER_TRIES + 1


@pytest.mark.parametrize("end", ["before", "after"])
def test_half_a_surrogate_pair_in_a_root_key_or_value_is_replaced(end: str, tmp_path: Path) -> None:
    keys = '"my\\ud800key": 1, "host_name": "a\\uDFFFb\\u00e9"'
    text = document(healthy())
    text = text[:-1] + f", {keys}}}" if end == "after" else "{" + keys + ", " + text[1:]
    trace = read(written(tmp_path / "a.json", text))
    assert trace.facts.host == "a?bé"
    assert trace.facts.written["my?key"] == 1
    assert not issues(trace)
