from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph.analyses.differences.diff import Diff
from htagraph.output.reports.changes import by_step
from htagraph.whatif.outcome import Outcome
from tests.reach import DATA, graph_of


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return hg.what_if(graph_of(DATA / "demo")).scale(factor=0.5, kind="computation").run()


def test_the_whole_job_has_its_times_and_the_interval(outcome: Outcome) -> None:
    before, after, *_ = outcome.plot().data
    assert before.x[0] == pytest.approx(outcome.baseline_ns / 1e6)
    assert after.x[0] == pytest.approx(outcome.makespan_ns / 1e6)
    assert after.x[0] + after.error_x.array[0] == pytest.approx(outcome.baseline_ns / outcome.low / 1e6)
    assert after.x[0] - after.error_x.arrayminus[0] == pytest.approx(outcome.baseline_ns / outcome.high / 1e6)


def test_each_step_is_drawn_before_and_after(outcome: Outcome) -> None:
    *_, before, after = outcome.plot().data
    times = by_step(outcome)
    assert list(before.y) == pytest.approx((times["recorded_us"] / 1000).tolist())
    assert list(after.y) == pytest.approx((times["predicted_us"] / 1000).tolist())


def test_the_title_gives_the_speedup_and_its_interval(outcome: Outcome) -> None:
    speed = f"{outcome.speedup:.2f} times as fast (90 %: {outcome.low:.2f} to {outcome.high:.2f})"
    assert outcome.plot().layout.title.text.startswith(f"The job would be {speed}: 26.2 ms → 18.4 ms")
    unchanged = hg.what_if(graph_of(DATA / "demo")).run().plot().layout.title.text
    assert unchanged.startswith("The job would be 1.00 times as fast: 26.2 ms → 26.2 ms")


def test_a_sweep_is_a_curve_in_the_order_of_the_factors() -> None:
    graph = graph_of(DATA / "demo")
    table = hg.sweep(graph, lambda job, factor: job.scale(factor=factor, kind="computation"), [1.0, 0.0, 0.5])
    curve, recorded = hg.plot.sweep(table).data
    assert curve.x.tolist() == [0.0, 0.5, 1.0]
    assert curve.y.tolist() == pytest.approx((table.sort_values("factor")["makespan_us"] / 1000).tolist())
    assert recorded.y[0] == pytest.approx(table["makespan_us"][0] / 1000)
    assert hg.plot.sweep(table).layout.title.text.startswith("Of these factors, 0 is the fastest")


def test_a_sweep_with_intervals_has_a_band_around_the_curve() -> None:
    graph = graph_of(DATA / "demo")
    table = hg.sweep(graph, lambda job, factor: job.scale(factor=factor, kind="computation"), [0.5], intervals=True)
    low, high, curve, _ = hg.plot.sweep(table).data
    assert high.name == "90 % interval"
    assert low.y[0] < curve.y[0] < high.y[0]


@pytest.fixture(scope="module")
def change() -> Diff:
    graph = graph_of(DATA / "demo")
    slower = hg.what_if(graph).scale(factor=2.0, kind="computation").run().graph
    return hg.diff(graph, slower)


@pytest.mark.parametrize("by", ["rank", "category", "edge", "operator", "kernel", "module"])
def test_the_bars_lead_from_before_to_after(change: Diff, by: str) -> None:
    (waterfall,) = hg.plot.diff(change, by=by).data  # type: ignore[arg-type]
    values = np.array(waterfall.x[:-1], float)
    assert values[0] == pytest.approx(change.before_us / 1000)
    assert values.sum() == pytest.approx(change.after_us / 1000)
    assert values[1:].sum() == pytest.approx(change.change_us / 1000)


def test_the_title_is_the_first_sentence_and_what_it_is_divided_by_must_be_known(change: Diff) -> None:
    assert change.sentences()[0].startswith(change.plot().layout.title.text.partition("<br>")[0])
    with pytest.raises(ValueError, match="by='stream' is not known"):
        hg.plot.diff(change, by="stream")  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return hg.opportunities(graph_of(DATA / "demo"))


def test_bars_are_gains_below_their_ceilings(table: pd.DataFrame) -> None:
    ceiling, gain, half = hg.plot.opportunities(table).data
    assert gain.x.tolist() == pytest.approx((table["gain_us"] / 1000).tolist())
    assert ceiling.x.tolist() == pytest.approx((table["critical_us"] / 1000).tolist())
    assert half.x.tolist() == pytest.approx((table["gain_at_50_us"] / 1000).tolist())
    assert (ceiling.x >= gain.x - 1e-9).all()


def test_each_row_has_a_label_of_its_own_and_the_first_is_the_title(table: pd.DataFrame) -> None:
    twice = pd.concat([table, table], ignore_index=True)
    figure = hg.plot.opportunities(twice.drop(columns="gain_at_50_us"))
    assert len(set(figure.layout.yaxis.ticktext)) == len(figure.layout.yaxis.ticktext) == len(twice)
    assert len(figure.data) == 2  # without halves, there are no marks of them
    start = "Largest gain: 5.58 ms (21 % of the job) if operator aten::mm took no time<br>"
    assert figure.layout.title.text.startswith(start)


def test_the_bars_of_a_plan_have_the_names_of_its_changes_and_follow_each_other() -> None:
    result = hg.plan(graph_of(DATA / "demo"))
    figure = hg.plot.plan(result)
    names = [text.replace("<br>", " ") for text in figure.layout.yaxis.ticktext]
    assert names == [*result.changes["change"], "together"]
    adds = figure.data[1]
    ends = [base + length for base, length in zip(adds.base, adds.x, strict=True)]
    assert list(adds.base[1:-1]) == pytest.approx(ends[:-2])
    assert ends[-1] == pytest.approx(ends[-2])
