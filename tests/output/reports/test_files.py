"""What lies in files: memory, execution traces, and the cache."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from htagraph.graph.storage import cache
from tests.command_line import one_line_of_error
from tests.reach import DATA, REPOSITORY
from tests.strategies import op, write
from tests.trace.profiler_files.made import allocation

DEMO = REPOSITORY / "data" / "demo"
FORMS = ["table", "json", "csv", "md"]


def _trace(folder: Path) -> Path:
    told = {"Total Allocated": 2_000_000_000, "Total Reserved": 4_000_000_000}
    events = [op("aten::mm", 0, 9), allocation(1, 10_000_000, **told), allocation(2, 20_000_000, 2, device=-1)]
    return write(events, folder / "rank-0.json")


def _timeline(folder: Path) -> Path:
    path = folder / "memory.raw.json.gz"
    path.write_bytes(gzip.compress(json.dumps([[-1, 1, 10_000_000, 0], [5_000, 2, 30_000_000, 4]]).encode()))
    return path


def _snapshot(folder: Path) -> Path:
    block = {"address": 0, "size": 512, "requested_size": 400, "state": "active_allocated", "frames": []}
    segment = {
        "device": 0, "address": 0, "total_size": 2_000_000, "allocated_size": 512, "active_size": 512, "stream": 0,
        "segment_type": "small", "blocks": [block],
    }  # fmt: skip
    path = folder / "snapshot.pickle"
    path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [[]]}))
    return path


TABLES = {
    _trace: {"memory_peaks", "memory_at_peak"},
    _timeline: {"memory_categories"},
    _snapshot: {"memory_devices", "memory_at_peak", "memory_now"},
}
SENTENCES = {
    _trace: "Rank 0 used at most 2.00 GB of cuda:0, 1.0 µs after the start, in aten::mm; "
    "the allocator then held 4.00 GB, 50 % of it unused.",
    _timeline: "At most 40.0 MB was in use, 0.0 µs after the start; 30.0 MB of it was activation.",
    _snapshot: "Device 0 holds 2.0 MB in 1 segment; 512 B is in use. The most that was in use is unknown: no "
    "history was recorded (torch.cuda.memory._record_memory_history()).",
}
every_file = pytest.mark.parametrize("made", TABLES, ids=lambda made: made.__name__)


@every_file
def test_each_kind_of_file_has_its_tables(made: Any, run: Any, tmp_path: Path) -> None:
    envelope = json.loads(run("memory", made(tmp_path), "-f", "json").out)
    assert list(envelope) == [
        "schema_version", "tool", "tool_version", "command", "inputs", "window_us", "warnings", "counts", "results",
    ]  # fmt: skip
    assert set(envelope["results"]) == TABLES[made] | {"conclusions"}
    assert envelope["results"]["conclusions"][0] == SENTENCES[made]


@pytest.mark.slow
@every_file
@pytest.mark.parametrize("form", FORMS)
def test_every_format_is_written(made: Any, form: str, run: Any, tmp_path: Path) -> None:
    chosen = ["--table", min(TABLES[made])] if form == "csv" else []
    ran = run("memory", made(tmp_path), "--format", form, *chosen)
    assert ran.code == 0
    assert len(ran.out.splitlines()) > (0 if form == "csv" else 4)


def test_without_memory_events_it_says_how_to_get_them(run: Any) -> None:
    ran = run("memory", DEMO)
    assert (ran.code, ran.err) == (0, "")
    assert "profile with profile_memory=True" in ran.out


def test_a_snapshot_is_read_alone(run: Any, tmp_path: Path) -> None:
    assert run("memory", _snapshot(tmp_path), "--ranks", "0").code == 2
    assert run("memory", _snapshot(tmp_path), DEMO).code == 2


def test_what_is_neither_is_one_line(run: Any, tmp_path: Path) -> None:
    odd = tmp_path / "odd.pickle"
    odd.write_bytes(pickle.dumps(print))
    one_line_of_error(run("memory", odd), "odd.pickle", "was not loaded")


NODE = {
    "id": 5, "name": "aten::mm", "rf_id": 3, "parent": 1, "op_schema": "aten::mm(Tensor self)",
    "input_shapes": [[2, 2]], "input_types": ["Tensor(float)"], "output_shapes": [], "output_types": [],
}  # fmt: skip


def written(path: Path) -> Path:
    path.write_text(json.dumps({"schema": "1.0.1", "nodes": [NODE, NODE | {"id": 6, "rf_id": 4}]}), encoding="utf-8")
    return path


def test_nodes_are_counted_by_name(run: Any, tmp_path: Path) -> None:
    found = json.loads(run("execution-trace", written(tmp_path / "et.json"), "-f", "json").out)["results"]
    assert found["names"] == [{"name": "aten::mm", "nodes": 2, "op_schema": "aten::mm(Tensor self)"}]
    assert found["nodes"][0]["input_shapes"] == [[2, 2]]
    assert found["conclusions"][0] == "2 nodes of 1 name; 2 are operators with a schema, 2 have input shapes."


def test_a_trace_of_another_run_has_no_nodes(run: Any, tmp_path: Path) -> None:
    trace = write([op("aten::add", 0, 5)], tmp_path / "rank-0.json")
    ran = run("execution-trace", written(tmp_path / "et.json"), trace, "-f", "json")
    assert json.loads(ran.out)["results"]["links"] == []
    assert "No activity of the trace has a node" in json.loads(ran.out)["results"]["conclusions"][1]


def test_what_is_no_execution_trace_is_one_line(run: Any, tmp_path: Path) -> None:
    one_line_of_error(run("execution-trace", write([op("a", 0, 5)], tmp_path / "t.json")), "not an execution trace")


DEMO_CACHE = DATA / "demo"


@pytest.fixture(name="place", autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the user's cache, which takes jobs of any size."""
    monkeypatch.delenv("HTAGRAPH_NO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache, "_WORTH_BYTES", 0)
    return tmp_path / "htagraph"


def graphs(place: Path) -> int:
    return len(list(place.glob("graphs/*.htagraph")))


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [["summary"], ["critical-path", "--step", "6"], ["kernels", "--ranks", "0"], ["what-if", "--network", "0.5"]],
    ids=lambda command: command[0],
)
def test_the_second_answer_is_the_first_and_that_without_a_cache(command: list[str], place: Path, run: Any) -> None:
    verb, *options = command
    without = run(verb, DEMO_CACHE, *options, "-f", "json", "--no-cache")
    assert graphs(place) == 0
    first, second = (run(verb, DEMO_CACHE, *options, "-f", "json") for _ in range(2))
    assert graphs(place) == 1
    assert first == second == without
    assert (first.code, first.err) == (0, "")


@pytest.mark.slow
def test_verbs_share_what_they_loaded(place: Path, run: Any) -> None:
    for verb in ("idle", "kernels", "overlap", "collectives"):
        run(verb, DEMO_CACHE)
    assert graphs(place) == 1


def test_the_environment_turns_it_off(place: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTAGRAPH_NO_CACHE", "1")
    assert run("idle", DEMO_CACHE).code == 0
    assert not place.exists()
    assert "There is no cache" in run("cache", "info").out
    assert "There is no cache" in run("cache", "clear").out


def test_info_lists_jobs_and_clear_removes_them(place: Path, run: Any) -> None:
    run("idle", DEMO_CACHE)
    told = json.loads(run("cache", "info", "-f", "json").out)
    assert (told["schema_version"], told["command"], told["inputs"]) == (1, "cache info", [])
    (row,) = told["results"]["cache"]
    assert (row["job"], row["files"]) == (str(DEMO_CACHE), 4)
    assert told["results"]["total_bytes"] == row["bytes"] > 0
    assert told["results"]["folder"] == str(place)
    gone = json.loads(run("cache", "clear", "-f", "json").out)["results"]
    assert (gone["removed_graphs"], gone["removed_bytes"]) == (1, row["bytes"])
    assert graphs(place) == 0
    assert json.loads(run("cache", "info", "-f", "json").out)["results"]["cache"] == []


@pytest.mark.parametrize("form", ["table", "json", "csv", "md"])
@pytest.mark.parametrize("verb", ["info", "clear"])
def test_every_format_is_written_cache(verb: str, form: str, run: Any, tmp_path: Path) -> None:
    run("idle", DEMO_CACHE)
    chosen = ["--table", "conclusions"] if form == "csv" else []
    ran = run("cache", verb, "-f", form, *chosen)
    assert (ran.code, ran.err) == (0, "")
    assert "1 graph" in ran.out
    assert run("cache", verb, "-f", form, "-o", tmp_path / "out").out == ""
    written = [path for path in [tmp_path / "out", *tmp_path.glob("out/*")] if path.is_file()]
    assert any("graph" in path.read_text() for path in written)


def test_help_says_what_there_is(run: Any) -> None:
    assert {"info", "clear"} <= set(run("cache", "--help").out.split())
    assert "--no-cache" in run("idle", "--help").out
