"""What encloses what, asked of each activity alone, in plain Python: the definition that the tree must meet."""

from __future__ import annotations

from htagraph import ActivityKind, DependencyGraph
from htagraph.core.naming import is_autograd_node, is_backward

__all__ = ["ancestors", "parents"]

_FRAMES = {ActivityKind.OP, ActivityKind.ANNOTATION, ActivityKind.STEP, ActivityKind.PYTHON}
_NOT_IN_STEPS = {ActivityKind.STEP, ActivityKind.BOUNDARY, ActivityKind.JOIN}
_OPERATORS = {ActivityKind.OP, ActivityKind.HOST_COMMUNICATION}


def parents(graph: DependencyGraph) -> list[int]:
    """Return the activity above each one, -1 for none."""
    acts = graph.activities
    kinds = [ActivityKind(kind) for kind in acts.kind]
    above = [int(acts.cause[row]) if kinds[row].on_device else int(acts.parent[row]) for row in range(len(acts))]
    engines = {
        (int(acts.rank[row]), int(acts.lane[row]))
        for row in range(acts.ranked)
        for name in [graph.names[acts.name[row]]]
        if kinds[row] is ActivityKind.OP and (is_backward(name) or is_autograd_node(name))
    }
    for rank in {rank for rank, _ in engines}:
        _under_the_caller(graph, rank, {lane for each, lane in engines if each == rank}, kinds, above)
    _under_steps(graph, kinds, above)
    return above


def _under_the_caller(
    graph: DependencyGraph, rank: int, engines: set[int], kinds: list[ActivityKind], above: list[int]
) -> None:
    acts = graph.activities
    host = [row for row in range(acts.ranked) if acts.rank[row] == rank and not kinds[row].on_device]
    with_steps = {int(acts.lane[row]) for row in host if kinds[row] is ActivityKind.STEP}
    lanes = [int(acts.lane[row]) for row in host]
    candidates = [lane for lane in lanes if (lane in with_steps if with_steps else lane not in engines)]
    if not candidates:
        return
    caller = max(sorted(set(candidates)), key=candidates.count)
    for row in host:
        if acts.lane[row] in engines - {caller} and above[row] < 0 and kinds[row] not in _NOT_IN_STEPS:
            around = [
                each for each in host
                if acts.lane[each] == caller and kinds[each] in _FRAMES
                and acts.start[each] <= acts.start[row] and acts.end[each] >= acts.end[row]
            ]  # fmt: skip
            innermost = sorted(around, key=lambda each: (acts.start[each], -acts.end[each], each))
            outlasts = bool(innermost) and acts.step[row] < 0 <= acts.step[innermost[-1]]
            above[row] = innermost[-1] if innermost and not outlasts else -1


def _under_steps(graph: DependencyGraph, kinds: list[ActivityKind], above: list[int]) -> None:
    acts = graph.activities
    marks: dict[tuple[int, int], int] = {}
    for row in range(len(acts)):
        if kinds[row] is ActivityKind.STEP:
            marks.setdefault((int(acts.rank[row]), int(acts.step[row])), row)
    around_steps = {each for row, kind in enumerate(kinds) if kind is ActivityKind.STEP for each in _up(above, row)}
    moved = {}
    for row in range(acts.ranked):
        mark = marks.get((int(acts.rank[row]), int(acts.step[row])))
        if mark is None or kinds[row].on_device or kinds[row] in _NOT_IN_STEPS or row in around_steps:
            continue
        up = above[row]
        if up < 0 or (
            (kinds[up] not in _OPERATORS or acts.lane[up] != acts.lane[row]) and acts.step[up] != acts.step[row]
        ):
            moved[row] = mark
    for row, mark in moved.items():
        above[row] = mark


def _up(above: list[int], row: int) -> list[int]:
    way = []
    while above[row] >= 0:
        row = above[row]
        way.append(row)
    return way


def ancestors(graph: DependencyGraph) -> list[list[int]]:
    """Return what each activity lies inside, the innermost first."""
    above = parents(graph)
    return [_up(above, row) for row in range(len(above))]
