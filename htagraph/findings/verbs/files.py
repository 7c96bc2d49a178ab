"""What ``htagraph cache``, ``validate``, ``execution-trace`` and ``memory`` say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from htagraph.findings.limits import LARGE_SHARE, MAX_LISTED, MIN_SHARE, VISIBLE_PERCENT
from htagraph.findings.phrases import (
    Suggestion,
    and_list,
    command_line,
    plural,
    share_text,
    size_text,
    spoken,
    time_text,
)
from htagraph.trace.readers import Recorder

__all__ = [
    "cache_cleared", "cache_contents", "device_sentences", "execution_trace_sentences", "no_cache", "peak_sentences",
    "timeline_sentence", "validation_sentences",
]  # fmt: skip


def cache_contents(folder: str, count: int, size: int, limit: int) -> list[str]:
    """Return where the cache is and how full; sizes are bytes."""
    return [
        f"{folder} holds {plural(count, 'graph')}, {size / 1e9:.2f} of at most {limit / 1e9:g} GB (HTAGRAPH_CACHE_GB).",
        "Commands on large jobs fill it: --no-cache or HTAGRAPH_NO_CACHE=1 keeps them from it.",
    ]


def cache_cleared(folder: str, count: int, size: int) -> list[str]:
    """Return what was removed; the size is bytes."""
    return [f"{plural(count, 'graph')} removed from {folder}, {size / 1e9:.2f} GB."]


def no_cache() -> list[str]:
    """Return why nothing is cached."""
    return ["There is no cache: HTAGRAPH_NO_CACHE is set, or this user has no folder of their own for it."]


def validation_sentences(
    problems: int, skipped: int, support: pd.DataFrame | None = None, inputs: Sequence[str] = ()
) -> list[str]:
    """Return whether the files can be read, the analyses that are partial, and the next command.

    Args:
        problems: how many lines of the table of problems there are.
        skipped: how many files cannot be read.
        support: the table of analyses that the traces support.
        inputs: the words of the command line that choose the files; without any, no command is told.
    """
    if skipped:
        return [
            f"{plural(skipped, 'file')} cannot be read, and other commands do not answer for a part of a job unasked: "
            "give them the files that can be read."
        ]
    partly = _in_part(support) if support is not None else ""
    begin = "Nothing had to be repaired or dropped" if not problems else "Every file can be read"
    told = "; each line below says what was repaired, kept or left out" if problems and not partly else ""
    legend = '"Without work" are launch calls, steps and waits whose device work is not in the file.'
    next_step = [Suggestion("To see why the job is slow", command_line("summary", inputs))] if inputs else []
    return [f"{begin}{partly or told}.", *([legend] if support is not None else []), *next_step]


def _in_part(support: pd.DataFrame) -> str:
    """Return the partial analyses by the reason, as the end of a sentence; empty for none."""
    rows = support[support["supported"] == "partly"]
    reasons = rows.groupby("why", sort=False)["analysis"].agg(list).to_dict()
    told = [f"{and_list(names)} ({why})" for why, names in reasons.items()]
    return f", but these answers are partial: {'; '.join(told)}" if told else ""


def execution_trace_sentences(nodes: pd.DataFrame, linked: pd.DataFrame | None) -> list[str]:
    """Return how many nodes there are, how many have a schema and shapes, and how many activities are linked."""
    operators, shaped = int((nodes["op_schema"] != "").sum()), int((nodes["input_shapes"].str.len() > 0).sum())
    if linked is None:
        links = "Give the trace of the same run behind it to link its activities to the nodes."
    elif not len(linked):
        links = "No activity of the trace has a node: were both recorded in one run, with External ids?"
    else:
        count = f"{len(linked):,} {'activity' if len(linked) == 1 else 'activities'}"
        links = f"{count} of the trace belong to {plural(linked['et_node'].nunique(), 'node')}."
    return [
        f"{plural(len(nodes), 'node')} of {plural(nodes['name'].nunique(), 'name')}; {operators:,} are operators with "
        f"a schema, {shaped:,} have input shapes.",
        links,
    ]


def peak_sentences(
    peaks: pd.DataFrame, recorder: Recorder, at_peak: pd.DataFrame | None = None, inputs: Sequence[str] = ()
) -> list[str]:
    """Return how much memory each rank used at most, the largest holders, and the next commands.

    Args:
        peaks: the result of `htagraph.memory.peaks`.
        recorder: the profiler that wrote the traces.
        at_peak: the result of `htagraph.memory.at_peak`.
        inputs: the words of the command line that choose the job; without any, no command is told.
    """
    if not len(peaks):
        how = (
            f": profile with {recorder.setting('memory')}. Memory timelines (export_memory_timeline) and memory "
            "snapshots (torch.cuda.memory._dump_snapshot) can be given instead"
        )
        return [f"No memory event was recorded{recorder.of_pytorch(how)}."]
    device = peaks[peaks["device"] != "cpu"]
    lines = []
    for row in (device if len(device) else peaks).nlargest(MAX_LISTED, "peak_bytes").sort_index().to_dict("records"):
        where = f", in {row['name']}" if row["name"] else ""
        held = ""
        idle = 100 * (1 - row["peak_bytes"] / row["reserved_bytes"]) if row["reserved_bytes"] else 0.0
        if idle >= 100 * LARGE_SHARE:  # allocators always keep some
            held = f"; the allocator then held {size_text(row['reserved_bytes'])}, {idle:.0f} % of it unused"
        lines.append(
            f"Rank {row['rank']} used at most {size_text(row['peak_bytes'])} of {row['device']}, "
            f"{time_text(row['peak_us'])} after the start{where}{held}."
        )
        grown = row["last_bytes"] - row["first_bytes"]
        if grown > VISIBLE_PERCENT / 100 * row["peak_bytes"]:
            lines.append(f"At the end, {size_text(grown)} more is in use than before the first event.")
    lines += _held_at_peak(device, at_peak) if at_peak is not None and len(device) else []
    if inputs and len(device):
        lines.append(Suggestion("To see which batch fits", command_line("capacity", inputs)))
    if inputs:
        figure = command_line("plot", ["memory_timeline", *inputs], "-o", "memory.html")
        lines.append(Suggestion("To see how memory grows and falls", figure))
    return lines


def _held_at_peak(device: pd.DataFrame, held: pd.DataFrame) -> list[str]:
    """Return the holders of the largest peak of a device: earlier memory, and the largest operator."""
    most = device.iloc[int(device["peak_bytes"].to_numpy().argmax())]
    there = held[(held["rank"] == most["rank"]) & (held["device"] == most["device"])]
    before = float(there.loc[there["name"] == "", "bytes"].sum())
    of_operators = there[there["name"] != ""].nlargest(1, "bytes").to_dict("records")
    peak = max(float(most["peak_bytes"]), 1.0)
    holders = []
    if before >= MIN_SHARE * peak:
        share = share_text(100 * before / peak)
        holders.append(f"{share} was allocated before the recording (by whom is in a memory snapshot alone)")
    holders += [f"{row['name']} holds most of the rest: {size_text(row['bytes'])}" for row in of_operators]
    return [f"At that peak, {and_list(holders)}."] if holders else []


def timeline_sentence(peak_bytes: float, peak_us: float, largest: str, largest_bytes: float) -> str:
    """Return how much a memory timeline has at most, when, and the largest category then."""
    return (
        f"At most {size_text(peak_bytes)} was in use, {time_text(peak_us)} after the start; "
        f"{size_text(largest_bytes)} of it was {largest.replace('_', ' ')}."
    )


def device_sentences(row: dict[Any, Any]) -> list[str]:
    """Return how much memory the allocator holds on a device, how much is in use, and how much was unused at the peak.

    The peak may need the memory that is held but not in use between steps, so this memory is no sign of fragmentation.
    """
    holds = (
        f"Device {row['device']} holds {size_text(row['reserved_bytes'])} in {plural(row['segments'], 'segment')}; "
        f"{size_text(row['allocated_bytes'])} is in use"
    )
    if np.isnan(row["peak_bytes"]):
        return spoken(
            f"{holds}. The most that was in use is unknown: no history was recorded "
            "(torch.cuda.memory._record_memory_history()).",
            _unused_now(row),
        )
    held_at_peak = row["peak_reserved_bytes"]
    unused_at_peak = held_at_peak - row["peak_bytes"]
    is_fragmented = unused_at_peak >= LARGE_SHARE * held_at_peak > 0
    advice = (
        f"At that peak, {_amount(unused_at_peak, held_at_peak)} of {size_text(held_at_peak)} was held but not in use. "
        "If an allocation fails all the same, memory is fragmented: try "
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; torch.cuda.empty_cache() gives back whole free segments. "
        "Free bytes by segment: htagraph.memory.read_snapshot(…).segments."
    )
    return spoken(
        f"{holds}, {size_text(row['peak_bytes'])} at most in the recorded history.", advice if is_fragmented else ""
    )


def _unused_now(row: dict[Any, Any]) -> str:
    """Return how much memory is held but not in use, for a snapshot without a history; empty for little."""
    if not row["inactive_bytes"] >= LARGE_SHARE * row["reserved_bytes"] > 0:
        return ""
    unused = _amount(row["inactive_bytes"], row["reserved_bytes"])
    return f"{unused} is held but not in use now; whether the peak needs this memory is unknown, too."


def _amount(unused: float, held: float) -> str:
    """Return an amount of memory and its share of all held memory."""
    return f"{size_text(unused)} ({100 * unused / held:.0f} %)"
