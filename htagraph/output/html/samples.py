"""The section of the page that shows sampled counters: statistics, and curves over time."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.analyses.device_samples import COUNTERS, device_samples
from htagraph.findings.phrases import plural
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.html.charts import curve
from htagraph.output.html.page import Html, Section, definition, element, table_of

__all__ = ["samples_section"]

_CURVES = 8
"""Counters that are drawn; chosen: two screens. Doubled, four."""
_POINTS = 4000
"""Points of a curve: several per pixel of a screen. Of more samples, the highest of several neighbours is drawn."""
_ROWS = 64
"""Counters in the table; chosen: eight devices of eight counters. Doubled, the table fills several screens."""


def samples_section(graph: DependencyGraph) -> Section | None:
    """Return the counters that the profiler sampled; None for a recording without samples."""
    samples = device_samples(graph)
    samples = samples[np.isfinite(samples["value"])]
    if not len(samples):
        return None
    by_counter = samples.groupby(
        ["rank", "device", "counter"],
        sort=False,
    )
    counters = [rows for _, rows in by_counter]
    curves = [_curve(rows) for rows in counters[:_CURVES]]
    left_out = len(counters) - len(curves)
    note = f"{plural(left_out, 'further counter')} in the table only."
    statistics = device_samples(graph, by="counter")
    table = table_of(
        statistics.head(_ROWS),
        caption=COUNTERS.title,
    )
    body = element(
        "div",
        *curves,
        element("p", note) if left_out else "",
        table,
        definition(device_samples),
    )
    return Section("samples", "Sampled counters", body)


def _curve(samples: pd.DataFrame) -> Html:
    """Return the curve of one counter of one device."""
    first = samples.iloc[0]
    device = first["device"]
    place = f"rank {first['rank']}"
    if device >= 0:
        place += f", device {device}"
    per_point = -(-len(samples) // _POINTS)
    point = np.arange(len(samples)) // per_point
    neighbours = samples.groupby(point)
    moments = neighbours["time_us"].first()
    highest = neighbours["value"].max()
    return curve(
        f"{first['counter']}, {place}",
        list(zip(moments, highest, strict=True)),
        f"{highest.max():,.4g}",
    )
