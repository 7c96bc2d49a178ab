"""Whether operators lie at their intensity, below the roof of their device."""

from __future__ import annotations

import pandas as pd

import htagraph as hg

TABLE = pd.DataFrame(
    {
        "rank": 0, "source": "shapes", "operator": ["aten::mm", "aten::add"], "shapes": "", "time_us": [4.0, 1.0],
        "count": 1, "intensity": [200.0, float("nan")], "tflop_s": [100.0, 1.0], "peak_gb_s": 2000.0,
        "peak_tflop_s": 300.0, "roof_percent": [33.3, float("nan")], "bound": ["compute", ""],
    }
)  # fmt: skip


def test_a_point_per_known_operator_and_a_roof_with_its_ridge() -> None:
    points, roof = hg.plot.roofline(TABLE).data
    assert (list(points.x), list(points.y)) == ([200.0], [100.0])
    assert roof.x[1] == 150.0  # 300 TFLOP/s over 2 TB/s
    assert roof.y[1] == roof.y[2] == 300.0


def test_the_title_says_how_much_of_the_roof_is_reached_where_that_is_known() -> None:
    title = hg.plot.roofline(TABLE).layout.title.text.replace("<br>", " ")
    assert title.startswith("aten::mm, the row with most time, reaches 100 TFLOP/s, 33 % of what the device allows")
    unknown = TABLE.assign(peak_gb_s=float("nan"), roof_percent=float("nan"), bound="")
    figure = hg.plot.roofline(unknown)
    assert len(figure.data) == 1
    assert "the peaks of its device are not known" in figure.layout.title.text.replace("<br>", " ")
