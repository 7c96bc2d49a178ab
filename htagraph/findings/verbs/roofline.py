"""What ``htagraph roofline`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.core.statistics import MOST
from htagraph.findings.phrases import command_line, plural, share_text, time_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["sentences"]


def sentences(table: pd.DataFrame, inputs: Sequence[str], chosen: tuple[bool, bool]) -> list[str]:
    """Return what was computed, the device's peaks, and which operator loses the most time below its roof."""
    odd = table.attrs.get("left_out", 0)
    left_out = (
        [f"{plural(odd, 'operator')} not counted: what was recorded of the inputs fits no formula."] if odd else []
    )
    if not len(table):
        return [
            *left_out,
            "No operator's FLOPs can be counted, as no input shapes were recorded: profile with record_shapes=True (as "
            "data/gloo_ddp of htagraph's repository was), or with CUPTI's range profiler. To see what takes the time: "
            f"{command_line('summary', inputs)}",
        ]
    time, flop = float(table["time_us"].sum()), float(table["flop"].sum())
    count, at_most = int(table["count"].sum()), int(table.loc[table["at_most"], "count"].sum())
    up_to = "up to " if at_most else ""
    on_host = " of host time, as no device work was recorded" if table["share_percent"].isna().all() else ""
    lasted = f"in {time_text(time)}{on_host}" if time else "in a time that was not recorded"
    computed = f"{plural(count, 'operator')} computed {up_to}{flop / 1e12:.3g} TFLOP {lasted}."
    return [computed, *_in_full(at_most), *left_out, *_peaks(table, chosen), *_roof(table), *_share(table, inputs)]


def _in_full(count: int) -> list[str]:
    """Return why some operators may have computed less."""
    if not count:
        return []
    why = "whether a mask is causal, or where groups end, was not recorded"
    return [f"Of these, {plural(count, 'operator')} may have computed less: {why}."]


def _peaks(table: pd.DataFrame, chosen: tuple[bool, bool]) -> list[str]:
    """Return the peaks that the roof consists of, and where each comes from."""
    parts = []
    for column, unit, given_here in zip(("peak_tflop_s", "peak_gb_s"), ("TFLOP/s", "GB/s"), chosen, strict=True):
        peaks = sorted(table[column].dropna().unique())
        option = "--peak-tflops" if unit == "TFLOP/s" else "--peak-gbs"
        source = f"given with {option}" if given_here else "the vendor's data sheet, dense, at boost clock"
        if peaks:
            parts.append((f"{' or '.join(f'{peak:,.4g}' for peak in peaks)} {unit}", source))
    if len(parts) > 1 and parts[0][1] == parts[1][1]:
        parts = [(f"{parts[0][0]} and {parts[1][0]}", parts[0][1])]
    return [f"The roof: at most {' and '.join(f'{peak} ({source})' for peak, source in parts)}."] if parts else []


def _roof(table: pd.DataFrame) -> list[str]:
    known = table[table["roof_percent"].notna()]
    if not len(known):
        return ["The peaks of this device are not known: give --peak-tflops and --peak-gbs."]
    lost = known["time_us"] * (1 - known["roof_percent"].clip(upper=100) / 100)
    worst = known.iloc[int(lost.argmax())]
    up_to, at_least = ("up to ", "at least ") if worst["at_most"] else ("", "")
    return [
        f"{worst['operator']} ({worst['shapes']}) loses the most time below the roof: it reaches {up_to}"
        f"{share_text(worst['roof_percent'])} of what {worst['bound']} allows; at the roof it would take {at_least}"
        f"{time_text(float(lost.max()))} less."
    ]


def _share(table: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    share = table.groupby("rank")["share_percent"].sum(min_count=1).mean()
    if not share < 100 * MOST:  # also where it is unknown
        return []
    return [
        f"These operators are {share_text(share)} of the device's time. For the rest, whose FLOPs cannot be counted: "
        + command_line("summary", inputs)
    ]
