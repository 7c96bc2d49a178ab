"""Known malformations: the events that survive, what is reported, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.core.errors import DamagedTraceError, TraceError
from htagraph.trace.columns import Trace
from htagraph.trace.kineto import decode, salvage
from htagraph.trace.kineto.read import read_events
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
    log,
    names,
    op,
    read,
    written,
)
from tests.fuzz.sound_events import FORMS
from tests.reach import REAL
from tests.regex_steps import steps
from tests.trace.kineto.test_decode import read_in_pieces

EVENTS = healthy(4)
TEXT = kineto_text(EVENTS)
WORK = [event["name"] for event in EVENTS if event["ph"] == "X"]
REPORTS_OF_A_CUT = {
    "truncated", "event_unreadable", "header_damaged", "header_key_lost", "no_window_end", "no_base_time",
}  # fmt: skip


def read_or_refused(path: Path) -> Trace | None:
    """Return the trace, or None where it was refused with the file's name; nothing else may be raised."""
    try:
        return read(path)
    except TraceError as error:
        assert path.name in str(error)
        return None


# a file that stops


@pytest.mark.parametrize("text", [TEXT, document(EVENTS, separators=(",", ":"))], ids=["kineto", "compact"])
def test_a_file_cut_anywhere_holds_every_event_before_the_cut(text: str, tmp_path: Path) -> None:
    first = text.index('"traceEvents"') + len('"traceEvents": [')
    ends = [end + len(text) - len(text[first:]) for end in ends_of_events(text[first:])]
    for cut in range(1, len(text.rstrip()), 7):
        trace = read_or_refused(written(tmp_path / "cut.json", text[:cut]))
        if trace is None:
            assert cut < ends[0]
            continue
        complete = sum(end <= cut for end in ends)
        assert names(trace) == WORK[: sum(event["ph"] == "X" for event in EVENTS[:complete])]
        found = issues(trace)
        assert set(found) <= REPORTS_OF_A_CUT
        assert found["truncated"] == 1
        assert found.get("event_unreadable", 0) <= 1


def ends_of_events(text: str) -> list[int]:
    decoder, at, ends = json.JSONDecoder(), 0, []
    while True:
        at = text.index("{", at)
        _, at = decoder.raw_decode(text, at)
        ends.append(at)
        if text[at:].lstrip().startswith("]"):
            return ends


@pytest.mark.parametrize("block", [64, 300, 1 << 22])
@pytest.mark.parametrize("cut", [900, 1500, 2222, 3001])
def test_what_a_cut_file_holds_does_not_depend_on_blocks(cut: int, block: int, tmp_path: Path) -> None:
    path = written(tmp_path / "cut.json", TEXT[:cut])
    assert content(read_in_pieces(path, 50, block)) == content(read(path))


@pytest.mark.skipif(not REAL, reason="no shared traces")
def test_a_real_trace_cut_anywhere_is_read_or_refused(tmp_path: Path) -> None:
    import gzip

    smallest = min(REAL, key=lambda path: path.stat().st_size)
    data = gzip.decompress(smallest.read_bytes())
    whole = len(read(smallest).events)
    counts = []
    for cut in range(0, len(data), max(1, len(data) // 150)):
        trace = read_or_refused(written(tmp_path / "cut.json", data[:cut]))
        if trace is not None:
            counts.append(len(trace.events))
            assert "truncated" in issues(trace)
    assert counts == sorted(counts)
    assert counts[-1] <= whole


# one damaged event


def damaged(event: str | Json) -> str:
    """Return the text of a trace in which `event` comes third of six."""
    return kineto_text([op(1), call(1), event, kernel(1), op(2), END])


def as_text(event: Json) -> str:
    return "  " + json.dumps(event, ensure_ascii=False)


REPAIRED = {
    "quotes in a name": (
        '{"ph": "X", "name": "a{"device": "cpu"}(12): run", "pid": 7, "tid": 7, "ts": 1, "dur": 2}',
        "unescaped_quotes",
        'a{"device": "cpu"}(12): run',
    ),
    "quotes in a name over lines": (
        '{\n    "ph": "X", "cat": "cpu_op", "name": "a "b" c", "pid": 7, "tid": 7,\n'
        '    "ts": 1, "dur": 2,\n    "args": {\n      "x": 1\n    }\n  }',
        "unescaped_quotes",
        'a "b" c',
    ),
    "control character": (as_text(op(3, name="a")).replace('"a"', '"a\x07b"'), "control_characters", "a b"),
    "raw newline": (as_text(op(3, name="a")).replace('"a"', '"a\nb"'), "control_characters", "a b"),
    "bare inf": (as_text(kernel(3)).replace("0.5}", "inf}"), "non_finite", "gemm<0>"),
    "bare nan": (as_text(kernel(3)).replace("0.5}", "nan}"), "non_finite", "gemm<0>"),
    "bare -nan": (as_text(kernel(3)).replace("0.5}", "-nan\n}"), "non_finite", "gemm<0>"),
    "bare NaN": (as_text(kernel(3)).replace("0.5}", "NaN}"), "non_finite", "gemm<0>"),
    "bare Infinity": (as_text(kernel(3)).replace("0.5}", "-Infinity}"), "non_finite", "gemm<0>"),
    "bare N/A": (as_text(kernel(3)).replace("0.5}", "N/A}"), "non_finite", "gemm<0>"),
    "half a surrogate pair": (as_text(op(3, name="a?b")).replace("a?b", "a\\ud800b"), "lone_surrogate", "a\ufffdb"),
    "bare inf beside a name with one": (
        as_text(kernel(3, name="x:inf, y")).replace("0.5}", "inf}"),
        "non_finite",
        "x:inf, y",
    ),
    "trailing comma": (as_text(kernel(3)).replace("0.5}", "0.5,}"), "stray_comma", "gemm<0>"),
    "trailing comma beside a name with one": (
        as_text(kernel(3, name="f(a,,[,b)")).replace("0.5}", "0.5 , }"),
        "stray_comma",
        "f(a,,[,b)",
    ),
    "empty fragment in args": (as_text(kernel(3)).replace('"args": {', '"args": {, '), "stray_comma", "gemm<0>"),
    "empty fragment between args": (
        as_text(kernel(3)).replace('"stream": 7,', '"stream": 7,,'),
        "stray_comma",
        "gemm<0>",
    ),
    "slash before quotes": (
        as_text(op(3, args={"x": ['{"a/": 1}', "b"]})).replace('\\"', '/"'),
        "slashed_quotes",
        "aten::mm",
    ),
    "missing quote in args": (as_text(op(3, args={"x": "b", "y": 1})).replace('"b"', '"b'), "args_dropped", "aten::mm"),
    "missing value in args": (
        as_text(op(3, args={"x": 1, "y": 1})).replace('"x": 1', '"x": '),
        "args_dropped",
        "aten::mm",
    ),
    "no args at all": (as_text(op(3, args={"x": 1})).replace('{"x": 1}', ""), "args_dropped", "aten::mm"),
    "null args": (as_text(op(3)).replace(json.dumps(op(3)["args"]), "null"), "args_dropped", "aten::mm"),
    "list for args": (as_text(op(3)).replace(json.dumps(op(3)["args"]), "[]"), "args_dropped", "aten::mm"),
}


@pytest.mark.parametrize("block", [64, 1 << 22])
@pytest.mark.parametrize(("event", "what", "name"), REPAIRED.values(), ids=REPAIRED)
def test_a_damaged_event_is_repaired_and_the_repair_reported(
    event: str, what: str, name: str, block: int, tmp_path: Path
) -> None:
    trace = read_in_pieces(written(tmp_path / "a.json", damaged(event)), 64, block)
    assert names(trace) == ["aten::mm", "cudaLaunchKernel", name, "gemm<1>", "aten::mm"]
    assert issues(trace) == {what: 1}


@pytest.mark.parametrize(("event", "what", "name"), REPAIRED.values(), ids=REPAIRED)
def test_the_last_event_is_repaired_too_and_models_number_events_as_columns_do(
    event: str, what: str, name: str, tmp_path: Path
) -> None:
    last = loaded(tmp_path, kineto_text([op(1), END, event]))
    assert (names(last), issues(last)) == (["aten::mm", name], {what: 1})
    assert last.facts.written["traceName"] == "a.json"
    trace = read(written(tmp_path / "a.json", damaged(event)))
    with pytest.warns(UserWarning, match=r"a\.json: "):
        models = list(read_events(trace.path))
    assert [models[i].name for i in trace.events.index] == names(trace)
    assert name in names(trace)
    assert what in issues(trace)


def test_bad_utf8_is_replaced_and_several_damages_of_one_event_are_all_reported(tmp_path: Path) -> None:
    trace = loaded(tmp_path, damaged(op(3, name="a?b")).encode().replace(b"a?b", b"a\xffb"))
    assert (names(trace)[2], issues(trace)) == ("a\ufffdb", {"bad_utf8": 1})
    event = as_text(kernel(3, name="a?b")).replace("0.5}", "inf}").encode().replace(b"a?b", b"a\xff\x01b")
    trace = loaded(tmp_path, damaged("EVENT").encode().replace(b"EVENT", event))
    assert (names(trace)[2], set(issues(trace).values())) == ("a\ufffd b", {1})
    assert set(issues(trace)) == {"bad_utf8", "control_characters", "non_finite"}


def test_each_damaged_event_counts(tmp_path: Path) -> None:
    bad = [as_text(kernel(number)).replace("0.5}", "inf}") for number in range(1, 30)]
    trace = loaded(tmp_path, kineto_text([*bad, END]))
    assert len(trace.events) == len(bad)
    assert issues(trace) == {"non_finite": len(bad)}


@pytest.mark.parametrize(
    "event",
    [
        '{"ph": "X", "name": }',
        '{"ph": "X" "cat" "kernel"}',
        '{"ph": "X", "pid": [1], "ts": 1}',
        "17",
        "null",
        '{"ph": 5}',
        '{"ph": "X", "ts": 1e400}',
        '{"ph": "X", "ts": ' + "9" * 5000 + "}",
    ],
)
@pytest.mark.parametrize("block", [64, 1 << 22])
def test_what_cannot_be_repaired_is_dropped_and_counted(event: str, block: int, tmp_path: Path) -> None:
    trace = read_in_pieces(written(tmp_path / "a.json", damaged("  " + event)), 64, block)
    assert names(trace) == ["aten::mm", "cudaLaunchKernel", "gemm<1>", "aten::mm"]
    assert issues(trace) == {"event_unreadable": 1}
    with pytest.warns(UserWarning, match=r"damaged beyond repair; dropped \(1\)"):
        assert len(list(read_events(trace.path))) == 5


BAD = as_text(op(3, args={"x": "y"}))
UNREADABLE = (BAD.replace("aten", "\\q"), BAD.replace('"dur"', "dur"), BAD.replace("300", "3x0"))
FOREIGN = ("5", '"x"', "null", "[1]", "[]", "{}", '{"a": 1}', '[{"a": 1}]', '"\\q"', "nan", '{"ph": 5}')


@given(st.lists(st.one_of(*map(st.sampled_from, (UNREADABLE, FOREIGN, [as_text(op(1)), as_text(kernel(2))])))))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@pytest.mark.parametrize("between", [",\n", ","])
def test_what_is_read_and_what_is_reported_is_what_is_present(between: str, tmp_path: Path, parts: list[str]) -> None:
    parts = [as_text(op(1))] * (2 + len(parts)) + parts + [as_text(END)]
    trace = loaded(tmp_path, '{"schemaVersion": 1, "traceEvents": [' + between.join(map(str.strip, parts)) + "]}")
    found = issues(trace)
    assert len(trace.events) + 1 + found.get("event_unreadable", 0) + found.get("phase_missing", 0) == len(parts)
    assert len(trace.events) == sum('"X"' in part and part not in UNREADABLE for part in parts)


def test_args_nested_without_end_are_dropped(tmp_path: Path) -> None:
    deep = as_text(op(3)).replace(
        "[2, 3]", "[" * 50_000 + "]" * 50_000
    )  # C code may nest 10,000 deep since Python 3.12
    trace = loaded(tmp_path, damaged(deep))
    assert names(trace) == ["aten::mm", "cudaLaunchKernel", "aten::mm", "gemm<1>", "aten::mm"]
    assert issues(trace) == {"args_dropped": 1}


@pytest.mark.parametrize(("text", "other"), [("\n  ],\n", ",\n  ],\n"), ("\n  },\n", "\n  }\n")])
def test_a_comma_behind_the_last_event_or_missing_between_two_is_no_matter(
    text: str, other: str, tmp_path: Path
) -> None:
    assert names(loaded(tmp_path, TEXT.replace(text, other))) == WORK


def test_a_repeated_key_has_its_last_value(tmp_path: Path) -> None:
    envelope = '"ph": "X", "cat": "kernel", "ts": 5, "ts": 7, "dur": 1, "name": "a", "name": "b"'
    event = "{" + envelope + ', "args": {"stream": 1, "stream": 2}}'
    trace = loaded(tmp_path, damaged(event))
    assert (names(trace)[2], trace.events.start[2] % 10**6, trace.events.arg("stream")[2]) == ("b", 7000, 2)
    assert not issues(trace)


# hostile text: work and memory are in proportion to it

BAD = '{"ph": "X", "name": "a "b" c%s", "pid": 7, "tid": 7, "ts": 1, "dur": 2, "args": {"x": inf}}'
HOSTILE: dict[str, Callable[[int], str]] = {
    "a name of escaped quotes": lambda count: '{"ph":"X","name":"' + '\\"' * count,
    "blanks behind a damaged name": lambda count: '{"ph":"X","name":"a"b"' + " " * count + ',"args":{}}x',
    "new lines behind a damaged name": lambda count: '{"ph":"X","name":"a"b",' + "\n" * count + "x}",
    "blanks behind damaged arguments": lambda count: '{"ph":"X","name":"a"b","args":{}' + " " * count + "x}",
    "names in one event": lambda count: '{"ph":"X"' + ',"name":"a' * count + "}",
    "arguments in one event": lambda count: '{"ph":"X"' + ',"args":{{' * count + "}",
    "damaged events": lambda count: ",\n".join([BAD % ""] * (count // 10)),
    "long damaged events": lambda count: ",\n".join([BAD % ("p" * 400)] * (count // 10)),
    "damaged events that begin unusually": lambda count: ",".join(['{"a": 1, ' + (BAD % "")[1:]] * (count // 10)),
    "objects in objects": lambda count: '{"name":\n' * count,
    "events in damaged events": lambda count: '{"args":\n{"args":\n[0,0,0,0],"a":\n' * (count // 4),
    "lists in lists": lambda count: '{"ph":"X","args":' + "[" * count,
    "parts of an event": lambda count: '{"ph":"X","args":[x],' + "0," * count,
    "braces": lambda count: '{"ph":"X","args":{' + "}" * count,
}


_CANDIDATES = salvage.candidates  # which is replaced where work is counted


class Counted:
    """Counts the bytes that salvaging reads or gives to a repair, for all of a text."""

    def __init__(self) -> None:
        self.work = 0

    def raw_decode(self, text: str, at: int = 0) -> Any:
        too_deep = LEVELS.match(text)
        if too_deep:
            self.work += too_deep.end()
            raise RecursionError
        try:
            value, end = json.JSONDecoder(strict=False).raw_decode(text, at)
        except json.JSONDecodeError as error:
            self.work += len(text) if "Unterminated" in error.msg else error.pos
            raise
        self.work += end
        return value, end

    def candidates(self, body: bytes, *, whole: bool) -> Iterator[tuple[list[str], bytes]]:
        for each in _CANDIDATES(body, whole=whole):
            self.work += len(body)
            yield each

    def next_start(self, plain: str, least: int) -> int:
        start = REAL_NEXT_START(plain, least)
        self.work += start - least
        return start


LEVELS = re.compile(r"(?:[^\[{]*[\[{]){80}")
"""So many brackets that the json module gives up; really some 1,000."""
REAL_NEXT_START = salvage._next_start


def work_of(text: str) -> int:
    counted = Counted()
    fake = type("json", (), {"JSONDecoder": lambda **_: counted, "JSONDecodeError": json.JSONDecodeError})
    mock: dict[str, Any] = {"json": fake, "candidates": counted.candidates, "_next_start": counted.next_start}
    with patch.multiple(salvage, _DEEP=16, **mock):
        try:
            salvage.salvage(text.encode(), msgspec.json.decode, log(), final=True)
        except DamagedTraceError:
            assert counted.work
    return counted.work


@pytest.mark.parametrize("what", HOSTILE)
def test_work_is_in_proportion_to_the_text(what: str) -> None:
    few, many = (work_of(HOSTILE[what](count)) for count in (2000, 8000))
    assert many <= 4.5 * few + 3 * salvage._WINDOW_CHARS


@pytest.mark.parametrize("what", ["names in one event", "damaged events", "long damaged events"])
def test_work_grows_with_an_exponent_of_at_most_1_1(what: str) -> None:
    few, many = (work_of(HOSTILE[what](count)) for count in (4000, 8000))  # 400 and 800 damaged events
    assert few < many <= 2**1.1 * few


@pytest.mark.parametrize(
    "inside", ["x" * 500, "\\\\" * 250, "[0," * 80, "{'a': " * 100, '"},{' * 50, "]," * 200, " " * 500]
)
def test_an_event_too_long_is_dropped_and_the_rest_read(inside: str, tmp_path: Path) -> None:
    long = '{"ph": "X", "name": "' + inside * 40 + '"}'
    text = kineto_text([op(1), long, *(kernel(number) for number in range(1, 40)), END])
    with patch.object(salvage, "_MAX_EVENT_BYTES", 2048):
        trace = read_in_pieces(written(tmp_path / "a.json", text), 256, 512)
    assert names(trace)[-39:] == [f"gemm<{number % 3}>" for number in range(1, 40)]
    assert names(trace)[0] == "aten::mm"
    assert issues(trace)["event_unreadable"] >= 1
    assert set(issues(trace)) <= {"event_unreadable", "unescaped_quotes", "time_corrupt", "dur_missing"}


def test_no_more_text_than_the_longest_event_is_kept(tmp_path: Path) -> None:
    kept: list[int] = []
    original = salvage.salvage

    def salvaged(text: bytes, *given: Any, **options: Any) -> Any:
        kept.append(len(text))
        return original(text, *given, **options)

    text = kineto_text([op(1), '{"ph": "X", "name": "' + "x" * 100_000 + '"}', op(2), END])
    with patch.object(salvage, "_MAX_EVENT_BYTES", 2048), patch.object(salvage, "salvage", salvaged):
        trace = read_in_pieces(written(tmp_path / "a.json", text), 256, 512)
    assert names(trace) == ["aten::mm", "aten::mm"]
    assert max(kept) <= 2 * (2048 + 512)


def test_a_long_damaged_event_is_not_repaired(tmp_path: Path) -> None:
    with patch.object(salvage, "_MAX_MEND_BYTES", 100):
        trace = loaded(tmp_path, damaged("  " + BAD % ("p" * 100)))
    assert issues(trace) == {"event_unreadable": 1}


# several writers


def test_two_documents_in_a_row_are_refused(tmp_path: Path) -> None:
    for glue in ("", "\n", "\n\n  "):
        with pytest.raises(DamagedTraceError, match=r"trace.json.*several ranks wrote to one path"):
            loaded(tmp_path, TEXT + glue + kineto_text(EVENTS, rank=1))


@pytest.mark.parametrize("chunk", [64, 200, 512, 1024])
@pytest.mark.parametrize("block", [300, 1 << 22])
def test_interleaved_documents_are_refused(chunk: int, block: int, tmp_path: Path) -> None:
    one, other = kineto_text(healthy(8)), kineto_text(healthy(8), rank=1)
    pieces = [text[at : at + chunk] for at in range(0, len(one), chunk) for text in (one, other)]
    path = written(tmp_path / "a.json", "".join(pieces))
    with pytest.raises(DamagedTraceError, match=r"a\.json.*(one path|several writers)"):
        read_in_pieces(path, 128, block)


def test_a_second_document_that_overwrites_the_first_is_refused(tmp_path: Path) -> None:
    other = kineto_text(healthy(2), rank=1)
    for start in range(len(TEXT) // 4, len(TEXT) - len(other), 37):
        text = TEXT[:start] + other + TEXT[start + len(other) :]
        with pytest.raises(DamagedTraceError, match=r"trace\.json"):
            loaded(tmp_path, text)


@pytest.mark.parametrize("form", ["kineto", "a line each"])
@pytest.mark.parametrize("inserted", ["]}", "\n]}\n", '], "traceName": "a.json"}'])
def test_the_end_of_a_document_with_events_behind_it_ends_no_document(form: str, inserted: str, tmp_path: Path) -> None:
    """An event and no root follows these brackets: they are damage, and one event at most is lost with each."""
    events = healthy(20)
    text = FORMS[form](events)
    for number in (4, 11):
        place = text.index('"ts": ' + str(100 * number) + ",")
        place = text.rindex("{", 0, place)
        text = text[:place] + inserted + text[place:]
    trace = loaded(tmp_path, text)
    lost = issues(trace)["event_unreadable"]
    assert len(names(trace)) + lost >= 60
    assert lost <= 2


def test_bytes_behind_the_document_are_reported(tmp_path: Path) -> None:
    trace = loaded(tmp_path, TEXT + "garbage")
    assert names(trace) == WORK
    assert issues(trace) == {"trailing_bytes": 1}


# the header


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize(
    "broken", ['"INFO": ["a "b" c"]', '"ERROR": ["line\none", "x"y"]', '"mine": {oops}', '"mine": inf', '"mine": "a"b"']
)
def test_known_keys_of_a_broken_header_survive(broken: str, where: str, tmp_path: Path) -> None:
    line = '  "traceEvents"' if where == "before" else '  "traceName"'
    trace = loaded(tmp_path, TEXT.replace(line, f"  {broken},\n{line}"))
    assert names(trace) == WORK
    assert issues(trace) == {"header_damaged": 1}
    assert (trace.facts.rank, trace.facts.base_ns) == (0, 1_719_840_000_000_000_000)
    assert where != "after" or trace.facts.written["traceName"] == "a.json"


def test_a_raw_newline_in_the_header_costs_nothing_known(tmp_path: Path) -> None:
    trace = loaded(tmp_path, TEXT.replace('  "traceEvents"', '  "INFO": ["a\nb"],\n  "traceEvents"'))
    assert trace.facts.base_ns is not None
    assert names(trace) == WORK


def test_a_header_key_of_another_form_is_left_out(tmp_path: Path) -> None:
    root = {**header(), "deviceProperties": "none", "hip_driver_version": [], "traceEvents": EVENTS}
    trace = loaded(tmp_path, json.dumps(root))
    assert issues(trace) == {"header_key_lost": 2}
    assert trace.facts.world_size


def test_damage_reaches_the_user_of_a_graph(tmp_path: Path) -> None:
    graph = hg.load(written(tmp_path / "rank-0.json", TEXT[: len(TEXT) // 2]))
    assert {"truncated", "no_window_end"} <= {issue.what for issue in graph.issues}
    assert len(graph.activities) > 0


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(st.tuples(st.integers(0, len(TEXT) - 1), st.integers(0, 9), st.binary(max_size=6)), max_size=6),
    block=st.sampled_from([64, 500, 1 << 22]),
)
def test_any_change_of_bytes_is_survived_or_refused_by_name(
    changes: list[tuple[int, int, bytes]], block: int, tmp_path: Path
) -> None:
    data = TEXT.encode()
    for at, removed, put in changes:
        data = data[:at] + put + data[at + removed :]
    path = written(tmp_path / "a.json", data)
    try:
        trace = read_in_pieces(path, 100, block)
    except TraceError as error:
        assert "a.json" in str(error)
    else:
        assert len(trace.events) <= len(EVENTS) + len(changes)


PATTERNS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value
    for module in (salvage, decode)
    for name, value in vars(module).items()
    if isinstance(value, re.Pattern)
}
PIECES = (
    '\\"', '"', " ", "\n", ",", "{", "}", "]", "[", "\\", "inf ", '"name":"', ',"name":"a', ',"args":', ',"args":{',
    ',"args":"', '{"ph":', '{"', '"traceEvents":[', '"a" , ', "}, {", "/\"", "1", "rank", "-", "nan", "\xef\xbb\xbf",
)  # fmt: skip
"""What a hostile text repeats."""
STARTS = ('{"ph":"X","name":"', '"name":"a"b"', ',"args":{}', "}", '"', "{", "")


def by_code(body: bytes) -> dict[str, bytes]:
    """Return what each repair alone makes of a text."""
    return {names[0]: mended for names, mended in reversed(list(salvage.candidates(body))) if len(names) == 1}


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_takes_more_than_twice_the_steps_on_twice_the_text(name: str) -> None:
    pattern: re.Pattern[Any] = PATTERNS[name]
    for start in STARTS:
        for piece in PIECES:
            few, many = (steps(pattern, start + piece * count + "x}") for count in (6, 24))
            assert many <= 4.2 * few + 100, (start, piece)


def test_the_steps_of_a_pattern_that_tries_each_start_again_grow_with_the_square() -> None:
    twice = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
    few, many = (steps(twice, '\\"' * count) for count in (40, 80))
    assert many > 3.5 * few


@pytest.mark.parametrize(
    ("pattern", "text"), [(r"a+b", "aaac aab"), (r"(?:ab|a)*c", "ababaac"), (r"(?<=x)a.*?b(?!c)", "xaabcab xa b")]
)
def test_steps_are_those_of_a_search_that_finds_what_re_finds(pattern: str, text: str) -> None:
    assert steps(re.compile(pattern), text) >= len(text)


@pytest.mark.parametrize(
    ("body", "code", "mended"),
    [
        (b'{"x": inf, "y": "inf"}', "non_finite", b'{"x": "inf", "y": "inf"}'),
        (b'{"x": [,1], "y": "[,1]",}', "stray_comma", b'{"x": [1], "y": "[,1]"}'),
        (b'{"name": "a "b" c", "ts": 1}', "unescaped_quotes", b'{"name": "a \\"b\\" c", "ts": 1}'),
        (b'{"name": "a", "args": {"x": }}', "args_dropped", b'{"name": "a"}'),
        (b'{"name": "a", "args": "b"}', "args_dropped", b'{"name": "a"}'),
        (b'{"name": "a", "args": {"x": }}\n ],\n "y": 1}', "args_dropped", b'{"name": "a"}\n ],\n "y": 1}'),
        (b'{"name": "a\x07"}', "control_characters", b'{"name": "a "}'),
        (
            b'"\\ud83d\\ude00 \\ud83d \\\\ud83d \\uDE00x"',
            "lone_surrogate",
            b'"\\ud83d\\ude00 \\ufffd \\\\ud83d \\ufffdx"',
        ),
        (b'{"x": "a/"b"}', "slashed_quotes", b'{"x": "a\\"b"}'),
    ],
)
def test_a_repair_undoes_its_damage_only(body: bytes, code: str, mended: bytes) -> None:
    assert by_code(body)[code] == mended


def test_each_repair_has_a_meaning() -> None:
    bodies = [b'{"x": inf}', b'{"x": 1,}', b'"name": "a "b" c", "ts":', b'/"', b"\xff\x07", b'"a","args":}', b"\\udfff"]
    assert {code for body in bodies for code in by_code(body)} == set(salvage.MEANING)


def test_without_its_end_an_event_keeps_its_arguments() -> None:
    body = b'{"name": "a", "args": {"x": }}'
    assert list(salvage.candidates(body, whole=False)) == []


@given(st.lists(st.sampled_from([*PIECES, "a", ":", "1"])).map("".join))
def test_no_repair_but_that_of_arguments_adds_or_loses_a_brace(text: str) -> None:
    body = text.encode("latin-1")
    for codes, mended in salvage.candidates(body, whole=False):
        assert mended.count(b"}") == body.count(b"}"), codes


# brackets and text that are not where they seem to be


@pytest.mark.parametrize("block", [300, 1 << 22])
@pytest.mark.parametrize(
    "text", ["1, 2, 3]}},\n", "]}},\n", '], "Input type": ["float", ""]}},\n', "]\n", "],[", "[", "[["]
)
def test_a_bracket_of_a_damaged_event_does_not_end_the_events(text: str, block: int, tmp_path: Path) -> None:
    events = [op(1), call(1), op(2), call(2), END]
    for place in range(1, 4):
        parts = [as_text(event).strip() for event in events]
        parts[place] = text + parts[place]
        whole = '{"schemaVersion": 1, "traceEvents": [\n' + ",\n".join(parts) + '\n], "traceName": "a.json"}'
        trace = read_in_pieces(written(tmp_path / "a.json", whole), 64, block)
        assert names(trace) == ["aten::mm", "cudaLaunchKernel"] * 2
        assert 1 <= issues(trace)["event_unreadable"] <= 4
        assert trace.facts.written["traceName"] == "a.json"


@pytest.mark.parametrize("cut", ['"args": {"External id": ', '"args": ', '"name": "a', '"dur": 3x%'])
def test_an_event_cut_behind_a_key_does_not_swallow_the_next(cut: str, tmp_path: Path) -> None:
    damaged_event = '{"ph": "X", "cat": "cpu_op", "pid": 7, "tid": 7, "ts": 1, "dur": 2, ' + cut
    compact = [json.dumps(event) for event in (op(1), op(2), call(2), END)]
    text = (
        '{"schemaVersion": 1, "traceEvents": ['
        + ",".join([compact[0], damaged_event + compact[1], *compact[2:]])
        + "]}"
    )
    trace = loaded(tmp_path, text)
    assert names(trace) == ["aten::mm", "aten::mm", "cudaLaunchKernel"]
    assert issues(trace)["event_unreadable"] == 1


def test_the_text_behind_the_events_in_the_middle_of_them_is_no_second_document(tmp_path: Path) -> None:
    end = TEXT[TEXT.rindex("]") :]
    middle = TEXT.index("{", len(TEXT) // 2)
    middle = TEXT.index('  {\n    "ph"', middle)
    trace = loaded(tmp_path, TEXT[:middle] + end + ",\n" + TEXT[middle:])
    assert names(trace) == WORK
    assert issues(trace)["event_unreadable"] >= 1
