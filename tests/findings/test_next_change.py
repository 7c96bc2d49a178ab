"""The change to make after the first one adds what a replay of both saves beyond the first."""

from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from htagraph.findings.change import Gain, PredictedChange, scenario_of
from htagraph.findings.changes import ProposedChange, ProposedChanges, changes_of
from htagraph.findings.limits import MIN_PERCENT
from htagraph.findings.next_change import next_change_of
from htagraph.findings.phrases import time_text
from htagraph.findings.results import Results
from tests.reach import DATA, graph_of

JOBS = [folder for folder in sorted(DATA.iterdir()) if folder.is_dir() and folder.name in ("demo", "gloo_ddp")]


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.name)
def test_the_next_change_adds_most_to_the_first_one(path: Path) -> None:
    results = Results(graph_of(path))
    changes = changes_of(results)
    following = next_change_of(results, changes)
    assert changes.first is not None
    assert following is not None
    first_options = changes.first.options
    first_ns = scenario_of(results.warm_graph, first_options).run().step_ns

    def adds_us(row: ProposedChange) -> float:
        both = scenario_of(results.warm_graph, [*first_options, *row.options]).run()
        return (first_ns - both.step_ns) / 1000

    # a step of a prediction is the median of steps, and what a set saves is the mean
    assert following.adds_us == pytest.approx(adds_us(following.row), rel=0.02)
    assert following.gain == f"This saves {time_text(following.adds_us)} more per step."
    if not following.row.is_known:
        known = [row for row in changes.rows[1:] if row.is_known and row.change]
        least_us = MIN_PERCENT / 100 * results.makespan_ns / max(results.steps, 1) / 1000
        assert all(adds_us(row) < least_us for row in known)


def of_kernel(name: str) -> ProposedChange:
    """Return the change that halves a kernel of the demo, with a gain that nothing checks."""
    gain = Gain(1000.0, 1000.0, 1000.0, steps=3, makespan_us=26_000.0)
    change = PredictedChange(f"half of {name}", ("--scale", f"name={name}:0.5"), gain)
    return ProposedChange("gain", name, "", gain, change)


def test_a_part_of_the_first_change_is_never_the_next_one() -> None:
    results = Results(graph_of(DATA / "demo"))
    kernel = str(hg.kernel_breakdown(results.graph)["name"].iloc[0])
    changes = ProposedChanges((of_kernel("*"), of_kernel(kernel)))
    assert next_change_of(results, changes) is None


def test_after_a_new_recording_comes_the_first_change_with_its_own_gain() -> None:
    results = Results(graph_of(DATA / "demo"))
    again = ProposedChange("damaged", "rank 0", "Record again.", None)
    following = next_change_of(results, ProposedChanges((again, of_kernel("*"))))
    assert following is not None
    assert following.gain == "333.3 µs less per step (4 %)."
    assert next_change_of(results, ProposedChanges((again,))) is None
