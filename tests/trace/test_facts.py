"""Facts of recordings: in one vocabulary, whatever the format."""

from __future__ import annotations

import json
from pathlib import Path

import htagraph as hg
from htagraph.trace.columns import TEXTS
from htagraph.trace.facts import Device, Facts, Group
from htagraph.trace.kineto.events import call_columns, columns
from tests.damage import healthy, loaded


def test_a_bare_list_of_events_states_no_facts(tmp_path: Path) -> None:
    assert loaded(tmp_path, json.dumps(healthy())).facts == Facts()


def test_facts_are_those_of_the_file() -> None:
    facts = hg.load("data/demo").traces[2].facts
    assert (facts.rank, facts.world_size, facts.backend, facts.host) == (2, 4, "nccl", "node000")
    assert facts.groups == (Group("0", "default_pg", 4, (0, 1, 2, 3)),)
    assert facts.devices == tuple(Device(number, "NVIDIA A100-SXM4-80GB") for number in range(8))
    assert facts.run == "world size 4"
    assert facts.origin_ns == facts.base_ns == 1_775_078_550_000_000_000
    assert not facts.written  # a graph keeps no texts of its files


def test_a_group_that_is_cut_short_is_rebuilt() -> None:
    assert Group("0", "", 5, "[0, 2, ..., 8]").ranks == (0, 2, 4, 6, 8)
    assert Group("0", "", None, "[0, 2, ..., 8]").ranks == Group("0", "", 2, None).ranks == ()


def test_the_texts_among_arguments_are_those_of_the_schema() -> None:
    assert {bulk.column.name for bulk in (*columns(), *call_columns()) if bulk.column.dtype == "str"} == TEXTS
