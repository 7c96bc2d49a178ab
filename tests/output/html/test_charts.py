"""Charts are sound SVG, whatever their names and numbers are."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from htagraph.output.html.charts import Bar, Part, bars, curve, stacked, waterfall

ODD = "<script>alert(1)</script>\"' " + "n" * 10_000


def rects(chart: str) -> list[dict[str, str]]:
    return [each.attrib for each in ElementTree.fromstring(chart).iter("rect")]


@pytest.mark.parametrize("count", [0, 1, 8, 512])
def test_bars_of_few_and_many_ranks_fit_a_screen(count: int) -> None:
    chart = stacked(
        [(f"rank {i}", [Part("work", "computation", 5.0), Part("idle", "idle", 1.0)]) for i in range(count)], title="t"
    )
    root = ElementTree.fromstring(chart)
    assert float(root.attrib["height"]) <= 700
    assert len(rects(chart)) == (2 * count + 2 if count else 0)


def test_names_are_cut_and_escaped() -> None:
    chart = bars([Bar(ODD, 3.0, 2.0, 4.0)], title=ODD)
    assert "<script" not in chart
    texts = [each.text or "" for each in ElementTree.fromstring(chart).iter("text")]
    assert all(len(text) < 40 for text in texts)


def test_lengths_are_in_proportion() -> None:
    widths = [float(each["width"]) for each in rects(bars([Bar("a", 10, 10, 10), Bar("b", 5, 5, 5)], title="t"))]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01)


def test_a_waterfall_leads_from_before_to_after() -> None:
    chart = waterfall(100.0, [("a", 50.0), ("b", -20.0)], 130.0, title="t")
    x = [(float(each["x"]), float(each["x"]) + float(each["width"])) for each in rects(chart)]
    before, first, second, after = x
    assert first[0] == pytest.approx(before[1], abs=0.02)
    assert second[1] == pytest.approx(first[1], abs=0.02)
    assert after[1] == pytest.approx(second[0], abs=0.02)


def test_a_curve_without_points_is_nothing() -> None:
    assert curve([], title="t", unit="MB") == ""
    ElementTree.fromstring(curve([(0.0, 1.0), (5.0, 3.0)], title="t", unit="MB"))
