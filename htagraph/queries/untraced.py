"""Host time that no event covers: the Python between the activities of a thread, where no stacks were recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import distinct
from htagraph.core.errors import NothingMeetsError, SelectionError
from htagraph.core.kinds import BETWEEN, ActivityKind, GapKind, of_kinds
from htagraph.core.words import nearest_words
from htagraph.graph.selection import Mask, named

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["UNTRACED", "untraced_gaps"]

UNTRACED = "untraced"
"""The word for this time where changes take a kind of activity."""
_CRITERIA = ("after", "before", "op", "rank", "step", "min_us", "max_us")


def untraced_gaps(graph: DependencyGraph, criteria: dict[str, Any]) -> npt.NDArray[np.int64]:
    """Return the vertices before which a thread spends time that no event covers.

    This is the Python between operators where no stacks were recorded; with stacks, the frames have the time. Waits for
    the data loader, and pauses of worker threads, are not part of it.

    Args:
        graph: the job.
        criteria: ``after`` and ``before`` (globs of the activities on the thread right before and right after the gap),
            ``op`` (glob of an annotation, step or other activity that encloses it), ``rank``, ``step``, ``min_us`` and
            ``max_us`` (length of the gap). None leaves a criterion out.

    Raises:
        NothingMeetsError: no gap meets the criteria.
        SelectionError: an unknown criterion.

    Example:
        >>> import htagraph as hg
        >>> len(untraced_gaps(hg.load("data/demo"), {"rank": 0, "min_us": 10}))
        9
    """
    given = {key: value for key, value in criteria.items() if value is not None}
    for key in given:
        if key not in _CRITERIA:
            near = nearest_words(key, _CRITERIA)
            msg = f"{key!r} is no criterion of untraced time: choose from {', '.join(_CRITERIA)}{near}"
            raise SelectionError(msg)
    edges = graph.edges
    between = np.flatnonzero(of_kinds(edges.kind, BETWEEN) & (graph.gap_kind[edges.target] == GapKind.HOST_UNTRACED))
    between = between[graph.binding[edges.target[between]] == between]
    source, target = edges.source[between] >> 1, edges.target[between]
    after, before = (_name_mask(graph, given.pop(key, None)) for key in ("after", "before"))
    fits = after[source] & before[target >> 1] & _around(graph, target, given)
    length = graph.gap[target] / 1000
    fits &= (length >= given.get("min_us", 0)) & (length <= given.get("max_us", np.inf))
    if not fits.any():
        raise NothingMeetsError(_nothing(graph, target, criteria))
    return distinct(target[fits], graph.vertex_count)


def _name_mask(graph: DependencyGraph, glob: str | None) -> Mask:
    """Return which activities have a name that matches, all if no glob is given."""
    if glob is None:
        return np.ones(len(graph.activities), np.bool_)
    return named(graph.names, glob)[graph.activities.name]


def _around(graph: DependencyGraph, target: npt.NDArray[Any], given: dict[str, Any]) -> Mask:
    """Return which gaps are in an operator or annotation, on a rank, in a step."""
    acts = graph.activities
    at = target >> 1
    region = np.where(target % 2, at, graph.tree.parent[at])
    fits = np.ones(len(target), np.bool_)
    if "op" in given:
        enclosing = np.append(_name_mask(graph, given["op"]), False)
        enclosing[:-1] |= graph.tree.inside(enclosing[:-1])
        fits &= enclosing[region]
    criteria = {key: given[key] for key in ("rank", "step") if key in given}
    allowed = np.zeros(len(acts), np.bool_)
    allowed[graph.select(**criteria).activities] = True
    return fits & allowed[at]


def _nothing(graph: DependencyGraph, target: npt.NDArray[Any], criteria: dict[str, Any]) -> str:
    text = ", ".join(f"{key}={value!r}" for key, value in criteria.items() if value is not None) or "no criteria"
    if not len(target):
        frames = bool((graph.activities.kind == ActivityKind.PYTHON).any())
        hint = "; Python stacks were recorded: kind='python' has that time" if frames else ""
        return f"this graph has no untraced host time{hint}"
    longest = int(target[np.argmax(graph.gap[target])])
    name = graph.names[graph.activities.name[longest >> 1]]
    return (
        f"no untraced host time meets {text}; the longest gap is {graph.gap[longest] / 1000:,.0f} µs, before {name!r}"
    )
