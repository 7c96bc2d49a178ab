"""Which activities a timeline shows where there are more than a page can hold."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kind_masks import of_kinds
from htagraph.core.kinds import ADDED, COMMUNICATION, ActivityKind
from htagraph.findings.phrases import time_text
from htagraph.queries.paths import CriticalPath

__all__ = ["MOST_SLICES", "kept_slices"]


MOST_SLICES = 2_000_000
"""Slices of one page. Source: measured, a slice takes 4 to 8 bytes of the page, its part of the critical path included,
so that pages stay below 16 MB; a frame takes as long as of fewer. Doubled, pages of 5 million events are 16 to 32 MB,
and browsers need 300 MB for them."""


def kept_slices(path: CriticalPath, most: int = MOST_SLICES) -> tuple[npt.NDArray[np.bool_], list[str]]:
    """Return which activities are shown, and sentences about what is not.

    The critical path, communication and steps are always shown. Of the rest, calls of Python functions are left out
    first, then the shortest calls of the host, then the shortest work of devices, until the others fit.

    Args:
        path: the critical path; its graph is the job.
        most: how many slices at most, beyond those that are always shown.

    Returns:
        A mask over the activities, and a sentence per kind that is left out; none where everything fits.
    """
    acts = path.graph.activities
    kept = ~of_kinds(acts.kind, ADDED) & (acts.lane >= 0)
    sentences: list[str] = []
    always = of_kinds(acts.kind, (*COMMUNICATION, ActivityKind.STEP))
    always[np.unique(path.segments.place)] = True
    for what, group in (
        ("calls of Python functions", acts.kind == ActivityKind.PYTHON),
        ("calls of the host", ~acts.on_device & (acts.kind != ActivityKind.PYTHON)),
        ("kernels and copies", acts.on_device),
    ):
        over = int(kept.sum()) - most
        if over <= 0:
            break
        rows = np.flatnonzero(kept & group & ~always)
        rows = rows[np.argsort(acts.duration[rows], kind="stable")][:over]
        if len(rows):
            kept[rows] = False
            sentences.append(_left_out(what, acts.duration[rows]))
    return kept, sentences


def _left_out(what: str, duration: Array) -> str:
    longest = time_text(int(duration.max()) / 1000)
    return (
        f"{len(duration):,} {what}, each at most {longest} long, are not drawn: the page shows as many slices as a "
        "browser can. They count in every number. For those of one moment, make a report with --steps or --time."
    )
