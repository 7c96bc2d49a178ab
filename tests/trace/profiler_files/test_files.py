from __future__ import annotations

import gzip
import json
import os
import pickle
import zlib
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.core.errors import DamagedTraceError, TraceError
from htagraph.memory_analysis import MemoryAnalysis
from htagraph.trace.profiler_files import files
from htagraph.trace.profiler_files.files import CATEGORIES, content, inflated, kind_of
from tests.command_line import one_line_of_error
from tests.reach import SHARED
from tests.strategies import Json, annotation, load, op

CONTENTS = {
    "snapshot": pickle.dumps({"segments": []}),
    "timeline": b" [\n [1, 2, 3, 4]]",
    "trace": json.dumps({"schemaVersion": 1, "traceEvents": []}).encode(),
}


@given(data=st.binary(max_size=50), gzipped=st.booleans())
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_content_is_the_same_gzipped_or_not(data: bytes, tmp_path: Path, *, gzipped: bool) -> None:
    path = tmp_path / "file"  # without a suffix that would tell
    path.write_bytes(gzip.compress(data) if gzipped else b"." + data)
    assert content(path) == (data if gzipped else b"." + data)


@pytest.mark.parametrize("cut", [3, 15, 25])
def test_a_gzip_stream_that_ends_early_is_refused(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"some text that is long enough")[:cut])
    with pytest.raises(DamagedTraceError, match=r"a\.json\.gz: the gzip stream is damaged"):
        content(path)


@pytest.mark.parametrize("name", ["absent", "."])
def test_what_is_not_a_readable_file_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="cannot be read"):
        content(tmp_path / name)


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("gzipped", [False, True])
def test_a_files_kind_is_that_of_its_content(kind: str, tmp_path: Path, *, gzipped: bool) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(gzip.compress(CONTENTS[kind]) if gzipped else CONTENTS[kind])
    assert kind_of(path) == kind


@pytest.mark.parametrize("data", [b"", b"[", b"[1]", b'[{"ph"', b"\x1f\x8b damaged", b"text"])
def test_anything_else_counts_as_a_trace(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert kind_of(path) == "trace"


def test_folders_absent_files_and_pipes_count_as_traces(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert [kind_of(tmp_path / name) for name in (".", "absent", "pipe", "a\0b")] == ["trace"] * 4


@pytest.mark.parametrize("gzipped", [False, True])
def test_content_has_a_limit_that_the_error_names(tmp_path: Path, *, gzipped: bool) -> None:
    data = b"[" + b" " * 5000
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(data) if gzipped else data)
    with patch.object(files, "MAX_BYTES", 5000), pytest.raises(TraceError, match=r"file: has more than .* MiB"):
        content(path)
    with patch.object(files, "MAX_BYTES", 5001):
        assert content(path) == data


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_what_was_compressed_comes_back(size: int) -> None:
    assert inflated(zlib.compress(bytes(size)), size + 1) == bytes(size)


def test_too_many_bytes_too_few_and_others_are_refused() -> None:
    packed = zlib.compress(bytes(1_000_000))
    with pytest.raises(ValueError, match="too many"):
        inflated(packed, 1000)
    with pytest.raises(ValueError, match="end early"):
        inflated(packed[:-4], 2_000_000)
    with pytest.raises(zlib.error):
        inflated(b"no zlib", 1000)


PAIR = SHARED / "hta" / "execution_trace"
LINKED = {
    0: 3, 1: 4, 2: 5, 3: 8, 4: 9, 5: 10, 6: 13, 7: 14, 8: 15, 9: 16, 10: 17, 11: 18, 12: 21, 13: 22, 14: 23, 15: 26,
    16: 27, 17: 28, 18: 29, 19: 32, 20: 35, 21: 36, 22: 39, 23: 40, 24: 41, 25: 42, 26: 44, 27: 45, 28: 46, 29: 49,
    30: 50, 31: 51, 32: 52, 33: 55, 34: 57, 35: 58,
}  # fmt: skip
"""Event → node, as HTA 0.6.1's correlate_execution_trace gives them (its parser, et_replay, replaced)."""


def node(number: int, name: str, rf_id: int, **more: Any) -> Json:
    return {"id": number, "name": name, "rf_id": rf_id, "parent": 1, **more}


def newer(number: int, name: str, rf_id: int, shapes: Any = ()) -> Json:
    """Return a node of schema 1.1."""
    return {
        "id": number, "name": name, "ctrl_deps": 1,
        "inputs": {"values": [], "shapes": list(shapes), "types": ["Tensor(float)"]},
        "outputs": {"values": [], "shapes": [], "types": []},
        "attrs": [{"name": "rf_id", "value": rf_id}, {"name": "op_schema", "type": "string", "value": "s"}],
    }  # fmt: skip


def written(nodes: Any, folder: Path, *, packed: bool = False) -> Path:
    path = folder / "et.json"
    data = json.dumps({"schema": "1.0.1", "nodes": nodes}).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


@pytest.mark.skipif(not PAIR.is_dir(), reason="the shared traces are not here")
def test_the_pair_in_reach_is_linked_as_hta_links_it() -> None:
    graph = hg.load({0: PAIR / "benchmark_simple_add_trace.json.gz"})
    nodes = hg.execution_trace.read(PAIR / "benchmark_simple_add_et.json.gz")
    linked = hg.execution_trace.link(graph, nodes)
    assert len(nodes) == 38
    assert dict(zip(graph.activities.event[linked.index].tolist(), linked["et_node"], strict=True)) == LINKED
    first = linked[linked["name"] == "aten::uniform_"].iloc[0]
    assert first["input_shapes"] == [[256, 256], [], [], []]
    assert first["output_types"] == ["Tensor(float)"]
    assert first["op_schema"].startswith("aten::uniform_(Tensor(a!) self")


def test_both_schemas_read_alike(tmp_path: Path) -> None:
    old = node(5, "aten::mm", 3, op_schema="s", input_shapes=[[2]], input_types=["Tensor(float)"])
    first = hg.execution_trace.read(written([old], tmp_path))
    second = hg.execution_trace.read(written([newer(5, "aten::mm", 3, [[2]])], tmp_path, packed=True))
    assert first.to_dict() == second.to_dict()


def test_only_pairs_of_one_name_are_linked(tmp_path: Path) -> None:
    graph = load([op("a", 0, 9, **{"External id": 4}), op("b", 1, 2, **{"External id": 5}), annotation("c", 4, 2)])
    nodes = hg.execution_trace.read(written([node(7, "a", 4), node(8, "x", 5), node(9, "c", 0)], tmp_path))
    linked = hg.execution_trace.link(graph, nodes, rank=0)
    assert linked[["name", "et_node"]].to_dict("index") == {0: {"name": "a", "et_node": 7}}


def test_a_trace_of_another_run_is_refused(tmp_path: Path) -> None:
    graph = load([op("a", 0, 9, **{"External id": 4}), op("b", 1, 2, **{"External id": 5})])
    nodes = hg.execution_trace.read(written([node(7, "x", 4), node(8, "y", 5)], tmp_path))
    with pytest.raises(hg.TraceError, match="not of this run: 2 of 2 shared ids have other names, such as 'x' for 'a'"):
        hg.execution_trace.link(graph, nodes)


def test_of_several_ranks_one_is_named(tmp_path: Path) -> None:
    graph = load({0: [op("a", 0, 9)], 3: [op("a", 0, 9, **{"External id": 4})]})
    nodes = hg.execution_trace.read(written([node(7, "a", 4)], tmp_path))
    with pytest.raises(hg.SelectionError, match="this graph has ranks 0, 3"):
        hg.execution_trace.link(graph, nodes)
    assert hg.execution_trace.link(graph, nodes, rank=3)["et_node"].tolist() == [7]
    assert hg.execution_trace.link(graph, nodes, rank=0)["et_node"].tolist() == []


@pytest.mark.parametrize("root", [{}, [], 3, {"nodes": [3]}, {"nodes": [{"id": "x", "name": ""}]}, {"nodes": 4}])
def test_what_is_no_execution_trace_is_refused(root: Any, tmp_path: Path) -> None:
    path = tmp_path / "et.json"
    path.write_text(json.dumps(root), encoding="utf-8")
    with pytest.raises(hg.NotATraceError, match="not an execution trace"):
        hg.execution_trace.read(path)


def test_an_empty_one_links_nothing(tmp_path: Path) -> None:
    nodes = hg.execution_trace.read(written([], tmp_path))
    some = hg.execution_trace.read(written([node(7, "a", 4)], tmp_path))
    assert nodes.dtypes.to_dict() == some.dtypes.to_dict()
    graph = load([op("a", 0, 9, **{"External id": 4})])
    none, one = (hg.execution_trace.link(graph, each) for each in (nodes, some))
    assert none.dtypes.to_dict() == one.dtypes.to_dict()
    assert (len(none), len(one)) == (0, 1)


def test_what_is_nested_beyond_measure_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(hg.NotATraceError, match="not an execution trace"):
        hg.execution_trace.read(path)


REAL = SHARED / "hta" / "small" / "memory_timeline.raw.gz"
COLUMNS = [f"{category}_bytes" for category in CATEGORIES]
AT_744 = [102440608, 102228128, 19395584, 0, 2618160128, 58417152, 41811968, 25494440]
"""What HTA's own test of its memory analysis asserts of this file."""


def timeline_of(root: Any, folder: Path, *, packed: bool = True) -> Path:
    path = folder / "memory.raw.json.gz"
    data = json.dumps(root).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


@pytest.mark.skipif(not REAL.is_file(), reason="the shared traces are not here")
def test_the_real_timeline_is_htas() -> None:
    timeline = hg.memory.read_timeline(REAL)
    assert timeline[COLUMNS].iloc[744].tolist() == AT_744
    times, sizes = MemoryAnalysis(REAL)._process_raw_events()
    assert sizes[744] == AT_744
    assert (times, sizes) == by_the_event(json.loads(gzip.decompress(REAL.read_bytes())))


def by_the_event(events: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Return times and sizes, one event after the other."""
    times: list[int] = []
    sizes: list[list[int]] = []
    for time, _, count, category in events:
        if not times or time != times[-1]:
            times.append(time)
            sizes.append(list(sizes[-1]) if sizes else [0] * len(CATEGORIES))
        sizes[-1][category] += count
    known = [time for time in times if time >= 0]
    return [time if time >= 0 else min(known, default=0) for time in times], sizes


@given(
    st.lists(st.tuples(st.sampled_from([-1, 3, 5, 9]), st.just(2), st.integers(-9, 9), st.integers(0, 7)), max_size=20)
)
@settings(max_examples=50)
def test_sizes_add_up(events: list[tuple[int, int, int, int]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = timeline_of(events, Path(folder), packed=bool(events))
        timeline = hg.memory.read_timeline(path)
        assert (timeline["time_ns"].tolist(), timeline[COLUMNS].to_numpy().tolist()) == by_the_event(
            list(map(list, events))
        )
        assert MemoryAnalysis(path)._process_raw_events() == by_the_event(list(map(list, events)))
    assert (timeline["total_bytes"] == timeline[COLUMNS].sum(axis=1)).all()


def test_times_and_sizes_are_read_too(tmp_path: Path) -> None:
    path = timeline_of([[5, 8], [[1, 0, 0, 0, 0, 0, 0, 2], [0, 0, 0, 0, 3, 0, 0, 2]]], tmp_path, packed=False)
    timeline = hg.memory.read_timeline(path)
    assert timeline["total_bytes"].tolist() == [3, 5]
    assert timeline["time_us"].tolist() == [0.0, 0.003]


NO_TIMELINES = [
    {}, {"traceEvents": []}, [[1, 2, 3]], [[1, 2, 3, 8]], [["a", 1, 2, 3]], 5, "text", ["1234"], [[1, 1, "2", 3]],
    [[1, 2], [[1], [2]]], [[1, 2], [[1] * 8, [2] * 7]], [[1.5], [[1] * 8]], [[5], [[2**62] * 8]],
    [[1, 2**63, 2, 3]], [[1, 1, 2**62, 3]] * 3,
]  # fmt: skip


@pytest.mark.parametrize("root", NO_TIMELINES)
def test_what_is_no_timeline_is_refused(root: Any, tmp_path: Path) -> None:
    with pytest.raises(hg.NotATraceError, match="not a memory timeline"):
        hg.memory.read_timeline(timeline_of(root, tmp_path))


def test_damage_is_told(tmp_path: Path) -> None:
    path = timeline_of([[1, 2, 3, 4]], tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(hg.DamagedTraceError, match="gzip stream is damaged"):
        hg.memory.read_timeline(path)


def test_a_timeline_that_is_nested_beyond_measure_is_refused(tmp_path: Path, run: Any) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(hg.NotATraceError, match="not a memory timeline"):
        hg.memory.read_timeline(path)
    one_line_of_error(run("memory", path), str(path))
