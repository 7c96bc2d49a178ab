from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd

import htagraph as hg
from htagraph.trace.profiler_files.files import CATEGORIES
from tests.output.plot.jobs import many_ranks
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, kernel, launch, load, op
from tests.trace.profiler_files.made import allocation

DEMO = graph_of(DATA / "demo")


def test_few_streams_are_lines_of_steps() -> None:
    graph = load([launch(0, 1, 1), launch(1, 1, 2), kernel(COMPUTE, 5, 5, 1), kernel(COMPUTE, 10, 5, 2)])
    (line,) = hg.plot.queue_length(hg.queue_length(graph)).data
    assert line.line.shape == "hv"
    assert line.y.tolist() == [1, 2, 1, 0]


def test_many_streams_are_a_picture_whose_highest_cell_is_the_peak() -> None:
    table = hg.queue_length(DEMO)
    figure = hg.plot.queue_length(table)
    peaks = table.groupby(["rank", "stream"])["queue_length"].max()
    assert np.nanmax(figure.data[0].z, axis=1).tolist() == peaks.tolist()
    start = f"At most {table['queue_length'].max()} kernels and copies are queued (rank 2, stream 7,"
    assert figure.layout.title.text.startswith(start)
    copies = hg.memory_bandwidth(DEMO)
    start = f"Copies reach at most {copies['bandwidth_gb_s'].max():.3g} GB/s ("
    assert hg.plot.memory_bandwidth(copies).layout.title.text.startswith(start)


def test_of_many_ranks_the_same_streams_are_one_below_the_other() -> None:
    table = many_ranks(hg.queue_length(DEMO), 64)
    (picture,) = hg.plot.queue_length(table.assign(device=table["rank"] % 8)).data
    streams = [label.split(",")[0] for label in picture.y]
    assert streams == sorted(streams, key=lambda stream: int(stream.split()[1]))


GB = 10**9


def test_categories_are_stacked_areas_that_sum_to_all() -> None:
    columns = {f"{category}_bytes": [number * GB, 0] for number, category in enumerate(CATEGORIES)}
    table = pd.DataFrame({"time_us": [2000.0, 3000.0], **columns}).assign(total_bytes=[28 * GB, 0])
    figure = hg.plot.memory_timeline(table)
    assert sum(area.y[0] for area in figure.data) == 28
    assert {area.stackgroup for area in figure.data} == {"memory"}
    title = figure.layout.title.text
    assert title.startswith("Memory peaks at 28 GB after 2.00 ms; 25 % of that is of category unknown<br>")


def test_a_device_has_lines_of_memory_in_use_and_reserved() -> None:
    graph = load([op("a", 0, 9), allocation(1, 8), allocation(2, -8)])
    lines = hg.plot.memory_timeline(hg.memory.timeline(graph)).data
    assert lines[0].y.tolist()[0] == hg.memory.timeline(graph)["allocated_bytes"].iloc[0]


def test_a_snapshot_is_a_line_of_its_device(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.pickle"
    history = [{"action": "alloc", "addr": 1, "size": GB, "time_us": 4}]
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [history]}))
    (line,) = hg.plot.memory_timeline(hg.memory.read_snapshot(path)).data
    assert list(line.x) == [0.0]


def test_a_million_points_are_thinned_and_keep_their_peak() -> None:
    size = np.zeros(100_000, np.int64)
    size[77_777] = 5 * GB
    time = np.arange(100_000, dtype=np.float64)
    table = pd.DataFrame({"rank": 0, "device": "cuda:0", "time_us": time, "allocated_bytes": size})
    (line,) = hg.plot.memory_timeline(table).data
    assert len(line.y) <= 2001
    assert max(line.y) == 5
    assert line.x[-1] == time[-1] / 1000


def test_many_devices_are_a_picture() -> None:
    table = pd.DataFrame({"rank": range(512), "device": "cuda:0", "time_us": 1.0, "allocated_bytes": GB})
    (picture,) = hg.plot.memory_timeline(table).data
    assert (picture.type, len(picture.z)) == ("heatmap", 512)
