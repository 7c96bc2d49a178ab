"""The temporal breakdown as a reader sees it: each part of the time and its share in one column."""

from __future__ import annotations

import math

import pandas as pd

from htagraph.findings.phrases import short_number

__all__ = ["with_shares"]

_MIN_US_IN_MS = 10_000.0
"""µs from which a window's parts are shown in ms, as in the other tables."""
_PARTS = ("computation", "exposed_communication", "exposed_memory", "other", "idle")


def with_shares(table: pd.DataFrame) -> pd.DataFrame:
    """Return the temporal breakdown with each part and its share in one column, without parts that never occur."""
    unit, scale = ("ms", 1000) if table["window_us"].max() >= _MIN_US_IN_MS else ("µs", 1)
    joined = table[["rank", "executor", "window_us"]].copy()
    for part in _PARTS:
        if part == "other" and not table["other_us"].any():
            continue
        pairs = zip(table[f"{part}_us"], table[f"{part}_percent"], strict=True)
        joined[f"{part} {unit} (%)"] = [
            f"{short_number(us / scale)} ({share:.0f} %)" if math.isfinite(share) else short_number(us / scale)
            for us, share in pairs
        ]
    return joined
