"""What a user's frames may say beyond names and times: who owns a lag, why an edge is there, where ranks meet."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from htagraph.core.errors import GraphError
from htagraph.core.kinds import ActivityKind, EdgeKind
from htagraph.graph.dependency_graph import DependencyGraph

ACTS = pd.DataFrame(
    {"kind": ["join", "communication", "communication"], "rank": [0, 1, 0], "duration_ns": 0},
    index=["meet", "late", "early"],
)


def collective(**more: Any) -> pd.DataFrame:
    """Two members that arrive at a JOIN and leave it 30 and 20 ns later."""
    rows = [("late", "meet", 0, True, False), ("early", "meet", 0, True, False),
            ("meet", "late", 30, True, True), ("meet", "early", 20, True, True)]  # fmt: skip
    frame = pd.DataFrame(rows, columns=["source", "target", "lag_ns", "from_start", "to_end"])
    return frame.assign(**({"owner": [None, None, "late", "early"]} | more))


def test_joins_lie_behind_all_ranks_without_rank_or_lane() -> None:
    graph = DependencyGraph.from_frames(ACTS, collective())
    acts = graph.activities
    assert [graph.names[name] for name in acts.name] == ["early", "late", "meet"]
    assert acts.rank.tolist() == [0, 1, -1]
    assert (acts.lane.tolist(), len(graph.lanes)) == ([0, 1, -1], 2)
    assert graph.ranks == (0, 1)


def test_the_owner_of_a_lag_is_an_activity_or_nobody() -> None:
    edges = DependencyGraph.from_frames(ACTS, collective()).edges
    owned = {(int(s), int(t)): int(a) for s, t, a in zip(edges.source, edges.target, edges.activity, strict=True)}
    assert owned == {(0, 1): 0, (2, 3): 1, (4, 5): 2, (0, 4): -1, (2, 4): -1, (4, 1): 0, (4, 3): 1}


def test_dependencies_have_the_kind_that_they_name() -> None:
    edges = DependencyGraph.from_frames(ACTS, collective(kind=["user", "collective", "collective", "p2p"])).edges
    named = {(int(s), int(t)): EdgeKind(int(k)) for s, t, k in zip(edges.source, edges.target, edges.kind, strict=True)}
    assert named[2, 4] is EdgeKind.USER
    assert named[0, 4] is named[4, 3] is EdgeKind.COLLECTIVE
    assert named[4, 1] is EdgeKind.P2P


def test_negative_lags_let_a_target_come_before_its_source() -> None:
    acts = pd.DataFrame({"duration_ns": [100, 5]})
    graph = DependencyGraph.from_frames(acts, pd.DataFrame({"source": [0], "target": [1], "lag_ns": [-30]}))
    assert graph.time.tolist() == [0, 100, 70, 75]
    assert graph.gap.tolist() == [0, 0, 0, 0]


def test_a_job_of_joins_alone_has_no_ranks() -> None:
    acts = pd.DataFrame({"kind": ["join"], "duration_ns": [0]})
    graph = DependencyGraph.from_frames(acts, pd.DataFrame({"source": [], "target": []}))
    assert (graph.ranks, graph.activities.kind.tolist()) == ((), [ActivityKind.JOIN])


def test_names_and_lanes_are_numbered_as_they_appear_and_compared_as_text() -> None:
    acts = pd.DataFrame({"duration_ns": 1, "rank": [0, 0, 0, 1], "lane": [7, "main", "7", "main"],
                         "name": ["b", 1, "1", "a"]})  # fmt: skip
    graph = DependencyGraph.from_frames(acts, pd.DataFrame({"source": [], "target": []}))
    assert [(lane.rank, lane.label) for lane in graph.lanes] == [(0, "7"), (0, "main"), (1, "main")]
    assert graph.activities.lane.tolist() == [0, 1, 0, 2]
    assert [graph.names[name] for name in graph.activities.name] == ["b", "1", "1", "a"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"owner": [None, None, "nobody", "early"]}, r"dependencies: owner 'nobody' is not the id of an activity"),
        ({"kind": "body"}, r"dependencies: kind 'body'; choose from host_order, launch"),
        ({"kind": "friendship"}, r"dependencies: kind 'friendship'; choose from host_order"),
    ],
)
def test_owners_and_kinds_that_do_not_exist_are_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        DependencyGraph.from_frames(ACTS, collective(**more))


def test_what_64_bits_do_not_hold_is_refused() -> None:
    acts = pd.DataFrame({"duration_ns": [2**62, 2**62]})
    with pytest.raises(GraphError, match="64 bits"):
        DependencyGraph.from_frames(acts, pd.DataFrame({"source": [0], "target": [1], "lag_ns": [2**62]}))
