"""``htagraph memory`` on traces, timelines and snapshots."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import one_line_of_error
from tests.reach import REPOSITORY
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
    _snapshot: "Device 0 holds 2.0 MB in 1 segment; 512 B is in use, 400 B at most.",
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


@every_file
@pytest.mark.parametrize("form", FORMS)
def test_every_format_is_written(made: Any, form: str, run: Any, tmp_path: Path) -> None:
    ran = run("memory", made(tmp_path), "--format", form)
    assert ran.code == 0
    assert len(ran.out.splitlines()) > 4


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
