"""Whose memory it was at the peak: against a walk over the events."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import DependencyGraph
from tests.reach import SHARED
from tests.strategies import load, op
from tests.trace.profiler_files.made import allocation

QWEN = SHARED / "tracelens" / "h100_qwen.json.gz"


def by_walking(graph: DependencyGraph) -> dict[Any, Counter[str]]:
    """Return the bytes alive at each device's first peak by name, and by None what was there before."""
    found: dict[Any, Counter[str]] = {}
    for (rank, device), mine in hg.memory.timeline(graph).groupby(["rank", "device"]):
        alive: dict[int, tuple[str, int]] = {}
        best, most = Counter[str](), -(2**62)
        for row in mine.to_dict("records"):
            if row["delta_bytes"] > 0:
                alive[row["address"]] = row["name"], row["delta_bytes"]
            else:
                alive.pop(row["address"], None)
            if row["allocated_bytes"] > most:
                most, best = row["allocated_bytes"], Counter[str]()
                for name, count in alive.values():
                    best[name] += count
                best["before"] = most - best.total()
        found[rank, device] = +best
    return found


def as_counters(graph: DependencyGraph) -> dict[tuple[int, str], Counter[str]]:
    table = hg.memory.at_peak(graph)
    names = table["name"].where(table["known"], "before")
    found: dict[tuple[int, str], Counter[str]] = {}
    for rank, device, name, count in zip(table["rank"], table["device"], names, table["bytes"], strict=True):
        found.setdefault((rank, device), Counter())[name] += count
    return found


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9), st.integers(0, 30)), max_size=25), st.integers(0, 50))
@settings(max_examples=40)
def test_it_is_whoever_allocated_last(ops: list[tuple[int, int, int]], before: int) -> None:
    alive: dict[int, int] = {}
    total, job = before, [op("a", 0, 10), op("b", 10, 10)]
    for address, size, moment in sorted(ops, key=lambda each: each[2]):
        delta = -alive.pop(address) if address in alive else size
        if delta > 0:
            alive[address] = size
        total += delta
        job.append(allocation(moment, delta, address, **{"Total Allocated": total, "Total Reserved": 100}))
    graph = load(job)
    assert as_counters(graph) == {key: count for key, count in by_walking(graph).items() if count}


@pytest.mark.skipif(not QWEN.is_file(), reason="the shared traces are not here")
def test_on_a_real_trace_too() -> None:
    graph = hg.load({0: QWEN})
    table = hg.memory.at_peak(graph)
    assert as_counters(graph) == by_walking(graph)
    assert table.groupby("device")["share_percent"].sum().round(9).eq(100).all()
