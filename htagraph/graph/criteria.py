"""What activities can be chosen by: one function per criterion of `DependencyGraph.select`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind
from htagraph.graph.tree import depths, tree_parents

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["CRITERIA", "Mask", "Some", "named"]

Mask: TypeAlias = npt.NDArray[np.bool_]
Some: TypeAlias = int | Sequence[int] | None
_GROUPS = {
    "kernel": (ActivityKind.COMPUTATION, ActivityKind.COMMUNICATION),
    "device": tuple(kind for kind in ActivityKind if kind.on_device),
    "host": tuple(kind for kind in ActivityKind if not kind.on_device),
}
_ENCLOSING = (ActivityKind.OP, ActivityKind.ANNOTATION, ActivityKind.STEP, ActivityKind.PYTHON)


def named(names: Sequence[str], text: str) -> Mask:
    """Return which names are a text, or match it as a glob.

    Example:
        >>> named(("aten::mm", "[memory]"), "aten::*").tolist(), named(("aten::mm", "[memory]"), "[memory]").tolist()
        ([True, False], [False, True])
    """
    if not isinstance(text, str):
        msg = f"{text!r}: a name is chosen by a text such as '*gemm*'"
        raise SelectionError(msg)
    pattern = re.compile(fnmatch.translate(text))
    return np.fromiter((name == text or pattern.match(name) is not None for name in names), np.bool_, len(names))


def _kind(graph: DependencyGraph, kind: str | Sequence[str]) -> Mask:
    words = {each.label: (each,) for each in ActivityKind} | _GROUPS
    wanted = list(kind) if isinstance(kind, Iterable) and not isinstance(kind, str) else [kind]
    unknown = [word for word in wanted if not isinstance(word, str) or word not in words]
    if unknown:
        msg = f"kind {unknown[0]!r}: choose from {', '.join(sorted(words))}"
        raise SelectionError(msg)
    return np.isin(graph.activities.kind, [int(each) for word in wanted for each in words[word]])


def _category(graph: DependencyGraph, glob: str) -> Mask:
    return named(graph.names, glob)[graph.activities.category]


def _name(graph: DependencyGraph, glob: str) -> Mask:
    return named(graph.names, glob)[graph.activities.name]


def _regex(graph: DependencyGraph, pattern: str) -> Mask:
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError) as error:
        msg = f"regex {pattern!r} is no regular expression ({error})"
        raise SelectionError(msg) from None
    found = np.fromiter((compiled.search(name) is not None for name in graph.names), np.bool_, len(graph.names))
    return found[graph.activities.name]


def _op(graph: DependencyGraph, glob: str) -> Mask:
    return _inside(graph, _name(graph, glob))


def _rank(graph: DependencyGraph, rank: Some) -> Mask:
    return np.isin(graph.activities.rank, _known(rank, graph.ranks, "rank"))


def _step(graph: DependencyGraph, step: Some) -> Mask:
    return np.isin(graph.activities.step, _known(step, graph.steps, "step"))


def _step_index(graph: DependencyGraph, position: Some) -> Mask:
    steps, wanted = graph.steps, _several(position)
    absent = [number for number in wanted if not -len(steps) <= number < len(steps)]
    if absent:
        msg = f"step_index {absent[0]}: this graph has {len(steps)} steps; the first is 0, the last -1"
        raise SelectionError(msg)
    return np.isin(graph.activities.step, [steps[number] for number in wanted])


def _stream(graph: DependencyGraph, stream: Some) -> Mask:
    wanted = set(_several(stream))
    lanes = [i for i, lane in enumerate(graph.lanes) if lane.stream in wanted and lane.device >= 0]
    return np.isin(graph.activities.lane, lanes)


def _time(graph: DependencyGraph, window: tuple[float, float]) -> Mask:
    try:
        first, last = (float(moment) for moment in window)
    except (TypeError, ValueError):
        msg = f"time {window!r}: give (start_us, end_us), counted from the job's first activity"
        raise SelectionError(msg) from None
    if not first <= last:
        msg = f"time {window!r}: the start lies behind the end"
        raise SelectionError(msg)
    since = (graph.time - graph.origin_ns) / 1000
    return (since[0::2] >= first) & (since[1::2] <= last)


def _min_us(graph: DependencyGraph, least: float) -> Mask:
    return graph.activities.duration / 1000 >= _us(least, "min_us")


def _max_us(graph: DependencyGraph, most: float) -> Mask:
    return graph.activities.duration / 1000 <= _us(most, "max_us")


def _us(value: float, what: str) -> float:
    if not isinstance(value, int | float | np.number) or value != value:
        msg = f"{what} {value!r}: give a number of µs"
        raise SelectionError(msg)
    return float(value)


def _depth(graph: DependencyGraph, depth: Some) -> Mask:
    return np.isin(depths(tree_parents(graph.activities, graph.names)), _several(depth))


def _activity(graph: DependencyGraph, activity: Some) -> Mask:
    wanted, count = _several(activity), len(graph.activities)
    absent = [number for number in wanted if not 0 <= number < count]
    if absent:
        msg = f"activity {absent[0]}: this graph has activities 0 to {count - 1}"
        raise SelectionError(msg)
    chosen = np.zeros(count, np.bool_)
    chosen[np.array(wanted, np.int64)] = True
    return chosen


CRITERIA: Final[dict[str, Callable[[DependencyGraph, Any], Mask]]] = {
    "kind": _kind, "category": _category, "name": _name, "regex": _regex, "op": _op, "rank": _rank,
    "stream": _stream, "step": _step, "step_index": _step_index, "time": _time, "min_us": _min_us, "max_us": _max_us,
    "depth": _depth, "activity": _activity,
}  # fmt: skip
"""Keyword of `DependencyGraph.select` → which activities meet it."""


def _several(value: Some) -> list[int]:
    numbers = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    wrong = [number for number in numbers if not isinstance(number, int | np.integer)]
    if wrong:
        msg = f"{wrong[0]!r}: ranks, streams and steps are whole numbers"
        raise SelectionError(msg)
    return [int(number) for number in numbers if number is not None]


def _known(value: Some, known: tuple[int, ...], what: str) -> list[int]:
    wanted = _several(value)
    absent = [number for number in wanted if number not in known]
    if absent:
        has = ", ".join(map(str, known[:32])) or "none"
        msg = f"{what} {absent[0]} is not in this graph; its {what}s: {has}"
        raise SelectionError(msg)
    return wanted


def _inside(graph: DependencyGraph, matches: Mask) -> Mask:
    """Return which activities are, or lie under, or were launched under, an enclosing activity that matches."""
    acts: Any = graph.activities
    inside = matches & np.isin(acts.kind, _ENCLOSING)
    above = acts.parent.copy()
    while (above >= 0).any():  # each round one level up: as many rounds as the deepest stack has levels
        known = above >= 0
        hit = known.copy()
        hit[known] = inside[above[known]]
        inside |= hit
        above[known] = acts.parent[above[known]]
        above[inside] = -1
    caused = acts.cause >= 0
    inside[caused] |= inside[acts.cause[caused]]
    return inside
