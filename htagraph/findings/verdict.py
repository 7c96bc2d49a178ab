"""The verdict on a job: all findings in the order of reading, and their sentences in a report."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from htagraph.core.statistics import MOST
from htagraph.core.tables import Col, Table
from htagraph.findings.blocking import BLOCKING
from htagraph.findings.bound import BOUND
from htagraph.findings.compute_stream import COMPUTE_STREAM
from htagraph.findings.damaged import DAMAGED
from htagraph.findings.device_idle import DEVICE_IDLE
from htagraph.findings.finding import Claim, Finding
from htagraph.findings.gain import GAIN
from htagraph.findings.host_pause import HOST_PAUSE
from htagraph.findings.incomplete import INCOMPLETE
from htagraph.findings.interrupted import INTERRUPTED
from htagraph.findings.no_device_work import NO_DEVICE_WORK
from htagraph.findings.nothing_recorded import NOTHING_RECORDED
from htagraph.findings.one_execution import ONE_EXECUTION
from htagraph.findings.open_step import OPEN_STEP
from htagraph.findings.phrases import spoken
from htagraph.findings.ranks_missing import RANKS_MISSING
from htagraph.findings.recorded import RECORDED
from htagraph.findings.relations import gain_us, related
from htagraph.findings.remedy import REMEDY
from htagraph.findings.results import Results
from htagraph.findings.slow_beside import SLOW_BESIDE
from htagraph.findings.slow_stage import SLOW_STAGE
from htagraph.findings.start_up import START_UP
from htagraph.findings.straggler import STRAGGLER
from htagraph.findings.too_little import TOO_LITTLE
from htagraph.findings.uneven_exchange import UNEVEN_EXCHANGE
from htagraph.findings.uneven_steps import UNEVEN_STEPS
from htagraph.findings.unexplained import UNEXPLAINED
from htagraph.findings.unknown_bound import UNKNOWN_BOUND
from htagraph.findings.unknown_clocks import UNKNOWN_CLOCKS
from htagraph.findings.unmatched import UNMATCHED
from htagraph.findings.waiting import WAITING

__all__ = [
    "CHANGES_OF_JOB",
    "FINDINGS",
    "OF_PATH",
    "ROWS",
    "Sentence",
    "claims_of",
    "rows_of",
    "sentences",
    "stated",
]

OF_PATH: tuple[Finding, ...] = (
    INCOMPLETE, BOUND, UNKNOWN_BOUND, INTERRUPTED, START_UP, HOST_PAUSE, UNEXPLAINED, GAIN,
)  # fmt: skip
"""Findings about a critical path, of the job or of a window of it, in the order of reading."""
CHANGES_OF_JOB: tuple[Finding, ...] = (BLOCKING, REMEDY, SLOW_BESIDE, SLOW_STAGE, STRAGGLER, UNEVEN_STEPS)
"""Findings about a whole job that say what a change gains, beside those of its path: all are ranked together."""
FINDINGS: tuple[Finding, ...] = (
    NOTHING_RECORDED, *OF_PATH, *CHANGES_OF_JOB[:-1], COMPUTE_STREAM, UNEVEN_EXCHANGE, WAITING, DEVICE_IDLE, RECORDED,
    DAMAGED, OPEN_STEP, NO_DEVICE_WORK, ONE_EXECUTION, UNEVEN_STEPS, UNKNOWN_CLOCKS, UNMATCHED, RANKS_MISSING,
    TOO_LITTLE,
)  # fmt: skip
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
    Col(
        "gain_us", "any", "what the change saves, µs: ``value``, and ``low`` and ``high``, its 90 % interval by replay"
    ),
    Col("share_percent", "any", "share of the path, of the makespan or of a time that the text names; may be null"),
    Col("rests_on", "list", "what else has to be right for the finding to hold"),
    Col("evidence", "list", "numbers of activities that prove the finding, some of them"),
    Col("text advice", "str", "the finding in words, and what a person would do about it"),
)


def claims_of(results: Results, findings: Collection[Finding] = FINDINGS) -> list[Claim]:
    """Return the claims of findings about a job, each thing once.

    What makes all else doubtful comes first, then what bounds the job and starts it, then what gains most, with advice
    before without; all that is no change follows, in the order of the findings.

    Example:
        >>> import htagraph as hg
        >>> [claim.says for claim in claims_of(Results(hg.load("data/demo")))][:2]
        ['bound', 'straggler']
    """
    if NOTHING_RECORDED in findings and results.claims(NOTHING_RECORDED.when):
        return results.claims(NOTHING_RECORDED.when)
    lacks = results.graph.ledger.lacks
    held = [finding for finding in findings if not finding.needs & lacks]
    kept = [claim for finding in held for claim in results.claims(finding.when)]
    kept = related(kept)
    is_started = any(claim.says == START_UP.name and claim.figure > 100 * MOST for claim in kept)
    first = {INCOMPLETE.name: -2, UNMATCHED.name: -1, BOUND.name: 1, UNKNOWN_BOUND.name: 1}
    first[START_UP.name] = 0 if is_started else 2
    gains = {name: _advised_gain(name, kept) for name in _BY_NAME}
    order = {name: (first[name],) if name in first else (3, *gains[name]) for name in _BY_NAME}
    return sorted(kept, key=lambda claim: order[claim.says])


def _advised_gain(name: str, claims: Sequence[Claim]) -> tuple[bool, float]:
    """Return the largest gain of a finding's claims as a sort key: with advice before without, the most first."""
    finding = _BY_NAME[name]
    keys = [
        (not (finding.advice(claim) and gain_us(claim) > 0), -gain_us(claim)) for claim in claims if claim.says == name
    ]
    return min(keys, default=(True, 0.0))


class Sentence(NamedTuple):
    """A sentence of the verdict: a finding, and the claims that it tells."""

    finding: Finding
    claims: list[Claim]


def stated(claims: Iterable[Claim]) -> list[Sentence]:
    """Return the sentences that claims make, in their order."""
    sentences = []
    for name, group in groupby(claims, key=lambda claim: claim.says):
        finding = _BY_NAME[name]
        of_finding = list(group)
        groups = [of_finding] if finding.is_list else [[claim] for claim in of_finding]
        sentences += [Sentence(finding, told) for told in groups]
    return sentences


def sentences(claims: Iterable[Claim]) -> list[str]:
    """Return claims in words, at length, in their order, each with what to do about it, unless that was said before."""
    said = stated(claims)
    advice = [finding.advice(*group) for finding, group in said]
    return [
        " ".join(spoken(finding.whole(*group), advice[place] if advice[place] not in advice[:place] else ""))
        for place, (finding, group) in enumerate(said)
    ]


def rows_of(claims: Iterable[Claim]) -> list[dict[str, Any]]:
    """Return claims as rows of `ROWS`, in their order, for programs.

    Example:
        >>> (row,) = rows_of([Claim("ranks_missing", "3", 8, "count")])
        >>> row["kind"], row["change"], row["gain_us"]
        ('ranks_missing', '', None)
    """
    rows = []
    for claim in claims:
        finding = _BY_NAME[claim.says]
        gain = claim.change.gain if claim.change else claim.gain
        gain_us = {"low": gain.low_us, "value": gain.value_us, "high": gain.high_us} if gain else None
        percent = gain.percent if gain else None
        rows.append(
            {
                "kind": claim.says,
                "about": claim.about,
                "figure": claim.figure,
                "unit": claim.unit,
                "ranks": [int(rank) for rank in claim.ranks],
                "change": shlex.join(claim.change.options) if claim.change else "",
                "gain_us": gain_us,
                "share_percent": claim.figure if claim.unit == "percent" else percent,
                "rests_on": sorted(doubt.value for doubt in claim.rests_on),
                "evidence": list(claim.rows),
                "text": finding.whole(claim),
                "advice": finding.advice(claim),
            }
        )
    return rows
