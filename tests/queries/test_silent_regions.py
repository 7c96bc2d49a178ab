"""Whether regions in which nothing was recorded are found, and no region with anything inside."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.queries.silent_regions import silent_region, silent_regions
from tests.strategies import annotation, load, op, step


def job(*, is_filled: bool = False, wait_us: int = 3_000) -> DependencyGraph:
    """Return a job of four steps that collect a batch, for some µs without any event, and compute for 5 ms."""
    events = []
    lasts = wait_us + 5_000
    for number in range(4):
        begin = number * (lasts + 10)
        events += [step(number, begin, lasts + 5), annotation(f"collect batch={number}", begin + 1, wait_us)]
        events += [op("aten::empty", begin + 10, wait_us - 20)] if is_filled else []
        events.append(op("aten::mm", begin + 2 + wait_us, 5_000))
    return load(events)


def test_a_region_without_any_event_has_its_share_of_the_path() -> None:
    graph = job()
    assert int(silent_regions(graph).sum()) == 4
    path = hg.critical_path(graph)
    found = silent_region(path.graph, path.segments)
    assert found is not None
    assert found.percent == pytest.approx(37.5, abs=0.5)


def test_regions_with_events_or_that_are_short_are_none() -> None:
    for graph in (job(is_filled=True), job(wait_us=900)):
        path = hg.critical_path(graph)
        assert silent_region(path.graph, path.segments) is None
