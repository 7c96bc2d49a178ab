"""What ``htagraph collectives`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.output.phrases import command_line, plural, time_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TITLES", "sentences"]

TITLES = {
    "collectives": "Collectives, times summed over all ranks",
    "last_arrivals": "Last arrivals by rank",
    "parts": "Each rank's part in each collective",
}
"""Titles by the name of the table."""
_MIN_WAIT_SHARE = 0.25
"""Share of the time in collectives; chosen: from a quarter on, waiting is what to look at first. Doubled, the command
names the last rank only where more than half of the time is waiting."""
_MIN_TRANSFER_SHARE = 0.5
"""Share of the time in collectives; chosen: from half on, a faster network is what to try. Doubled, it never is."""


def sentences(parts: pd.DataFrame, late: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Return what the time in collectives is spent on, and the command to run next.

    Args:
        parts: result of `htagraph.collectives`.
        late: how often each rank came last (``last_rank``, ``collectives``) and how long the others then waited
            (``waited_us``), the longest first.
        inputs: the words of the command line that choose what is read.
    """
    if not len(parts):
        return ["No collective was recorded: the ranks do not communicate in these traces."]
    total, sums = float(parts["duration_us"].sum()), parts[["wait_us", "transfer_us", "excess_us"]].sum()
    share = {str(word).removesuffix("_us"): float(us) / (total or 1.0) for word, us in sums.items()}
    shares = (
        f"All ranks together spend {time_text(total)} in collectives: {100 * share['wait']:.0f} % waiting for the last "
        f"rank to arrive, {100 * share['transfer']:.0f} % transferring, and {100 * share['excess']:.0f} % beyond the "
        "fastest transfer of the same kind."
    )
    absent = _absent(parts)
    if absent:
        share["transfer"] = 0.0  # it may be waiting
    return [shares, *_next_command(share, late, inputs), *absent, *_unmatched(parts)]


def _next_command(share: dict[str, float], late: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    if share["wait"] >= _MIN_WAIT_SHARE and len(late):
        rank, us = int(late.iloc[0]["last_rank"]), float(late.iloc[0]["waited_us"])
        count = plural(int(late.iloc[0]["collectives"]), "collective")
        why = command_line("stragglers", inputs)
        return [f"Rank {rank} came last in {count}; the others waited {time_text(us)} for it. To see why: {why}"]
    if share["transfer"] >= _MIN_TRANSFER_SHARE:
        line = command_line("what-if", inputs, "--network", "0.5")
        return [f"Most of the time is transfer. To predict the job on a network twice as fast: {line}"]
    return []


def _absent(parts: pd.DataFrame) -> list[str]:
    some = parts[parts["absent"] > 0] if "absent" in parts else parts[:0]
    if not len(some):
        return []
    missing = plural(int(some["absent"].max()), "rank")
    return [
        f"In {plural(some['collective'].nunique(), 'collective')}, up to {missing} of the group were not recorded. The "
        "others may have waited for those, which counts as transfer; who came last is known among the recorded only."
    ]


def _unmatched(parts: pd.DataFrame) -> list[str]:
    alone = int((~parts["matched"]).sum())
    if not alone:
        return []
    return [
        f"{plural(alone, 'part')} of {len(parts):,} could not be matched between ranks (the others were not read, or "
        "the trace does not say which belong together); there, waiting is counted as excess."
    ]
