"""Whether operators lie at their intensity, below the roof of their device."""

from __future__ import annotations

import pandas as pd

from htagraph.output.plot.roofline import roofline_figure

TABLE = pd.DataFrame(
    {
        "rank": 0, "source": "shapes", "operator": ["aten::mm", "aten::add"], "shapes": "", "time_us": [4.0, 1.0],
        "intensity": [200.0, float("nan")], "tflop_s": [100.0, 1.0], "peak_gb_s": 2000.0, "peak_tflop_s": 300.0,
    }
)  # fmt: skip


def test_a_point_per_known_operator_and_a_roof_with_its_ridge() -> None:
    points, roof = roofline_figure(TABLE).data
    assert (list(points.x), list(points.y)) == ([200.0], [100.0])
    assert roof.x[1] == 150.0  # 300 TFLOP/s over 2 TB/s
    assert roof.y[1] == roof.y[2] == 300.0


def test_without_peaks_there_is_no_roof() -> None:
    assert len(roofline_figure(TABLE.assign(peak_gb_s=float("nan"))).data) == 1
