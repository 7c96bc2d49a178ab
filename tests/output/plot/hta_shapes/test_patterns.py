from __future__ import annotations

import htagraph as hg
from htagraph.output.plot.hta_shapes.patterns import patterns_figure
from tests.analyses.test_kernel_patterns import linear
from tests.strategies import load


def test_a_pattern_is_a_bar_as_high_as_its_count() -> None:
    events = [*linear(0, 1, "a", "b", "c"), *linear(50, 10, "x", "y", "z"), *linear(100, 20, "x", "y", "z")]
    figure = patterns_figure(hg.kernel_patterns(load(events)), "rank 0")
    assert list(figure.data[0].y) == [2, 1]
    assert figure.data[0].customdata[0] == "aten::linear<br>x<br>y<br>z"
    assert figure.layout.title.text == "Top 2 frequent patterns for rank 0"


def test_no_pattern_is_an_empty_figure() -> None:
    assert len(patterns_figure(hg.kernel_patterns(load([])), "rank 0").data[0].y) == 0
