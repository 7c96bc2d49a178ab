from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.output.plot.hta_shapes.patterns import patterns_figure
from htagraph.output.plot.roofline import roofline_figure
from tests.analyses.test_kernel_patterns import linear
from tests.reach import DATA
from tests.strategies import load


def test_a_pattern_is_a_bar_as_high_as_its_count() -> None:
    events = [*linear(0, 1, "a", "b", "c"), *linear(50, 10, "x", "y", "z"), *linear(100, 20, "x", "y", "z")]
    figure = patterns_figure(hg.kernel_patterns(load(events)), "rank 0")
    assert list(figure.data[0].y) == [2, 1]
    assert figure.data[0].customdata[0] == "aten::linear<br>x<br>y<br>z"
    assert figure.layout.title.text == "Top 2 frequent patterns for rank 0"


def test_no_pattern_is_an_empty_figure() -> None:
    assert len(patterns_figure(hg.kernel_patterns(load([])), "rank 0").data[0].y) == 0


def test_the_roofline_has_a_point_per_row_and_the_roof_bends_at_the_ridge() -> None:
    table = hg.roofline(hg.load(DATA / "gloo_ddp", ranks=[0]), peak_tflop_s=2.0, peak_gb_s=100.0)
    points, roof = roofline_figure(table).data
    assert len(points.x) == len(table)
    assert roof.x[1] == pytest.approx(20.0)
    assert list(roof.y[1:]) == [2.0, 2.0]
    assert roof.y[0] == pytest.approx(roof.x[0] * 0.1)


def test_without_limits_there_is_no_roof_and_without_rows_no_point() -> None:
    table = hg.roofline(hg.load(DATA / "gloo_ddp", ranks=[0]))
    assert len(roofline_figure(table).data) == 1
    assert len(roofline_figure(table.head(0)).data) == 0
