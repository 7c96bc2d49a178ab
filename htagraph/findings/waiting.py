"""Ranks wait for each other, and no single rank causes it."""

from __future__ import annotations

from htagraph.analyses.stragglers import stragglers
from htagraph.core.statistics import MOST
from htagraph.findings.finding import MEASURES, Bar, Chart, Claim, Evidence, Finding, Place, RestsOn, Rows, in_short
from htagraph.findings.limits import MIN_SHARE, MOST_ROWS
from htagraph.findings.phrases import and_list, ranks_text, shares_text, slower_rank, time_text, unblamed, why_nobody
from htagraph.findings.results import Results
from htagraph.findings.unmatched import doubts_of
from htagraph.queries.compare import ENOUGH_STEPS
from htagraph.queries.straggler import Difference

__all__ = ["WAITING", "are_waits_known", "waits_evidence"]

_LEAST_CHARGED = 10.0
"""Percent of all waiting from which it is said what makes a rank late; chosen: less is not what to look at. Doubled,
ranks that a tenth of the waiting is for are a row only."""


def are_waits_known(results: Results) -> bool:
    """Return whether ranks wait enough for a sentence; False where the clocks of ranks are unknown."""
    is_much = results.slow.total_wait_us >= MIN_SHARE * results.window_us
    return len(results.slow.ranks) >= 2 and is_much and RestsOn.CLOCKS not in doubts_of(results)


def _when(results: Results) -> list[Claim]:
    slow = results.slow
    if slow.straggler is not None or not are_waits_known(results):
        return []
    rank = slower_rank(slow)
    facts = {
        "charged": slow.mostly_charged, "serves": slow.serves, "why": why_nobody(slow), "nobody": unblamed(slow),
        "few_steps": slow.few_steps, "staged": slow.staged, "ranks": list(slow.slow_group),
        "does": next((each.name for each in slow.differences if not each.peers_count), ""),
        "uneven": next((each for each in slow.explained if each.longest_us <= MOST * each.more_us), None),
    }  # fmt: skip
    about = "" if rank is None else str(rank)
    return [Claim("waiting", about, slow.total_wait_us, "us", rests_on=doubts_of(results), facts=facts)]


def _short(claim: Claim) -> str:
    facts = claim.facts
    text = f"Ranks wait {time_text(claim.figure)} in all for each other in collectives"
    if facts["serves"] is not None:
        work = f" ({in_short(facts['does'])})" if facts["does"] else ""
        return f"{text}: rank {facts['serves']} does work that no other does{work}, and they wait for its result."
    charged = facts["charged"]
    text += f", mostly for {shares_text(charged)}" if charged else ""
    return f"{text}; {_why(claim)}.{_uneven(claim)}"


def _uneven(claim: Claim) -> str:
    """Say which work the rank that is charged most has more of than its peers, as uneven shards make."""
    most: Difference | None = claim.facts["uneven"]
    if most is None or not claim.facts["charged"]:
        return ""
    rank = next(iter(claim.facts["charged"]))
    less = f"against {time_text(most.peers_us)} at most on others" if most.peers_count else "and no other rank does it"
    return f" {in_short(most.name)} takes {time_text(most.own_us)} on rank {rank}, {less}."


def _waits(claim: Claim) -> str:
    """Return how long ranks wait for each other, and mostly for which rank."""
    text = f"Ranks wait {time_text(claim.figure)} in all for each other"
    if claim.facts["serves"] is not None:
        return f"{text}: rank {claim.facts['serves']} does work that no other does."
    charged = claim.facts["charged"]
    mostly = f", mostly for {ranks_text(list(charged))}" if charged else ""
    return f"{text} in collectives{mostly}."


def _why(claim: Claim) -> str:
    """Return why no rank is named, or that for most of the waiting none can be."""
    nobody = claim.facts["nobody"]
    share = 100 * sum(nobody.values()) / claim.figure if claim.figure else 0.0
    if share > 100 * MOST:
        return f"{share:.0f} % cannot be blamed: {and_list(nobody)}"
    return str(claim.facts["why"])


def _advice(claim: Claim) -> str:
    if claim.facts["ranks"]:
        return f"Compare {ranks_text(claim.facts['ranks'])} with the others: their node, devices and inputs."
    if claim.facts["staged"]:
        return "In a pipeline, more micro-batches make these waits shorter."
    return f"Record {ENOUGH_STEPS} steps or more, to tell which." if claim.facts["few_steps"] else ""


def waits_evidence(results: Results, _claim: Claim) -> Evidence:
    """Return what proves that ranks wait for each other: for whom, why, and where longest."""
    ranks = results.slow.to_frame()
    bars = [Bar(f"rank {rank}", us) for rank, us in zip(ranks["rank"], ranks["blamed_us"], strict=True)]
    bars.sort(key=lambda bar: int(bar.word.split()[1]))
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
    "waiting", needs=MEASURES, when=_when, short=_short, why=_waits, evidence=waits_evidence, advice=_advice
)
