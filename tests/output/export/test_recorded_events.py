"""Whether scanned events are written as decoded ones are, and processes of several ranks stay apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.output.export.originals import survey
from htagraph.output.export.recorded_events import ARGS as ARGUMENTS
from htagraph.output.export.recorded_events import (
    CATEGORY,
    INSIDE,
    NAME,
    PLAIN,
    PREDICTED,
    SCOPE,
    EventDecoder,
    PidOf,
    PidOfRank,
    RecordedEvents,
    event_spans,
)
from htagraph.output.export.trace_writer import TraceWriter
from htagraph.trace.kineto.decode import BlockDecoder
from htagraph.trace.kineto.scan.scanner import Block, Scanner, span_text

ARGS = st.sampled_from([None, {}, {"stream": 7}, {"a": "C:\\", "b": [1, {"c": None}]}, {"critical_us": 1}, [1], "text"])
EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "ph": st.sampled_from("XXXXXXXiICsftBEMb"),
            "pid": st.sampled_from([0, 7, "Spans"]),
            "tid": st.sampled_from([1, -5, "7", "loop"]),
            "ts": st.sampled_from([0, 1, 2.5, 3.001, 4, 1000, -4_000_000_000, "5.5"]),
        },
        optional={
            "name": st.sampled_from(["a", "naïve", "tail\\", 'say "x"', 5, "</script>"]),
            "cat": st.sampled_from(["cpu_op", "kernel", "ac2g", None]),
            "dur": st.sampled_from([0, 1, 2.25, 100]),
            "args": ARGS,
            "id": st.sampled_from([1, 2, "2", "x", None]),
            "bp": st.just("e"),
            "s": st.sampled_from(["g", "t"]),
            "other": st.just({"more": []}),
        },
    ),
    min_size=1,
    max_size=30,
)


def written(graph: hg.DependencyGraph, folder: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the events that are written of rank 0, and how many are left out."""
    original = survey(graph, 0)
    critical = np.where(original.index % 3 == 0, 1_500, 0)
    events = RecordedEvents(original, original.first_ns or 0, PidOf(), critical)
    with TraceWriter(folder / "written.json") as writer:
        writer.add(events)
    return json.loads((folder / "written.json").read_text())["traceEvents"], events.left_out


@given(EVENTS)
@settings(max_examples=60)
def test_scanned_events_are_written_as_decoded_ones_are(
    tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, Any]]
) -> None:
    folder = tmp_path_factory.mktemp("both")
    anchor = {"ph": "X", "cat": "cpu_op", "name": "first", "pid": 0, "tid": 1, "ts": 0, "dur": 1, "args": {"x": 1}}
    (folder / "trace.json").write_text(json.dumps({"traceEvents": [anchor, *events]}))
    graph = hg.load(folder / "trace.json")
    scanned = written(graph, folder)
    with pytest.MonkeyPatch.context() as patch:
        for decoder in (BlockDecoder, EventDecoder):
            patch.setattr(decoder, "scan", lambda self, text, offset: None)
        assert ordered(written(graph, folder)) == ordered(scanned)


def ordered(result: tuple[list[dict[str, Any]], int]) -> tuple[list[str], int]:
    """Return what is written, without the order of events that come late and of others at their moment."""
    return sorted(json.dumps(event, sort_keys=True) for event in result[0]), result[1]


def test_begins_and_ends_are_drawn_as_the_slices_that_they_make(tmp_path: Path) -> None:
    around = {"cat": "cpu_op", "pid": 1, "tid": 1}
    events = [
        {"ph": "X", "name": "around", "ts": 0, "dur": 100, **around},
        {"ph": "B", "name": "inside", "ts": 10, **around},
        {"ph": "E", "ts": 20, **around},
        {"ph": "E", "name": "never begun", "ts": 130, **around},
    ]
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": events}))
    shown, _ = written(hg.load(tmp_path / "trace.json"), tmp_path)
    drawn = [(event["name"], event["ph"], event["ts"], event["dur"]) for event in shown if event["ph"] != "M"]
    assert drawn == [("around", "X", 0, 100), ("inside", "X", 10, 10)]


EVENT = {"ph": "X", "name": "a", "cat": "kernel", "pid": 0, "tid": 7, "ts": 1.25, "dur": 2, "args": {"stream": 7}}


def scanned(text: str) -> Block:
    block, _ = Scanner(calls=False).scan(text.encode(), 0, exact=False)
    assert block is not None
    return block


def test_spans_are_those_of_the_values() -> None:
    block = scanned(json.dumps(EVENT) + ', {"ph": "i", "s": "t", "args" : { "x": [1, 2] } , "name":"b","ts":5 }')
    spans = event_spans(block, np.array([0, 1]))
    texts = [
        {each: span_text(block.text, row[each]) for each in (NAME, CATEGORY, ARGUMENTS, SCOPE, INSIDE)} for row in spans
    ]
    assert texts[0] == {
        NAME: b'"a"',
        CATEGORY: b'"kernel"',
        ARGUMENTS: b'{"stream": 7}',
        SCOPE: b"",
        INSIDE: b'"stream": 7',
    }
    assert texts[1] == {
        NAME: b'"b"',
        CATEGORY: b"",
        ARGUMENTS: b'{ "x": [1, 2] }',
        SCOPE: b'"t"',
        INSIDE: b'"x": [1, 2]',
    }
    assert spans[:, PLAIN].tolist() == [1, 1]


@pytest.mark.parametrize(
    "change", [{"name": "C:\\x"}, {"id": 3}, {"args": {"x": "\\"}}, {"bp": "e"}, {"sf": 1}, {"name": "12345678\\"}]
)
def test_an_event_with_a_backslash_or_another_key_is_not_plain(change: dict[str, Any]) -> None:
    assert not event_spans(scanned(json.dumps(EVENT | change)), np.array([0]))[0, PLAIN]


def test_a_backslash_behind_a_value_is_not_in_it() -> None:
    block = scanned('{"ph":"X","ts":0,"dur":1,"args":{},"name":"a"},{"ph":"X","name":"\\\\","ts":1}')
    assert event_spans(block, np.array([0, 1]))[:, PLAIN].tolist() == [1, 0]


def test_an_event_without_a_name_is_not_plain() -> None:
    assert not event_spans(scanned('{"ph":"i","ts":0,"args":{"x":1}}'), np.array([0]))[0, PLAIN]


def test_damage_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        EventDecoder()(b'[{"ph": "X", "name": "\\x"}]')
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        EventDecoder()(b'[{"ph": "X", "name": "a", "args": {"b": "\xff"}}]')


@pytest.mark.parametrize(("pids", "own"), [(PidOf(), 3), (PidOfRank(), 1)])
def test_no_two_ranks_share_a_process(pids: PidOf, own: int) -> None:
    for rank in range(3):
        assert len({pids[rank, pid] for pid in (0, 1234, "Spans")}) == own
    assert len({pids[rank, pid] for rank in range(3) for pid in (0, 1234, "Spans", PREDICTED)}) == 3 * (own + 1)


def test_a_process_keeps_its_number() -> None:
    pids = PidOf()
    first = pids[1, 7]
    assert (pids[1, "other"] != first, pids[1, 7]) == (True, first)
