"""The list of changes as a table to read: gains in one unit, sorted as the title says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import pandas as pd

from htagraph.findings.change import Gain, interval_us, per_step, scenario_of

if TYPE_CHECKING:
    from htagraph.findings.changes import ProposedChange, ProposedChanges
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["ListedChanges", "listed_changes"]

_WAYS: Final = ("known", "not known")
"""Whether a way to a change is known, in the order of the table."""


class ListedChanges(NamedTuple):
    """A table of changes with its title."""

    frame: pd.DataFrame
    title: str


def listed_changes(found: ProposedChanges, graph: DependencyGraph) -> ListedChanges:
    """Return the changes of a list that gain time, known ways first, each kind by the least gain.

    All gains are per usual step, or of the whole job; where the list has both, all are of the job, and a further column
    has the gain of a usual step.

    Args:
        found: the list of changes.
        graph: the job without its start-up, which the gains are of.
    """
    rows = [row for row in found if row.gain]
    scopes = {row.gain.scope for row in rows if row.gain}
    is_mixed = len(scopes) > 1
    gains = [_of_job(row, row.gain, graph) if is_mixed else row.gain for row in rows if row.gain]
    unit = "per step" if scopes == {"step"} else "of the job"
    frame = pd.DataFrame()
    frame["change"] = [row.change.name if row.change else row.about for row in rows]
    frame["low_us"] = [per_step(gain.low_us, gain.steps) for gain in gains]
    frame["gain_us"] = [gain.per_step_us for gain in gains]
    frame["high_us"] = [per_step(gain.high_us, gain.steps) for gain in gains]
    if is_mixed:
        frame["gain_percent"] = [gain.percent for gain in gains]
        frame["per_step_us"] = [_of_step(row) for row in rows]
    else:
        frame["gain_percent"] = [row.percent for row in rows]
    frame["way"] = [_way_of(row) for row in rows]
    place = frame["way"].map(_WAYS.index)
    placed = frame.assign(place=place)
    placed = placed.sort_values(["place", "low_us"], ascending=[True, False], kind="stable")
    shown = placed.drop(columns="place")
    title = f'What to change, gains {unit}: known ways first, each kind by "at least"'
    return ListedChanges(shown.reset_index(drop=True), title)


def _of_step(row: ProposedChange) -> float:
    """Return the gain of a change in a usual step, µs; NaN where the gain is of the whole job."""
    if row.gain is None or row.gain.scope == "job":
        return float("nan")
    return row.gain.per_step_us


def _way_of(row: ProposedChange) -> str:
    """Return whether a way to a change is known, in words."""
    return _WAYS[0] if row.is_known else _WAYS[1]


def _of_job(row: ProposedChange, gain: Gain, graph: DependencyGraph) -> Gain:
    """Return the gain of a change of the whole job, by replay; that of its steps where no prediction exists.

    The interval is at least as wide, for its size, as that of the gain per step, which also has how far a way reaches.
    """
    if row.change is None or gain.scope == "job":
        return gain
    outcome = scenario_of(graph, row.options).run()
    low_us, high_us = interval_us(outcome)
    value_us = outcome.saved_ns / 1000
    least_us = min(low_us, value_us * gain.low_us / gain.value_us)
    most_us = max(high_us, value_us * gain.high_us / gain.value_us)
    return Gain(value_us, least_us, most_us, 0, outcome.baseline_ns / 1000)
