"""What stands under the sentence of a finding."""

from __future__ import annotations

from dataclasses import dataclass

from htagraph.output.html.page import NOTHING, Html

__all__ = ["MOST_ROWS", "Evidence"]

MOST_ROWS = 5
"""Rows that a finding shows; chosen: enough to see whether it is one thing or many. Doubled, findings fill a screen
each."""


@dataclass(frozen=True)
class Evidence:
    """What stands under the sentence of a finding."""

    chart: Html = NOTHING
    table: Html = NOTHING
    href: str = ""
    """Where in the timeline it is; empty for nowhere in particular."""
    look: str = ""
    """What is to be seen there."""
    command: str = ""
    """What to try; empty for nothing."""
    trial: tuple[str, ...] = ()
    """The options of a ``what-if`` among it, which a slider may have too."""
    meaning: Html = NOTHING
    """What its numbers mean."""
