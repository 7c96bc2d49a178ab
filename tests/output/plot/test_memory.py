from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd

import htagraph as hg
from htagraph.trace.profiler_files.memory_timeline import CATEGORIES
from tests.strategies import load, op
from tests.trace.profiler_files.made import allocation

GIB = 2**30


def test_categories_are_stacked_areas_that_sum_to_all() -> None:
    columns = {f"{category}_bytes": [number * GIB, 0] for number, category in enumerate(CATEGORIES)}
    table = pd.DataFrame({"time_us": [2000.0, 3000.0], **columns}).assign(total_bytes=[28 * GIB, 0])
    figure = hg.plot.memory_timeline(table)
    assert sum(area.y[0] for area in figure.data) == 28
    assert {area.stackgroup for area in figure.data} == {"memory"}
    title = figure.layout.title.text
    assert title.startswith("Memory peaks at 28 GiB after 2.00 ms; 25 % of that is of category unknown<br>")


def test_a_device_has_lines_of_memory_in_use_and_reserved() -> None:
    graph = load([op("a", 0, 9), allocation(1, 8), allocation(2, -8)])
    lines = hg.plot.memory_timeline(hg.memory.timeline(graph)).data
    assert lines[0].y.tolist()[0] == hg.memory.timeline(graph)["allocated_bytes"].iloc[0]


def test_a_snapshot_is_a_line_of_its_device(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.pickle"
    history = [{"action": "alloc", "addr": 1, "size": GIB, "time_us": 4}]
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [history]}))
    (line,) = hg.plot.memory_timeline(hg.memory.read_snapshot(path)).data
    assert list(line.x) == [0.0]


def test_a_million_points_are_thinned_and_keep_their_peak() -> None:
    size = np.zeros(100_000, np.int64)
    size[77_777] = 5 * GIB
    time = np.arange(100_000, dtype=np.float64)
    table = pd.DataFrame({"rank": 0, "device": "cuda:0", "time_us": time, "allocated_bytes": size})
    (line,) = hg.plot.memory_timeline(table).data
    assert len(line.y) <= 2001
    assert max(line.y) == 5
    assert line.x[-1] == time[-1] / 1000


def test_many_devices_are_a_picture() -> None:
    table = pd.DataFrame({"rank": range(512), "device": "cuda:0", "time_us": 1.0, "allocated_bytes": GIB})
    (picture,) = hg.plot.memory_timeline(table).data
    assert (picture.type, len(picture.z)) == ("heatmap", 512)
