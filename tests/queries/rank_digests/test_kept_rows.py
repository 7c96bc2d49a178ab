from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.kinds import COMMUNICATION, ActivityKind
from htagraph.core.naming import DEFAULT_NAMING
from htagraph.graph.construction.matching.members import members_of
from htagraph.queries.rank_digests.kept_rows import kept_activities, kept_rows
from tests.host_jobs import host_job, transfer
from tests.reach import DATASETS, JOBS, graph_of, label
from tests.strategies import Json, kernel, launch, load, op


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
