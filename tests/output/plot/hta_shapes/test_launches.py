from __future__ import annotations

import htagraph as hg
from htagraph.output.plot.hta_shapes.launches import late_starts_figure, launch_stats_figures, operator_kernels_figure
from tests.reach import DATA, graph_of


def test_each_table_has_its_figure() -> None:
    graph = graph_of(DATA / "demo")
    stats = hg.launch_stats(graph)
    short, long, late = launch_stats_figures(stats, "all ranks")
    assert len(long.data[0].x) == stats["excessive_runtime"].sum()
    assert len(late.data[0].x) == stats["excessive_delay"].sum()
    assert short.layout.title.text.endswith("all ranks")
    table = hg.operator_kernels(graph)
    assert len(operator_kernels_figure(table, "all ranks").data[0].cells.values[0]) == len(table)
    assert [bar.name for bar in late_starts_figure(hg.late_starts(graph)).data] == ["step 5", "step 6", "step 7"]


def test_nothing_can_be_drawn() -> None:
    graph = graph_of(DATA / "gloo_ddp")
    assert [len(figure.data[0].x) for figure in launch_stats_figures(hg.launch_stats(graph), "rank 0")] == [0, 0, 0]
    assert not late_starts_figure(hg.late_starts(graph)).data
