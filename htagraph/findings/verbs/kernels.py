"""What ``htagraph kernels`` says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.core.naming import short_name
from htagraph.findings.phrases import command_line, glob_of, time_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["OUTSIDE", "UNKNOWN", "launch_not_recorded", "slowest_rank", "top_entry"]

OUTSIDE = {
    "operator": "outside all operators", "shape": "outside all operators", "annotation": "outside all annotations",
    "module": "outside all modules and annotations",
}  # fmt: skip
"""The name of device work that belongs to nothing of the kind that it is summed up by."""
UNKNOWN = "launch not recorded"
"""The name of device work whose launch is not in the traces."""
_MIN_RELATIVE = 1.1
"""Time of a kernel over the median of the ranks; chosen: ranks on equal devices differ by less. Doubled,
a rank is named only where a kernel takes more than twice as long there."""


def launch_not_recorded(count: int, percent: float) -> str:
    """Return the sentence about device work whose launch is missing; `percent` is of the device time, NaN of none."""
    what = "1 kernel or copy" if count == 1 else f"{count:,} kernels or copies"
    share = f" ({percent:.0f} % of device time)" if math.isfinite(percent) else ""
    return (
        f"The launch of {what} was not recorded{share}, so what launched {'it' if count == 1 else 'them'} is unknown. "
        f"Start recording earlier to include {'its launch' if count == 1 else 'their launches'}."
    )


def slowest_rank(table: pd.DataFrame, rank_count: int, inputs: Sequence[str]) -> list[str]:
    """Return which rank is slowest in its kernels, and in which of them."""
    work = table[table["kind"] != "communication"]
    slow = work.groupby("rank")["excess_us"].sum().sort_values(ascending=False)
    worst = work[work["rank"] == slow.index[0]].sort_values("excess_us", ascending=False) if len(slow) else work
    if rank_count < 2 or not len(worst) or not worst["relative"].iloc[0] >= _MIN_RELATIVE:
        return ["No rank is slower than the others in its kernels (communication aside)."]
    row = worst.iloc[0]
    return [
        f"Rank {row['rank']} is the slowest in its kernels: {time_text(float(slow.iloc[0]))} more than the median of "
        f"the ranks, mostly in {short_name(row['name'])} ({row['relative']:.2f} times the median).",
        f"To see whether the others wait for it: {command_line('stragglers', inputs)}",
    ]


def top_entry(table: pd.DataFrame, by: str, inputs: Sequence[str]) -> list[str]:
    """Return what takes the most device time, and what to run next."""
    spent = "device_us" if "device_us" in table else "total_us"
    if not len(table) or not table[spent].any():
        return ["No device work was recorded."]
    owned = table[table["name"] != ""]
    row = (owned if len(owned) and owned[spent].any() else table).iloc[0]
    name = short_name(row["name"]) or f"work {OUTSIDE.get(by, '')}"
    among = f" (not counting work {OUTSIDE.get(by, '')})" if len(owned) < len(table) and row["name"] else ""
    time, share = time_text(float(row[spent])), row["share_percent"]
    return [
        f"{name} takes the most device time{among}: {time} over all ranks, {share:.0f} %.",
        *_next(table, by, inputs),
    ]


def _next(table: pd.DataFrame, by: str, inputs: Sequence[str]) -> list[str]:
    if by == "name":
        half = f"name={glob_of(short_name(table['name'].iloc[0]))}:0.5"
        return [f"To predict the job if it took half its time: {command_line('what-if', inputs, '--scale', half)}"]
    if by == "operator":
        return [f"To split operators by input shapes: {command_line('kernels', inputs, '--by', 'shape')}"]
    if by == "shape" and not (table["input_dims"] != "").any():
        return ["The traces have no input shapes: record them with record_shapes=True."]
    if by == "module" and not (table["kind"] == "module").any():
        return ["The traces have no module frames, so annotations are shown instead: record with with_stack=True."]
    if by == "module":
        return [f"To see which operators take it: {command_line('kernels', inputs, '--by', 'operator')}"]
    return []
