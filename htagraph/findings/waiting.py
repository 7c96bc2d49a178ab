"""Ranks wait for each other, and no single rank causes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from htagraph.analyses.stragglers import Stragglers, stragglers
from htagraph.core.statistics import MOST
from htagraph.findings.finding import MEASURES, Bar, Chart, Claim, Evidence, Finding, Place, RestsOn, Rows, in_short
from htagraph.findings.limits import MIN_SHARE, MOST_ROWS
from htagraph.findings.phrases import and_list, ranks_text, shares_text, slower_rank, time_text, unblamed, why_nobody
from htagraph.findings.results import Results
from htagraph.findings.unmatched import doubts_of
from htagraph.queries.blame import Cause
from htagraph.queries.compare import ENOUGH_STEPS
from htagraph.queries.straggler import Difference

__all__ = ["WAITING", "WaitingClaim", "are_waits_known", "waits_evidence"]

_LEAST_CHARGED = 10.0
"""Percent of all waiting from which it is said what makes a rank late; chosen: less is not what to look at. Doubled,
ranks that a tenth of the waiting is for are a row only."""


_NETWORK: Final[Cause] = "network"
"""The cause of a rank whose earlier transfer ended later."""


@dataclass(frozen=True, kw_only=True)
class WaitingClaim(Claim):
    """Ranks wait for each other; the figure is how long in collectives, summed over all ranks, µs.

    It is about the rank that is slower than its peers, or about nothing. It names ranks that all take longer.
    """

    why: str
    """Why no rank is the straggler, as a part of a sentence."""
    charged: Mapping[int, float] = field(default_factory=dict)
    """Percent of the waiting by the ranks that most of it is charged to; empty where these are many."""
    nobody_us: Mapping[str, float] = field(default_factory=dict)
    """The waiting that no rank can be blamed for, µs, by the reason in words."""
    serves: int | None = None
    """The rank that does work which no other does, and for whose result all others wait; None for none."""
    does: str = ""
    """What only one rank does; empty for nothing."""
    uneven: Difference | None = None
    """Work of which the rank that most is charged to has more than its peers; None for none."""
    is_staged: bool = False
    """Whether ranks wait by design, as stages of pipelines do."""
    has_few_steps: bool = False
    """Whether nobody is named only as the steps are few."""
    by_network: bool = False
    """Whether the ranks that others wait for are late by their transfers, and not by their own work."""


def are_waits_known(results: Results) -> bool:
    """Return whether ranks wait enough for a sentence; False where the clocks of ranks are unknown."""
    is_much = results.slow.total_wait_us >= MIN_SHARE * results.window_us
    return len(results.slow.ranks) >= 2 and is_much and RestsOn.CLOCKS not in doubts_of(results)


def _when(results: Results) -> list[WaitingClaim]:
    slow = results.slow
    if slow.straggler is not None or not are_waits_known(results):
        return []
    rank = slower_rank(slow)
    claim = WaitingClaim(
        "waiting",
        "" if rank is None else str(rank),
        slow.total_wait_us,
        "us",
        rests_on=doubts_of(results),
        ranks=tuple(slow.slow_group),
        why=why_nobody(slow),
        charged=slow.mostly_charged,
        nobody_us=unblamed(slow),
        serves=slow.serves,
        does=next((each.name for each in slow.differences if not each.peers_count), ""),
        uneven=next((each for each in slow.explained if each.longest_us <= MOST * each.more_us), None),
        is_staged=slow.staged,
        has_few_steps=slow.few_steps,
        by_network=_is_by_network(slow),
    )
    return [claim]


def _is_by_network(slow: Stragglers) -> bool:
    """Return whether transfers make the ranks late that most waiting is charged to; of all ranks, where these are many.

    An earlier transfer ends later on one rank than on another, so that this rank is late at the next collective.
    """
    ranks = slow.ranks
    charged = slow.mostly_charged
    if charged:
        return bool((ranks.loc[ranks["rank"].isin(list(charged)), "cause"] == _NETWORK).all())
    waits = slow.blame
    by_network_us = float(waits.loc[waits["cause"] == _NETWORK, "wait_us"].sum())
    return by_network_us > MOST * slow.total_wait_us


def _short(claim: WaitingClaim) -> str:
    text = f"Ranks wait {time_text(claim.figure)} in all for each other in collectives"
    if claim.serves is not None:
        work = f" ({in_short(claim.does)})" if claim.does else ""
        return f"{text}: rank {claim.serves} does work that no other does{work}, and they wait for its result."
    text += f", mostly for {shares_text(claim.charged)}" if claim.charged else ""
    return f"{text}; {_why(claim)}.{_uneven(claim)}"


def _uneven(claim: WaitingClaim) -> str:
    """Say which work the rank that is charged most has more of than its peers, as uneven shards make."""
    most = claim.uneven
    if most is None or not claim.charged:
        return ""
    rank = next(iter(claim.charged))
    less = f"against {time_text(most.peers_us)} at most on others" if most.peers_count else "and no other rank does it"
    return f" {in_short(most.name)} takes {time_text(most.own_us)} on rank {rank}, {less}."


def _waits(claim: WaitingClaim) -> str:
    """Return how long ranks wait for each other, and mostly for which rank."""
    text = f"Ranks wait {time_text(claim.figure)} in all for each other"
    if claim.serves is not None:
        return f"{text}: rank {claim.serves} does work that no other does."
    mostly = f", mostly for {ranks_text(list(claim.charged))}" if claim.charged else ""
    if claim.by_network:
        return f"{text} in collectives{_by_transfers(claim)}: the network, not a slow rank."
    return f"{text} in collectives{mostly}."


def _by_transfers(claim: WaitingClaim) -> str:
    """Return on which ranks transfers end later, as a part of a sentence on waiting."""
    if claim.charged:
        return f", as transfers end later on {ranks_text(list(claim.charged))}"
    return ", as a transfer ends later on one rank than on another"


def _why(claim: WaitingClaim) -> str:
    """Return why no rank is named, or that for most of the waiting none can be."""
    share = 100 * sum(claim.nobody_us.values()) / claim.figure if claim.figure else 0.0
    if share > 100 * MOST:
        return f"{share:.0f} % cannot be blamed: {and_list(claim.nobody_us)}"
    return claim.why


def _advice(claim: WaitingClaim) -> str:
    if claim.ranks:
        return f"Compare {ranks_text(claim.ranks)} with the others: their node, devices and inputs."
    if claim.is_staged:
        return "In a pipeline, more micro-batches make these waits shorter."
    return f"Record {ENOUGH_STEPS} steps or more, to tell which." if claim.has_few_steps else ""


def waits_evidence(results: Results, _claim: Claim) -> Evidence:
    """Return what proves that ranks wait for each other: for whom, why, and where longest."""
    ranks = results.slow.to_frame()
    by_rank = sorted(zip(ranks["rank"], ranks["blamed_us"], strict=True))
    bars = [Bar(f"rank {rank}", us) for rank, us in by_rank]
    bars += [Bar(f"nobody: {why}", us) for why, us in unblamed(results.slow).items()]
    most = ranks.nlargest(MOST_ROWS, "blamed_us")
    headings = {"blamed_us": "others wait for it_us", "waits_us": "it waits_us", "share_percent": "of all waiting %"}
    places = [_longest_wait(results, int(rank)) for rank in most["rank"]]
    return Evidence(
        Chart("How long others wait for each rank, summed over ranks", bars, "communication"),
        Rows(
            most[["rank", "blamed_us", "share_percent", "waits_us", "cause"]],
            "How long others wait for each rank, summed over collectives", places if any(places) else (), headings,
        ),
        notes=[
            f"Rank {row['rank']}: {row['evidence']}."
            for row in most[most["share_percent"] >= _LEAST_CHARGED].to_dict("records")
        ],
        place=_longest_wait(results), look="the longest wait, and who came last", command=("stragglers",),
        meaning=stragglers,
    )  # fmt: skip


def _longest_wait(results: Results, last_rank: int | None = None) -> Place | None:
    """Return where the longest wait in a collective is, for one rank or for any; None where there is none."""
    every = results.collectives[results.collectives["matched"]]
    parts = every if last_rank is None else every[(every["last_rank"] == last_rank) & (every["rank"] != last_rank)]
    if not len(parts) or not parts["wait_us"].max() > 0:
        return None
    row = parts.iloc[int(parts["wait_us"].to_numpy().argmax())]
    of_it = every[every["collective"] == row["collective"]]
    last = of_it[of_it["rank"] == row["last_rank"]]
    shown = int(last["activity"].iloc[0]) if len(last) else int(row["activity"])
    return Place(shown, of_it["start_us"].min(), (of_it["start_us"] + of_it["duration_us"]).max())


WAITING = Finding(
    "waiting",
    needs=MEASURES,
    when=_when,
    short=_short,
    why=_waits,
    evidence=waits_evidence,
    advice=_advice,
)
