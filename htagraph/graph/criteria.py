"""The criteria of `DependencyGraph.select`, one function each."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypedDict

import numpy as np

from htagraph.core.arrays import Mask
from htagraph.core.errors import NothingMeetsError, SelectionError
from htagraph.core.kinds import DEVICE, HOST, KERNELS, ActivityKind, of_kinds
from htagraph.core.words import nearest_words
from htagraph.graph.backward import backward_of

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Criteria", "IntSelector", "Mask", "mask_of", "named"]

IntSelector: TypeAlias = int | Sequence[int] | None
"""One number or several; None for all."""
_KIND_GROUPS: Final = {"kernel": KERNELS, "device": DEVICE, "host": HOST}
_SHOWN_NUMBERS = 32
"""How many ranks or steps an error message lists. Chosen: four lines of a terminal. Doubled, eight lines hide what is
wrong."""


class Criteria(TypedDict, total=False):
    """The keywords of `DependencyGraph.select`, of selections and of changes."""

    kind: str | Sequence[str] | None
    """A word of `ActivityKind` such as ``"computation"``, ``"communication"``, ``"memory"``, ``"op"``, ``"launch"``, or
    a group: ``"kernel"``, ``"device"``, ``"host"``. Several are alternatives."""
    category: str | None
    """Glob of the category in the file, such as ``"gpu_memcpy"``."""
    name: str | None
    """Glob (``*``, ``?``, ``[seq]``), case-sensitive, of the activity's own name; or just this name."""
    regex: str | None
    """Regular expression, case-sensitive, anywhere in the activity's own name."""
    op: str | None
    """Glob of the name of anything that encloses the activity in `DependencyGraph.tree`: operators, annotations, steps,
    Python frames, its launch. The operator is not inside itself; `name` selects it."""
    backward_of: str | None
    """Glob of the name of operators or annotations: what autograd ran backward for them and for all inside them."""
    rank: IntSelector
    """One or several ranks."""
    stream: IntSelector
    """One or several stream ids; only device work has one."""
    step: IntSelector
    """One or several N of ProfilerStep#N."""
    step_index: IntSelector
    """One or several positions among the steps of the graph: 0 for the first, -1 for the last."""
    time: tuple[float, float] | None
    """(start, end), µs since the job's first activity: what starts and ends between them."""
    min_us: float | None
    """The shortest duration, µs; 0.001 leaves out what takes no time."""
    max_us: float | None
    """The longest duration, µs."""
    depth: IntSelector
    """One or several depths in the tree: how many activities enclose it, as `htagraph.call_tree` counts them."""
    activity: IntSelector
    """One or several activity numbers."""


def mask_of(graph: DependencyGraph, criteria: Criteria) -> Mask:
    """Return which activities meet every criterion given.

    Raises:
        SelectionError: an unknown criterion, or a value that the criterion does not accept.
    """
    mask = np.ones(len(graph.activities), np.bool_)
    for criterion, value in criteria.items():
        if criterion not in _CRITERIA:
            near = nearest_words(criterion, _CRITERIA)
            msg = f"{criterion!r} is no criterion: choose from {', '.join(_CRITERIA)}{near}"
            raise SelectionError(msg)
        if value is not None:
            mask &= _CRITERIA[criterion](graph, value)
    return mask


def named(names: Sequence[str], text: str) -> Mask:
    """Return which names equal a text or match it as a glob.

    Example:
        >>> named(("aten::mm", "[memory]"), "aten::*").tolist(), named(("aten::mm", "[memory]"), "[memory]").tolist()
        ([True, False], [False, True])
    """
    if not isinstance(text, str):
        msg = f"{text!r}: give a name or a glob such as '*gemm*'"
        raise SelectionError(msg)
    pattern = re.compile(fnmatch.translate(text))
    return np.fromiter((name == text or pattern.match(name) is not None for name in names), np.bool_, len(names))


def _kind(graph: DependencyGraph, kind: str | Sequence[str]) -> Mask:
    words = {each.label: (each,) for each in ActivityKind} | _KIND_GROUPS
    wanted = list(kind) if isinstance(kind, Iterable) and not isinstance(kind, str) else [kind]
    unknown = [word for word in wanted if not isinstance(word, str) or word not in words]
    if unknown:
        near = nearest_words(str(unknown[0]), words)
        msg = f"kind {unknown[0]!r}: choose from {', '.join(sorted(words))}{near}"
        raise SelectionError(msg)
    return of_kinds(graph.activities.kind, [each for word in wanted for each in words[word]])


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
    matches = np.fromiter((compiled.search(name) is not None for name in graph.names), np.bool_, len(graph.names))
    return matches[graph.activities.name]


def _op(graph: DependencyGraph, glob: str) -> Mask:
    return graph.tree.inside(_name(graph, glob))


def _backward_of(graph: DependencyGraph, glob: str) -> Mask:
    forward = _name(graph, glob)
    return backward_of(graph, forward | graph.tree.inside(forward))


def _rank(graph: DependencyGraph, rank: IntSelector) -> Mask:
    return np.isin(graph.activities.rank, _known(rank, graph.ranks, "rank"))


def _step(graph: DependencyGraph, step: IntSelector) -> Mask:
    return np.isin(graph.activities.step, _known(step, graph.steps, "step"))


def _step_index(graph: DependencyGraph, position: IntSelector) -> Mask:
    steps, wanted = graph.steps, _several(position)
    absent = [number for number in wanted if not -len(steps) <= number < len(steps)]
    if absent:
        msg = f"step_index {absent[0]}: this graph has {len(steps)} steps; the first is 0, the last -1"
        raise NothingMeetsError(msg)
    return np.isin(graph.activities.step, [steps[number] for number in wanted])


def _stream(graph: DependencyGraph, stream: IntSelector) -> Mask:
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
        msg = f"time {window!r}: the start is after the end"
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


def _depth(graph: DependencyGraph, depth: IntSelector) -> Mask:
    return np.isin(graph.tree.depth, _several(depth))


def _activity(graph: DependencyGraph, activity: IntSelector) -> Mask:
    wanted, count = _several(activity), len(graph.activities)
    absent = [number for number in wanted if not 0 <= number < count]
    if absent:
        msg = f"activity {absent[0]}: this graph has activities 0 to {count - 1}"
        raise NothingMeetsError(msg)
    chosen = np.zeros(count, np.bool_)
    chosen[np.array(wanted, np.int64)] = True
    return chosen


_CRITERIA: Final[dict[str, Callable[[DependencyGraph, Any], Mask]]] = {
    "kind": _kind, "category": _category, "name": _name, "regex": _regex, "op": _op,
    "backward_of": _backward_of, "rank": _rank, "stream": _stream, "step": _step, "step_index": _step_index,
    "time": _time, "min_us": _min_us, "max_us": _max_us, "depth": _depth, "activity": _activity,
}  # fmt: skip
"""Keyword of `DependencyGraph.select` → which activities meet it."""


def _several(value: IntSelector) -> list[int]:
    numbers = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    wrong = [number for number in numbers if not isinstance(number, int | np.integer)]
    if wrong:
        msg = f"{wrong[0]!r}: ranks, streams and steps are whole numbers"
        raise SelectionError(msg)
    return [int(number) for number in numbers if number is not None]


def _known(value: IntSelector, known: tuple[int, ...], what: str) -> list[int]:
    wanted = _several(value)
    absent = [number for number in wanted if number not in known]
    if absent:
        shown = ", ".join(map(str, known[:_SHOWN_NUMBERS])) or "none"
        more = f" and {len(known) - _SHOWN_NUMBERS} more" if len(known) > _SHOWN_NUMBERS else ""
        msg = f"{what} {absent[0]} is not in this graph; its {what}s: {shown}{more}"
        raise NothingMeetsError(msg)
    return wanted
