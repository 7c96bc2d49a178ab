from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph.findings.bound import BOUND
from htagraph.findings.results import Results
from htagraph.output.scene import KIND_COLORS
from htagraph.queries.paths import CATEGORIES, CriticalPath
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


@pytest.fixture(scope="module")
def path() -> CriticalPath:
    return hg.critical_path(graph_of(DATA / "demo"))


def test_the_bars_sum_to_the_path_by_category(path: CriticalPath) -> None:
    bars = {bar.name: float(bar.y.sum()) for bar in path.plot().data if bar.type == "bar"}
    table = path.summary()
    shares = (table[table["group"] == "category"].set_index("key")["time_us"] / 1000).to_dict()
    assert bars == pytest.approx(
        {{"head": "before recording", "data_loading": "data loading"}.get(str(k), k): v for k, v in shares.items()}
    )


def test_the_bars_have_a_place_for_each_step(path: CriticalPath) -> None:
    bar = next(trace for trace in path.plot().data if trace.type == "bar")
    assert list(bar.x)[:3] == ["5", "6", "7"]


def test_the_title_is_what_the_reports_say(path: CriticalPath) -> None:
    title = path.plot().layout.title.text.partition("<br>")[0]
    (claim,) = BOUND.when(Results(path.graph, path=path))
    assert BOUND.whole(claim).startswith(title)
    assert title.startswith("Bound by computation: 67 % of the critical path")


def test_the_strip_has_the_category_that_takes_most_of_each_cell() -> None:
    graph = load([launch(0, 10, 1), kernel(COMPUTE, 10, 90, 1)])
    strip = hg.plot.critical_path(hg.critical_path(graph)).data[-1]
    codes = pd.Series(strip.z[0])
    middle = CATEGORIES[int(codes[codes.size // 2])]
    assert (strip.type, middle) == ("heatmap", "computation")
    assert strip.colorscale[2 * int(codes[codes.size // 2])][1] == KIND_COLORS["computation"]
