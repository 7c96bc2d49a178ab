"""Facts that show slow ways of working are told in words, with the changes that are closest to the better way."""

from __future__ import annotations

from htagraph.findings.way_facts import list_of, named_as
from tests.strategies import load, op


def test_a_list_names_a_few_and_counts_the_rest() -> None:
    graph = load([op(f"aten::op{number}", 10 * number, 5) for number in range(4)])
    names = [graph.names.index(f"aten::op{number}") for number in range(4)]
    assert list_of(graph, names[:1]) == "aten::op0 runs"
    assert list_of(graph, names[:2]) == "aten::op0 and aten::op1 run"
    assert list_of(graph, names) == "aten::op0, aten::op1 and 2 more names run"


def test_a_name_with_a_comma_is_one_criterion() -> None:
    graph = load([op("void gemm<float, 4>(int)", 0, 5)])
    assert named_as(graph, graph.names.index("void gemm<float, 4>(int)")).startswith("name=")
