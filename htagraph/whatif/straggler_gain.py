"""What the straggler's work beyond its peers' is worth: a row among the opportunities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from htagraph.queries.straggler import straggler_of
from htagraph.whatif.changes.fix_straggler import fix_straggler
from htagraph.whatif.trial import Trial

__all__ = ["straggler_gain"]


def straggler_gain(trial: Trial, factors: Mapping[str, float], steps: int) -> list[dict[str, Any]]:
    """Return the row of the straggler in `htagraph.opportunities`, if there is one whose fix gains.

    Args:
        trial: the job as recorded.
        factors: what is left of the work beyond its peers', by column.
        steps: how many steps the recording is; 0 for none.
    """
    state = trial.state
    rank = straggler_of(state.graph).rank
    if rank is None:
        return []
    fixed = fix_straggler(state, rank=rank)
    lag, gap = state.lag - fixed.lag, state.gap - fixed.gap
    gain = trial.gained(fixed)
    if gain <= 0:
        return []
    vertices, edges = trial.path
    gains = {}
    for column, factor in factors.items():
        part = replace(
            state, lag=fixed.lag + np.rint(factor * lag).astype(np.int64),
            gap=fixed.gap + np.rint(factor * gap).astype(np.int64),
        )  # fmt: skip
        gains[column] = trial.gained(part) / 1000
    row = {
        "what": "straggler", "name": f"rank {rank} beyond its peers'", "target": "",
        "time_us": float(lag.sum() + gap.sum()) / 1000,
        "critical_us": float(lag[edges].sum() + gap[vertices].sum()) / 1000,
        "gain_us": gain / 1000, "gain_percent": 100 * gain / trial.makespan,
        "gain_per_step_us": gain / 1000 / steps if steps else np.nan, **gains,
        "note": f"work that takes longer than its peers'; to predict it: --fix-straggler {rank}", "inside": "",
    }  # fmt: skip
    return [row]
