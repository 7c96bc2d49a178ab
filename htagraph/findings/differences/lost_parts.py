"""A recording lacks a part of its job, or ranks that the other recording has."""

from __future__ import annotations

from dataclasses import dataclass

from htagraph.findings.differences.pair import JobPair
from htagraph.findings.finding import Claim, Finding

__all__ = ["LOST_PARTS", "LostPartsClaim"]


@dataclass(frozen=True, kw_only=True)
class LostPartsClaim(Claim):
    """A recording lacks a part; the figure counts the parts that both lack."""

    note: str
    """The part, and how to record it."""


def _when(pair: JobPair) -> list[LostPartsClaim]:
    notes = pair.comparison.notes
    return [LostPartsClaim("lost_parts", "recording", len(notes), "count", note=note) for note in notes]


LOST_PARTS = Finding("lost_parts", when=_when, short=lambda claim: claim.note, is_unknown=True)
