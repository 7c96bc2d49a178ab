"""What ``htagraph opportunities`` says."""

from __future__ import annotations

from collections.abc import Sequence

from htagraph.findings import verdict
from htagraph.findings.bound import BOUND
from htagraph.findings.claim import MIN_PERCENT, Claim
from htagraph.findings.gain import GAIN, half_sentence
from htagraph.findings.interrupted import INTERRUPTED
from htagraph.findings.start_up import START_UP

__all__ = ["CONCLUSIONS", "sentences"]

CONCLUSIONS = (BOUND, INTERRUPTED, START_UP, GAIN)
"""The findings that bear on what to improve."""


def sentences(claims: Sequence[Claim], inputs: Sequence[str]) -> list[str]:
    """Return what gains most and the command that tries half of it."""
    gains = [claim for claim in claims if claim.says == GAIN.name]
    bound = verdict.sentences(claim for claim in claims if claim.says != GAIN.name)
    if not gains:
        return [
            *bound,
            f"No single improvement would gain {MIN_PERCENT:.0f} %: the time is spread over many small parts, or over "
            "pauses.",
        ]
    notes = [f" The first one counts {note}." for note in [gains[0].facts["note"]] if note]
    (largest,) = verdict.sentences(gains)
    return [*bound, f"{largest}{''.join(notes)} Gains overlap and do not add up.", *half_sentence(gains, inputs)]
