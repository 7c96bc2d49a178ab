"""Whether the largest possible gain is named where it is worth the work."""

from __future__ import annotations

import pandas as pd

from htagraph.output.wording.opportunities import sentences


def table(percent: float) -> pd.DataFrame:
    row = {"what": "operator", "name": "aten::mm", "note": "", "gain_us": 500.0, "gain_percent": percent}
    return pd.DataFrame([row | {"gain_at_50_us": 300.0, "target": "op=aten::mm"}])


def test_a_gain_is_named_from_two_percent_on() -> None:
    first, second = sentences(table(2.0), ["x"])
    assert first.startswith("Largest possible gain: operator aten::mm, up to 500.0 µs (2 %), or 300.0 µs if")
    assert second.endswith(": htagraph what-if x --scale op=aten::mm:0.5")
    assert sentences(table(1.9), [])[0].startswith("No single improvement would gain 2 %")
