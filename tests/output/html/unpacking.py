"""What the page's script reads of a payload, computed apart from it."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np

from htagraph.output.html.timeline import PageTimeline


def unpacked(columns: list[dict[str, Any]], data: bytes) -> dict[str, Any]:
    """Return the columns of packed pieces by name, as lists."""
    found: dict[str, Any] = {}
    for column in columns:
        whole = zlib.decompress(data[column["at"] : column["at"] + column["size"]])
        count, planes = column["count"], column["planes"]
        parts = np.frombuffer(whole, np.uint8).reshape(planes, count).astype(np.int64)
        plain = sum((part << 8 * plane for plane, part in enumerate(parts)), np.zeros(count, np.int64))
        signed = np.where(plain % 2, -(plain + 1) // 2, plain // 2)
        found[column["name"]] = ((signed if column["signed"] else plain) * column["unit"]).tolist()
    return found


def slices_of(timeline: PageTimeline) -> list[dict[str, Any]]:
    """Return every slice of a timeline: its row, start, duration, name, activity and step."""
    columns = unpacked(timeline.header["columns"], timeline.data)
    names = json.loads(bytes(columns["names"]))
    activity, step = np.cumsum(columns["activity"]).tolist(), np.cumsum(columns["stepNumber"]).tolist()
    slices: list[dict[str, Any]] = []
    for place, lane in enumerate(timeline.header["lanes"]):
        for depth, count in enumerate(lane["rows"]):
            end = 0
            for _ in range(count):
                i = len(slices)
                start = end + columns["gap"][i]
                end = start + columns["duration"][i]
                slices.append({
                    "row": (place, depth), "rank": lane["rank"], "start": start, "end": end,
                    "name": names[columns["name"][i]], "activity": activity[i], "step": step[i],
                })  # fmt: skip
    return slices


def stretches_of(timeline: PageTimeline) -> list[tuple[int, int, int]]:
    """Return the stretches of the critical path: start, end and slice, -1 for none."""
    columns, slices = unpacked(timeline.header["columns"], timeline.data), slices_of(timeline)
    rows = [count for lane in timeline.header["lanes"] for count in lane["rows"]]
    last = [-1, *np.cumsum([0, *rows]).tolist()]  # by row, from 1
    found, at = [], timeline.header["pathStart"]
    for row, step, late in zip(columns["pathRow"], columns["pathStep"], columns["pathLate"], strict=True):
        last[row] += step
        shown = slices[last[row]] if row else {"start": at, "end": at}
        end = (shown["start"] if shown["start"] > at else shown["end"]) + late
        found.append((at, end, last[row]))
        at = end
    return found
