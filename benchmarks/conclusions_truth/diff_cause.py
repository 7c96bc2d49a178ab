"""What a diff must name first: the planted change, where it changes the step time."""

from __future__ import annotations

import fnmatch

from benchmarks.conclusions_truth.findings import Finding

__all__ = ["diff_findings"]

MIN_EFFECT = 2.0
"""Percent of the step time that a planted change must change to be expected as the first cause. Chosen: the spread of
steps in these jobs; doubled, causes of 2 to 4 % may be missed."""
NO_EFFECT = 0.5
"""Percent of the step time that chance alone changes where nothing was planted: what is then said to change it by
`MIN_EFFECT` is wrong. Chosen; doubled, pairs that differ by 0.5 to 1 % are asked, too."""

CAUSAL = ("of the change)", "which is likely why")
"""Words of sentences that name a cause of the change."""


def diff_findings(
    name: str, rank: int, stated: float, sentences: list[str], *, names: str, on_rank: int, effect: float
) -> list[Finding]:
    """Return whether the first cause is the planted one.

    Args:
        name: the first cause; empty for none.
        rank: the rank it is said to be on, -1 for none.
        stated: by how many percent it is said to change the step time.
        sentences: what the diff says.
        names: globs on what the planted change changes; empty where nothing was planted.
        on_rank: the rank of the planted change; -1 for all.
        effect: by how many percent it changed the mean step time.
    """
    claimed = next((line for line in sentences[1:] if any(word in line for word in CAUSAL)), "")
    text = f"step {effect:+.1f} %; {claimed[:160]}"
    if not names or abs(effect) < NO_EFFECT:
        wrong = abs(effect) < NO_EFFECT and abs(stated) >= MIN_EFFECT and bool(claimed)
        return [Finding("no diff cause", name[:60] if wrong else "none", "none", not wrong, text)]
    right = any(fnmatch.fnmatchcase(name, each) for each in names.split("|")) and on_rank in (-1, rank)
    said = f"{name[:60]}{'' if rank < 0 else f' on rank {rank}'}" if name and claimed else ""
    wanted = f"{names}{'' if on_rank < 0 else f' on rank {on_rank}'}" if abs(effect) >= MIN_EFFECT else ""
    return [Finding("diff cause", said, wanted, right and bool(said), text)] if said or wanted else []
