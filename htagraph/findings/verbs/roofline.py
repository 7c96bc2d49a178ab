"""Sentences of ``htagraph roofline``: the operator that loses the most time below its roof, and the gain of the job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import pandas as pd

from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import exact_glob
from htagraph.core.statistics import MOST
from htagraph.findings.limits import MIN_PERCENT
from htagraph.findings.phrases import (
    Suggestion,
    and_list,
    command_line,
    plural,
    share_text,
    short_number,
    spoken,
    time_text,
)
from htagraph.queries.device_record import DeviceRecord
from htagraph.trace.readers import Recorder
from htagraph.whatif.options import criteria_text

__all__ = ["RecordedRates", "roofline_sentences"]

_PYTORCH: Final = Recorder()
"""The recorder of most jobs: PyTorch's profiler."""
_SMALL_TFLOP: Final = 0.1
"""Operations, 10^12, below which they are counted in 10^9. It follows from the three digits that are shown. Doubled,
0.15 TFLOP is 150 GFLOP."""


_KERNELS: Final = ActivityKind.COMPUTATION.label
"""The kind of work that is as fast as the roof allows: the operators' time on the host stays."""


class RecordedRates(NamedTuple):
    """How operators and devices were recorded."""

    recorder: Recorder = _PYTORCH
    """The profiler that wrote the traces."""
    record: DeviceRecord = DeviceRecord.RECORDED
    """Whether the work of devices was recorded: without it, no peak of a device says anything."""
    has_shapes: bool = False
    """Whether shapes of inputs were recorded."""
    replays: tuple[str, ...] = ()
    """The launchers of kernels without operators here: CUDA graphs, compiled code."""


def roofline_sentences(
    table: pd.DataFrame,
    inputs: Sequence[str],
    chosen: tuple[bool, bool],
    recorded: RecordedRates,
    saved_percent: Callable[[tuple[str, ...]], float] | None = None,
) -> list[str]:
    """Return which operator loses the most time below its roof, how much was computed, and the device's peaks.

    Args:
        table: the result of `htagraph.roofline`.
        inputs: the words of the command line that choose the job.
        chosen: whether the user gave the peaks of computing and of memory.
        recorded: how operators and devices were recorded.
        saved_percent: returns how much shorter the job is with a change, given as options; None where the
            gain is not known.
    """
    odd = table.attrs.get("left_out", 0)
    left_out = f"{plural(odd, 'operator')} not counted: what was recorded of the inputs fits no formula." if odd else ""
    to_see = command_line("summary", inputs)
    if not len(table):
        return spoken(left_out, Suggestion(f"{_none(recorded)} To see what takes the time", to_see))
    at_most = int(table.loc[table["at_most"], "count"].sum())
    masks = (
        f"Of these, {plural(at_most, 'operator')} may have computed less: whether a mask is causal, or where groups "
        "end, was not recorded."
    )
    return spoken(
        *_roof(table, recorded, inputs, saved_percent),
        _computed(table, recorded.record),
        masks if at_most else "",
        left_out,
        _peaks(table, chosen, recorded.record),
        _without_peaks(table, recorded.record),
        _judged(table, inputs),
        _on_host(table, inputs),
    )


def _none(recorded: RecordedRates) -> str:
    """Return why the FLOPs of no operator can be counted, and the settings to record."""
    if not recorded.has_shapes:
        shapes = recorded.recorder.setting("shapes")
        counters = "" if recorded.record is DeviceRecord.UNUSED else ", or with CUPTI's range profiler"
        how = recorded.recorder.of_pytorch(f": profile with {shapes}{counters}")
        return f"No operator's FLOPs can be counted, as no input shapes were recorded{how}."
    if not recorded.replays:
        return "No operator with a formula for FLOPs was recorded."
    replays = and_list(recorded.replays)
    return (
        f"No operator's FLOPs can be counted: {replays} run kernels without operators. Record a step without {replays}."
    )


def _computed(table: pd.DataFrame, record: DeviceRecord) -> str:
    """Return how much operators computed, in which time, and on hosts alone also which operator takes the most."""
    time = float(table["time_us"].sum())
    flop = float(table["flop"].sum())
    up_to = "up to " if table["at_most"].any() else ""
    is_host = bool(table["share_percent"].isna().all())
    on_host = " of host time, as no device work was recorded" if is_host else ""
    unknown = f": {record.value}" if record.is_lost else ""
    lasted = f"in {time_text(time)}{on_host}" if time else f"in a time that was not recorded{unknown}"
    operators = plural(int(table["count"].sum()), "operator")
    longest = _longest(table) if is_host and time else ""
    return f"{longest}{operators} computed {up_to}{_work_text(flop)} {lasted}."


def _longest(table: pd.DataFrame) -> str:
    """Return the operator that takes the most time, with its rate."""
    sums = table.groupby("operator", sort=False)[["time_us", "flop"]].sum()
    most = sums.iloc[int(sums["time_us"].argmax())]
    rate = short_number(most["flop"] / most["time_us"] / 1000)
    return f"{most.name} takes the most time of them: {time_text(most['time_us'])}, at {rate} GFLOP/s. "


def _work_text(flop: float) -> str:
    """Return a number of operations in the unit that suits it."""
    tflop = flop / 1e12
    return f"{1000 * tflop:.3g} GFLOP" if tflop < _SMALL_TFLOP else f"{tflop:.3g} TFLOP"


def _peaks(table: pd.DataFrame, chosen: tuple[bool, bool], record: DeviceRecord) -> str:
    """Return the peaks that the roof consists of, and where each comes from."""
    roofs = []
    for column, unit, given_here in zip(("peak_tflop_s", "peak_gb_s"), ("TFLOP/s", "GB/s"), chosen, strict=True):
        peaks = sorted(table[column].dropna().unique())
        option = "--peak-tflops" if unit == "TFLOP/s" else "--peak-gbs"
        source = f"given with {option}" if given_here else "the vendor's data sheet, dense, at boost clock"
        if peaks:
            by_type = ", by the type of the inputs" if len(peaks) > 1 else ""
            roofs.append((f"{' or '.join(f'{peak:,.4g}' for peak in peaks)} {unit}{by_type}", source))
    if len(roofs) > 1 and roofs[0][1] == roofs[1][1]:
        roofs = [(f"{roofs[0][0]} and {roofs[1][0]}", roofs[0][1])]
    whose = " of the CPU" if record is DeviceRecord.UNUSED else ""
    return f"The roof{whose}: at most {' and '.join(f'{peak} ({source})' for peak, source in roofs)}." if roofs else ""


def _without_peaks(table: pd.DataFrame, record: DeviceRecord) -> str:
    """Return that peaks are not known where they would say something."""
    if table["roof_percent"].notna().any() or not table["time_us"].any():
        return ""
    is_timed = record is DeviceRecord.RECORDED
    return "The peaks of this device are not known: give --peak-tflops and --peak-gbs." if is_timed else ""


def _roof(
    table: pd.DataFrame,
    recorded: RecordedRates,
    inputs: Sequence[str],
    saved_percent: Callable[[tuple[str, ...]], float] | None,
) -> list[str]:
    """Return the operator that loses the most time below its roof, and the gain of the job at the roof."""
    with_roof = table[table["roof_percent"].notna()]
    if not len(with_roof):
        return []
    share_below_roof = 1 - with_roof["roof_percent"].clip(upper=100) / 100
    lost = with_roof.assign(lost_us=with_roof["time_us"] * share_below_roof)
    by_operator = lost.groupby("operator", sort=False)[["lost_us", "time_us"]].sum()
    worst = by_operator.iloc[int(by_operator["lost_us"].argmax())]
    name = str(worst.name)
    factor = 1 - float(worst["lost_us"] / worst["time_us"]) if worst["time_us"] else 1.0
    options = ("--scale", f"{criteria_text({'kind': _KERNELS, 'op': exact_glob(name)})}:{factor:.2f}")
    said = f"{name} loses the most time below the roof{_over(lost, name)}: {_worst_row(lost, name, worst)}"
    is_known = saved_percent is not None and recorded.record is DeviceRecord.RECORDED
    if saved_percent is None or not is_known or not worst["lost_us"]:
        return [f"{said}."]
    percent = saved_percent(options)
    if percent < MIN_PERCENT:
        bound = Suggestion("To see what bounds the job", command_line("critical-path", inputs))
        return [f"{said}, but that would hardly make the job shorter.", bound]
    gain = f"With {name} at its roof, the job would be {share_text(percent)} shorter"
    return [f"{said}.", Suggestion(gain, command_line("what-if", inputs, *options))]


def _over(lost: pd.DataFrame, name: str) -> str:
    """Return on how many ranks an operator ran, where the table has several."""
    ranks = lost.loc[lost["operator"] == name, "rank"].nunique()
    return f", over {plural(ranks, 'rank')}" if lost["rank"].nunique() > 1 else ""


def _worst_row(lost: pd.DataFrame, name: str, worst: pd.Series) -> str:
    """Return the rate of an operator where it loses the most, and how much less time it would take at the roof."""
    rows = lost[lost["operator"] == name]
    shapes = rows.groupby("shapes", sort=False)["lost_us"].sum()
    most = rows[rows["shapes"] == shapes.idxmax()]
    row = most.iloc[int(most["lost_us"].argmax())]
    up_to, at_least = ("up to ", "at least ") if row["at_most"] else ("", "")
    mostly = f"mostly {row['shapes']}, " if len(shapes) > 1 else f"{row['shapes']}, " if row["shapes"] else ""
    reached = f"{mostly}at {up_to}{share_text(row['roof_percent'])} of what {row['bound']} allows"
    return f"{reached}. At the roof it would take {at_least}{time_text(float(worst['lost_us']))} less"


def _on_host(table: pd.DataFrame, inputs: Sequence[str]) -> str:
    """Return the command to run next where operators ran on hosts alone; empty where a device ran them."""
    if table["share_percent"].notna().any() or not table["time_us"].any():
        return ""
    return Suggestion("To see what takes the time on the host", command_line("kernels", inputs))


def _judged(table: pd.DataFrame, inputs: Sequence[str]) -> str:
    """Return the share of device time that can be judged where it is not most of it; empty where it is not known."""
    share = table.groupby("rank")["share_percent"].sum(min_count=1).mean()
    if not share < 100 * MOST:  # a share that is unknown is not less
        return ""
    said = f"These operators are {share_text(share)} of the device's time. For the rest, whose FLOPs cannot be counted"
    return Suggestion(said, command_line("kernels", inputs))
