"""Operators and the nodes of an execution trace are linked by record-function id and name."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph.queries.execution_trace_links as module
from htagraph.core.errors import SelectionError, TraceError
from htagraph.queries.execution_trace_links import link_execution_trace
from htagraph.trace.profiler_files.execution_trace import LISTS
from tests.strategies import annotation, kernel, load, op


def _nodes(rows: list[tuple[int, str, int]]) -> pd.DataFrame:
    """Return what `read_execution_trace` would: nodes as (id, name, record-function id)."""
    table = pd.DataFrame(rows, columns=["id", "name", "rf_id"]).set_index("id")
    more = {"op_schema": "s", **dict.fromkeys(LISTS)}
    return table.assign(parent=-1, **more)


_entries = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 6)), max_size=8)


@given(_entries, _entries)
@settings(max_examples=80)
def test_links_are_those_of_trying_every_pair(operators: list[tuple[str, int]], nodes: list[tuple[str, int]]) -> None:
    graph = load([op(name, 10 * i, 5, **{"External id": number}) for i, (name, number) in enumerate(operators)])
    table = _nodes([(100 + i, name, number) for i, (name, number) in enumerate(nodes)])
    first = {number: (100 + i, name) for i, (name, number) in reversed([*enumerate(nodes)]) if number > 0}
    pairs = [(i, *first[number], name) for i, (name, number) in enumerate(operators) if number in first]
    same = {i: node for i, node, there, here in pairs if there == here}
    if pairs and len(same) < module._LEAST_SAME_NAMES * len(pairs):
        with pytest.raises(TraceError, match="not of this run"):
            link_execution_trace(graph, table)
    else:
        assert link_execution_trace(graph, table)["et_node"].to_dict() == same


def test_a_trace_of_this_run_is_taken_up_to_half_of_the_names_being_others() -> None:
    graph = load([op("a", 0, 5, **{"External id": 1}), op("b", 10, 5, **{"External id": 2})])
    assert link_execution_trace(graph, _nodes([(7, "a", 1), (8, "x", 2)]))["et_node"].to_dict() == {0: 7}
    with pytest.raises(TraceError, match="2 of 2 shared ids"):
        link_execution_trace(graph, _nodes([(7, "y", 1), (8, "x", 2)]))


def test_annotations_have_nodes_too_and_device_work_has_none(tmp_path: Path) -> None:
    marked = annotation("phase", 0, 50)
    marked["args"] = {"External id": 3}
    work = kernel("k", 10, 5)
    work["args"]["External id"] = 3
    graph = load([marked, work], tmp_path)
    linked = link_execution_trace(graph, _nodes([(7, "phase", 3)]))
    assert linked["name"].tolist() == ["phase"]


def test_of_several_ranks_one_must_be_named() -> None:
    graph = load({0: [op("a", 0, 5)], 2: [op("a", 0, 5, **{"External id": 1})]})
    nodes = _nodes([(7, "a", 1)])
    for rank in (None, 1):
        with pytest.raises(SelectionError, match="ranks 0, 2"):
            link_execution_trace(graph, nodes, rank)
    assert link_execution_trace(graph, nodes, 2)["et_node"].tolist() == [7]
    assert link_execution_trace(load({0: []}), nodes).empty
