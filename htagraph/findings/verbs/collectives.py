"""What ``htagraph collectives`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.core.statistics import MOST
from htagraph.findings.claim import MIN_SHARE
from htagraph.findings.phrases import command_line, group_words, plural, share_text, time_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["group_text", "sentences"]

_PARTS = {
    "wait": "waiting for the last rank to arrive", "transfer": "transferring",
    "excess": "beyond the fastest transfer of the same kind",
    "wait_or_transfer": "waiting or transferring, which cannot be told apart",
}  # fmt: skip
"""What the time in collectives is spent on, by the part of the table, in words."""
_FIRST = ("wait", "transfer", "excess")
"""Parts that are always named, unless no collective was recorded on all ranks of its group."""
_MIN_WAIT_SHARE = 0.25
"""Share of the time in collectives; chosen: from a quarter on, waiting is what to look at first. Doubled, the command
names the last rank only where more than half of the time is waiting."""


def group_text(group: str) -> str:
    """Return what a process group is called in a table.

    Example:
        >>> group_text("0 default_pg [0, 1, 2, 3]")
        'default_pg (ranks 0-3)'
    """
    return group_words(group).removeprefix("process group ")


def sentences(parts: pd.DataFrame, late: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Return what the time in collectives is spent on, and the command to run next."""
    if not len(parts):
        return ["No collective was recorded: the ranks do not communicate in these traces."]
    beside = float(parts["beside_us"].sum())
    total = float(parts["duration_us"].sum()) - beside
    share = {part: float(parts[f"{part}_us"].sum()) / (total or 1.0) for part in _PARTS}
    shown = [part for part in _PARTS if part in _FIRST or share[part]]
    if not share["transfer"] and share["wait_or_transfer"]:
        shown = [part for part in ("wait", "wait_or_transfer") if share[part]]
    words = [f"{share_text(100 * share[part])} {_PARTS[part]}" for part in shown]
    whole = words[0] if len(words) == 1 else f"{', '.join(words[:-1])}, and {words[-1]}"
    ranks = parts["rank"].unique()
    who = "All ranks together spend" if len(ranks) > 1 else f"Rank {ranks[0]} spends"
    shares = f"{who} {time_text(total)} in collectives: {whole}.{_baseline(parts, share)}"
    return [shares, *_next_command(share, late, inputs), *_beside(beside), *_absent(parts), *_unmatched(parts)]


def _baseline(parts: pd.DataFrame, share: dict[str, float]) -> str:
    """Say where the fastest transfer of a kind is no measure of how long one has to take."""
    if share["excess"] < MIN_SHARE:
        return ""
    unknown = parts.loc[parts["bytes"].isna(), "excess_us"].sum() > MOST * parts["excess_us"].sum()
    if unknown:
        return " Sizes were not recorded: what is beyond the fastest may be larger messages."
    if share["transfer"] < MIN_SHARE * share["excess"]:
        return " The fastest took next to no time; how much of the rest a transfer needs is not known."
    return ""


def _beside(us: float) -> list[str]:
    if not us:
        return []
    return [
        f"Sends and receives lasted {time_text(us)} more (summed over ranks) beside other work of the threads that "
        "asked for them; how much of that the transfers took is not recorded."
    ]


def _next_command(share: dict[str, float], late: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    if share["wait"] >= _MIN_WAIT_SHARE and len(late):
        rank, us = int(late.iloc[0]["last_rank"]), float(late.iloc[0]["waited_us"])
        count = plural(int(late.iloc[0]["collectives"]), "collective")
        why = command_line("stragglers", inputs)
        return [f"Rank {rank} came last in {count}; the others waited {time_text(us)} for it. To see why: {why}"]
    if share["transfer"] >= MOST:
        line = command_line("what-if", inputs, "--network", "0.5")
        return [f"Most of the time is transfer. To predict the job on a network twice as fast: {line}"]
    return []


def _absent(parts: pd.DataFrame) -> list[str]:
    some = parts[parts["absent"] > 0]
    if not len(some):
        return []
    missing = plural(int(some["absent"].max()), "rank")
    return [
        f"Of {plural(some['collective'].nunique(), 'collective')}, members were not recorded (up to {missing}). What "
        "follows the last recorded arrival there is transfer or waiting for those; who came last is known among the "
        "recorded only."
    ]


def _unmatched(parts: pd.DataFrame) -> list[str]:
    alone = int((~parts["matched"]).sum())
    if not alone:
        return []
    return [
        f"{plural(alone, 'part')} of {len(parts):,} could not be matched between ranks (the others were not read, or "
        "the trace does not say which belong together); how long they waited is not known."
    ]
