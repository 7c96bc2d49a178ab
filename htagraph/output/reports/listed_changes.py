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
    frame = pd.DataFrame({
        "change": [row.change.name if row.change else row.about for row in rows],
        "low_us": [per_step(gain.low_us, gain.steps) for gain in gains],
        "gain_us": [gain.per_step_us for gain in gains],
        "high_us": [per_step(gain.high_us, gain.steps) for gain in gains],
        "gain_percent": [gain.percent if is_mixed else row.percent for row, gain in zip(rows, gains, strict=True)],
        "way": [_way_of(row) for row in rows],
    })  # fmt: skip
    if is_mixed:
        steps = [row.gain.per_step_us if row.gain and row.gain.scope == "step" else float("nan") for row in rows]
        frame.insert(5, "per_step_us", steps)
    place = frame["way"].map(_WAYS.index)
    order = frame.assign(place=place).sort_values(["place", "low_us"], ascending=[True, False], kind="stable")
    title = f'What to change, gains {unit}: known ways first, each kind by "at least"'
    return ListedChanges(frame.loc[order.index].reset_index(drop=True), title)


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
