"""What a diff must name first: the planted change, where it changes the step time."""

from __future__ import annotations

import fnmatch
from typing import NamedTuple

import numpy as np

from benchmarks.conclusions_truth.findings import Finding
from htagraph.simulate import Simulated

__all__ = ["First", "diff_findings", "step_spread"]

MIN_EFFECT = 2.0
"""Percent of the step time that a planted change must change to be expected as the first cause. Chosen: the spread of
steps in these jobs; doubled, causes of 2 to 4 % may be missed."""
NO_EFFECT = 0.5
"""Percent of the step time that chance alone changes where nothing was planted: what is then said to change it by
`MIN_EFFECT` is wrong. Chosen; doubled, pairs that differ by 0.5 to 1 % are asked, too."""

CAUSAL = (" makes the step ", " makes the job ", " would make the ", "which is likely why")
"""Words of sentences that name a cause of the change."""


def step_spread(job: Simulated) -> float:
    """Return by how much the steps of a job differ, percent of their mean."""
    ends = [
        max(end for (_, number), (_, end) in job.step_times().items() if number == step)
        for step in range(job.job.steps)
    ]
    times = np.diff(ends)
    return 100 * float(np.ptp(times) / times.mean())


class First(NamedTuple):
    """The first cause that a diff gives."""

    name: str
    """Empty for none."""
    rank: int
    """The rank that it is said to be on, -1 for none."""
    percent: float
    """By how much it is said to change the step time."""
    sentences: list[str]
    """All that the diff says."""


def diff_findings(first: First, *, names: str, on_rank: int = -1, effect: float, clear: bool = True) -> list[Finding]:
    """Return whether the first cause is the planted one.

    Args:
        first: what is said.
        names: globs on what the planted change changes; empty where nothing was planted.
        on_rank: the rank of the planted change; -1 for all.
        effect: by how many percent it changed the mean step time.
        clear: whether that is more than the steps of one job differ by.
    """
    claimed = next((line for line in first.sentences[1:] if any(word in line for word in CAUSAL)), "")
    text = f"step {effect:+.1f} %; {claimed[:160]}"
    if not names or abs(effect) < NO_EFFECT:
        wrong = abs(effect) < NO_EFFECT and abs(first.percent) >= MIN_EFFECT and bool(claimed)
        return [Finding("no diff cause", first.name[:60] if wrong else "none", "none", not wrong, text)]
    right = any(fnmatch.fnmatchcase(first.name, each) for each in names.split("|")) and on_rank in (-1, first.rank)
    said = f"{first.name[:60]}{'' if first.rank < 0 else f' on rank {first.rank}'}" if first.name and claimed else ""
    wanted = f"{names}{'' if on_rank < 0 else f' on rank {on_rank}'}" if clear and abs(effect) >= MIN_EFFECT else ""
    return [Finding("diff cause", said, wanted, right and bool(said), text)] if said or wanted else []
