"""Whether what was read is a row per rank, and an empty job has no window."""

from __future__ import annotations

from htagraph.queries.inputs import inputs_of, issues_of, window_us
from tests.strategies import load, step


def test_steps_are_ranges_and_an_empty_job_has_no_window() -> None:
    graph = load({0: [step(4, 0, 90), step(5, 90, 90), step(7, 180, 90)], 2: [step(6, 0, 90)]})
    assert inputs_of(graph)[["rank", "steps"]].to_dict("list") == {"rank": [0, 2], "steps": ["4-5, 7", "6"]}
    assert len(issues_of(graph)) == len(graph.issues)
    assert window_us(graph) == 270
    assert window_us(load([])) == 0.0
