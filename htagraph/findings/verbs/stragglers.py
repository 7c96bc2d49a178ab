"""What ``htagraph stragglers`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.core.naming import short_name
from htagraph.core.statistics import MOST
from htagraph.findings.claim import MIN_SHARE, Claim
from htagraph.findings.phrases import and_list, command_line, plural, time_text

if TYPE_CHECKING:
    from htagraph.analyses.stragglers import Stragglers
    from htagraph.queries.straggler import Difference

__all__ = ["sentences", "shares_command"]

_CLOCKS = "because the clocks of the ranks were not compared or their recordings begin at different times"


def sentences(stragglers: Stragglers, rank_count: int, inputs: Sequence[str]) -> list[str]:
    """Return which rank makes the others wait, and why."""
    if rank_count < 2:
        return ["Only one rank was read. If the job has more, read their traces too, to see which waits for which."]
    if not stragglers.total_wait_us:
        line = command_line("collectives", inputs)
        return [f"No rank waits for another in the collectives that were matched. For those that were not: {line}"]
    total = time_text(stragglers.total_wait_us)
    if stragglers.straggler is None:
        return _nobody(stragglers, total, inputs)
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


def shares_command(claims: Sequence[Claim], inputs: Sequence[str]) -> list[str]:
    """Return the command that predicts other shares of the work between the stages of a pipeline, if it is short."""
    from htagraph.findings.slow_stage import scale_options  # a figure does without what replays

    commands = [command_line("what-if", inputs, *scale_options(each)) for each in claims if scale_options(each)]
    return [f"To predict other shares: {command}" for command in commands]


def _nobody(stragglers: Stragglers, total: str, inputs: Sequence[str]) -> list[str]:
    """Return who is charged, why no rank is the straggler though ranks wait, what is known of it, and what to do."""
    if stragglers.serves is not None:
        return [f"No rank is the straggler. {_serving(stragglers)}"]
    if not stragglers.ranks["blamed_us"].any():
        return [f"It is not known which rank waits for which, {_CLOCKS}; {_why_not(stragglers, -1)}."]
    charged = stragglers.mostly_charged
    most = stragglers.ranks.iloc[int(stragglers.ranks["blamed_us"].to_numpy().argmax())]
    why = _why_not(stragglers, int(most["rank"]))
    if not charged:
        return [
            f"The ranks wait {total} for each other (summed over ranks), and that is charged to many of them; {why}.",
            f"The largest share, {most['share_percent']:.0f} %, is charged to rank {most['rank']}: {most['evidence']}.",
        ]
    who = and_list([f"rank {rank} ({share:.0f} %)" for rank, share in charged.items()])
    late = " It is late at single collectives, not over whole steps." if most["step_excess_us"] <= 0 else ""
    lines = [
        f"The ranks wait {total} for each other (summed over ranks), most of it for {who}; but {why}.",
        f"Rank {most['rank']}: {most['evidence']}.{late}",
        *_known(stragglers, int(most["rank"]), most["blamed_us"] / max(len(stragglers.ranks) - 1, 1)),
    ]
    if stragglers.few_steps:
        from htagraph.analyses.stragglers import ENOUGH_STEPS  # here, as `--help` reads this file too

        lines.append(
            f"To tell whether it is slow or was late by chance, record {ENOUGH_STEPS} steps or more. To see where it "
            f"was late: {command_line('critical-path', inputs, '--segments')}"
        )
    return lines


def _known(stragglers: Stragglers, rank: int, wait_us: float) -> list[str]:
    """Return what a rank takes longer for than its peers, and what it alone does; `wait_us`: wait of another for it."""
    parts = [_difference(each) for each in stragglers.differences if each.more_us >= MIN_SHARE * wait_us]
    others = "any other rank" if stragglers.ranks["step_excess_us"].isna().all() else "any of its peers"
    lines = [f"What takes longer on rank {rank} than on {others}, without what it calls: {'; '.join(parts)}."]
    lines = lines if parts else []
    count, us = stragglers.alone
    work = f"{count:,} operators and kernels" if count > 1 else "an operator or kernel"
    alone = f"Rank {rank} also does {work} that no other rank does ({time_text(us)} in all)."
    return lines + ([alone] if count else [])


def _serving(stragglers: Stragglers) -> str:
    """Return which rank does work that no other does and whose result all others wait for."""
    alone = [each for each in stragglers.differences if not each.peers_count]
    what = f" ({short_name(alone[0].name)}, {_how_often(alone[0])})" if alone else ""
    return f"Rank {stragglers.serves} does work that no other rank does{what}, and the others wait for its result."


def _how_often(each: Difference) -> str:
    """Return how long something takes in how many activities, and whether that is a single pause."""
    if each.count > 1 and each.longest_us > MOST * each.more_us:
        return f"{time_text(each.own_us)}, {time_text(each.longest_us)} of it at once"
    return f"{plural(each.count, 'time')}, {time_text(each.own_us)}"


def _difference(each: Difference) -> str:
    peers = f"the others at most {time_text(each.peers_us)}" if each.peers_count else "no other rank does it"
    return f"{short_name(each.name)}, {_how_often(each)} ({peers})"


def _why_not(stragglers: Stragglers, charged_most: int) -> str:
    """Return why no rank is the straggler though ranks wait."""
    slow = stragglers.ranks[stragglers.ranks["slow"]]
    if len(slow):
        rank, excess = int(slow["rank"].iloc[0]), time_text(float(slow["slow_excess_us"].iloc[0]))
        why = "that is too little, or mostly its transfers" if rank == charged_most else "another one is charged more"
        return f"no rank is the straggler: rank {rank} is slower by {excess} a step, but {why}"
    if stragglers.few_steps:
        few = plural(stragglers.steps, "step")
        return f"from {few} nobody can tell whether a rank is slower than the others or was late by chance"
    excess_us = stragglers.ranks.loc[stragglers.ranks["rank"] == charged_most, "step_excess_us"]
    if excess_us.isna().any():
        return f"the steps of rank {charged_most} cannot be compared with those of another rank"
    return "no rank's steps are slower by more than chance"
