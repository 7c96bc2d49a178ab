"""What ``htagraph collectives`` and ``htagraph stragglers`` say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import pandas as pd

from htagraph.analyses.stragglers import Stragglers
from htagraph.core.naming import short_name
from htagraph.core.statistics import MOST
from htagraph.findings.finding import Claim
from htagraph.findings.limits import MAX_NAMED, MIN_PERCENT, MIN_SHARE
from htagraph.findings.phrases import (
    Suggestion,
    and_list,
    command_line,
    plural,
    ranks_text,
    share_text,
    short_number,
    spoken,
    time_text,
    unblamed,
    waits_text,
    why_nobody,
)
from htagraph.findings.straggler import CAUSES
from htagraph.findings.verbs.unread_ranks import SLOW_GB_S, unread_sentences
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.compare import ENOUGH_STEPS
from htagraph.queries.straggler import Difference

if TYPE_CHECKING:
    from htagraph.whatif.outcome import Outcome

__all__ = [
    "StragglerAnswer",
    "are_sizes_unknown",
    "causes_in_words",
    "collectives_sentences",
    "shares_command",
    "straggler_answer",
    "stragglers_sentences",
]

_PARTS = {
    "wait": "waiting for the last rank to arrive", "transfer": "transferring",
    "excess": "beyond the fastest transfer of the same kind",
    "wait_or_transfer": "waiting or transfer (load all ranks to split them)",
}  # fmt: skip
"""What the time in collectives is spent on, by the part of the table, in words. All but the last are always named,
unless no collective was recorded on all ranks of its group."""
_OF_UNKNOWN_SIZE = {
    "transfer": "surely transferring",
    "excess": "of which it is not known how much is transfer (sizes were not recorded)",
}
"""The same where sizes are not known: then the fastest transfer is no measure of how long another one has to take."""
_LONG_US = 1_000.0
"""µs from which a transfer is no latency. Chosen: messages of a few bytes take up to 0.2 ms on hosts. Doubled, slices
of a scheduler of 1 to 2 ms count as transfers."""
_EXPLAINED: Final[dict[str, str]] = {
    "none": "its own work looks like that of its peers",
    "network": "an earlier transfer ended later there",
    "sync": "its blocking calls return later",
    "collective": "it was late from an earlier collective",
    "other_work": "launched work waited behind work that was not recorded",
    "outside": "it waited for a process or thread that was not recorded",
}
"""What causes are that no single word says."""
_MIN_WAIT_SHARE = 0.25
"""Share of the time in collectives; chosen: from a quarter on, waiting is what to look at first. Doubled, the command
names the last rank only where more than half of the time is waiting."""
_CLOCKS = "because the clocks of the ranks were not compared or their recordings begin at different times"


def collectives_sentences(
    parts: pd.DataFrame, late: pd.DataFrame, inputs: Sequence[str], nobody_us: float = 0.0,
    faster_network: Callable[[], Outcome] | None = None, calls: Mapping[str, int] = MappingProxyType({}),
) -> list[str]:  # fmt: skip
    """Return what the time in collectives is spent on, and the command to run next.

    `late` has how often each rank came last (``last_rank``, ``collectives``) and how long the others then waited
    (``waited_us``), the longest first; `nobody_us` of that has no culprit. `faster_network` halves all transfers.
    `calls`: how many operators and annotations ask for collectives, by name.
    """
    if not len(parts):
        return [_none_recorded(calls)]
    beside = float(parts["beside_us"].sum())
    total = float(parts["duration_us"].sum()) - beside
    share = {part: float(parts[f"{part}_us"].sum()) / (total or 1.0) for part in _PARTS}
    told = _PARTS | (_OF_UNKNOWN_SIZE if are_sizes_unknown(parts) else _of_slow_transfers(parts))
    named = _last_ones(late, nobody_us) if share["wait"] else ""
    shown = [part for part in _PARTS if share[part] or part != "wait_or_transfer"]
    if not share["transfer"] and share["wait_or_transfer"]:
        shown = [part for part in ("wait", "wait_or_transfer") if share[part]]
    ranks, alone, absent = parts["rank"].unique(), int((~parts["matched"]).sum()), parts[parts["absent"] > 0]
    of_unknown = parts["matched"] & (parts["absent"] == 0) & (parts["wait_or_transfer_us"] > 0)
    unknown_groups = parts.loc[of_unknown, "collective"].nunique()
    who = "All ranks together spend" if len(ranks) > 1 else f"Rank {ranks[0]} spends"
    return spoken(
        f"{who} {time_text(total)} in collectives{_spent(shown, share, told, named)}.",
        _after_collectives(share, late, inputs, nobody_us) or _after_transfers(share, inputs, faster_network),
        *unread_sentences(parts),
        f"Sends and receives lasted {time_text(beside)} more (summed over ranks) beside other work of the threads that "
        "asked for them; how much of that the transfers took is not recorded."
        if beside else "",
        f"Of {plural(absent['collective'].nunique(), 'collective')}, members were not recorded (up to "
        f"{plural(int(absent['absent'].max()), 'rank')}). What follows the last recorded arrival there is transfer or "
        "waiting for those; who came last is known among the recorded only."
        if len(absent) else "",
        f"Ranks of the job were not read, and the groups of {plural(unknown_groups, 'collective')} were not recorded. "
        "What follows the last recorded arrival there is transfer, or waiting for those ranks."
        if unknown_groups else "",
        f"{plural(alone, 'part')} of {len(parts):,} could not be matched between ranks (the others were not read, or "
        "the trace does not say which belong together); how long they waited is not known."
        if alone else "",
    )  # fmt: skip


def _spent(shown: Sequence[str], share: Mapping[str, float], told: Mapping[str, str], named: str) -> str:
    """Return what the time in collectives is spent on, as an end of a sentence.

    Args:
        shown: the parts to name.
        share: the share of each part.
        told: the words for each part.
        named: for whom ranks wait.
    """
    if list(shown) == ["wait_or_transfer"]:
        return "; how much of that is waiting, only the files of all ranks tell"
    words = [f"{share_text(100 * share[part])} {told[part]}{named if part == 'wait' else ''}" for part in shown]
    return f": {words[0]}" if len(words) == 1 else f": {', '.join(words[:-1])}, and {words[-1]}"


def _none_recorded(calls: Mapping[str, int]) -> str:
    """Return that no collective was recorded, and the calls on the host that ask for some."""
    if not calls:
        return "No collective was recorded."
    shown = and_list([f"{count:,} {name}" for name, count in calls.items()][:MAX_NAMED])
    return f"No collective was recorded, only calls on the host that ask for some: {shown}."


def are_sizes_unknown(parts: pd.DataFrame) -> bool:
    """Return whether most of what lies beyond the fastest transfers is of collectives whose size was not recorded."""
    of_unknown = parts.loc[parts["bytes"].isna(), "excess_us"].sum()
    return bool(of_unknown > MOST * parts["excess_us"].sum())


def _of_slow_transfers(parts: pd.DataFrame) -> dict[str, str]:
    """Return the words for transfers of which most take long at a rate of no network; none for all others."""
    us = parts["transfer_us"]
    gb_s = parts["bytes"] / us.where(us > 0) / 1000
    is_slow = (us >= _LONG_US) & (gb_s < SLOW_GB_S)
    if not us.sum() or us[is_slow].sum() <= MOST * us.sum():
        return {}
    rate = short_number(float(parts.loc[is_slow, "bytes"].sum() / us[is_slow].sum() / 1000))
    return {"transfer": f"transferring, or waiting for something else meanwhile ({rate} GB/s is little)"}


def _last_ones(late: pd.DataFrame, nobody_us: float) -> str:
    """Return for which ranks the others waited longest, in how many collectives and how long; empty for nobody."""
    if not len(late):
        return ""
    most = _longest_awaited(late)
    us = float(most["waited_us"].sum())
    if nobody_us > MOST * us:
        return ""
    who = ranks_text(most["last_rank"].tolist())
    return f" ({time_text(us)} for {who}, last in {plural(int(most['collectives'].sum()), 'collective')})"


def _longest_awaited(late: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the ranks that the others waited for longest, by rank."""
    return late[late["waited_us"] >= LIMITS.nearly_all * late["waited_us"].max()].sort_values("last_rank")


def _after_collectives(share: dict[str, float], late: pd.DataFrame, inputs: Sequence[str], nobody_us: float) -> str:
    if share["wait"] >= _MIN_WAIT_SHARE and len(late):
        most = _longest_awaited(late)
        us, why = float(most["waited_us"].sum()), command_line("stragglers", inputs)
        if nobody_us > MOST * us:
            said = f"No rank can be blamed for {time_text(nobody_us)} of the waiting. To see why"
            return Suggestion(said, why)
        came = "comes" if len(most) == 1 else "come"
        return Suggestion(f"To see why {ranks_text(most['last_rank'].tolist())} {came} last", why)
    return ""


def _after_transfers(share: dict[str, float], inputs: Sequence[str], faster: Callable[[], Outcome] | None) -> str:
    """Return what a faster network gains where most of the time is transfer, or that the job is no shorter by that."""
    if share["transfer"] < MOST:
        return ""
    if faster is not None and faster().speedup < 1 + MIN_PERCENT / 100:
        hidden = "Most of the time is transfer, but on a network twice as fast the job would hardly be shorter"
        return Suggestion(f"{hidden}. To see what bounds the job", command_line("critical-path", inputs))
    line = command_line("what-if", inputs, "--network", "0.5")
    return Suggestion("Most of the time is transfer. To predict the job on a network twice as fast", line)


class StragglerAnswer(NamedTuple):
    """Which rank makes the others wait, in parts."""

    short: str
    """The answer itself, without a full stop."""
    doubt: str = ""
    """What makes it uncertain, as a part of a sentence; empty for nothing."""
    more: str = ""
    """A further sentence of the answer; empty for none."""

    @property
    def text(self) -> str:
        """The whole answer."""
        but = f"; but {self.doubt}" if self.doubt else ""
        return " ".join(spoken(f"{self.short}{but}.", self.more))


def straggler_answer(stragglers: Stragglers, rank_count: int) -> StragglerAnswer:
    """Return which rank of those read makes the others wait.

    Example:
        >>> import htagraph as hg
        >>> straggler_answer(hg.stragglers(hg.load("data/demo", ranks=[0])), 1).short
        'Only one rank was read'
    """
    if rank_count < 2:
        to_do = "If the job has more, read their traces too, to see which waits for which."
        return StragglerAnswer("Only one rank was read", more=to_do)
    if not stragglers.total_wait_us:
        return StragglerAnswer("No rank waits for another in the collectives that were matched")
    if stragglers.straggler is None:
        return _nobody(stragglers)
    row = stragglers.ranks[stragglers.ranks["rank"] == stragglers.straggler].iloc[0]
    total = time_text(stragglers.total_wait_us)
    reason = "" if row["cause"] == "none" else f" ({CAUSES[row['cause']].reason})"
    share = (
        f"{row['share_percent']:.0f} % of the wait time ({total} over all ranks) is charged to it"
        if row["blamed_us"]
        else f"it is slow by its own steps; it is not known how long others wait for it, {_CLOCKS}"
    )
    return StragglerAnswer(f"Rank {stragglers.straggler} is the straggler{reason}: {share}")


def stragglers_sentences(stragglers: Stragglers, rank_count: int, inputs: Sequence[str]) -> list[str]:
    """Return which rank of those read makes the others wait, and why."""
    answer = straggler_answer(stragglers, rank_count)
    if rank_count < 2:
        return [answer.text]
    if not stragglers.total_wait_us:
        return [Suggestion(f"{answer.text} For those that were not", command_line("collectives", inputs))]
    if stragglers.straggler is None:
        return [answer.text, *_beside_nobody(stragglers)]
    row = stragglers.ranks[stragglers.ranks["rank"] == stragglers.straggler].iloc[0]
    return [
        answer.text,
        f"Why: {row['evidence']}.",
        *_unblamed(stragglers),
        Suggestion(
            "To predict the job with that rank as fast as the others",
            command_line("what-if", inputs, "--fix-straggler", str(stragglers.straggler)),
        ),
    ]


def causes_in_words(stragglers: Stragglers) -> list[str]:
    """Return a sentence on the causes of the table whose words say too little."""
    used = [cause for cause in _EXPLAINED if cause in set(stragglers.ranks["cause"])]
    return [f"Causes: {'; '.join(f'{cause}: {_EXPLAINED[cause]}' for cause in used)}."] if used else []


def shares_command(claims: Sequence[Claim], inputs: Sequence[str]) -> list[str]:
    """Return the command that predicts other shares of the work between the stages of a pipeline, if it is short."""
    changes = [claim.change for claim in claims if claim.change and claim.change.options]
    return [Suggestion("To predict other shares", change.command(inputs)) for change in changes]


def _nobody(stragglers: Stragglers) -> StragglerAnswer:
    """Return for whom ranks wait, and why no rank is the straggler."""
    if stragglers.serves is not None:
        alone = [each for each in stragglers.differences if not each.peers_count]
        what = f" ({short_name(alone[0].name)}, {_how_often(alone[0])})" if alone else ""
        does = f"Rank {stragglers.serves} does work that no other rank does{what}"
        return StragglerAnswer("No rank is the straggler", more=f"{does}, and the others wait for its result.")
    why = why_nobody(stragglers)
    if not stragglers.ranks["blamed_us"].any():
        return StragglerAnswer(f"It is not known which rank waits for which, {_CLOCKS}; {why}")
    if _is_mostly_unblamed(stragglers):
        total = time_text(stragglers.total_wait_us)
        return StragglerAnswer(_not_blamed(stragglers, f"{total} of waiting (summed over ranks)"))
    waited = f"The ranks wait {waits_text(stragglers)}"
    if stragglers.slow_group:
        return StragglerAnswer(f"{waited}; {why}")
    return StragglerAnswer(waited, doubt=why)


def _is_mostly_unblamed(stragglers: Stragglers) -> bool:
    """Return whether no rank can be blamed for most of the waiting."""
    return sum(unblamed(stragglers).values()) > MOST * stragglers.total_wait_us


def _beside_nobody(stragglers: Stragglers) -> list[str]:
    """Return what is known of the rank that most waiting is charged to, where no rank is the straggler, and the rest.

    Nothing is said of it where a rank serves the others, or where nobody knows who waits for whom.
    """
    if stragglers.serves is not None or not stragglers.ranks["blamed_us"].any():
        return []
    most = stragglers.ranks.iloc[int(stragglers.ranks["blamed_us"].to_numpy().argmax())]
    rank = int(most["rank"])
    nobody = [] if _is_mostly_unblamed(stragglers) else _unblamed(stragglers)
    return spoken(
        *nobody,
        f"Rank {rank}: {most['evidence']}.",
        *_known(stragglers, rank, most["blamed_us"] / max(len(stragglers.ranks) - 1, 1)),
        f"To tell whether rank {rank} is slow or was late by chance, record {ENOUGH_STEPS} steps or more."
        if stragglers.few_steps else "",
    )  # fmt: skip


def _unblamed(stragglers: Stragglers) -> list[str]:
    """Return how much of the waiting no rank can be blamed for, and why, if it is not next to nothing."""
    share = sum(unblamed(stragglers).values()) / stragglers.total_wait_us
    return [] if share < MIN_SHARE else [f"{_not_blamed(stragglers, 'the waiting')}."]


def _not_blamed(stragglers: Stragglers, waiting: str) -> str:
    """Return the share of the waiting, in these words, that no rank can be blamed for, and why, without a full stop."""
    nobody = unblamed(stragglers)
    share = sum(nobody.values()) / stragglers.total_wait_us
    return f"Of {waiting}, {share_text(100 * share)} cannot be blamed: {and_list(nobody)}"


def _known(stragglers: Stragglers, rank: int, wait_us: float) -> list[str]:
    """Return what a rank takes longer for than its peers; `wait_us`: wait of another for it."""
    parts = [
        f"{short_name(each.name)}, {_how_often(each)} "
        f"({f'the others at most {time_text(each.peers_us)}' if each.peers_count else 'no other rank does it'})"
        for each in stragglers.explained if each.more_us >= MIN_SHARE * wait_us
    ]  # fmt: skip
    others = "any other rank" if stragglers.ranks["step_excess_us"].isna().all() else "any of its peers"
    said = f"What takes longer on rank {rank} than on {others}, without what it calls: {'; '.join(parts)}."
    return [said] if parts else []


def _how_often(each: Difference) -> str:
    """Return how long something takes in how many activities, and whether that is a single pause."""
    if each.count > 1 and each.longest_us > MOST * each.more_us:
        return f"{time_text(each.own_us)}, {time_text(each.longest_us)} of it at once"
    return f"{plural(each.count, 'time')}, {time_text(each.own_us)}"
