"""Whole files: known events, and what is reported of what cannot be read."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import DamagedTraceError, NotATraceError
from htagraph.simulate.next_pftrace import message, packet
from htagraph.trace.columns import Trace
from tests.trace.pftrace.made import BASE_NS, EVENTS, STREAM, THREAD, issues_of, plain, slices, small, trace_of, work


def rows_of(trace: Trace) -> list[tuple[str, str, int, int]]:
    events = trace.events
    return [
        (trace.names[name], trace.categories[category], start - BASE_NS, duration)
        for name, category, start, duration in zip(
            events.name.tolist(),
            events.category.tolist(),
            events.start.tolist(),
            events.duration.tolist(),
            strict=True,
        )
    ]


def test_every_event_is_read_with_its_name_category_and_times(tmp_path: Path) -> None:
    trace = trace_of(small(tmp_path / "rank-3.pftrace"))
    expected = [(e["name"], e["cat"], 1000 * e["ts"], 1000 * e["dur"]) for e in EVENTS]
    assert sorted(rows_of(trace)) == sorted(expected)
    assert trace.issues == ()
    assert trace.counts["X"] == len(EVENTS)
    assert trace.thread_names[5, THREAD] == "main"
    assert trace.facts.base_ns == BASE_NS - BASE_NS
    on_device = trace.in_categories("kernel", "gpu_memset", "cuda_sync")
    assert {trace.lanes[lane] for lane in trace.events.lane[on_device].tolist()} == {(0, STREAM)}


def test_arguments_become_columns(tmp_path: Path) -> None:
    trace = trace_of(small(tmp_path / "a.pftrace"))
    by_name = {row[0]: place for place, row in enumerate(rows_of(trace))}
    for name, column, value in (
        ("gemm", "correlation", 9),
        ("two", "graph_node_id", 2),
        ("gemm", "stream", STREAM),
        ("cudaLaunchKernel", "correlation", 9),
        ("Memset (Device)", "bytes", 64),
        ("Stream Sync", "correlation", 12),
        ("ProfilerStep#1", "external_id", -1),
    ):
        assert trace.events.arg(column)[by_name[name]] == value, name
    operators = trace.events.arg("external_id")[trace.in_categories("cpu_op")]
    assert sorted(operators.tolist()) == [3, 4]


def test_waits_of_stages_are_dependencies(tmp_path: Path) -> None:
    trace = trace_of(small(tmp_path / "a.pftrace"))
    index = {row[0]: number for row, number in zip(rows_of(trace), trace.events.index.tolist(), strict=True)}
    assert trace.dependencies.source.tolist() == [index["one"]]
    assert trace.dependencies.target.tolist() == [index["two"]]
    lost = trace_of(small(tmp_path / "b.pftrace"), plain().replace(b"\x90\x01\x02", b"\x90\x01\x63"))
    assert len(lost.dependencies) == 0
    assert issues_of(lost) == {"dependency_unmatched": 1}


def test_a_packed_and_a_plain_file_are_read_alike(tmp_path: Path) -> None:
    packed = trace_of(tmp_path / "a.pftrace.gz", gzip.compress(plain()))
    assert rows_of(packed) == rows_of(trace_of(tmp_path / "a.pftrace", plain()))


def test_slices_in_the_order_of_time_nest(tmp_path: Path) -> None:
    """As most writers write: an end closes the slice of its track that began last."""
    times = ((1, 1, 10), (1, 2, 11), (1, 1, 12), (2, 1, 13), (2, 2, 14), (2, 1, 15))
    trace = trace_of(tmp_path / "a.pftrace", slices(*times))
    assert sorted(zip(trace.events.start.tolist(), trace.events.duration.tolist(), strict=True)) == [
        (10, 5),
        (11, 3),
        (12, 1),
    ]


def test_begins_and_ends_without_partners_are_reported(tmp_path: Path) -> None:
    trace = trace_of(tmp_path / "a.pftrace", slices((1, 1, 10), (2, 1, 13), (2, 1, 14), (1, 1, 20)))
    assert issues_of(trace) == {"begin_unpaired": 1, "end_unpaired": 1, "no_base_time": 1, "track_unknown": 1}
    assert len(trace.events) == 1


def test_texts_interned_before_a_reset_are_forgotten(tmp_path: Path) -> None:
    def named(iid: int, name: str, flags: int) -> bytes:
        return packet((10, 1), (12, message((2, message((1, iid), (2, name))))), (13, flags))

    def slice_of(iid: int, time: int) -> bytes:
        begin = packet((8, time), (10, 1), (11, message((9, 1), (10, iid), (11, 1))))
        return begin + packet((8, time + 1), (10, 1), (11, message((9, 2), (11, 1))))

    text = named(1, "first", 1) + slice_of(1, 10) + named(1, "second", 1) + slice_of(1, 20) + slice_of(2, 30)
    trace = trace_of(tmp_path / "a.pftrace", text)
    assert [trace.names[name] for name in trace.events.name.tolist()] == ["first", "second", "(no name)"]
    assert issues_of(trace)["name_missing"] == 1


def test_files_of_other_formats_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.pftrace").write_text('{"traceEvents": []}')
    with pytest.raises(NotATraceError, match="JSON, not Perfetto"):
        hg.load(tmp_path / "a.pftrace")
    (tmp_path / "a.pftrace").write_bytes(b"\xff" * 999)
    with pytest.raises(NotATraceError, match="no packets"):
        hg.load(tmp_path / "a.pftrace")
    text = plain()
    (tmp_path / "a.pftrace").write_bytes(text[: text.index(b"aten::mm")])
    with pytest.raises(DamagedTraceError, match="before its first event"):
        trace_of(tmp_path / "a.pftrace")


def test_every_event_has_a_place_of_its_own(tmp_path: Path) -> None:
    trace = trace_of(small(tmp_path / "a.pftrace"))
    assert np.unique(trace.events.index).tolist() == list(range(len(EVENTS)))


@pytest.mark.parametrize("pack", [lambda text: gzip.compress(text, 1), bytes], ids=["packed", "plain"])
def test_a_file_that_ends_early_is_read_to_its_end_at_every_percent(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    events = [work(f"kernel {number}", 10 * number, 5, correlation=number) for number in range(300)]
    text = plain(events)
    whole = pack(text)
    for percent in range(3, 100):
        (tmp_path / "a.pftrace").write_bytes(whole[: len(whole) * percent // 100])
        try:
            trace = trace_of(tmp_path / "a.pftrace")
        except DamagedTraceError:
            assert percent < 60  # names come first
            continue
        issues = issues_of(trace)
        assert trace.counts["X"] == len(trace.events)
        assert issues.keys() & {"truncated", "gzip_truncated"}
        assert trace.events.index.tolist() == list(range(len(trace.events)))
        assert [trace.names[name] for name in trace.events.name.tolist()] == [
            f"kernel {number}" for number in range(len(trace.events))
        ]


def test_long_names_and_many_names_cost_what_their_bytes_cost(tmp_path: Path) -> None:
    names = [f"{number}" + "n" * 10_000 for number in range(2_000)]
    events = [work(name, 10 * number, 5) for number, name in enumerate(names)]
    path = small(tmp_path / "a.pftrace", events)
    before = time.process_time()
    trace = trace_of(path)
    assert time.process_time() - before < 20  # 20 MB; it takes about one
    assert len({trace.names[name] for name in trace.events.name.tolist()}) == len(names)


def test_arguments_inside_arguments_are_no_danger(tmp_path: Path) -> None:
    deep = message((4, 7))
    for _ in range(20_000):
        deep = message((12, deep))
    annotation = (4, message((10, "Process Group Ranks"), (12, deep)))
    begin = packet((8, 5), (10, 1), (11, message((9, 1), (11, 1), (22, "cpu_op"), (23, "gloo:all"), annotation)))
    trace = trace_of(tmp_path / "a.pftrace", begin + slices((2, 1, 9)))
    assert len(trace.events) == 1
