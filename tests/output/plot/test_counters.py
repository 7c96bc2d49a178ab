from __future__ import annotations

import htagraph as hg
from htagraph.output.plot.counters import memory_bandwidth, queue_length
from tests.reach import DATA, graph_of


def test_there_is_a_line_of_steps_per_counter() -> None:
    graph = graph_of(DATA / "demo")
    table = hg.queue_length(graph)
    figure = queue_length(table)
    assert len(figure.data) == len(table.drop_duplicates(["rank", "stream"]))
    assert {line.line.shape for line in figure.data} == {"hv"}
    copies = hg.memory_bandwidth(graph)
    assert {line.name for line in memory_bandwidth(copies).data} >= {"rank 0, Memcpy HtoD"}


def test_nothing_can_be_drawn() -> None:
    graph = graph_of(DATA / "gloo_ddp")
    assert not queue_length(hg.queue_length(graph)).data
    assert not memory_bandwidth(hg.memory_bandwidth(graph)).data
