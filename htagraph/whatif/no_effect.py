"""Why a change leaves a job as it is, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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
    if not outcome.changes or outcome.state.jitter or outcome.makespan_ns != outcome.baseline_ns:
        return ""
    if outcome.step_ns != outcome.baseline_step_ns:
        return ""
    if changes_nothing(outcome.baseline, outcome.links.state):
        names = [change.partition("(")[0] for change in outcome.changes]
        is_said = any(note.startswith(f"{name}:") for note in outcome.state.notes for name in names)
        return "" if is_said else "nothing is changed: all that was selected takes as long as recorded"
    changed = _changed_text(outcome)
    return f"the job ends when it did{changed}: nothing waits for the changed work, or other work takes as long"


def _changed_text(outcome: Outcome) -> str:
    """Return how much time a change takes away or adds, in words; empty where it has another graph."""
    before, after = outcome.baseline, outcome.state
    if after.graph is not before:
        return ""
    less = _shorter_ns(before.edges.lag, after.lag) + _shorter_ns(before.gap, after.gap)
    more = _shorter_ns(after.lag, before.edges.lag) + _shorter_ns(after.gap, before.gap)
    words = [f"{time_text(ns / 1000)} {what}" for ns, what in ((less, "less"), (more, "more")) if ns]
    return f" ({', '.join(words)} to do, summed over threads and devices)" if words else ""


def _shorter_ns(before: np.ndarray, after: np.ndarray) -> int:
    """Return by how much times are shorter after than before, ns; what waits no more counts with all of its time."""
    left = np.maximum(after, 0)
    return int(np.maximum(before - left, 0).sum())
