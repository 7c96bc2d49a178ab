"""Hosts: known by name, or by a table of devices that the ranks share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import htagraph as hg
from htagraph.graph.construction.matching.hosts import hosts_of
from htagraph.trace.columns import Trace


def traces(**changes: Any) -> dict[int, Trace]:
    """Return the ranks of the demo with other facts."""
    return {
        rank: replace(trace, facts=replace(trace.facts, **changes))
        for rank, trace in hg.load("data/demo").traces.items()
    }


def test_ranks_with_one_host_name_are_of_one_host() -> None:
    known = traces()
    known[2] = replace(known[2], facts=replace(known[2].facts, host="other"))
    hosts = hosts_of(known)
    assert hosts[0] == hosts[1] == hosts[3] != hosts[2]


def test_without_names_a_shared_table_of_devices_tells() -> None:
    nameless = traces(host="")
    assert len(set(hosts_of(nameless).values())) == 1
    assert set(hosts_of(nameless)) == {0, 1, 2, 3}
    nameless[1] = replace(nameless[1], lanes=nameless[0].lanes)  # the same device, hence another host
    assert hosts_of(nameless) == {}


@pytest.mark.parametrize("devices", [[], None])
def test_without_names_and_devices_nothing_is_known(devices: list[object] | None) -> None:
    table = hg.load("data/demo").traces[0].facts.devices[:2] if devices is None else ()
    assert hosts_of(traces(host="", devices=table)) == {}
