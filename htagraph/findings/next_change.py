"""The change to make after the first one: the time that it adds when the first change is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from htagraph.core.statistics import MOST
from htagraph.findings.change import brief_gain, is_sure
from htagraph.findings.changes import ProposedChange, ProposedChanges, placed
from htagraph.findings.limits import MIN_PERCENT
from htagraph.findings.phrases import time_text
from htagraph.findings.results import Results
from htagraph.findings.whereabouts import changed_by
from htagraph.graph.tolerances import LIMITS

__all__ = ["NextChange", "next_change_of"]

_MOST: Final = 8
"""Changes that are compared beside the first one, from the top of the list. Chosen: a list names about ten. Doubled,
each summary replays eight sets more."""


class NextChange(NamedTuple):
    """The change to make after the first one."""

    row: ProposedChange
    gain: str
    """The time that the change adds, as a sentence; empty where no set with the first change can be predicted."""
    adds_us: float = float("nan")
    """The same time, per usual step, or in the job without usual steps, µs; NaN where the first change has no time."""


class _Added(NamedTuple):
    """A change with the time that it adds to the first one."""

    row: ProposedChange
    adds_us: float
    """The added time, per usual step, or in the job without usual steps, µs."""

    @property
    def rank(self) -> tuple[bool, float]:
        """The place in the comparison, the greatest first: known ways by their sure part, then faster code."""
        gain = self.row.gain
        is_sure = self.row.is_known and gain is not None and gain.low_us > 0
        sure_part = gain.low_us / gain.value_us if is_sure and gain else 1.0
        return self.row.is_known, self.adds_us * sure_part


def next_change_of(results: Results, changes: ProposedChanges) -> NextChange | None:
    """Return the change to make after the first of the list; None where none adds a gain that is worth naming.

    Alone, a change may save time that the first change takes away, too, so that both are predicted together.

    Args:
        results: the results of the job.
        changes: the list of changes, the first thing to do first.
    """
    first = changes.first
    further = changes.rows[1:]
    if first is None or not further:
        return None
    if first.change is None:
        gain = further[0].gain
        return NextChange(placed(results, further[0]), f"{brief_gain(gain)}." if gain else "")
    predicted = [row for row in further if row.change and row.gain]
    if not predicted:
        return NextChange(placed(results, further[0]), "")
    least_us = MIN_PERCENT / 100 * results.makespan_ns / max(results.steps, 1) / 1000
    beside_first = [row for row in predicted if not _is_part_of(results, row, first)]
    candidates = _added(results, first, beside_first[:_MOST])
    added = [candidate for candidate in candidates if candidate.adds_us >= least_us]
    if not added:
        return None
    best = max(added, key=lambda candidate: candidate.rank)
    unit = " per step" if results.steps > 1 else ""
    saved = time_text(best.adds_us)
    gain = best.row.gain
    if gain is not None and not is_sure(gain):
        saved = f"up to {saved}"
    row = placed(results, best.row)
    sentence = f"This saves {saved} more{unit}."
    return NextChange(row, sentence, best.adds_us)


def _is_part_of(results: Results, row: ProposedChange, first: ProposedChange) -> bool:
    """Return whether a change is about activities that the first change is about already.

    Of code without a known way, most of the time counts; a known way may change other things of the same work, so that
    nearly all of the time counts.
    """
    graph = results.graph
    acts = graph.activities
    time_ns = np.maximum(graph.own_time, acts.duration * acts.on_device)
    chosen = changed_by(graph, row.options)
    shared_ns = time_ns[chosen & changed_by(graph, first.options)].sum()
    least = LIMITS.nearly_all if row.is_known else MOST
    return bool(shared_ns > least * time_ns[chosen].sum())


def _added(results: Results, first: ProposedChange, rows: Sequence[ProposedChange]) -> Iterator[_Added]:
    """Yield the time that each change adds to the first one, where a set of both can be predicted."""
    # loaded here, for a summary without several changes starts sooner without
    from htagraph.findings.plan import offer_of
    from htagraph.whatif.together import savings_of

    savings = savings_of(results.warm_graph, [offer_of(row) for row in (first, *rows)])
    numbers = {offer.options: number for number, offer in enumerate(savings.changes)}
    if first.options not in numbers:
        return
    first_number = numbers.pop(first.options)
    alone_ns = savings.of((first_number,))
    for row in rows:
        if row.options not in numbers:
            continue
        low, high = sorted((first_number, numbers[row.options]))
        if savings.may_be((low, high)):
            yield _Added(row, (savings.of((low, high)) - alone_ns) / 1000)
