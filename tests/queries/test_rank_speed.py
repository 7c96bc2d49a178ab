"""The speed of ranks at work of the same names, where they have different amounts of it."""

from __future__ import annotations

import numpy as np
import pytest

from htagraph.queries.rank_speed import rank_speed
from tests.strategies import Json, load, op, step

STEPS = np.zeros(1, np.int64)


def stage(first: float, others: float, count: int) -> list[Json]:
    """Return a step of `count` operators of each of three names; those of the first one take another time."""
    events, at = [step(0, 0, 10_000)], 10.0
    for _ in range(count):
        for name, us in (("a", first), ("b", others), ("c", others)):
            events.append(op(name, at, us))
            at += us + 1
    return events


def test_a_rank_slow_in_all_names_is_slow_however_much_it_does() -> None:
    graph = load({0: stage(10, 10, 5), 1: stage(12, 12, 15), 2: stage(10, 10, 5)})
    speed = rank_speed(graph, np.arange(3), STEPS, device=False)
    assert speed[:, 0] == pytest.approx(speed[0, 0] * np.array([1, 1.2, 1]))


def test_a_rank_slow_in_one_name_has_more_to_do_by_design() -> None:
    speed = rank_speed(
        load({0: stage(10, 10, 5), 1: stage(30, 10, 5), 2: stage(10, 10, 5)}), np.arange(3), STEPS, device=False
    )
    assert speed[:, 0] == pytest.approx(speed[0, 0] * np.ones(3))


def test_without_common_names_nothing_compares() -> None:
    graph = load({0: stage(10, 10, 5), 1: [step(0, 0, 100), op("x", 5, 50)]})
    assert np.isnan(rank_speed(graph, np.arange(2), STEPS, device=False)).all()
    assert np.isnan(rank_speed(graph, np.arange(2), STEPS, device=True)).all()
