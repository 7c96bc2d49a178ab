"""The memory timelines of torch.profiler."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.memory_analysis import MemoryAnalysis
from htagraph.trace.profiler_files.memory_timeline import CATEGORIES
from tests.command_line import one_line_of_error
from tests.reach import SHARED

REAL = SHARED / "hta" / "small" / "memory_timeline.raw.gz"
COLUMNS = [f"{category}_bytes" for category in CATEGORIES]
AT_744 = [102440608, 102228128, 19395584, 0, 2618160128, 58417152, 41811968, 25494440]
"""What HTA's own test of its memory analysis asserts of this file."""


def written(root: Any, folder: Path, *, packed: bool = True) -> Path:
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
        path = written(events, Path(folder), packed=bool(events))
        timeline = hg.memory.read_timeline(path)
        assert (timeline["time_ns"].tolist(), timeline[COLUMNS].to_numpy().tolist()) == by_the_event(
            list(map(list, events))
        )
        assert MemoryAnalysis(path)._process_raw_events() == by_the_event(list(map(list, events)))
    assert (timeline["total_bytes"] == timeline[COLUMNS].sum(axis=1)).all()


def test_times_and_sizes_are_read_too(tmp_path: Path) -> None:
    path = written([[5, 8], [[1, 0, 0, 0, 0, 0, 0, 2], [0, 0, 0, 0, 3, 0, 0, 2]]], tmp_path, packed=False)
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
        hg.memory.read_timeline(written(root, tmp_path))


def test_damage_is_told(tmp_path: Path) -> None:
    path = written([[1, 2, 3, 4]], tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(hg.DamagedTraceError, match="gzip stream is damaged"):
        hg.memory.read_timeline(path)


def test_what_is_nested_beyond_measure_is_refused(tmp_path: Path, run: Any) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(hg.NotATraceError, match="not a memory timeline"):
        hg.memory.read_timeline(path)
    one_line_of_error(run("memory", path), str(path))
