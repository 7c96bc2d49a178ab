"""What ``htagraph opportunities`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from htagraph.findings.claim import Claim

__all__ = ["sentences"]

_MIN_GAIN_PERCENT = 2.0
"""Percent of the makespan; chosen: less is hardly worth the work. Doubled, gains of 2 to 4 % are no longer named."""


def sentences(claims: Sequence[Claim], inputs: Sequence[str]) -> list[str]:
    """Return what gains most and the command that tries half of it.

    Args:
        claims: what bounds the job and what gains most; see `htagraph.findings.conclusions.claims.gain_claims`.
        inputs: the words of the command line that choose what is read.
    """
    from htagraph.findings.claim import Says
    from htagraph.findings.conclusions.claim_sentences import sentences as words_of
    from htagraph.findings.conclusions.claim_sentences import trial

    gains = [claim for claim in claims if claim.says is Says.GAIN]
    bound = words_of([claim for claim in claims if claim.says is not Says.GAIN])
    if not gains:
        return [
            *bound,
            f"No single improvement would gain {_MIN_GAIN_PERCENT:.0f} %: the time is spread over many small parts, or "
            "over pauses.",
        ]
    notes = [f" The first one counts {note}." for note in [gains[0].facts["note"]] if note]
    return [*bound, f"{words_of(gains)[0]}{''.join(notes)} Gains overlap and do not add up.", *trial(gains, inputs)]
