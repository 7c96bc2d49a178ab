"""What ``htagraph idle`` says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from htagraph.findings.claim import MIN_PERCENT
from htagraph.findings.phrases import command_line, share_text, time_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["sentences"]

_MEANING = {
    "host_wait": "the host launched the next kernel or copy too late",
    "kernel_wait": "the device's own delay between two kernels",
    "other": (
        "work that was launched in time, or whose launch was not recorded, waited for another stream, another rank or "
        "a resource"
    ),
}


def sentences(
    streams: pd.DataFrame, devices: pd.DataFrame, inputs: Sequence[str], gain_by_host: Callable[[], float]
) -> list[str]:
    """Return how long streams are idle, the main cause, and what to run next."""
    by_cause = streams.groupby("cause")["idle_us"].sum().sort_values(ascending=False)
    total = float(by_cause.sum())
    if not len(streams):
        return ["Nothing ran on a device; see htagraph summary for when ranks are idle."]
    if not total:
        return ["No stream is idle between its first and its last kernel or copy."]
    cause = str(by_cause.index[0])
    count = len(streams[["rank", "device", "stream"]].drop_duplicates())
    who, their = (f"{count:,} streams are", "their") if count > 1 else ("The stream is", "its")
    summed = " (summed over streams)" if count > 1 else ""
    ranks, at_once = streams["rank"].nunique(), time_text(float(devices["idle_us"].sum()))
    most = share_text(100 * by_cause.iloc[0] / total)
    summed_ranks = " (summed over ranks)" if ranks > 1 else ""
    whole = f" No stream of a rank runs anything for {at_once}{summed_ranks} between its first and last work."
    lines = [
        f"{who} idle for {time_text(total)}{summed} between {their} first and last work; "
        f"{most} of it is {cause}: {_MEANING[cause]}.{whole if count > ranks else ''}"
    ]
    if cause == "host_wait":
        gain = gain_by_host()
        lines.append(
            f"With an infinitely fast host the job would be {share_text(100 * gain)} shorter. To see what bounds it "
            f"then: {command_line('what-if', inputs, '--infinite-host')}"
            if gain >= MIN_PERCENT / 100
            else "Even an infinitely fast host would hardly make the job shorter: something else bounds it. To see "
            f"what: {command_line('critical-path', inputs)}"
        )
    if cause == "other":
        if ranks > 1:
            lines.append(f"To see which rank waits for which: {command_line('collectives', inputs)}")
        else:
            lines.append(f"To see what bounds the job: {command_line('critical-path', inputs)}")
    return lines
