"""Effects of changed work on the step time, by replay, since a change can move the critical path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.analyses.differences.alignment import Alignment
from htagraph.analyses.differences.compared_parts import Part
from htagraph.analyses.differences.waits import awaited, polled
from htagraph.core.kind_masks import of_kinds
from htagraph.core.kinds import BLOCKING, COMMUNICATION, ActivityKind, EdgeKind, GapKind
from htagraph.core.naming import BETWEEN_OPERATORS, short_name
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.replay import predict
from htagraph.queries.weights import OwnTime, State, initial, of_kind, own_time, with_factor, without_waits

__all__ = ["PYTHON_BETWEEN", "Effects", "effects"]

Array: TypeAlias = npt.NDArray[Any]
PYTHON_BETWEEN = (BETWEEN_OPERATORS, "host")
"""Name and kind of the own time of steps, and of host code outside them."""
_COLUMNS = {
    "name": "str", "kind": "str", "before_us": "float64", "after_us": "float64", "change_us": "float64",
    "effect_us": "float64", "rank": "int64", "rank_change_us": "float64",
}  # fmt: skip
_MAY_WAIT = frozenset(
    (PYTHON_BETWEEN[1], *(each.label for each in ActivityKind if each.is_annotation or each.is_communication))
)
"""Kinds whose own time may hide waiting: code that no operator covers, and communication without its partners."""
_MAY_WAIT_SHARE = 0.5
"""How much own time that may be waiting counts beside the time of operators and kernels, where no replay decides.

Chosen: an operator that took 12 ms less makes somebody wait 12 ms more, and is the cause of both. Doubled, they tie."""
_MIN_EXPLAINED_SHARE = 0.7
"""Share of the change of the step time that replays must explain to be all that decides the order of causes.

Chosen: dependencies that were not recorded are common on hosts. Doubled, replays never decide alone."""

_LEAST_CHANGE = 0.05
"""Share of its own time by which work must have changed, for its effect not to be chance as well. Chosen: means of ten
steps differ by less. Doubled, operators that take 5 to 10 % longer are no cause where steps differ as much."""
_NEAR_CHANCE = 0.5
"""Share of what chance may change from which on a change that large effects lead to, against each other, is real.

Chosen: half. Doubled, it has to be beyond chance like any other."""


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of changes of work on the mean step time."""

    rows: list[tuple[Any, ...]]
    explained_us: float
    """Change of the mean step time that all changes of work cause together, µs."""
    recorded_us: float = 0.0
    """Change of the mean step time as recorded, µs."""
    chance_us: float = 0.0
    """How large a change may be by chance, µs, as steps of one job differ."""
    replayed: Callable[[Sequence[tuple[str, str]]], float] = lambda _: 0.0
    """Returns the effect of several rows, (name, kind) each, together, µs."""
    own_us: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    """Own time per rank and step before and after, by name and kind, µs; also of those that are no rows."""
    asking_us: float = 0.0
    """Change of the time per rank and step that hosts wait in a loop which asks a device whether it is done, µs."""

    @property
    def is_chance(self) -> bool:
        """Whether the change may be chance: it is no larger, and no replay leads to a change of about that size.

        Rows whose own time hardly changed are themselves chance. Effects that make up for each other lead to it, if one
        alone is larger than chance, and the change not far below it.
        """
        if not self.recorded_us or abs(self.recorded_us) > self.chance_us:
            return False
        together = self.explained_us / self.recorded_us
        alone = self._alone_us(self.recorded_us, _LEAST_CHANGE) / abs(self.recorded_us)
        right = [_MIN_EXPLAINED_SHARE <= each <= 1 / _MIN_EXPLAINED_SHARE for each in (together, alone)]
        effect = [*_COLUMNS].index("effect_us")
        large = abs(self.recorded_us) >= _NEAR_CHANCE * self.chance_us
        large &= any(abs(row[effect]) > self.chance_us for row in self.rows)
        return not (right[0] and (right[1] or large))

    @property
    def change_us(self) -> float:
        """Change of the mean step time that needs a cause, µs: as recorded, 0 where it may be chance."""
        return 0.0 if self.is_chance else self.recorded_us

    @property
    def is_explained(self) -> bool:
        """Whether replays explain most of the change, so that a row without effect is no cause."""
        change = self.change_us
        return not change or self._alone_us(change) / abs(change) >= _MIN_EXPLAINED_SHARE

    def _alone_us(self, change: float, least: float = 0.0) -> float:
        """Return how much of a change the rows explain one by one, µs; together they may explain more, as waits do.

        Args:
            change: its direction.
            least: share of its own time by which a row must have changed to count, on average or on one rank.
        """
        rows = [dict(zip(_COLUMNS, row, strict=True)) for row in self.rows]
        return float(sum(
            max(0.0, np.sign(change) * row["effect_us"]) for row in rows
            if max(abs(row["change_us"]), abs(row["rank_change_us"])) >= least * max(row["before_us"], row["after_us"])
        ))  # fmt: skip

    def to_frame(self) -> pd.DataFrame:
        """Return a row per name; the columns are documented at `Diff.causes`."""
        table = pd.DataFrame(self.rows, columns=[*_COLUMNS]).astype(_COLUMNS)
        order = np.lexsort((-table["effect_us"].abs().to_numpy(), -self._weight(table)))
        return table.iloc[order].reset_index(drop=True)

    def likely_us(self, row: dict[Any, Any]) -> float:
        """Return how much of the change that no replay explains a row may have caused, µs, in its direction.

        Where dependencies were not recorded, a replay does not see what a change of work led to. The work of one rank
        that changed by as much as the step time did is then the likely cause; communication and code between
        operators are not, whose time may be waiting for just that work.
        """
        if self.is_explained or row["kind"] in _MAY_WAIT:
            return 0.0
        sign = np.sign(self.change_us)
        missing = abs(self.change_us) - self._alone_us(self.change_us)
        return max(0.0, min(missing, float(sign * row["rank_change_us"]) - max(0.0, float(sign * row["effect_us"]))))

    def _weight(self, table: pd.DataFrame) -> npt.NDArray[np.float64]:
        """Return how much speaks for each row as a cause; below 0 where its effect is against the change."""
        if not self.change_us:
            share = np.where(table["kind"].isin(_MAY_WAIT), _MAY_WAIT_SHARE, 1.0)
            return share * table[["change_us", "rank_change_us"]].abs().max(axis=1).to_numpy()
        likely = [self.likely_us(row) for row in table.to_dict("records")]
        return np.sign(self.change_us) * table["effect_us"].to_numpy() + np.array(likely, np.float64)


@dataclass(frozen=True, eq=False)
class _Own:
    """The own time of activities in the compared part of a job."""

    state: State
    where: OwnTime
    """Edges, then gaps."""
    time: Array
    """Own time of each edge and gap, ns; of a batch that workers of a data loader made, how long they took."""
    shown: Array
    """The same, each moment of an activity once; of such a batch only how long the thread waited for it, ns."""
    whose: Array
    """The activity that each belongs to."""
    part: Array
    """What each is: `_SELF`, `_BEFORE` or `_WAIT`."""
    awaited: Array
    """The communication or device work that each waits for; -1 for none."""

    @staticmethod
    def of(part: Part, path: Array) -> _Own:
        graph, edges = part.graph, part.graph.edges
        inside = np.zeros(len(graph.activities), np.bool_)
        inside[part.activities] = True
        state = initial(graph)
        every = own_time(state, {}, loader=True)
        owner = edges.activity[graph.binding[every.gaps]].astype(np.int64)
        whose = np.where(owner >= 0, owner, every.gaps >> 1)
        on_edge, at_gap = inside[edges.activity[every.edges]], inside[whose]
        where = OwnTime(every.edges[on_edge], every.fixed[on_edge], every.gaps[at_gap])
        whose = np.concatenate([edges.activity[where.edges], whose[at_gap]])
        times = np.maximum(0, np.concatenate([edges.lag[where.edges] - where.fixed, graph.gap[where.gaps]]))
        until = np.concatenate([
            graph.time[edges.source[where.edges]] + edges.lag[where.edges], graph.time[where.gaps]
        ])  # fmt: skip
        waits = awaited(graph, whose, until - times, until, path[whose])
        ending = where.gaps >> 1  # a pause up to the end of communication is part of it, whatever it was called in
        transfers = (where.gaps % 2 == 1) & of_kinds(graph.activities.kind[ending], COMMUNICATION)
        waits[len(where.edges) :][transfers] = ending[transfers]
        waits = np.where(waits >= 0, waits, polled(graph, whose, until - times, until))
        between = np.concatenate([np.zeros(len(where.edges), np.bool_), owner[at_gap] < 0])
        kind = np.where(waits >= 0, _WAIT, np.where(between, _BEFORE, _SELF))
        once = _once(graph, where, whose, until - times, until.copy())
        return _Own(state, where, times, _shown(graph, where, times, once, whose), whose, kind, waits)


_SELF, _BEFORE, _WAIT = range(3)
"""Time in the activity; of host code before it, outside every region; waiting in it for communication or a device."""


def _once(graph: DependencyGraph, where: OwnTime, whose: Array, begin: Array, end: Array) -> Array:
    """Return how much of each own time lies within its activity and in no earlier one of it, ns.

    A call has several edges for one time: its body, one to what it launched, one from each kernel that it may have
    waited for. Each counts in a replay, as the largest binds; together they last no longer than the call.
    """
    edges = graph.edges
    size, once = len(where.edges), end - begin
    rows = np.flatnonzero(np.append(edges.kind[where.edges] != EdgeKind.DATALOADER, np.ones(len(where.gaps), np.bool_)))
    on_edge = rows[rows < size]  # a batch is made before it is fetched, all else that an edge stands for is in its call
    begin[on_edge] = np.maximum(begin[on_edge], graph.time[2 * whose[on_edge]])
    end[on_edge] = np.minimum(end[on_edge], graph.time[2 * whose[on_edge] + 1])
    rows = rows[np.lexsort((begin[rows], whose[rows]))]
    reached = pd.Series(end[rows]).groupby(whose[rows]).cummax()
    before = reached.groupby(whose[rows]).shift(fill_value=np.iinfo(np.int64).min).to_numpy()
    once[rows] = np.clip(end[rows] - np.maximum(before, begin[rows]), 0, None)
    return once


def _shown(graph: DependencyGraph, where: OwnTime, time: Array, once: Array, whose: Array) -> Array:
    """Return own times, each moment once, and how long a thread waited for batches, not how long workers took for them.

    What another thread (one that pins batches) waits for the same workers is not added.
    """
    edges = graph.edges
    load = np.flatnonzero(edges.kind[where.edges] == EdgeKind.DATALOADER)
    batch = edges.activity[where.edges[load]]
    begin = graph.time[2 * batch]
    made = graph.time[edges.source[where.edges[load]]] < begin  # since the batch before, by workers
    shown = once
    fetched = np.bincount(batch[~made], time[load[~made]], len(graph.activities))[batch[made]]
    shown[load[made]] = np.clip(graph.time[edges.target[where.edges[load[made]]]] - begin[made] - fetched, 0, None)
    lane, gaps = graph.activities.lane, where.gaps
    beside = (graph.gap_kind[gaps] == GapKind.DATA_WAIT) & (lane[gaps >> 1] != lane[whose[len(where.edges) :]])
    shown[len(where.edges) :][beside] = 0
    return shown


def effects(
    tree: Alignment, parts: tuple[Part, Part], count: int, change_us: float = 0.0, chance_us: float = 0.0
) -> Effects:
    """Return the effects of changes of own time; see `Diff.causes`.

    Args:
        tree: both jobs.
        parts: the part of each that is compared.
        count: how many names are replayed one by one, those that changed most; all together are replayed in any case.
        change_us: by how much the mean step time changed, µs; 0 for no change.
        chance_us: how large a change may be by chance, µs.
    """
    if not all(len(part.activities) for part in parts):
        return Effects([], 0.0)
    both = [_Own.of(part, path) for part, path in zip(parts, tree.path, strict=True)]
    keys, group, labels, rank, path = _keys(tree, both)
    size = len(group)
    (old, new), shown = (
        [
            np.bincount(key, times, size) / part.repeats / 1000
            for key, times, part in zip(keys, each, parts, strict=True)
        ]
        for each in ([own.time for own in both], [own.shown for own in both])
    )  # fmt: skip
    waits = np.zeros(size, np.bool_)
    for key, own in zip(keys, both, strict=True):
        waits[key[own.part == _WAIT]] = True
    work = [np.bincount(group[~waits], each[~waits], len(labels)) for each in shown]
    change = work[1] - work[0]
    most = np.abs(np.bincount(group, new - old, len(labels)))
    by_rank = _by_rank(rank, group, np.where(waits, 0.0, shown[1] - shown[0]), len(labels), parts)
    factors = _ratio(new, old), _ratio(old, new)  # these make the job before like the job after, and vice versa

    def effect(chosen: Array) -> float:
        caused = 0.0
        for job, sign, moved in ((1, 1, new > old), (0, -1, new < old)):
            if (chosen & moved).any():
                factor = np.where(chosen & moved, factors[job], 1.0)[keys[job]]
                caused += sign * _saved(both[job], factor, parts[job])
        return caused

    def row(which: int, us: float) -> tuple[Any, ...]:
        return (*labels[which], work[0][which], work[1][which], change[which], us, *by_rank[which])

    every = np.argsort(-most, kind="stable")[:count].tolist()
    alone = {which: effect(group == which) for which in every if most[which]}
    number = {label: i for i, label in enumerate(labels)}
    together = effect(np.ones(size, np.bool_))
    if change_us and together / change_us >= _MIN_EXPLAINED_SHARE > sum(alone.values()) / change_us:
        # two calls that wait for the same, such as a copy and a synchronization, gain only if both go
        root, of_path = _roots(tree, parts), _groups(tree)[0]
        for outer in _longest(tree, parts, root, count):
            whole = effect(root[path] == outer)
            alone[of_path[outer]] = max(alone.get(of_path[outer], 0.0), whole, key=abs)
    return Effects(
        [row(*each) for each in alone.items()],
        together, change_us, chance_us,
        lambda chosen: effect(np.isin(group, [number[each] for each in chosen])),
        dict(zip(labels, zip(work[0].tolist(), work[1].tolist(), strict=True), strict=True)),
        _asking(both[1], parts[1]) - _asking(both[0], parts[0]),
    )  # fmt: skip


def _asking(own: _Own, part: Part) -> float:
    """Return how long hosts wait for device work in loops that ask for it, µs per rank and step."""
    waits = np.flatnonzero(own.awaited >= 0)
    waits = waits[part.graph.activities.on_device[own.awaited[waits]]]
    return float(own.time[waits].sum()) / part.repeats / 1000


def _roots(tree: Alignment, parts: tuple[Part, Part]) -> Array:
    """Return for each path the outermost one around it, or itself, that only one of the jobs has; -1 for none."""
    count = np.stack([
        np.bincount(path[part.activities], minlength=len(tree)) for path, part in zip(tree.path, parts, strict=True)
    ])  # fmt: skip
    root = np.where((count == 0).any(axis=0), np.arange(len(tree)), -1)
    for level in np.flatnonzero((root >= 0) & (tree.parent >= 0)).tolist():  # parents are numbered first
        root[level] = root[tree.parent[level]] if root[tree.parent[level]] >= 0 else level
    return root


def _longest(tree: Alignment, parts: tuple[Part, Part], root: Array, count: int) -> list[int]:
    """Return the outermost calls that only one job has, those that last longest first."""
    total = np.zeros(len(tree))
    for path, part in zip(tree.path, parts, strict=True):
        np.add.at(total, path[part.activities], part.graph.activities.duration[part.activities])
    outermost = np.flatnonzero(root == np.arange(len(tree)))
    return outermost[np.argsort(-total[outermost], kind="stable")][:count].tolist()


def _by_rank(rank: Array, group: Array, change: Array, count: int, parts: tuple[Part, Part]) -> list[tuple[int, float]]:
    """Return for each group (the rank whose own time per step changed most, by how much, µs); (-1, 0) if unknown."""
    if parts[0].graph.ranks != parts[1].graph.ranks:
        return [(-1, 0.0)] * count
    width = int(rank.max(initial=0)) + 1
    table = np.bincount(group * width + rank, change, count * width).reshape(count, width)
    most = np.abs(table).argmax(axis=1)
    per_step = table[np.arange(count), most] * len(parts[0].chosen_ranks)  # repeats are pairs of rank and step
    return list(zip((most - 1).tolist(), per_step.tolist(), strict=True))


def _keys(tree: Alignment, both: list[_Own]) -> tuple[list[Array], Array, list[tuple[str, str]], Array, Array]:
    """Return (for both jobs, a key of each own time; group of each key; names and kinds; rank + 1, path of each key).

    A key is a place, and the rank if both jobs have the same ranks, so that one slow rank is kept separate. Waits
    belong to the group of the communication that they wait for.
    """
    graphs = [own.state.graph for own in both]
    ranks = [each.activities.rank[own.whose].astype(np.int64) + 1 for each, own in zip(graphs, both, strict=True)]
    if graphs[0].ranks != graphs[1].ranks:
        ranks = [np.zeros_like(each) for each in ranks]
    width = max(int(each.max(initial=0)) for each in ranks) + 1
    codes = [
        (3 * place[own.whose] + own.part) * width + rank
        for place, own, rank in zip(tree.place, both, ranks, strict=True)
    ]
    unique, first, number = np.unique(np.concatenate(codes), return_index=True, return_inverse=True)
    path = np.concatenate([
        each[np.where(own.awaited >= 0, own.awaited, own.whose)] for each, own in zip(tree.path, both, strict=True)
    ])[first]  # fmt: skip
    of_path, labels = _groups(tree)
    group = np.where(unique // width % 3 == _BEFORE, 0, of_path[path])
    return np.split(number, [len(codes[0])]), group, labels, unique % width, path


def _ratio(wanted: Array, now: Array) -> npt.NDArray[np.float64]:
    return np.divide(wanted, now, out=np.ones(len(now)), where=now > 0)


def _groups(tree: Alignment) -> tuple[Array, list[tuple[str, str]]]:
    """Return (the group of each path, the name and kind of each group); the first is Python between operators.

    A kernel that replaces another under one path belongs to that one's group wherever it runs.
    """
    codes: dict[tuple[str, str], int] = {PYTHON_BETWEEN: 0}
    was = {short_name(new): short_name(tree.names[path]) for path, new in tree.renamed.items()}
    group = []
    for name, kind, device in zip(tree.names, tree.kinds, tree.on_device.tolist(), strict=True):
        word = was.get(short_name(name), short_name(name)) if device else name
        label = PYTHON_BETWEEN if kind == ActivityKind.STEP.label else (word, kind)
        group.append(codes.setdefault(label, len(codes)))
    return np.array(group, np.int64), list(codes)


def _saved(own: _Own, factor: Array, part: Part) -> float:
    """Return how much shorter the mean step time is with own times multiplied by `factor`, µs.

    A call whose own times are all multiplied by 0 is gone: nothing waits in it any more.
    """
    graph = part.graph
    state = _unblocked(with_factor(own.state, own.where, factor), own.whose, factor)
    time = predict(graph, state.lag, state.gap, state.head)
    if part.window is not None:
        was, now = (part.window.mean(each) for each in (graph.time, time))
        return (was - now) / 1000
    begins, ends = 2 * part.activities, 2 * part.activities + 1
    was, now = (int(each[ends].max()) - int(each[begins].min()) for each in (graph.time, time))
    return (was - now) / 1000


def _unblocked(state: State, whose: Array, factor: Array) -> State:
    """Return the state in which calls that are gone wait for no device."""
    graph = state.graph
    kept = np.zeros(len(graph.activities), np.float64)
    np.maximum.at(kept, whose, factor)
    gone = np.isin(np.arange(len(kept)), whose[factor == 0]) & (kept == 0)
    waits = of_kind(graph, *BLOCKING) & gone[graph.edges.target >> 1]
    return without_waits(state, waits) if waits.any() else state
