"""What ``htagraph launches`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.findings.phrases import command_line, plural, time_text

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["sentences"]

_MIN_SHORT_SHARE = 0.2
"""Share of the launch calls; chosen: fewer do not decide the time of a job. Doubled, the command says that calls take
longer than what they launch only where 40 % do."""
_MIN_TIED_PERCENT = 1.0
"""Percent of the launch calls that take as long as their work in whole µs; chosen: fewer do not show. Doubled, a share
that is 1 to 2 points too low passes as exact."""


def sentences(stats: pd.DataFrame, graphs: pd.DataFrame, inputs: Sequence[str]) -> list[str]:
    """Return what launching costs, which calls take too long, and what to run next."""
    if not len(stats):
        return ["No launch with its device work is in the traces: record with CUDA activities to see any."]
    calls = stats.drop_duplicates("launch")
    time = time_text(calls["launch_us"].sum())
    launched = "kernel or copy" if len(stats) == 1 else "kernels and copies"
    lines = [f"{plural(len(calls), 'call')} launched {len(stats):,} {launched} in {time} of host time."]
    short = float(calls["short"].mean())
    if short >= _MIN_SHORT_SHARE:
        lines.append(
            f"{100 * short:.0f} %{_with_ties(stats, short)} of the calls took longer than what they "
            f"launched. To see what fewer launches would save: {command_line('opportunities', inputs)}"
        )
    excessive = calls[calls["excessive_runtime"]]
    if len(excessive):
        slowest = excessive.iloc[int(excessive["launch_us"].argmax())]
        longest = f"{time_text(slowest['launch_us'])} ({slowest['launch_name']} on rank {slowest['rank']})"
        if len(excessive) > 1:
            longest = f"{time_text(excessive['launch_us'].sum())} together; the longest took {longest}"
        lines.append(
            f"{plural(len(excessive), 'call')} took excessively long: {longest}.{_why(stats, excessive, inputs)}"
        )
    if graphs["span_us"].sum() > 0:
        share = 100 * graphs["gap_us"].sum() / graphs["span_us"].sum()
        lines.append(f"Inside CUDA graphs ({len(graphs):,} launched), the device is idle {share:.1f} % of the time.")
    return lines


def _why(stats: pd.DataFrame, excessive: pd.DataFrame, inputs: Sequence[str]) -> str:
    """Return of how many long calls the work began before they returned, and how to see if a queue held the others."""
    begun = stats.groupby("launch")["delay_us"].min() == 0
    held = int(begun.reindex(excessive["launch"]).sum())
    rest = len(excessive) - held
    of_them = "It" if len(excessive) == 1 else f"{held:,} of them" if rest else "All of them"
    why = f" {of_them} returned after the work had begun, so that no full queue held {'it' if held == 1 else 'them'}."
    see = f" To see whether a queue was full{' for the rest' if held else ''}: {command_line('counters', inputs)}"
    return (why if held else "") + (see if rest else "")


def _with_ties(stats: pd.DataFrame, short: float) -> str:
    """Return the share of calls that took at least as long as their work, where whole µs leave that open."""
    calls = stats.groupby("launch").agg(
        launch_us=("launch_us", "first"), work_us=("work_us", "sum"), slow=("excessive_runtime", "first")
    )
    tied = (calls["launch_us"] == calls["work_us"]) & ~calls["slow"]
    whole = not (stats[["launch_us", "work_us"]] % 1).any(axis=None)
    most = 100 * (short + float(tied.mean()))
    return f" (up to {most:.0f} %: times are in whole µs)" if whole and most - 100 * short >= _MIN_TIED_PERCENT else ""
