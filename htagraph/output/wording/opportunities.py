"""What ``htagraph opportunities`` says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from htagraph.output.phrases import group_words

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.queries.claim import Claim

__all__ = ["TITLES", "brief", "sentences", "titles"]

TITLES = {"opportunities": "Opportunities, by the largest possible gain"}
"""Titles by the name of the table."""
_MIN_GAIN_PERCENT = 2.0
"""Percent of the makespan; chosen: less is hardly worth the work. Doubled, gains of 2 to 4 % are no longer named."""


def titles(steps: int) -> dict[str, str]:
    """Return titles by the name of the table.

    Args:
        steps: how many steps the times are divided by; 0 for none.
    """
    per_step = f" (times per step of {steps:,})" if steps > 1 else ""
    return {name: f"{title}{per_step}" for name, title in TITLES.items()}


def brief(table: pd.DataFrame, steps: int) -> pd.DataFrame:
    """Return what a reader wants to see of opportunities, per step where there are several, and the gain in all.

    Args:
        table: result of `htagraph.opportunities`.
        steps: how many steps the times are divided by; 0 for none.
    """
    pairs = zip(table["what"], table["name"], strict=True)
    names = [group_words(name).replace(" (", ", ").rstrip(")") if what == "group" else name for what, name in pairs]
    times = ["time_us", "critical_us", "gain_us", "gain_at_50_us"]
    shown = table[["what", "name", *times, "gain_percent"]].copy()
    if len(set(names)) == len(set(table["name"])):
        shown["name"] = names
    if steps > 1:
        shown[times] /= steps
        shown["gain_in_all_us"] = table["gain_us"]
    return shown.rename(columns={"gain_at_50_us": "gain_if_halved_us"})


def sentences(claims: Sequence[Claim], inputs: Sequence[str]) -> list[str]:
    """Return what gains most and the command that tries half of it.

    Args:
        claims: what bounds the job and what gains most; see `htagraph.output.conclusions.claims.gain_claims`.
        inputs: the words of the command line that choose what is read.
    """
    from htagraph.output.conclusions.claim_sentences import sentences as words_of
    from htagraph.output.conclusions.claim_sentences import trial
    from htagraph.queries.claim import Says

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
