"""What ``htagraph memory`` says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from htagraph.findings.phrases import plural, size_text, time_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["device_sentences", "peak_sentences", "timeline_sentence"]

_MIN_IDLE_PERCENT = 20.0
"""Percent of the reserved memory that is held and not in use; chosen: allocators always keep some. Doubled, only where
40 % is unused is it named."""
_MIN_GROWTH_SHARE = 0.01
"""Share of the peak by which memory grew; chosen: less is no leak worth a look. Doubled, growth of 1 to 2 % is not
named."""


def peak_sentences(peaks: pd.DataFrame) -> list[str]:
    """Return how much memory each rank used at most, from the result of `htagraph.memory.peaks`."""
    if not len(peaks):
        return [
            "No memory event was recorded: profile with profile_memory=True. Memory timelines "
            "(export_memory_timeline) and memory snapshots (torch.cuda.memory._dump_snapshot) can be given instead."
        ]
    device = peaks[peaks["device"] != "cpu"]
    lines = []
    for row in (device if len(device) else peaks).to_dict("records"):
        where = f", in {row['name']}" if row["name"] else ""
        held = ""
        idle = 100 * (1 - row["peak_bytes"] / row["reserved_bytes"]) if row["reserved_bytes"] else 0.0
        if idle >= _MIN_IDLE_PERCENT:
            held = f"; the allocator then held {size_text(row['reserved_bytes'])}, {idle:.0f} % of it unused"
        lines.append(
            f"Rank {row['rank']} used at most {size_text(row['peak_bytes'])} of {row['device']}, "
            f"{time_text(row['peak_us'])} after the start{where}{held}."
        )
        grown = row["last_bytes"] - row["first_bytes"]
        if grown > _MIN_GROWTH_SHARE * row["peak_bytes"]:
            lines.append(f"At the end, {size_text(grown)} more is in use than before the first event.")
    return lines


def timeline_sentence(peak_bytes: float, peak_us: float, largest: str, largest_bytes: float) -> str:
    """Return how much a memory timeline has at most, when, and the largest category then."""
    return (
        f"At most {size_text(peak_bytes)} was in use, {time_text(peak_us)} after the start; "
        f"{size_text(largest_bytes)} of it was {largest.replace('_', ' ')}."
    )


def device_sentences(row: dict[Any, Any]) -> list[str]:
    """Return how much memory the allocator holds on a device, and how much of it is unused."""
    lines = [
        f"Device {row['device']} holds {size_text(row['reserved_bytes'])} in {plural(row['segments'], 'segment')}; "
        f"{size_text(row['allocated_bytes'])} is in use, {size_text(row['peak_bytes'])} at most."
    ]
    idle = 100 * row["inactive_bytes"] / row["reserved_bytes"] if row["reserved_bytes"] else 0.0
    if idle >= _MIN_IDLE_PERCENT:
        lines.append(
            f"{size_text(row['inactive_bytes'])} ({idle:.0f} %) is held but not in use; the largest free block has "
            f"{size_text(row['largest_free_bytes'])}. If an allocation fails all the same, memory is fragmented: try "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; torch.cuda.empty_cache() gives back whole free "
            "segments. Free bytes by segment: htagraph.memory.read_snapshot(…).segments."
        )
    return lines
