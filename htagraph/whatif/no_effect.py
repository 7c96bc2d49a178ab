"""Why a change leaves a job as it is, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.errors import time_text
from htagraph.whatif.interval import changes_nothing

if TYPE_CHECKING:
    from htagraph.whatif.outcome import Outcome

__all__ = ["why_no_effect"]


def why_no_effect(outcome: Outcome) -> str:
    """Return why a job takes as long with its changes as without; empty where it does not, or a change has said why.

    Example:
        >>> import htagraph as hg
        >>> why_no_effect(hg.what_if(hg.load("data/demo")).scale(factor=1).run())
        'nothing is changed: all that was selected takes as long as recorded'
    """
    ends_elsewhere = outcome.makespan_ns != outcome.baseline_ns
    has_other_steps = outcome.step_ns != outcome.baseline_step_ns
    is_as_recorded = not outcome.changes or bool(outcome.state.jitter)
    if is_as_recorded or ends_elsewhere or has_other_steps:
        return ""
    if changes_nothing(outcome.baseline, outcome.links.state):
        if outcome.state.reasons:
            return ""
        return "nothing is changed: all that was selected takes as long as recorded"
    amount = _changed_text(outcome)
    return f"the job ends when it did{amount}: nothing waits for the changed work, or other work takes as long"


def _changed_text(outcome: Outcome) -> str:
    """Return how much time a change takes away or adds, in words; empty where it has another graph."""
    before = outcome.baseline
    after = outcome.state
    if after.graph is not before:
        return ""
    shorter_ns = _shorter_ns(before.edges.lag, after.lag) + _shorter_ns(before.gap, after.gap)
    longer_ns = _shorter_ns(after.lag, before.edges.lag) + _shorter_ns(after.gap, before.gap)
    amounts = []
    if shorter_ns:
        amounts.append(f"{time_text(shorter_ns / 1000)} less")
    if longer_ns:
        amounts.append(f"{time_text(longer_ns / 1000)} more")
    return f" ({', '.join(amounts)} to do, summed over threads and devices)" if amounts else ""


def _shorter_ns(before: npt.NDArray[np.int64], after: npt.NDArray[np.int64]) -> int:
    """Return by how much times are shorter after than before, ns; a wait that is gone counts with all of its time."""
    time_after = np.maximum(after, 0)
    time_saved = np.maximum(before - time_after, 0)
    return int(time_saved.sum())
