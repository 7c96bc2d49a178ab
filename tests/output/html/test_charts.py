"""Charts are sound SVG, whatever their names and numbers are."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from htagraph.findings.finding import NO_CHART, Bar, BarPart, Chart, Place
from htagraph.output.html.charts import curve, drawn, stacked, waterfall

ODD = "<script>alert(1)</script>\"' " + "n" * 10_000


def rects(chart: str) -> list[dict[str, str]]:
    """Return the marks of a chart, those of its legend left out."""
    return [each.attrib for svg in pictures(chart) for each in svg.iter("rect")]


def pictures(chart: str) -> list[ElementTree.Element]:
    return [svg for svg in ElementTree.fromstring(chart).iter("svg") if svg.attrib.get("role") == "img"]


@pytest.mark.parametrize("count", [0, 1, 8, 512])
def test_bars_of_few_and_many_ranks_fit_a_screen(count: int) -> None:
    parts = [BarPart("work", "computation", 5.0), BarPart("idle", "idle", 1.0)]
    chart = stacked("t", [(f"rank {i}", parts) for i in range(count)])
    assert sum(float(svg.attrib["height"]) for svg in pictures(chart)) <= 700
    assert len(rects(chart)) == 2 * count
    assert all(svg.attrib["aria-label"] for svg in pictures(chart))


def test_names_are_cut_and_escaped_and_whole_on_hover() -> None:
    chart = drawn(Chart(ODD, [Bar(ODD, 3.0, (2.0, 4.0), Place(1))]), lambda bar: f"#on=job&event={bar.place}")
    assert "<script" not in chart
    names = [each for each in ElementTree.fromstring(chart).iter("span") if each.attrib["class"] == "name"]
    assert all(len("".join(name.itertext())) < 60 for name in names)
    assert names[0].attrib["title"].startswith("<script>")


def test_what_a_chart_shows_is_said_to_those_who_cannot_see_it() -> None:
    chart = stacked("t", [("rank 3", [BarPart("work", "computation", 5000.0), BarPart("idle", "idle", 1000.0)])])
    assert pictures(chart)[0].attrib["aria-label"] == "rank 3: work 5.00 ms (83.3 %), idle 1.00 ms (16.7 %)"
    assert "5 calls" in stacked(
        "t", [("rank 3", [BarPart("short", "launch", 5.0)])], lambda count: f"{count:.0f} calls"
    )


def test_lengths_are_in_proportion() -> None:
    widths = [float(each["width"]) for each in rects(drawn(Chart("t", [Bar("a", 10), Bar("b", 5)])))]
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.01)


def test_a_waterfall_leads_from_before_to_after() -> None:
    chart = waterfall("t", 100.0, [("a", 50.0), ("b", -20.0)], 130.0)
    x = [(float(each["x"]), float(each["x"]) + float(each["width"])) for each in rects(chart)]
    before, first, second, after = x
    assert first[0] == pytest.approx(before[1], abs=0.02)
    assert second[1] == pytest.approx(first[1], abs=0.02)
    assert after[1] == pytest.approx(second[0], abs=0.02)


def test_what_has_no_bars_or_points_is_nothing() -> None:
    assert drawn(NO_CHART) == curve("t", [], "3 MB") == ""
    ElementTree.fromstring(curve("t", [(0.0, 1.0), (5.0, 3.0)], "3 MB"))
