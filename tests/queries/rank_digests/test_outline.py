from __future__ import annotations

import pandas as pd

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.queries.rank_digests.outline import header_of, own_tables
from tests.reach import DATASETS, graph_of


def test_only_the_names_and_lanes_in_use_are_left() -> None:
    graph = graph_of(DATASETS[0])
    names, lanes, acts = own_tables(graph.activities, (*graph.names, "unused"), graph.lanes)
    assert "unused" not in names
    assert set(names) <= set(graph.names)
    for row in range(0, len(acts), 97):
        assert names[acts.name[row]] == graph.names[graph.activities.name[row]]
    rows = graph.activities.lane >= 0
    assert [lanes[lane] for lane in acts.lane[rows][:50]] == [
        graph.lanes[lane] for lane in graph.activities.lane[rows][:50]
    ]


def test_a_header_says_how_many_ranks_the_job_has_and_where_it_ran() -> None:
    graph = hg.load(DATASETS[0], ranks=[2])
    trace, whole = header_of(graph), graph.traces[2].header
    info = trace.header.distributed_info
    assert info is not None
    assert whole.distributed_info is not None
    assert (info.rank, info.world_size) == (2, whole.distributed_info.world_size)
    assert trace.header.host_name == whole.host_name
    assert trace.path == graph.traces[2].path
    assert len(trace.events) == 0


def test_a_graph_of_frames_has_no_file() -> None:
    frame = pd.DataFrame({"duration_ns": [5, 7]})
    graph = DependencyGraph.from_frames(frame, pd.DataFrame({"source": [0], "target": [1]}))
    assert header_of(graph).header.host_name is None
    assert hg.joined_job([hg.digest(graph, {})]).makespan_ns() == 12
