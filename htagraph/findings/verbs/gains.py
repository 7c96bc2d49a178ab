"""What ``htagraph critical-path`` and ``htagraph plan`` say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import pandas as pd

from htagraph.core.kinds import GapKind
from htagraph.findings import verdict
from htagraph.findings.bound import BOUND, absent_ranks, is_unrecorded
from htagraph.findings.changes import ProposedChange, ProposedChanges
from htagraph.findings.finding import Claim
from htagraph.findings.gain import GAIN
from htagraph.findings.host_pause import HOST_PAUSE
from htagraph.findings.incomplete import INCOMPLETE
from htagraph.findings.interrupted import INTERRUPTED
from htagraph.findings.limits import MIN_PERCENT, SHORT_LIST
from htagraph.findings.phrases import (
    CATEGORY_WORDS,
    Suggestion,
    and_list,
    cause_words,
    command_line,
    plural,
    share_text,
    spoken,
    time_text,
    transfers_words,
)
from htagraph.findings.start_up import START_UP
from htagraph.findings.unexplained import UNEXPLAINED
from htagraph.findings.unknown_bound import UNKNOWN_BOUND
from htagraph.graph.measures.ledger import Part
from htagraph.queries.path_segments import bound_of
from htagraph.queries.paths import CriticalPath
from htagraph.queries.silent_regions import silent_region

if TYPE_CHECKING:
    from htagraph.findings.plan import BestChanges

__all__ = [
    "CONCLUSIONS",
    "OF_PATH",
    "PlanWords",
    "category_words",
    "opportunities_sentences",
    "path_sentences",
    "plan_sentences",
    "tried",
]

_MOST_CAUSES: Final = 3
"""Causes of a path in its answer. Chosen: they are nearly all of most paths. Doubled, parts of 2 % are told."""
OF_PATH: Final = (INCOMPLETE, BOUND, UNKNOWN_BOUND, START_UP, HOST_PAUSE, UNEXPLAINED)
"""The findings that say what a path is spent on, and how sure that is; what to change is in the list of changes."""
CONCLUSIONS = (BOUND, INTERRUPTED, START_UP, GAIN, *verdict.CHANGES_OF_JOB)
"""The findings that bear on what to improve."""


def path_sentences(
    path: CriticalPath,
    claims: Sequence[Claim],
    first: ProposedChange | None,
    hops: pd.DataFrame,
    inputs: Sequence[str],
    *,
    is_whole: bool = True,
) -> list[str]:
    """Return what the path is spent on and where it moves, what bounds the usual steps, and what to do first.

    Args:
        path: the path.
        claims: those of `OF_PATH`.
        first: what to do first.
        hops: those of the path.
        inputs: the words of the command line that choose what is read.
        is_whole: whether the path is that of the whole job, and not of some steps.
    """
    if not path.makespan_ns:
        return ["Nothing was recorded: there is no critical path."]
    incomplete = verdict.sentences(claim for claim in claims if claim.says == INCOMPLETE.name)
    others = verdict.sentences(claim for claim in claims if claim.says != INCOMPLETE.name)
    if incomplete and not _is_answered(claims):
        return [*incomplete, *others, *tried(first, inputs)]
    why = [Suggestion("To see why ranks wait for each other", command_line("stragglers", inputs))] if len(hops) else []
    return [_spent(path, hops, is_whole=is_whole), *others, *incomplete, *why, *tried(first, inputs)]


def _is_answered(claims: Sequence[Claim]) -> bool:
    """Return whether the parts that a recording lacks leave the share of the path that its largest cause has.

    Devices that do little but meet ranks that were not read are bound by communication, whether that is transfer or
    waiting; a device that computes all the time needs no operators of its host.
    """
    lost = {claim.about for claim in claims if claim.says == INCOMPLETE.name}
    is_bound = any(claim.says == BOUND.name for claim in claims)
    return lost == {Part.PEERS.name} or (is_bound and lost <= {Part.HOST.name, Part.GRAPHS.name})


def _spent(path: CriticalPath, hops: pd.DataFrame, *, is_whole: bool) -> str:
    """Return what a path is spent on, how long it takes, and on which ranks it is, in one sentence."""
    bound = bound_of(path)
    named = [(category, share) for category, share in bound.shares.items() if share >= MIN_PERCENT][:_MOST_CAUSES]
    spent = and_list([words for category, share in named for words in _parts(path, category, share)])
    of_what = "whole recording" if is_whole else "steps that were asked for"
    lasts = time_text(path.makespan_ns / 1000)
    said = f"The critical path of the {of_what} takes {lasts}: {spent}"
    ranks = list(bound.ranks.items())
    if len(path.graph.ranks) == 1 or not ranks:
        return f"{said}."
    rank, share = ranks[0]
    if len(ranks) == 1:
        return f"{said}; it stays on rank {rank}."
    if not len(hops):
        return f"{said}; {share_text(share)} is on rank {rank}."
    return f"{said}; it moves to another rank {plural(len(hops), 'time')}, and {share_text(share)} is on rank {rank}."


def category_words(path: CriticalPath) -> dict[str, str]:
    """Return the categories of a path in words, as its sentences say them.

    Example:
        >>> import htagraph as hg
        >>> category_words(hg.critical_path(hg.load("data/gloo_ddp")))["communication"]
        'transfers between ranks'
    """
    is_on_cpu = bound_of(path).is_on_cpu
    words = {category: cause_words(category, {category: 100.0}, is_on_cpu=is_on_cpu) for category in CATEGORY_WORDS}
    return words | {"communication": transfers_words(absent_ranks(path.graph))}


def _parts(path: CriticalPath, cause: str, share: float) -> list[str]:
    """Return a category of a path with its share, in words; time in a region without any event is no host code."""
    words = category_words(path)[cause]
    region = silent_region(path.graph, path.segments) if cause == "host" else None
    if region is None or region.percent < MIN_PERCENT:
        eventless = _eventless_percent(path) if cause == "host" else 0.0
        if eventless < MIN_PERCENT:
            return [f"{share_text(share)} {words}"]
        return [f"{share_text(share - eventless)} {words}", f"{share_text(eventless)} time without any event"]
    silent = f"{share_text(region.percent)} in {region.name}, of which nothing is recorded"
    code = f"{share_text(share - region.percent)} {words}"
    is_code_first = share >= 2 * region.percent
    return [code, silent] if is_code_first else [silent, code]


def _eventless_percent(path: CriticalPath) -> float:
    """Return the share of a path, percent, in which no event is recorded, of a job that computes on the CPU; else 0.

    Where a device works, such time is host code like any other.
    """
    if not bound_of(path).is_on_cpu:
        return 0.0
    parts = path.segments
    is_eventless = parts.gap == GapKind.HOST_UNTRACED
    return 100 * float(parts.length[is_eventless].sum()) / max(int(parts.length.sum()), 1)


def opportunities_sentences(
    claims: Sequence[Claim], found: ProposedChanges, inputs: Sequence[str], most_percent: float = 0.0
) -> list[str]:
    """Return what to do first with its command, and why.

    Args:
        claims: those of `CONCLUSIONS`.
        found: the list of changes.
        inputs: the words of the command line that choose what is read.
        most_percent: the largest gain of the table of opportunities, percent of the job.
    """
    why = verdict.sentences(claim for claim in claims if claim.says != GAIN.name)
    if found.first is None and not any(map(is_unrecorded, claims)):
        would = f"would gain {MIN_PERCENT:.0f} %"
        is_larger = most_percent >= MIN_PERCENT
        why.append(
            f"No way is known that {would}; of faster code, the table says how much it would gain at most."
            if is_larger
            else f"No change that is known {would}."
        )
    return [*tried(found.first, inputs), *why]


class PlanWords(NamedTuple):
    """The sentences of ``htagraph plan``."""

    sentences: list[str]
    """All sentences, the answer first."""
    details: frozenset[str]
    """The sentences that only readers who ask for all are shown."""
    second: str
    """The heading of the second sentence; empty where the first one says as much."""


def plan_sentences(
    claims: Sequence[Claim],
    found: ProposedChanges,
    best: BestChanges,
    inputs: Sequence[str],
    most_percent: float = 0.0,
) -> PlanWords:
    """Return the first change, the best set of changes, the way to each change, and the reasons.

    Args:
        claims: those of `CONCLUSIONS`.
        found: the list of changes.
        best: the best set of changes.
        inputs: the words of the command line that choose what is read.
        most_percent: the largest gain of the table of opportunities, percent of the job.
    """
    begin, *why = opportunities_sentences(claims, found, inputs, most_percent) or [""]
    if not len(best.changes):
        return PlanWords(spoken(begin, *why), frozenset(), "")
    is_first_alone = len(best.changes) == 1 and found.first is not None and best.options == found.first.options
    answer = best.answer(inputs)
    compared = best.details()
    details = [*why, *compared, *([answer] if is_first_alone else [])] if found.first else compared
    sentences = spoken(begin, answer, *_ways(found), *best.caveats(), *why, *compared)
    return PlanWords(sentences, frozenset(details), "" if is_first_alone else "Together")


def _ways(found: ProposedChanges) -> list[str]:
    """Return how to make each change of a list behind the first one, where a way is known."""
    rows = [row for row in found.rows[1:] if row.is_known and row.change]
    return [f"{row.change.title}: {row.action}" for row in rows[:SHORT_LIST] if row.change]


def tried(first: ProposedChange | None, inputs: Sequence[str]) -> list[str]:
    """Return what to do first, and the command that predicts it."""
    if first is None:
        return []
    sentence = first.with_command(inputs)
    return [sentence]
