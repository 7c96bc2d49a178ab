"""Charts are sound SVG, whatever their names and numbers are."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from htagraph.output.html.charts import Bar, Part, bars, curve, stacked, waterfall

ODD = "<script>alert(1)</script>\"' " + "n" * 10_000


def rects(chart: str) -> list[dict[str, str]]:
    """Return the marks of a chart, those of its legend left out."""
    return [each.attrib for svg in pictures(chart) for each in svg.iter("rect")]


def pictures(chart: str) -> list[ElementTree.Element]:
    return [svg for svg in ElementTree.fromstring(chart).iter("svg") if svg.attrib.get("role") == "img"]


@pytest.mark.parametrize("count", [0, 1, 8, 512])
def test_bars_of_few_and_many_ranks_fit_a_screen(count: int) -> None:
    chart = stacked(
        [(f"rank {i}", [Part("work", "computation", 5.0), Part("idle", "idle", 1.0)]) for i in range(count)], title="t"
    )
    assert sum(float(svg.attrib["height"]) for svg in pictures(chart)) <= 700
    assert len(rects(chart)) == 2 * count
    assert all(svg.attrib["aria-label"] for svg in pictures(chart))


def test_names_are_cut_and_escaped_and_whole_on_hover() -> None:
    chart = bars([Bar(ODD, 3.0, (2.0, 4.0), "#on=job&event=1")], title=ODD)
    assert "<script" not in chart
    names = [each for each in ElementTree.fromstring(chart).iter("span") if each.attrib["class"] == "name"]
    assert all(len("".join(name.itertext())) < 60 for name in names)
    assert names[0].attrib["title"].startswith("<script>")


def test_what_a_chart_shows_is_said_to_those_who_cannot_see_it() -> None:
    chart = stacked([("rank 3", [Part("work", "computation", 5000.0), Part("idle", "idle", 1000.0)])], title="t")
    assert pictures(chart)[0].attrib["aria-label"] == "rank 3: work 5.00 ms (83.3 %), idle 1.00 ms (16.7 %)"
    counts = stacked([("rank 3", [Part("short", "launch", 5.0)])], title="t", text=lambda count: f"{count:.0f} calls")
    assert "5 calls" in counts


def test_lengths_are_in_proportion() -> None:
    widths = [float(each["width"]) for each in rects(bars([Bar("a", 10), Bar("b", 5)], title="t"))]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01)


def test_a_waterfall_leads_from_before_to_after() -> None:
    chart = waterfall(100.0, [("a", 50.0), ("b", -20.0)], 130.0, title="t")
    x = [(float(each["x"]), float(each["x"]) + float(each["width"])) for each in rects(chart)]
    before, first, second, after = x
    assert first[0] == pytest.approx(before[1], abs=0.02)
    assert second[1] == pytest.approx(first[1], abs=0.02)
    assert after[1] == pytest.approx(second[0], abs=0.02)


def test_a_curve_without_points_is_nothing() -> None:
    assert curve([], title="t", top="3 MB") == ""
    ElementTree.fromstring(curve([(0.0, 1.0), (5.0, 3.0)], title="t", top="3 MB"))
