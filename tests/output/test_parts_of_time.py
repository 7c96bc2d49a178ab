from __future__ import annotations

import pandas as pd

from htagraph.output.parts_of_time import with_shares

PARTS_US = {"computation": 15_000, "exposed_communication": 5_000, "exposed_memory": 0, "other": 0, "idle": 0}


def test_parts_that_never_occur_are_left_out_and_large_times_are_ms() -> None:
    row: dict[str, object] = {"rank": 0, "executor": "device", "window_us": 20_000.0}
    row |= {f"{part}_us": us for part, us in PARTS_US.items()}
    row |= {f"{part}_percent": us / 200 for part, us in PARTS_US.items()}
    shown = with_shares(pd.DataFrame([row]))
    parts = [f"{part} ms (%)" for part in PARTS_US if part != "other"]
    assert list(shown.columns) == ["rank", "executor", "window_us", *parts]
    assert shown["computation ms (%)"].tolist() == ["15.0 (75 %)"]
