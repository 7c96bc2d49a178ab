from __future__ import annotations

from html import escape
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph.core.kinds import ActivityKind, GapKind
from htagraph.graph.dependency_graph import DependencyGraph
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, kernel, launch, load, op, step


@pytest.fixture(scope="module")
def graph() -> DependencyGraph:
    return graph_of(DATA / "demo")


def test_step_times_of_nothing_changed_are_those_recorded(graph: DependencyGraph) -> None:
    steps = hg.what_if(graph).run().step_times()
    assert list(steps.columns) == [
        "step", "rank", "start_us", "end_us", "predicted_start_us", "predicted_end_us",
    ]  # fmt: skip
    assert steps["start_us"].equals(steps["predicted_start_us"])
    assert steps["end_us"].equals(steps["predicted_end_us"])
    assert len(steps) == len(graph.ranks) * len(graph.steps)


def test_step_times_agree_with_the_analysis(graph: DependencyGraph) -> None:
    ours = hg.what_if(graph).run().step_times()
    theirs = hg.step_times(graph)
    pd.testing.assert_frame_equal(ours[["rank", "step", "end_us"]], theirs[["rank", "step", "end_us"]])


def test_step_times_begin_with_the_annotation_and_end_with_the_work_of_the_step() -> None:
    graph = load([step(3, 10, 20), op("a", 0, 5), launch(12, 2, 1), kernel(COMPUTE, 15, 40, 1)])
    row = hg.what_if(graph).scale(factor=2, name=COMPUTE).run().step_times().iloc[0]
    assert row.tolist() == [3, 0, 10, 55, 10, 95]


def test_the_mean_step_is_first_start_to_last_end_by_steps() -> None:
    graph = load([step(1, 0, 10), step(2, 10, 10), launch(12, 2, 1), kernel(COMPUTE, 15, 25, 1)])
    outcome = hg.what_if(graph).scale(factor=2, name=COMPUTE).run()
    assert outcome.baseline_mean_step_ns == 20_000
    assert outcome.mean_step_ns == 32_500


def test_without_steps_the_whole_is_one() -> None:
    outcome = hg.what_if(load([op("a", 5, 10)])).scale(factor=2, name="a").run()
    assert (outcome.baseline_mean_step_ns, outcome.mean_step_ns) == (10_000, 20_000)
    assert not len(outcome.step_times())


def test_the_predicted_graph_is_a_job_like_any_other(graph: DependencyGraph) -> None:
    outcome = hg.what_if(graph).scale(factor=0.5, kind="computation").run()
    predicted = outcome.graph
    predicted.check()
    assert hg.replay(predicted).max_error_ns == 0
    assert predicted.time.max() - graph.origin_ns == outcome.makespan_ns
    work = graph.select(kind="computation").activities
    assert (np.abs(2 * predicted.activities.duration[work] - graph.activities.duration[work]) <= 1).all()
    assert len(hg.kernel_breakdown(predicted)) == len(hg.kernel_breakdown(graph))
    assert hg.what_if(predicted).run().speedup == 1


def test_the_critical_path_is_that_of_the_prediction(graph: DependencyGraph) -> None:
    outcome = hg.what_if(graph).scale(factor=0, kind="host").run()
    path = outcome.critical_path()
    assert path.makespan_ns == outcome.graph.time.max() - outcome.graph.time.min()
    assert outcome.critical_path(steps=graph.steps[0]).makespan_ns <= path.makespan_ns


def test_the_interval_holds_the_speedup_without_unexplained_pauses() -> None:
    # two kernels of 10 µs; the second starts 60 µs after the first for no reason that the trace shows
    events = [launch(0, 1, 1), kernel(COMPUTE, 5, 10, 1), launch(2, 1, 2), kernel(COMPUTE, 75, 10, 2)]
    graph = load(events)
    assert (graph.gap_kind == GapKind.STREAM_IDLE).any()
    outcome = hg.what_if(graph).scale(factor=0, name=COMPUTE).run()
    assert outcome.speedup == pytest.approx(
        85 / (2 + 5 + 59)
    )  # launched at 2, 5 later at the earliest, and 1 is a pause
    assert 0.94 * outcome.speedup < outcome.low < outcome.speedup
    assert 26 / (2 + 5) < outcome.high < 1.07 * 26 / (2 + 5)  # chance adds to the reading without the pause
    assert outcome.notes == (
        f"the recording cannot tell how much: a speedup of {outcome.low:.2f} to {outcome.high:.2f} (90 %), as "
        "pauses in the recording are not explained; the prediction is nearly the worst case; a recording with "
        "Python stacks (with_stack=True) shows more",
    )


def test_a_job_that_takes_no_time() -> None:
    empty = hg.what_if(load({0: []})).run()
    assert (empty.baseline_ns, empty.makespan_ns, empty.speedup) == (0, 0, 1.0)
    gone = hg.what_if(load([op("a", 0, 10)])).scale(factor=0).run()
    assert gone.speedup == float("inf")
    assert "inf" not in repr(gone) + gone._repr_html_()
    assert gone.saved_ns == 10_000


def test_every_rank_is_on_the_common_clock(graph: DependencyGraph) -> None:
    outcome = hg.what_if(graph).run()
    assert outcome.graph.clocks == ()
    assert np.array_equal(outcome.graph.time, graph.time)
    ends = outcome.step_times()["predicted_end_us"] * 1000 + graph.origin_ns
    marks = np.flatnonzero(graph.activities.kind == ActivityKind.BOUNDARY)
    assert np.allclose(np.sort(ends - graph.origin_ns), np.sort(graph.time[2 * marks] - graph.origin_ns), atol=1000)


def test_a_notebook_shows_recorded_and_predicted_times_with_the_users_text_escaped() -> None:
    graph = load([step(1, 0, 10), op("<b>&", 10, 10)])
    outcome = hg.what_if(graph).scale(factor=2, name="<b>&").run()
    assert len(outcome.notes) == 1
    shown = ElementTree.fromstring(outcome._repr_html_())  # sound XML: what the user wrote is escaped
    caption = "".join(shown.find("caption").itertext())  # type: ignore[union-attr]
    assert (
        caption
        == f"scale(factor=2, name='<b>&')speedup 0.667× [{outcome.low:.3f}, {outcome.high:.3f}]{outcome.notes[0]}"
    )
    assert [[cell.text for cell in row] for row in shown.findall("tr")] == [
        ["ms", "recorded", "predicted"], ["makespan", "0.020", "0.030"], ["usual step", "0.010", "0.010"],
    ]  # fmt: skip
    assert "nothing changed" in hg.what_if(load({0: []})).run()._repr_html_()


def test_a_notebook_shows_the_notes_of_a_prediction() -> None:
    outcome = hg.what_if(graph_of(DATA / "demo")).scale_ranks(16).run()
    assert outcome.notes
    assert all(escape(note) in outcome._repr_html_() for note in outcome.notes)
