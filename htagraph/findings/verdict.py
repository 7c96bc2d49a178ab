"""The verdict on a job: all findings in the order of reading, and what a report says of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from htagraph.core.tables import Col, Table
from htagraph.findings.blocking import BLOCKING
from htagraph.findings.bound import BOUND
from htagraph.findings.cut_short import CUT_SHORT
from htagraph.findings.device_idle import DEVICE_IDLE
from htagraph.findings.finding import Claim, Finding, Trial, contradictions
from htagraph.findings.gain import GAIN
from htagraph.findings.host_pause import HOST_PAUSE
from htagraph.findings.interrupted import INTERRUPTED
from htagraph.findings.limits import MOST_ROWS
from htagraph.findings.no_device_work import NO_DEVICE_WORK
from htagraph.findings.nothing_recorded import NOTHING_RECORDED
from htagraph.findings.partly_device import PARTLY_DEVICE
from htagraph.findings.ranks_missing import RANKS_MISSING
from htagraph.findings.recorded import RECORDED
from htagraph.findings.results import Results
from htagraph.findings.short_launches import SHORT_LAUNCHES
from htagraph.findings.slow_stage import SLOW_STAGE
from htagraph.findings.start_up import START_UP
from htagraph.findings.straggler import STRAGGLER
from htagraph.findings.uneven_steps import UNEVEN_STEPS
from htagraph.findings.unexplained import UNEXPLAINED
from htagraph.findings.unknown_clocks import UNKNOWN_CLOCKS
from htagraph.findings.unmatched import UNMATCHED
from htagraph.findings.waiting import WAITING

__all__ = [
    "FINDINGS", "OF_PATH", "ROWS", "claims_of", "consistent", "in_brief", "rows_of", "sentences", "stated", "trial_of",
]  # fmt: skip

OF_PATH: tuple[Finding, ...] = (BOUND, INTERRUPTED, HOST_PAUSE, UNEXPLAINED, START_UP, GAIN)
"""Findings about a critical path, of the job or of a window of it, in the order of reading."""
FINDINGS: tuple[Finding, ...] = (
    NOTHING_RECORDED,
    *OF_PATH,
    BLOCKING,
    SLOW_STAGE,
    STRAGGLER,
    WAITING,
    PARTLY_DEVICE,
    DEVICE_IDLE,
    SHORT_LAUNCHES,
    RECORDED,
    CUT_SHORT,
    NO_DEVICE_WORK,
    UNEVEN_STEPS,
    UNKNOWN_CLOCKS,
    UNMATCHED,
    RANKS_MISSING,
)
"""All findings, in the order of reading."""
_BY_NAME = {finding.name: finding for finding in FINDINGS}
ROWS: Final = Table(
    "Findings",
    Col("kind", "str", "name of the finding"),
    Col("about", "str", "the category, name, rank or cause that the finding is about"),
    Col("figure", doc="the measured figure of the finding"),
    Col("unit", "str", "of the figure: ``percent``, ``us`` or ``count``"),
    Col("ranks", "list", "the ranks that the finding names, the most important first"),
    Col("change", "str", "options of ``htagraph what-if`` that make the change; empty where no change is known"),
    Col("gain_us", "any", "what the change saves: ``value``, and ``low`` and ``high`` where an interval is known"),
    Col("share_percent", "any", "share of the path, of the makespan or of a time that the text names; may be null"),
    Col("rests_on", "list", "what else has to be right for the finding to hold"),
    Col("evidence", "list", "numbers of activities that prove the finding, some of them"),
    Col("text advice", "str", "the finding in words, and what to try"),
)
_LEAST = (SHORT_LAUNCHES, BLOCKING, DEVICE_IDLE, HOST_PAUSE)
"""What is left to the whole verdict first, where there are more findings than a summary has room for."""


def claims_of(results: Results, findings: Collection[Finding] = FINDINGS) -> list[Claim]:
    """Return what findings claim of a job, in their order, without claims that contradict an earlier one.

    Example:
        >>> import htagraph as hg
        >>> [claim.says for claim in claims_of(Results(hg.load("data/demo")))][:2]
        ['bound', 'gain']
    """
    if NOTHING_RECORDED in findings and results.claims(NOTHING_RECORDED.when):
        return results.claims(NOTHING_RECORDED.when)
    return consistent(claim for finding in findings for claim in results.claims(finding.when))


def consistent(claims: Iterable[Claim]) -> list[Claim]:
    """Return claims in order, each only if it contradicts none before it."""
    kept: list[Claim] = []
    for claim in claims:
        if not contradictions([*kept, claim]):
            kept.append(claim)
    return kept


def stated(claims: Iterable[Claim]) -> list[tuple[Finding, list[Claim]]]:
    """Return the sentences that claims make, each as its finding and the claims that it tells, in their order."""
    sentences = []
    for name, group in groupby(claims, key=lambda claim: claim.says):
        finding, every = _BY_NAME[name], list(group)
        sentences += [(finding, every)] if finding.is_list else [(finding, [claim]) for claim in every]
    return sentences


def sentences(claims: Iterable[Claim]) -> list[str]:
    """Return claims in words, at length, in their order."""
    return [finding.long(*every) for finding, every in stated(claims)]


def rows_of(claims: Iterable[Claim]) -> list[dict[str, Any]]:
    """Return claims as rows of `ROWS`, in their order, for programs.

    Example:
        >>> (row,) = rows_of([Claim("ranks_missing", "3", 8, "count")])
        >>> row["kind"], row["change"], row["gain_us"]
        ('ranks_missing', '', None)
    """
    rows = []
    for claim in claims:
        finding, facts = _BY_NAME[claim.says], claim.facts
        tried = finding.trial(claim) if finding.trial else None
        saved_us = tried.saved_us if tried else facts.get("free_us")
        low, high = claim.interval if tried and claim.interval and tried.saved_us == claim.figure else (None, None)
        rows.append({
            "kind": claim.says, "about": claim.about, "figure": claim.figure, "unit": claim.unit,
            "ranks": [int(rank) for rank in facts.get("ranks", ())],
            "change": " ".join(tried.options) if tried else facts.get("change", ""),
            "gain_us": None if saved_us is None else {"low": low, "value": saved_us, "high": high},
            "share_percent": claim.figure if claim.unit == "percent" else facts.get("percent"),
            "rests_on": sorted(each.value for each in claim.rests_on), "evidence": list(claim.rows),
            "text": finding.long(claim), "advice": tried.sentence if tried else "",
        })  # fmt: skip
    return rows


def in_brief(claims: Iterable[Claim]) -> tuple[list[str], int]:
    """Return (what a job's claims say, in a line or two each; how many more the whole verdict has).

    Example:
        >>> in_brief([Claim("ranks_missing", "3", 8, "count")])
        (['Caution: only rank 3 of 8 was read, so waiting for the others looks like communication.'], 0)
    """
    every = stated(claims)
    doubts = [finding.short(*group) for finding, group in every if finding.is_caution]
    lines = [(finding, finding.short(*group)) for finding, group in every if not finding.is_caution]
    more = max(0, len(lines) - MOST_ROWS + bool(doubts))
    for _ in range(more):
        present = [finding for finding, _ in lines]
        least = next((finding for finding in _LEAST if finding in present), present[-1])
        del lines[max(i for i, finding in enumerate(present) if finding is least)]
    cautions = [f"Caution: {'; '.join(doubts)}."] if doubts else []
    return [line for _, line in lines] + cautions, more


def trial_of(claims: Sequence[Claim]) -> Trial | None:
    """Return the change with the largest gain among those that can be made as predicted; None if no claim has one.

    A name's time can be halved, not made zero; a straggler can be as fast as its peers, a wait or a late batch can be
    gone.
    """
    best: Trial | None = None
    for claim in claims:
        make = _BY_NAME[claim.says].trial
        found = make(claim) if make else None
        if found and found.saved_us > (best.saved_us if best else 0):
            best = found
    return best
