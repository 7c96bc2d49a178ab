from __future__ import annotations

import htagraph as hg
from tests.reach import DATA, graph_of


def test_each_launch_and_each_work_is_counted_once() -> None:
    table = hg.launch_stats(graph_of(DATA / "demo"))
    bars = hg.plot.launch_stats(table).data
    assert sum(int(bar.y.sum()) for bar in bars if bar.xaxis == "x") == len(table)
    assert [int(bar.y.sum()) for bar in bars if bar.xaxis == "x2"] == [table["launch"].nunique()]


def test_the_title_gives_the_median_and_the_longest_delay() -> None:
    table = hg.launch_stats(graph_of(DATA / "demo")).head(3).assign(delay_us=[1.0, 2.0, 30.0])
    title = hg.plot.launch_stats(table).layout.title.text.replace("<br>", " ")
    assert title.startswith(
        "Half of 3 kernels and copies start within 2.0 µs of their launch, the latest after 30.0 µs"
    )
