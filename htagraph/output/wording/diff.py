"""Titles and headings of the tables of ``htagraph diff``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


__all__ = ["TITLES", "marked"]

TITLES = {
    "work": "Causes: time per rank and step, own or with all inside, and its effect on the step time (replayed)",
    "contributions": "Change of the critical path per step, by call path",
    "change_category": "Change of the critical path per step, by category",
    "change_operator": "Change of the critical path per step, by operator",
    "names": "Activities of both jobs, per rank and step",
    "added": "Call paths only in the job after, per rank and step (critical: with their device work)",
    "removed": "Call paths only in the job before, per rank and step (critical: with their device work)",
    "renamed": "Kernels replaced by others, under the same call path",
}
"""Titles by the name of the table."""


def marked(causes: pd.DataFrame) -> pd.DataFrame:
    """Return the table of causes as it is shown: names say whose rows are of all inside a call.

    Example:
        >>> import pandas as pd
        >>> marked(pd.DataFrame({"name": ["mm", "aten::item"], "whole": [False, True]}))["name"].tolist()
        ['mm', 'aten::item (with all inside)']
    """
    name = causes["name"].mask(causes["whole"], causes["name"] + " (with all inside)")
    return causes.drop(columns="whole").assign(name=name)
