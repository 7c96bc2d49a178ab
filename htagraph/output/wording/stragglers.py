"""What ``htagraph stragglers`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.output.phrases import command_line, time_text

if TYPE_CHECKING:
    from htagraph.analyses.stragglers import Stragglers

__all__ = ["TITLES", "sentences"]

TITLES = {"stragglers": "Ranks that others wait for", "causes": "Wait time by cause"}
"""Titles by the name of the table."""

_CLOCKS = "because the clocks of the ranks were not compared or their recordings begin at different times"


def sentences(stragglers: Stragglers, rank_count: int, inputs: Sequence[str]) -> list[str]:
    """Return which rank makes the others wait, and why.

    Args:
        stragglers: result of `htagraph.stragglers`.
        rank_count: how many ranks were read.
        inputs: the words of the command line that choose what is read.
    """
    if rank_count < 2:
        return ["Only one rank was read. If the job has more, read their traces too, to see which waits for which."]
    if not stragglers.total_wait_us:
        line = command_line("collectives", inputs)
        return [f"No rank waits for another in the collectives that were matched. For those that were not: {line}"]
    total = time_text(stragglers.total_wait_us)
    if stragglers.straggler is None:
        most = stragglers.ranks.iloc[int(stragglers.ranks["blamed_us"].to_numpy().argmax())]
        but = _but(stragglers, int(most["rank"]))
        if not stragglers.ranks["blamed_us"].any():
            return [f"It is not known which rank waits for which, {_CLOCKS}; {but}."]
        return [
            f"The ranks wait {total} for each other (summed over ranks), but {but}.",
            f"The largest share, {most['share_percent']:.0f} %, is charged to rank {most['rank']}: {most['evidence']}.",
        ]
    row = stragglers.ranks[stragglers.ranks["rank"] == stragglers.straggler].iloc[0]
    share = (
        f"{row['share_percent']:.0f} % of the wait time ({total} over all ranks) is charged to it"
        if row["blamed_us"]
        else f"it is slow by its own steps; it is not known how long others wait for it, {_CLOCKS}"
    )
    return [
        f"Rank {stragglers.straggler} is the straggler: {share}.",
        f"Why: {row['evidence']}.",
        "To predict the job with that rank as fast as the others: "
        + command_line("what-if", inputs, "--fix-straggler", str(stragglers.straggler)),
    ]


def _but(stragglers: Stragglers, charged_most: int) -> str:
    """Return why no rank is the straggler though ranks wait."""
    slow = stragglers.ranks[stragglers.ranks["slow"]]
    if not len(slow):
        return "no rank's steps are slower by more than chance"
    rank, excess = int(slow["rank"].iloc[0]), time_text(float(slow["slow_excess_us"].iloc[0]))
    why = "that is too little, or mostly its transfers" if rank == charged_most else "another one is charged more"
    return f"no rank is the straggler: rank {rank} is slower by {excess} a step, but {why}"
