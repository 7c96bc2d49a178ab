"""Flows between nodes of CUDA graphs: which event they join."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from htagraph.trace.readers import read_trace
from tests.strategies import Json, complete, launch, write

FIRST = 1 << 40


def node(name: str, start: float, end: float, lane: int, number: int, correlation: int = 1) -> Json:
    args = {"graph id": 7, "graph node id": number, "correlation": correlation, "device": 0}
    category = "graph_event_node" if name == "EventRecord" else "kernel"
    return complete(category, name, start, end - start, lane, stream=lane, **args) | {"pid": 0}


def flow(number: int | str, source: Json, target: Json) -> list[Json]:
    common = {"cat": "ac2g", "name": "ac2g", "id": number}
    begin = {"ph": "s", "pid": 0, "tid": source["tid"], "ts": source["ts"] + source["dur"], **common}
    return [begin, {"ph": "f", "bp": "e", "pid": 0, "tid": target["tid"], "ts": target["ts"], **common}]


def dependencies(events: list[Json], folder: Path, *, compiled: bool) -> tuple[list[tuple[int, int]], list[str]]:
    trace = read_trace(write(events, folder / "rank-0.json"), lambda *_: 0, compiled=compiled)
    pairs = zip(trace.dependencies.source.tolist(), trace.dependencies.target.tolist(), strict=True)
    return sorted(pairs), [issue.what for issue in trace.issues]


@pytest.mark.parametrize("compiled", [False, True])
def test_nodes_of_one_launch_are_joined(compiled: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """A fork and a join, in two launches that run at once on other lanes; flows of launches are no dependencies."""
    first = [node("a", 10, 20, 1, 1), node("b", 20, 30, 1, 2), node("c", 21, 40, 2, 3), node("d", 41, 50, 1, 4)]
    second = [
        node(each["name"], each["ts"], each["ts"] + each["dur"], each["tid"] + 2, i, 2)
        for i, each in enumerate(first, 1)
    ]
    joined = [(0, 1), (0, 2), (1, 3), (2, 3)]
    arrows = [
        half
        for number, (nodes, (source, target)) in enumerate(itertools.product((first, second), joined))
        for half in flow(FIRST + number, nodes[source], nodes[target])
    ]
    call = launch(1, 2, 1)
    to_root = [{"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": call["pid"], "tid": call["tid"], "ts": 1}]
    to_root += [{"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 0, "tid": 1, "ts": 10, "bp": "e"}]
    found, issues = dependencies([*first, *second, call, *to_root, *arrows], tmp_path, compiled=compiled)
    assert found == joined + [(source + 4, target + 4) for source, target in joined]
    assert "dependency_unmatched" not in issues


@pytest.mark.parametrize("compiled", [False, True])
def test_nodes_of_no_length_are_not_their_own_source(compiled: bool, tmp_path: Path) -> None:  # noqa: FBT001
    nodes = [node("a", 10, 20, 1, 1), node("EventRecord", 20, 20, 1, 2), node("b", 20, 30, 1, 3)]
    found, _ = dependencies([*nodes, *flow(str(FIRST), nodes[0], nodes[2])], tmp_path, compiled=compiled)
    assert found == [(0, 2)]


def test_flows_without_nodes_are_reported(tmp_path: Path) -> None:
    nodes = [node("a", 10, 20, 1, 1), node("b", 20, 30, 1, 2)]
    lost = node("gone", 50, 60, 9, 3)
    events = [*nodes, *flow(FIRST, *nodes), *flow(FIRST + 1, nodes[1], lost), flow(FIRST + 2, *nodes)[0]]
    found, issues = dependencies(events, tmp_path, compiled=True)
    assert found == [(0, 1)]
    assert "dependency_unmatched" in issues
