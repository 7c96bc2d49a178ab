"""The note of a change that was given a name: how much time the name stands for, and what else it could mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import marked
from htagraph.core.kinds import ActivityKind, of_kinds
from htagraph.queries.change_scope import REGIONS, UNTRACED, kinds_of
from htagraph.queries.weights import OwnTime, State, time_of

__all__ = ["with_scope_note"]


def with_scope_note(state: State, before: State, time: OwnTime, criteria: dict[str, Any], verb: str) -> State:
    """Return the state with a note on how much time a name stands for, where a name or untraced time was asked for.

    Operators: their self time, and what share that is of all the time inside them. Regions (annotations, steps, Python
    frames): all the time inside. Kernels have nothing inside, and get no note.
    """
    graph = before.graph
    total = _total(before, time)
    amount = f"{total / 1e6:,.3g}" if total < 1e9 else f"{total / 1e6:,.0f}"
    kinds = kinds_of(criteria)
    if UNTRACED in kinds:
        what = "untraced host time" if kinds == {UNTRACED} else "host time"
        return state.with_note(f"{verb} {amount} ms of {what} between activities ({len(time.gaps)} gaps)")
    name = criteria.get("name") or criteria.get("regex")
    if name is None or criteria.get("op") is not None:
        return state
    rows = graph.select(**criteria).activities
    kind = graph.activities.kind[rows]
    if kinds <= {each.label for each in REGIONS} and of_kinds(kind, REGIONS).any():
        return state.with_note(f"{verb} {amount} ms: all the time inside {name}, kernels launched there included")
    operators = rows[kind == ActivityKind.OP]
    if not len(operators):
        return state
    inside = marked(operators, len(graph.activities) + 1)
    inside[:-1] |= graph.tree.inside(inside[:-1])
    nowhere: npt.NDArray[np.bool_] = np.zeros(len(graph.activities), np.bool_)
    whole = time_of(before, inside, loader=True, outside=nowhere)
    share = total / max(_total(before, whole), 1)
    hint = f"op={name!r} {_MEANING[verb]} everything inside" if criteria.get("name") else "op= takes everything inside"
    return state.with_note(f"{verb} {amount} ms self time of {name}, {100 * share:.0f} % of the time inside it; {hint}")


_MEANING = {"scaled": "scales", "removed": "removes", "set": "sets", "varied": "varies"}


def _total(state: State, time: OwnTime) -> int:
    return int((state.lag[time.edges] - time.fixed).clip(0).sum() + state.gap[time.gaps].sum())
