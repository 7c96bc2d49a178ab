from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core.kinds import COMMUNICATION, ActivityKind
from htagraph.core.naming import DEFAULT_NAMING
from htagraph.graph.construction.matching.members import members_of
from htagraph.queries.rank_digests.kept import header_of, kept_activities, kept_rows, own_tables, work_sums
from htagraph.queries.rank_speed import ALL_NAMES
from tests.host_jobs import host_job, transfer
from tests.reach import DATASETS, JOBS, graph_of, label
from tests.strategies import Json, kernel, launch, load, op, step


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_kept_activities_are_the_same_members_of_collectives(path: Path) -> None:
    whole = graph_of(path)
    for rank in whole.ranks[:1]:
        graph = whole if len(whole.ranks) == 1 else hg.load({rank: whole.traces[rank].path})
        rows = kept_rows(graph, DEFAULT_NAMING)
        kept = kept_activities(graph, np.union1d(rows.linked, rows.matching))
        one, other = (members_of(acts, graph.names, DEFAULT_NAMING, graph.traces) for acts in (graph.activities, kept))
        for name in (
            "rank",
            "start",
            "end",
            "asked",
            "op",
            "label",
            "sequence",
            "group",
            "seq",
            "comms_id",
            "bytes",
            "on_host",
            "way",
            "ops",
            "groups",
            "group_size",
            "root",
            "step",
        ):
            assert np.array_equal(getattr(one, name), getattr(other, name)), name


def test_what_an_operator_says_becomes_an_argument_of_its_kernel() -> None:
    said: Json = {"Process Group Name": "tp", "Process Group Ranks": "[0, 1]", "In msg nelems": 64, "dtype": "Half"}
    graph = load([
        op("record_param_comms", 0, 20, **said), launch(5, 2, 1), kernel("ncclDevKernel_AllReduce_Sum", 10, 9, 1),
    ])  # fmt: skip
    rows = kept_rows(graph, DEFAULT_NAMING)
    assert graph.activities.kind[rows.linked].tolist() == [ActivityKind.COMMUNICATION]
    kept = kept_activities(graph, rows.linked)
    assert graph.names[kept.args["pg_name"].values[0]] == "tp"
    assert kept.args["in_msg_nelems"].values.tolist() == [64]


def test_other_work_is_left_out() -> None:
    graph = load([op("aten::mm", 0, 20), launch(5, 2, 1), kernel("gemm", 10, 9, 1)])
    rows = kept_rows(graph, DEFAULT_NAMING)
    assert not len(rows.linked)
    assert not len(rows.matching)
    assert not len(rows.bodies)


def test_edges_inside_communication_are_kept_apart() -> None:
    graph = hg.load(DATASETS[0], ranks=[0])
    owners = graph.edges.activity[kept_rows(graph, DEFAULT_NAMING).bodies]
    assert np.array_equal(np.unique(owners), np.flatnonzero(np.isin(graph.activities.kind, COMMUNICATION)))


def test_of_what_a_thread_does_beside_communication_the_last_operator_is_kept() -> None:
    events = [*transfer("send", 1, 1, 90), *(op("aten::mm", at, 5) for at in (10, 20, 30))]
    graph = hg.load({0: host_job({0: events, 1: []}).traces[0].path})
    linked = kept_rows(graph, DEFAULT_NAMING).linked
    products = [row for row in linked.tolist() if graph.names[graph.activities.name[row]] == "aten::mm"]
    assert [int(graph.activities.start[row]) % 100_000 for row in products] == [30_000]


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
    trace, whole = header_of(graph), graph.traces[2].facts
    assert (trace.facts.rank, trace.facts.world_size) == (2, whole.world_size)
    assert trace.facts.host == whole.host
    assert trace.path == graph.traces[2].path
    assert len(trace.events) == 0


def test_a_graph_of_frames_has_no_file() -> None:
    frame = pd.DataFrame({"duration_ns": [5, 7]})
    graph = DependencyGraph.from_frames(frame, pd.DataFrame({"source": [0], "target": [1]}))
    assert not header_of(graph).facts.host
    assert hg.joined_job([hg.digest(graph, {})]).makespan_ns() == 12


def test_work_is_summed_by_name_and_step() -> None:
    graph = load([
        step(1, 0, 100), op("aten::mm", 10, 30), launch(15, 2, 1), kernel("gemm", 40, 20, 1),
        step(2, 200, 100), op("aten::mm", 210, 30), op("aten::add", 250, 1), launch(215, 2, 2),
        kernel("gemm", 240, 25, 2),
    ])  # fmt: skip
    sums = work_sums(graph)
    code = zlib.crc32(b"gemm")
    rows = np.flatnonzero((sums.device == 1) & (sums.name == code))
    assert sums.step[rows].tolist() == [1, 2]
    assert sums.total[rows].tolist() == [20_000, 25_000]
    assert sums.calls[rows].tolist() == [1, 1]
    assert dict(zip(sums.program.tolist(), sums.instances.tolist(), strict=True)) == {
        zlib.crc32(b"aten::mm"): 2, zlib.crc32(b"aten::add"): 1,
    }  # fmt: skip
    assert sums.steps == 2


def test_small_names_count_in_the_sum_of_all_names_only() -> None:
    events = [step(1, 0, 900), op("aten::big", 1, 800)] + [op(f"aten::n{at}", 802 + at, 1) for at in range(9)]
    sums = work_sums(load(events))
    host = sums.device == 0
    assert sums.name[host].tolist() == [zlib.crc32(b"aten::big"), ALL_NAMES]
    assert sums.total[host].tolist() == [800_000, 809_000]


def test_sums_of_a_rank_are_small() -> None:
    sums = work_sums(hg.load(DATASETS[0], ranks=[0]))
    assert len(sums.name) < 200
