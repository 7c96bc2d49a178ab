"""Events read again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import IssueLog, TraceError
from htagraph.trace.kineto.scan.grammar import Bytes
from htagraph.trace.pftrace import again
from htagraph.trace.pftrace.again import arguments, category_arguments, check_arguments, event
from htagraph.trace.pftrace.packets import text_of_file
from htagraph.trace.remote import TracePath
from tests.trace.pftrace.made import EVENTS, STREAM, THREAD, small, trace_of


def test_every_event_equals_the_one_in_json(tmp_path: Path) -> None:
    trace = trace_of(small(tmp_path / "a.pftrace"))
    written = {(each["name"], each["ts"]): each for each in EVENTS}
    for row, index in enumerate(trace.events.index.tolist()):
        model = event(trace, index)
        assert model.name == trace.names[trace.events.name[row]].partition(" (")[0]
        assert (model.ts_ns, model.dur_ns) == (trace.events.start[row], trace.events.duration[row])
        assert model.cat == trace.categories[trace.events.category[row]]
    found = {each.name: each for each in (event(trace, index) for index in trace.events.index.tolist())}
    assert (found["gemm"].args.grid, found["gemm"].args.block) == ([4, 2, 1], [128, 1, 1])
    assert (found["gemm"].args.registers_per_thread, found["gemm"].tid) == (40, STREAM)
    assert found["cudaLaunchKernel"].args.cbid == 211
    assert found["cudaLaunchKernel"].tid == THREAD
    assert len(written) == len(EVENTS)


def test_an_event_that_is_not_there_is_refused(tmp_path: Path) -> None:
    trace = trace_of(small(tmp_path / "a.pftrace"))
    with pytest.raises(TraceError, match="has no event 99"):
        event(trace, 99)


def test_a_file_is_read_once_for_its_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = list[object]()

    def read(path: TracePath, log: IssueLog) -> Bytes:
        reads.append(path)
        return text_of_file(path, log)

    monkeypatch.setattr(again, "text_of_file", read)
    trace, other = (trace_of(small(tmp_path / name)) for name in ("a.pftrace", "b.pftrace"))
    for each in (trace, trace, other, other, trace):
        assert event(each, 0).name == "ProfilerStep#1"
    assert reads == [trace.path, other.path, trace.path]
    monkeypatch.setattr(again, "_MOST_KEPT_BYTES", 0)
    for each in (other, other):
        assert event(each, 0).name == "ProfilerStep#1"
    assert reads[3:] == [other.path, other.path]


def test_a_file_that_was_changed_is_not_read_again(tmp_path: Path) -> None:
    trace = trace_of(small(tmp_path / "a.pftrace"))
    assert event(trace, 0).name == "ProfilerStep#1"
    trace.path.write_bytes(b"")  # type: ignore[union-attr] # a file of the disk
    with pytest.raises(TraceError, match="was changed since it was loaded"):
        event(trace, 0)


def test_arguments_of_some_events(tmp_path: Path) -> None:
    trace = trace_of(small(tmp_path / "a.pftrace"))
    found = arguments(trace.path, ["Input Dims", "External id"], np.array([2, 1]), as_text=False)
    assert found["External id"].tolist() == [4, 3]
    assert found["Input Dims"].tolist() == [None, [[2, 3], [3, 4]]]
    texts = arguments(trace.path, ["Input Dims"], np.array([1]), as_text=True)
    assert texts["Input Dims"].tolist() == [b"[[2, 3], [3, 4]]"]


def test_tables_of_arguments(tmp_path: Path) -> None:
    path = small(tmp_path / "a.pftrace")
    assert category_arguments(path, "kernel")["correlation"].tolist() == [9, 10, 10]
    assert len(category_arguments(path)) == len(EVENTS)
    checked = check_arguments(path)
    assert checked["wrong"].sum() == 0
    row = checked[(checked["category"] == "cpu_op") & (checked["argument"] == "External id")]
    assert row["events"].tolist() == [2]


def test_the_graph_gives_events(tmp_path: Path) -> None:
    graph = hg.load(small(tmp_path / "a.pftrace"))
    kernel = int(graph.select(kind="device").activities[0])
    assert graph.event(kernel).args.correlation == 9
    assert hg.validate(tmp_path / "a.pftrace", arguments=True).usable
