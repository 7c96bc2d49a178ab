"""Effects of changed work on the step time, by replay, since a change can move the critical path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.analyses.differences.alignment import Alignment
from htagraph.analyses.differences.compared_parts import Part
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import short_name
from htagraph.queries.replay import predict
from htagraph.queries.weights import OwnTime, State, initial, own_time, with_factor

__all__ = ["Effects", "effects"]

Array: TypeAlias = npt.NDArray[Any]
_BETWEEN = ("host code between operators", "host")
_COLUMNS = {
    "name": "str", "kind": "str", "before_us": "float64", "after_us": "float64", "change_us": "float64",
    "effect_us": "float64",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of changes of work on the mean step time."""

    rows: list[tuple[Any, ...]]
    explained_us: float
    """Change of the mean step time that all changes of work cause together, µs."""

    def to_frame(self) -> pd.DataFrame:
        """Return a row per name; the columns are documented at `Diff.causes`."""
        table = pd.DataFrame(self.rows, columns=[*_COLUMNS]).astype(_COLUMNS)
        order = np.argsort(-table["effect_us"].abs().to_numpy(), kind="stable")
        return table.iloc[order].reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class _Own:
    """The own time of activities in the compared part of a job."""

    state: State
    where: OwnTime
    """Edges, then gaps."""
    time: Array
    """Own time of each edge and gap, ns."""
    whose: Array
    """The activity that each belongs to."""
    between: Array
    """Whether each is host code before that activity, outside every region."""

    @staticmethod
    def of(part: Part) -> _Own:
        graph, edges = part.graph, part.graph.edges
        inside = np.zeros(len(graph.activities), np.bool_)
        inside[part.activities] = True
        state = initial(graph)
        every = own_time(state, {}, loader=True)
        owner = edges.activity[graph.binding[every.gaps]].astype(np.int64)
        whose = np.where(owner >= 0, owner, every.gaps >> 1)
        on_edge, at_gap = inside[edges.activity[every.edges]], inside[whose]
        where = OwnTime(every.edges[on_edge], every.fixed[on_edge], every.gaps[at_gap])
        return _Own(
            state, where, np.maximum(0, np.concatenate([edges.lag[where.edges] - where.fixed, graph.gap[where.gaps]])),
            np.concatenate([edges.activity[where.edges], whose[at_gap]]),
            np.concatenate([np.zeros(len(where.edges), np.bool_), owner[at_gap] < 0]),
        )  # fmt: skip


def effects(tree: Alignment, parts: tuple[Part, Part], count: int) -> Effects:
    """Return the effects of changes of own time; see `Diff.causes`.

    Args:
        tree: both jobs.
        parts: the part of each that is compared.
        count: how many names are replayed one by one, those that changed most; all together are replayed in any case.
    """
    if not all(len(part.activities) for part in parts):
        return Effects([], 0.0)
    both = [_Own.of(part) for part in parts]
    keys, group, labels = _keys(tree, both)
    size = len(group)
    old, new = (
        np.bincount(key, own.time, size) / part.repeats / 1000 for key, own, part in zip(keys, both, parts, strict=True)
    )
    sums = [np.bincount(group, each, len(labels)) for each in (old, new)]
    change = sums[1] - sums[0]
    factors = _ratio(new, old), _ratio(old, new)  # these make the job before like the job after, and vice versa

    def effect(chosen: Array) -> float:
        caused = 0.0
        for job, sign, moved in ((1, 1, new > old), (0, -1, new < old)):
            if (chosen & moved).any():
                factor = np.where(chosen & moved, factors[job], 1.0)[keys[job]]
                caused += sign * _saved(both[job], factor, parts[job])
        return caused

    rows = [
        (*labels[which], sums[0][which], sums[1][which], change[which], effect(group == which))
        for which in np.argsort(-np.abs(change), kind="stable")[:count].tolist()
        if change[which]
    ]
    return Effects(rows, effect(np.ones(size, np.bool_)))


def _keys(tree: Alignment, both: list[_Own]) -> tuple[list[Array], Array, list[tuple[str, str]]]:
    """Return (for both jobs, a key of each own time; the group of each key; name and kind of each group).

    A key is a place, and the rank if both jobs have the same ranks, so that one slow rank is kept separate.
    """
    graphs = [own.state.graph for own in both]
    ranks = [each.activities.rank[own.whose].astype(np.int64) + 1 for each, own in zip(graphs, both, strict=True)]
    if graphs[0].ranks != graphs[1].ranks:
        ranks = [np.zeros_like(each) for each in ranks]
    width = max(int(each.max(initial=0)) for each in ranks) + 1
    codes = [
        (2 * place[own.whose] + own.between) * width + rank
        for place, own, rank in zip(tree.place, both, ranks, strict=True)
    ]
    unique, first, number = np.unique(np.concatenate(codes), return_index=True, return_inverse=True)
    path = np.concatenate([each[own.whose] for each, own in zip(tree.path, both, strict=True)])[first]
    of_path, labels = _groups(tree)
    group = np.where(unique // width % 2 == 1, 0, of_path[path])
    return np.split(number, [len(codes[0])]), group, labels


def _ratio(wanted: Array, now: Array) -> npt.NDArray[np.float64]:
    return np.divide(wanted, now, out=np.ones(len(now)), where=now > 0)


def _groups(tree: Alignment) -> tuple[Array, list[tuple[str, str]]]:
    """Return (the group of each path, the name and kind of each group); the first is host code between operators."""
    codes: dict[tuple[str, str], int] = {_BETWEEN: 0}
    parts = zip(tree.names, tree.kinds, tree.on_device.tolist(), strict=True)
    group = [codes.setdefault((short_name(name) if device else name, kind), len(codes)) for name, kind, device in parts]
    return np.array(group, np.int64), list(codes)


def _saved(own: _Own, factor: Array, part: Part) -> float:
    """Return how much shorter the mean step time is with own times multiplied by `factor`, µs."""
    graph, acts = part.graph, part.graph.activities
    state = with_factor(own.state, own.where, factor)
    time = predict(graph, state.lag, state.gap, state.head)
    begins, ends = 2 * part.activities, 2 * part.activities + 1
    if part.steps is not None:
        inside = graph.select(step=part.steps, rank=part.ranks).activities
        mark, bound = (inside[acts.kind[inside] == kind] for kind in (ActivityKind.STEP, ActivityKind.BOUNDARY))
        if len(mark) and len(bound):
            begins, ends = 2 * mark, 2 * bound
    was, now = (int(each[ends].max()) - int(each[begins].min()) for each in (graph.time, time))
    return (was - now) / part.count / 1000
