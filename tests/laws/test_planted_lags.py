"""Wrong lags and waits are planted into graphs: the replay stays exact, and which other measure notices.

docs/MEASURES.md is the table in words.
"""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.planted import JOBS, PLANTED, table

FLOORS = {
    "not covered %": 1.0, "unexplained %": 1.0, "infeasible %": 1.0, "held out %": 0.3, "second run %": 0.5,
}  # fmt: skip
"""Measure → by how much it must exceed its value for the right graph to notice an error."""
NOTICED = {
    "nothing": set(),
    "launch latency x 10": {"infeasible %"},
    "launch latency 0": set(),
    "launches missing": {"not covered %", "unexplained %", "second run %"},
    "streams' waits missing": {"unexplained %", "held out %", "second run %"},
    "streams wait for other work": {"unexplained %", "held out %", "second run %"},
    "calls' waits missing": {"unexplained %", "second run %"},
    "calls' waits hidden in lags": {"second run %"},
    "ranks' waits in transfers": {"not covered %", "second run %"},
    "waits that do not exist": {"infeasible %", "second run %"},
}
"""Error → the measures that notice it in one job or the other; held out may in addition."""


@cache
def tables() -> list[dict[str, dict[str, float]]]:
    """Return for each of two small jobs: planted error → measure → value."""
    measured = [table(job.model_copy(update={"layers": 2, "steps": 3, "seed": 5})) for job in JOBS.values()]
    return [{str(error): dict(row) for error, row in each.iterrows()} for each in measured]


def noticed(error: str) -> set[str]:
    """Return the measures that notice an error in one job or the other."""
    found: set[str] = set()
    for measured in tables():
        right = measured["nothing"]
        found |= {each for each, floor in FLOORS.items() if measured[error][each] - right[each] > floor}
    return found


@pytest.mark.parametrize("error", PLANTED)
def test_the_replay_of_a_wrong_graph_is_exact(error: str) -> None:
    assert [measured[error]["replay ns"] for measured in tables()] == [0, 0]


@pytest.mark.parametrize("error", PLANTED)
def test_these_measures_notice_a_wrong_graph(error: str) -> None:
    assert noticed(error) - {"held out %"} == NOTICED[error] - {"held out %"}
    assert NOTICED[error] <= noticed(error)


def test_the_right_graphs_predict_the_second_run() -> None:
    assert all(measured["nothing"]["second run %"] < 0.5 for measured in tables())
    assert all(measured["nothing"]["outside"] == 0 for measured in tables())
