"""Whether each region of a phase begins and ends with its own work."""

from __future__ import annotations

from htagraph.queries.phase_regions import phase_regions
from tests.strategies import annotation, kernel, launch, load


def test_a_region_ends_with_the_last_work_launched_inside() -> None:
    graph = load([annotation("forward", 0, 20), launch(2, 2, 1), kernel("a", 10, 50, 1)])
    regions = phase_regions(graph, None)
    assert regions.table["phase"].tolist() == ["forward"]
    assert regions.table["wall_us"].tolist() == [60.0]
    assert regions.table["launches"].tolist() == [1]
    assert regions.group.tolist() == [0]


def test_a_glob_chooses_regions_and_inside_one_another_the_outermost_counts() -> None:
    graph = load([annotation("forward", 0, 20), annotation("forward", 5, 5), annotation("backward", 30, 20)])
    table = phase_regions(graph, "for*").table
    assert table["wall_us"].tolist() == [20.0]
