"""Which complete events are no activities because their category does not say what they are, as issues."""

from __future__ import annotations

import numpy as np

from htagraph.core.errors import shown
from htagraph.core.issues import IssueLog
from htagraph.trace.columns import Trace
from htagraph.trace.readers import reader_of

__all__ = ["report_categories"]

_MAX_CATEGORIES = 5
"""Unknown categories that a report lists. Chosen: a line or two. Doubled, reports are longer."""


def report_categories(rest: Trace, log: IssueLog) -> None:
    """Report complete events whose category is absent or unknown.

    Args:
        rest: a trace without the events that are activities.
        log: receives the issues, which list categories and numbers of events.
    """
    counts = np.bincount(rest.events.category, minlength=len(rest.categories)).tolist()
    detail = "complete events without a category (cat): of a host thread or a device, nobody knows; not in the graph"
    log.add("category_missing", detail, sum(n for n, name in zip(counts, rest.categories, strict=True) if not name))
    known = reader_of(rest).CATEGORIES
    unknown = {name: n for n, name in zip(counts, rest.categories, strict=True) if name and name not in known and n}
    listed = ", ".join(f"{shown(name)} ({n:,})" for name, n in list(unknown.items())[:_MAX_CATEGORIES])
    detail = f"complete events of unknown categories, not in the graph: {listed}"
    log.add("unknown_category", detail + (", …" if len(unknown) > _MAX_CATEGORIES else ""), sum(unknown.values()))
