"""The verdict on a job: all findings in the order of reading, and what a report says of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

from htagraph.core.statistics import MOST
from htagraph.core.tables import Col, Table
from htagraph.findings.blocking import BLOCKING
from htagraph.findings.bound import BOUND
from htagraph.findings.damaged import DAMAGED
from htagraph.findings.device_idle import DEVICE_IDLE
from htagraph.findings.finding import Claim, Finding, Trial, interval_us
from htagraph.findings.gain import GAIN
from htagraph.findings.host_pause import HOST_PAUSE
from htagraph.findings.incomplete import INCOMPLETE
from htagraph.findings.interrupted import INTERRUPTED
from htagraph.findings.limits import MAX_LISTED, MOST_ROWS, SHORT_LIST
from htagraph.findings.no_device_work import NO_DEVICE_WORK
from htagraph.findings.nothing_recorded import NOTHING_RECORDED
from htagraph.findings.phrases import spoken
from htagraph.findings.ranks_missing import RANKS_MISSING
from htagraph.findings.recorded import RECORDED
from htagraph.findings.remedy import REMEDY
from htagraph.findings.results import Results
from htagraph.findings.slow_stage import SLOW_STAGE
from htagraph.findings.start_up import START_UP
from htagraph.findings.straggler import STRAGGLER
from htagraph.findings.uneven_steps import UNEVEN_STEPS
from htagraph.findings.unexplained import UNEXPLAINED
from htagraph.findings.unknown_bound import UNKNOWN_BOUND
from htagraph.findings.unknown_clocks import UNKNOWN_CLOCKS
from htagraph.findings.unmatched import UNMATCHED
from htagraph.findings.waiting import WAITING
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part
from htagraph.graph.tolerances import LIMITS
from htagraph.whatif.options import CHANGES
from htagraph.whatif.scenario import what_if

__all__ = [
    "CHANGES_OF_JOB", "FINDINGS", "OF_PATH", "ROWS", "claims_of", "first_step", "in_brief", "rows_of", "sentences",
    "stated", "trial_of",
]  # fmt: skip

OF_PATH: tuple[Finding, ...] = (
    INCOMPLETE, BOUND, UNKNOWN_BOUND, INTERRUPTED, START_UP, HOST_PAUSE, UNEXPLAINED, GAIN,
)  # fmt: skip
"""Findings about a critical path, of the job or of a window of it, in the order of reading."""
CHANGES_OF_JOB: tuple[Finding, ...] = (BLOCKING, REMEDY, SLOW_STAGE, STRAGGLER, UNEVEN_STEPS)
"""Findings about a whole job that say what a change gains, beside those of its path: all are ranked together."""
FINDINGS: tuple[Finding, ...] = (
    NOTHING_RECORDED, *OF_PATH, *CHANGES_OF_JOB[:-1], WAITING, DEVICE_IDLE, RECORDED, DAMAGED, NO_DEVICE_WORK,
    UNEVEN_STEPS, UNKNOWN_CLOCKS, UNMATCHED, RANKS_MISSING,
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
    """Return what findings claim of a job, each thing once.

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
    says = {claim.says for claim in kept}
    if STRAGGLER.name in says:  # which is what that gain is about, too
        kept = [claim for claim in kept if claim.facts.get("what") != "straggler"]
    if SLOW_STAGE.name in says:  # which ranks wait for
        kept = [claim for claim in kept if claim.says != WAITING.name]
    sent = max((claim.figure for claim in kept if claim.facts.get("sends")), default=0.0)
    kept = [_without_gain(claim, sent) for claim in kept]
    gained = max((claim.figure for claim in kept if claim.says == GAIN.name), default=0.0)
    if any(us > gained for name, *_, us in _actions(stated(kept)) if name not in (BOUND.name, GAIN.name)):
        kept = [
            replace(each, facts={**each.facts, "beside": True}) if each.says == GAIN.name else each for each in kept
        ]
    most = dict.fromkeys(_BY_NAME, (False, 0.0))
    for name, advice, _, us in _actions(stated(kept)):
        most[name] = max(most[name], (bool(advice) and us > 0, us))
    first = {
        INCOMPLETE.name: -2,
        UNMATCHED.name: -1,
        BOUND.name: 1,
        UNKNOWN_BOUND.name: 1,
    }  # all that follows rests on what is matched
    first[START_UP.name] = 0 if any(each.says == START_UP.name and each.figure > 100 * MOST for each in kept) else 2
    order = {
        name: (first.get(name, 3), *((0, 0.0) if name in first else (-known, -us)))
        for name, (known, us) in most.items()
    }
    return sorted(kept, key=lambda claim: order[claim.says])


def stated(claims: Iterable[Claim]) -> list[tuple[Finding, list[Claim]]]:
    """Return the sentences that claims make, each as its finding and the claims that it tells, in their order."""
    sentences = []
    for name, group in groupby(claims, key=lambda claim: claim.says):
        finding, every = _BY_NAME[name], list(group)
        sentences += [(finding, every)] if finding.is_list else [(finding, [claim]) for claim in every]
    return sentences


def sentences(claims: Iterable[Claim]) -> list[str]:
    """Return claims in words, at length, in their order, each with what to do about it, unless that was said before."""
    every = stated(claims)
    advice = [finding.advice(*group) for finding, group in every]
    return [
        " ".join(spoken(finding.whole(*group), advice[at] if advice[at] not in advice[:at] else ""))
        for at, (finding, group) in enumerate(every)
    ]


def rows_of(claims: Iterable[Claim], graph: DependencyGraph | None = None) -> list[dict[str, Any]]:
    """Return claims as rows of `ROWS`, in their order, for programs.

    With a graph, changes whose interval no claim has are replayed, so that each gain has one.

    Example:
        >>> (row,) = rows_of([Claim("ranks_missing", "3", 8, "count")])
        >>> row["kind"], row["change"], row["gain_us"]
        ('ranks_missing', '', None)
    """
    rows = []
    for claim in claims:
        finding, facts = _BY_NAME[claim.says], claim.facts
        tried = finding.trial(claim)
        saved_us = tried.saved_us if tried else facts.get("free_us")
        fixed = facts.get("fixed", claim)
        low, high = fixed.interval if tried and fixed.interval and tried.saved_us == fixed.figure else (None, None)
        options = tried.options if tried else tuple(str(facts.get("change", "")).split(" ", 1))
        if graph is not None and low is None and saved_us is not None and options[0]:
            low, high = _interval_us(graph, options)
        rows.append({
            "kind": claim.says, "about": claim.about, "figure": claim.figure, "unit": claim.unit,
            "ranks": [int(rank) for rank in facts.get("ranks", ())],
            "change": " ".join(options),
            "gain_us": None if saved_us is None else {"low": low, "value": saved_us, "high": high},
            "share_percent": claim.figure if claim.unit == "percent" else facts.get("percent"),
            "rests_on": sorted(each.value for each in claim.rests_on), "evidence": list(claim.rows),
            "text": finding.whole(claim), "advice": finding.advice(claim),
        })  # fmt: skip
    return rows


def _interval_us(graph: DependencyGraph, options: Sequence[str]) -> tuple[float, float]:
    """Return the least and the largest time that the change of some options of ``htagraph what-if`` saves, µs."""
    scenario, words = what_if(graph), list(options)
    while words:
        option, _, text = words.pop(0).removeprefix("--").partition("=")
        if CHANGES[option].value == "required":
            text = text or words.pop(0)
        scenario = CHANGES[option].read(text).apply(scenario)
    return interval_us(scenario.run())


def in_brief(claims: Iterable[Claim], fits: Callable[[Sequence[str]], bool] = lambda _: True) -> tuple[list[str], int]:
    """Return (what a job's claims say, in a line or two each; how many more the whole verdict has).

    Each ends with what to do about it, where that fits and `first_step` does not say it. Lists are as long as fits, but
    of what does not fit with short lists, the last are left out.

    Example:
        >>> in_brief([Claim("ranks_missing", "3", 8, "count")])
        (['Caution: only rank 3 of 8 was read, so waiting for the others looks like communication.'], 0)
    """
    every = stated(claims)
    doubts = [finding.short(*group) for finding, group in every if finding.is_caution]
    cautions = [f"Caution: {'; '.join(doubts)}."] if doubts else []
    conclusions = [(finding, group) for finding, group in every if not finding.is_caution]
    said, shown = _first(every)[0], min(len(conclusions), MOST_ROWS - len(cautions))
    lines = cautions
    for count, advised, listed in [
        *((shown, shown, each) for each in range(MAX_LISTED, SHORT_LIST, -1)),
        *((shown, each, SHORT_LIST) for each in range(shown, 0, -1)),
        *((each, 0, SHORT_LIST) for each in range(shown, 0, -1)),
    ]:
        advice = [finding.advice(*group) * (at < advised) for at, (finding, group) in enumerate(conclusions[:count])]
        lines = [
            " ".join(spoken(finding.short(*group[:listed]), advice[at] * (advice[at] not in (said, *advice[:at]))))
            for at, (finding, group) in enumerate(conclusions[:count])
        ] + cautions
        shown = count
        if fits(lines):
            break
    return lines, len(conclusions) - shown


def first_step(claims: Iterable[Claim]) -> str:
    """Return what to do first, and what it gains: of what a person could do, what gains most; empty for nothing known.

    Example:
        >>> first_step([Claim("ranks_missing", "3", 8, "count")])
        ''
    """
    advice, trial = _first(stated(claims))
    return " ".join(spoken(advice, trial.sentence if trial else ""))


def trial_of(claims: Iterable[Claim]) -> Trial | None:
    """Return the change of `first_step`; without, the one that gains most, None if it cannot be made as predicted.

    A name's time can be halved, not made zero; a straggler can be as fast as its peers, a wait or a late batch can be
    gone. What starts a job is no change of the steady one.
    """
    every = stated(claims)
    return _first(every)[1] or next((each[2] for each in _ranked(every) if each[0] != START_UP.name), None)


def _ranked(every: Sequence[tuple[Finding, list[Claim]]]) -> list[tuple[str, str, Trial | None, float]]:
    """Return all that could be done, what gains most first, and last where to look, for what bounds the job."""
    return sorted(_actions(every), key=lambda each: (each[0] == BOUND.name and each[2] is None, -each[3]))


def _without_gain(claim: Claim, sent_us: float) -> Claim:
    """Return a claim, without gain and advice if it is that transfers bound the job, and fewer of them gain more."""
    if claim.says != BOUND.name or claim.about != "communication" or claim.facts.get("free_us", 0.0) >= sent_us:
        return claim
    facts = {key: value for key, value in claim.facts.items() if key != "free_us"}
    return replace(claim, facts=facts | {"beside": True})


def _first(every: Sequence[tuple[Finding, list[Claim]]]) -> tuple[str, Trial | None]:
    """Return (the advice, the trial) of the largest gain; advice for recording, where the recording lacks a part.

    A device that computes nearly all the time bounds the job, whatever the host does: a known remedy for the kernels
    comes before a recording of the host.
    """
    missing = [(group[0].about, finding.advice(*group)) for finding, group in every if finding is INCOMPLETE]
    hosts = {Part.HOST.name, Part.CALLS.name}
    lost = {about for about, _ in missing}
    is_lost_host = lost <= hosts
    remedies = [sentence for sentence in every if sentence[0] is REMEDY] if missing else every
    if missing and not (is_lost_host and _computes(every)):
        return missing[0][1], None
    # a change alone tells nobody what to do
    recording = missing[0][1] if missing else ""
    return next((action[1:3] for action in _ranked(remedies) if action[1] and action[3] > 0), (recording, None))


def _computes(every: Sequence[tuple[Finding, list[Claim]]]) -> bool:
    """Return whether computation of devices is nearly all of the critical path."""
    bounds = [claim for _, claims in every for claim in claims if claim.says == BOUND.name]
    return any(claim.about == "computation" and claim.figure >= 100 * LIMITS.nearly_all for claim in bounds)


def _actions(every: Sequence[tuple[Finding, list[Claim]]]) -> Iterator[tuple[str, str, Trial | None, float]]:
    """Yield (its finding, the advice, the trial, what that gains, µs) of each claim that has an advice or a trial."""
    # work of all ranks gains what it gains beyond the straggler: what makes that late comes first
    late = next((claim.facts for _, claims in every for claim in claims if claim.says == STRAGGLER.name), {})
    for finding, claims in every:
        for claim in claims:
            advice, trial = finding.advice(claim), finding.trial(claim)
            if advice or trial:
                saves = claim.figure if "makespan_us" in claim.facts else float(claim.facts.get("free_us", 0.0))
                us = trial.saved_us if trial else saves
                if trial and " ".join(trial.options) == late.get("within"):
                    us -= late["free_us"]
                yield finding.name, advice, trial, us
