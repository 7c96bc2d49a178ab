"""Execution traces: the pair in reach is linked as HTA links it, both schemas, and what does not belong together."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from tests.reach import SHARED
from tests.strategies import Json, annotation, load, op

PAIR = SHARED / "hta" / "execution_trace"
LINKED = {
    0: 3, 1: 4, 2: 5, 3: 8, 4: 9, 5: 10, 6: 13, 7: 14, 8: 15, 9: 16, 10: 17, 11: 18, 12: 21, 13: 22, 14: 23, 15: 26,
    16: 27, 17: 28, 18: 29, 19: 32, 20: 35, 21: 36, 22: 39, 23: 40, 24: 41, 25: 42, 26: 44, 27: 45, 28: 46, 29: 49,
    30: 50, 31: 51, 32: 52, 33: 55, 34: 57, 35: 58,
}  # fmt: skip
"""Event → node, as HTA 0.6.1's correlate_execution_trace gives them (its parser, et_replay, replaced)."""


def node(number: int, name: str, rf_id: int, **more: Any) -> Json:
    return {"id": number, "name": name, "rf_id": rf_id, "parent": 1, **more}


def newer(number: int, name: str, rf_id: int, shapes: Any = ()) -> Json:
    """Return a node of schema 1.1."""
    return {
        "id": number, "name": name, "ctrl_deps": 1,
        "inputs": {"values": [], "shapes": list(shapes), "types": ["Tensor(float)"]},
        "outputs": {"values": [], "shapes": [], "types": []},
        "attrs": [{"name": "rf_id", "value": rf_id}, {"name": "op_schema", "type": "string", "value": "s"}],
    }  # fmt: skip


def written(nodes: Any, folder: Path, *, packed: bool = False) -> Path:
    path = folder / "et.json"
    data = json.dumps({"schema": "1.0.1", "nodes": nodes}).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


@pytest.mark.skipif(not PAIR.is_dir(), reason="the shared traces are not here")
def test_the_pair_in_reach_is_linked_as_hta_links_it() -> None:
    graph = hg.load({0: PAIR / "benchmark_simple_add_trace.json.gz"})
    nodes = hg.execution_trace.read(PAIR / "benchmark_simple_add_et.json.gz")
    linked = hg.execution_trace.link(graph, nodes)
    assert len(nodes) == 38
    assert dict(zip(graph.activities.event[linked.index].tolist(), linked["et_node"], strict=True)) == LINKED
    first = linked[linked["name"] == "aten::uniform_"].iloc[0]
    assert first["input_shapes"] == [[256, 256], [], [], []]
    assert first["output_types"] == ["Tensor(float)"]
    assert first["op_schema"].startswith("aten::uniform_(Tensor(a!) self")


def test_both_schemas_read_alike(tmp_path: Path) -> None:
    old = node(5, "aten::mm", 3, op_schema="s", input_shapes=[[2]], input_types=["Tensor(float)"])
    first = hg.execution_trace.read(written([old], tmp_path))
    second = hg.execution_trace.read(written([newer(5, "aten::mm", 3, [[2]])], tmp_path, packed=True))
    assert first.to_dict() == second.to_dict()


def test_only_pairs_of_one_name_are_linked(tmp_path: Path) -> None:
    graph = load([op("a", 0, 9, **{"External id": 4}), op("b", 1, 2, **{"External id": 5}), annotation("c", 4, 2)])
    nodes = hg.execution_trace.read(written([node(7, "a", 4), node(8, "x", 5), node(9, "c", 0)], tmp_path))
    linked = hg.execution_trace.link(graph, nodes, rank=0)
    assert linked[["name", "et_node"]].to_dict("index") == {0: {"name": "a", "et_node": 7}}


def test_a_trace_of_another_run_is_refused(tmp_path: Path) -> None:
    graph = load([op("a", 0, 9, **{"External id": 4}), op("b", 1, 2, **{"External id": 5})])
    nodes = hg.execution_trace.read(written([node(7, "x", 4), node(8, "y", 5)], tmp_path))
    with pytest.raises(hg.TraceError, match="not of this run: 2 of 2 shared ids have other names, such as 'x' for 'a'"):
        hg.execution_trace.link(graph, nodes)


def test_of_several_ranks_one_is_named(tmp_path: Path) -> None:
    graph = load({0: [op("a", 0, 9)], 3: [op("a", 0, 9, **{"External id": 4})]})
    nodes = hg.execution_trace.read(written([node(7, "a", 4)], tmp_path))
    with pytest.raises(hg.SelectionError, match="this graph has ranks 0, 3"):
        hg.execution_trace.link(graph, nodes)
    assert hg.execution_trace.link(graph, nodes, rank=3)["et_node"].tolist() == [7]
    assert hg.execution_trace.link(graph, nodes, rank=0)["et_node"].tolist() == []


@pytest.mark.parametrize("root", [{}, [], 3, {"nodes": [3]}, {"nodes": [{"id": "x", "name": ""}]}, {"nodes": 4}])
def test_what_is_no_execution_trace_is_refused(root: Any, tmp_path: Path) -> None:
    path = tmp_path / "et.json"
    path.write_text(json.dumps(root), encoding="utf-8")
    with pytest.raises(hg.NotATraceError, match="not an execution trace"):
        hg.execution_trace.read(path)


def test_an_empty_one_links_nothing(tmp_path: Path) -> None:
    nodes = hg.execution_trace.read(written([], tmp_path))
    some = hg.execution_trace.read(written([node(7, "a", 4)], tmp_path))
    assert nodes.dtypes.to_dict() == some.dtypes.to_dict()
    graph = load([op("a", 0, 9, **{"External id": 4})])
    none, one = (hg.execution_trace.link(graph, each) for each in (nodes, some))
    assert none.dtypes.to_dict() == one.dtypes.to_dict()
    assert (len(none), len(one)) == (0, 1)


def test_what_is_nested_beyond_measure_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(hg.NotATraceError, match="not an execution trace"):
        hg.execution_trace.read(path)
