from __future__ import annotations

import numpy as np

import htagraph as hg
from tests.output.plot.jobs import many_ranks
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, kernel, launch, load

DEMO = graph_of(DATA / "demo")


def test_few_streams_are_lines_of_steps() -> None:
    graph = load([launch(0, 1, 1), launch(1, 1, 2), kernel(COMPUTE, 5, 5, 1), kernel(COMPUTE, 10, 5, 2)])
    (line,) = hg.plot.queue_length(hg.queue_length(graph)).data
    assert line.line.shape == "hv"
    assert line.y.tolist() == [1, 2, 1, 0]


def test_many_streams_are_a_picture_whose_highest_cell_is_the_peak() -> None:
    table = hg.queue_length(DEMO)
    (picture,) = hg.plot.queue_length(table).data
    assert len(picture.z) == len(table.drop_duplicates(["rank", "stream"]))
    peaks = table.groupby(["rank", "stream"])["queue_length"].max()
    assert np.nanmax(picture.z, axis=1).tolist() == peaks.tolist()


def test_the_title_names_the_peak() -> None:
    table = hg.queue_length(DEMO)
    title = hg.plot.queue_length(table).layout.title.text
    assert title.startswith(f"At most {table['queue_length'].max()} kernels and copies are queued (rank 2, stream 7,")
    copies = hg.memory_bandwidth(DEMO)
    most = f"{copies['bandwidth_gb_s'].max():.3g} GB/s"
    assert hg.plot.memory_bandwidth(copies).layout.title.text.startswith(f"Copies reach at most {most} (")


def test_of_many_ranks_the_same_streams_are_one_below_the_other() -> None:
    table = many_ranks(hg.queue_length(DEMO), 64)
    (picture,) = hg.plot.queue_length(table.assign(device=table["rank"] % 8)).data
    streams = [label.split(",")[0] for label in picture.y]
    assert streams == sorted(streams, key=lambda stream: int(stream.split()[1]))
