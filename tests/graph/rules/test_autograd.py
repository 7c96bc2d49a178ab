from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import EdgeKind
from htagraph.graph.rules.autograd import autograd
from tests.oracles import edges_by_name
from tests.reach import REAL, label, raw_events
from tests.strategies import OTHER, Json, arrow, load, op, traces, write
from tests.waiting import read

FORWARD = op("mm", 0, 5, **{"Sequence number": 4, "Fwd thread id": 0})
BACKWARD = op("MmBackward0", 20, 5, OTHER, **{"Sequence number": 4, "Fwd thread id": 1})
LINK = [("mm.end", "MmBackward0.start", 0)]


def autograd_edges(*events: Json) -> list[tuple[str, str, int]]:
    return edges_by_name(load(list(events)), EdgeKind.AUTOGRAD)


def test_a_sequence_number_links_forward_and_backward() -> None:
    assert autograd_edges(FORWARD, BACKWARD) == LINK


def test_a_flow_links_forward_and_backward() -> None:
    plain = [event | {"args": {}} for event in (FORWARD, BACKWARD)]
    assert autograd_edges(*plain, *arrow(1, *plain)) == LINK


def test_of_operators_that_start_where_a_flow_does_the_outermost_is_meant() -> None:
    forward, inner, backward = op("linear", 0, 5), op("mm", 0, 3), op("bwd", 20, 5, OTHER)
    assert autograd_edges(forward, inner, backward, *arrow(1, forward, backward)) == [("linear.end", "bwd.start", 0)]


def test_the_last_forward_operator_with_a_number_is_the_one() -> None:
    earlier = op("detach", -9, 2, **{"Sequence number": 4, "Fwd thread id": 0})
    assert autograd_edges(earlier, FORWARD, BACKWARD) == LINK


def test_the_first_backward_operator_with_a_number_is_the_one() -> None:
    later = op("AccumulateGrad", 40, 2, OTHER, **{"Sequence number": 4, "Fwd thread id": 1})
    assert autograd_edges(FORWARD, BACKWARD, later) == LINK


def test_inside_the_engines_frame_the_operator_itself_is_meant() -> None:
    frame = BACKWARD | {"name": "autograd::engine::evaluate_function: MmBackward0", "ts": 19, "dur": 8}
    assert autograd_edges(FORWARD, frame, BACKWARD) == LINK


def test_a_backward_operator_well_before_its_forward_is_refused_and_reported() -> None:
    early = BACKWARD | {"ts": -50}
    graph = load([FORWARD, early])
    assert edges_by_name(graph, EdgeKind.AUTOGRAD) == []
    assert [(issue.what, issue.count) for issue in graph.issues if issue.what == "edge_refused"] == [
        ("edge_refused", 1)
    ]


def test_a_flow_from_an_operator_to_itself_closes_a_circle_and_is_dropped() -> None:
    short = op("mm", 0, 1)
    graph = load([short, *arrow(1, short, short)])
    assert edges_by_name(graph, EdgeKind.AUTOGRAD) == []
    assert [issue.count for issue in graph.issues if issue.what == "cycle_broken"] == [1]


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_links_join_operators_of_one_rank(events: list[Json]) -> None:
    graph = load({0: events, 1: events})
    links = graph.edges.kind == EdgeKind.AUTOGRAD
    rows = np.concatenate((graph.edges.source[links], graph.edges.target[links])) // 2
    assert np.isin(rows, list(graph.select(kind="op"))).all()
    rank = graph.activities.rank
    assert (rank[graph.edges.source[links] // 2] == rank[graph.edges.target[links] // 2]).all()


FOLDERS = ("hta/ns_resolution", "hta/nccl", "torchrec_v100_equal", "gloo4_cpu", "tracelens/mi300_resnet_act_checkpoint")
WITH_BOTH = [path for path in REAL if label(path).startswith(FOLDERS)]


@pytest.mark.slow
@pytest.mark.parametrize("path", WITH_BOTH, ids=label)
def test_flows_and_sequence_numbers_agree_where_a_trace_has_both(path: Path, tmp_path: Path) -> None:
    events = [event for event in raw_events(path) if event.get("cat") in ("cpu_op", "fwdbwd")]
    ours = [
        hg.load({0: write(part, tmp_path / f"{i}.json")})
        for i, part in enumerate((events, [event for event in events if event["ph"] == "X"]))
    ]
    flows, numbers = (
        {(int(s), int(t)) for s, t in zip(g.edges.source[k], g.edges.target[k], strict=True)}
        for g in ours
        for k in [g.edges.kind == EdgeKind.AUTOGRAD]
    )
    assert flows
    assert flows == numbers


@pytest.mark.slow
def test_flows_of_the_rank_with_the_70000th_lane_are_found(tmp_path: Path) -> None:
    forward, backward = op("mm", 0, 5, 0), op("bwd", 20, 5, 1)
    events = [op("a", 0, 1, tid) for tid in range(2, 35_002)]
    last = [forward, backward, *arrow(1, forward, backward)]
    job = read(*(write(rank, tmp_path / f"rank-{i}.json", i) for i, rank in enumerate((events, events, last))))
    assert len(job.lanes) == 70_002
    edges = autograd(job)  # this rule alone: what all rules find in 70,000 threads takes half a minute
    ends = [(int(edges.source[i]), int(edges.target[i])) for i in range(len(edges))]
    named = [(job.names[job.activities.name[a >> 1]], a & 1, job.names[job.activities.name[b >> 1]], b & 1)
             for a, b in ends]  # fmt: skip
    assert named == [("mm", 1, "bwd", 0)]
