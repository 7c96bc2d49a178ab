"""All that is known of an event: what the file says, and its edges."""

from __future__ import annotations

import json

import pytest

import htagraph as hg
from htagraph.service.event_facts import event_facts
from tests.reach import DATA, graph_of

GRAPH = graph_of(DATA / "demo")


def test_every_argument_of_the_file_is_there() -> None:
    facts = event_facts(GRAPH, 1205)
    assert facts["event"] == json.loads(GRAPH.event(1205).model_dump_json())
    json.dumps(facts)


def test_edges_are_those_of_the_graph() -> None:
    facts = event_facts(GRAPH, 1205)
    edges = GRAPH.edges
    into = ((edges.target >> 1) == 1205) & ((edges.source >> 1) != 1205)
    assert len(facts["waits_for"]) == int(into.sum())
    assert {each["activity"] for each in facts["waits_for"]} == set((edges.source[into] >> 1).tolist())


def test_what_the_graph_added_has_no_event() -> None:
    joins = len(GRAPH.activities) - 1
    assert event_facts(GRAPH, joins)["event"] is None


@pytest.mark.parametrize("number", [-1, 10**9])
def test_an_activity_that_is_not_there_is_refused(number: int) -> None:
    with pytest.raises(hg.SelectionError):
        event_facts(GRAPH, number)
