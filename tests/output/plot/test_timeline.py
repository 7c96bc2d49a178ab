from __future__ import annotations

import numpy as np

import htagraph as hg
from tests.reach import DATA, graph_of
from tests.strategies import COMMUNICATE, COMPUTE, kernel, launch, load


def test_cells_have_the_kind_of_what_runs_and_none_while_idle() -> None:
    events = [launch(0, 1, 1), kernel(COMPUTE, 0, 40, 1), launch(1, 1, 2), kernel(COMMUNICATE, 60, 40, 2, stream=9)]
    figure = hg.plot.timeline(load(events))
    picture = figure.data[0]
    assert list(figure.layout.yaxis.ticktext) == ["rank 0, stream 7", "rank 0, stream 9"]
    quarter = len(picture.x) // 4
    assert picture.z[0, quarter] == 0
    assert picture.z[1, 3 * quarter] == 2
    assert np.isnan(picture.z[0, 3 * quarter])
    assert {trace.name for trace in figure.data[1:]} == {"computation", "communication"}
    assert figure.layout.title.text.startswith("The 2 streams of 1 rank are busy 40 % of 100.0 µs<br>")


def test_a_job_without_devices_has_rows_of_threads() -> None:
    figure = hg.plot.timeline(graph_of(DATA / "gloo_ddp"))
    assert "threads of" in figure.layout.title.text
    assert all(text.startswith("rank ") for text in figure.layout.yaxis.ticktext)
