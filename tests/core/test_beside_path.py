"""Small DAGs whose answers can be read off; `tests/analyses/test_slack.py` compares random ones with rescheduling."""

from __future__ import annotations

import numpy as np

from htagraph.core import beside_path

OFFSETS, TARGETS = np.array([0, 2, 3, 4, 4]), np.array([1, 2, 3, 3], np.int32)
"""0 → 1 → 3 and 0 → 2 → 3."""
IN_OFFSETS, IN_SOURCES = np.array([0, 0, 1, 2, 4]), np.array([0, 0, 1, 2], np.int32)
ORDER, NO_GAP = np.arange(4, dtype=np.int32), np.zeros(4, np.int64)
PATH = np.array([0, 1, 3])
"""The longest, with lags of 10 and 5; the other way takes 4 and 7."""
LAGS = np.array([10, 4, 5, 7])


def test_each_vertex_knows_the_last_of_the_path_that_reaches_it() -> None:
    assert beside_path.last_on_path(ORDER, IN_OFFSETS, IN_SOURCES, PATH).tolist() == [0, 1, 0, 2]


def test_without_an_edge_of_the_path_the_job_ends_when_the_other_way_does() -> None:
    label, time, late = np.array([0, 1, 0, 2]), np.array([0, 10, 4, 15]), np.array([0, 10, 8, 15])
    best = beside_path.avoiding(PATH, label, OFFSETS, TARGETS, LAGS, NO_GAP, time, late, 15)
    assert best.tolist() == [11, 11]


def test_a_detour_leaves_the_path_and_returns_with_enough_work() -> None:
    before, sources, weight = np.array([-1, 0, 1, 2]), np.array([0, 0, 1, 2]), np.array([0, 10, 4, 5])
    on_path = np.array([True, True, False, True])
    for least, expected in ((11, [0]), (12, [])):
        chosen = beside_path.detours(before, sources, weight, on_path, np.array([2]), np.array([7]), least, 5)
        assert chosen.tolist() == expected
