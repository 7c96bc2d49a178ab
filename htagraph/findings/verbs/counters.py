"""What ``htagraph counters`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.findings.phrases import command_line, size_text, time_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["sentences"]


def sentences(queues: pd.DataFrame, copies: pd.DataFrame, full: int, inputs: Sequence[str]) -> list[str]:
    """Return which queue was full, whether queues are empty, and which copies take the most time."""
    if not len(queues):
        return ["No launch with its device work is in the traces, so there are no queues to count."]
    lines = []
    longest = queues.iloc[int(queues["full_us"].argmax())]
    if longest["full_us"] > 0:
        lines.append(
            f"Rank {longest['rank']:.0f}, stream {longest['stream']:.0f}: the queue held {full:,} kernels and copies "
            f"or more for {time_text(longest['full_us'])}. Launches then block, and the device does not wait for the "
            "host."
        )
    else:
        lines.append(f"No queue held {full:,} kernels and copies: the longest held {queues['max'].max():.0f}.")
    mean = queues.iloc[int(queues["mean_over_time"].argmax())]
    if mean["mean_over_time"] < 1:
        lines.append(
            "Queues are empty most of the time: the device waits for the host. To see what that costs: "
            + command_line("opportunities", inputs)
        )
    if len(copies):
        most = copies.iloc[int(copies["busy_us"].argmax())]
        lines.append(
            f"{most['copy']} on rank {most['rank']} takes the most time of all copies: "
            f"{size_text(1e9 * most['copied_gb'])} in {time_text(most['busy_us'])}, "
            f"{most['mean_over_time_gb_s']:.3g} GB/s."
        )
    return lines
