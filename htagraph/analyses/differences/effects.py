"""Effects of changed work on the step time, by replay, since a change can move the critical path."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.analyses.differences.alignment import Alignment
from htagraph.analyses.differences.compared_parts import ComparedPart
from htagraph.analyses.differences.own_work import OwnWork
from htagraph.core.arrays import Array
from htagraph.core.kinds import ANNOTATIONS, BLOCKING, COMMUNICATION, ActivityKind
from htagraph.core.naming import BETWEEN_OPERATORS, short_name
from htagraph.core.statistics import MOST
from htagraph.core.tables import Col, Table
from htagraph.queries.replay import predict
from htagraph.queries.weights import State, of_kind, with_factor, without_waits

__all__ = ["MIN_EXPLAINED_SHARE", "PYTHON_BETWEEN", "Effects", "Key", "effects"]

PYTHON_BETWEEN = (BETWEEN_OPERATORS, "host")
"""Name and kind of the own time of steps, and of host code outside them."""
TABLE = Table(
    "Causes: time per rank and step, own or with all inside, and its effect on the step time (replayed)",
    Col("name kind", "str"),
    Col("before_us after_us change_us effect_us"),
    Col("rank", "int64"),
    Col("rank_change_us"),
    Col("whole", "bool"),
)
Key: TypeAlias = tuple[str, str, bool]
"""What a row is of: name, kind, and whether of the outermost calls of that name with all inside them."""
_MAY_WAIT = frozenset((PYTHON_BETWEEN[1], *(each.label for each in (*ANNOTATIONS, *COMMUNICATION))))
"""Kinds whose own time may hide waiting: code that no operator covers, and communication without its partners."""
MIN_EXPLAINED_SHARE = 0.7
"""Share of the change of the step time that replays must explain to be all that decides the order of causes, or that
durations must explain, below which a sentence says where the rest is.

Chosen: dependencies that were not recorded are common on hosts. Doubled, replays never decide alone."""

_LEAST_CHANGE = 0.05
"""Share of its own time by which work must have changed, for its effect not to be chance as well. Chosen: means of ten
steps differ by less. Doubled, operators that take 5 to 10 % longer are no cause where steps differ as much."""
_LEAST_EFFECT = 0.01
"""Share of the change of the step time by which the effect of calls with all inside them must exceed that of their own
time, to be shown instead. Chosen: a fifth of what a sentence names. Doubled, 1 to 2 % of it are not shown."""


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
    replayed: Callable[[Sequence[Key]], float] = lambda _: 0.0
    """Returns the effect of several rows together, µs; what two of them contain counts once."""
    own_us: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    """Own time per rank and step before and after, by name and kind, µs; also of those that are no rows."""

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
        right = [MIN_EXPLAINED_SHARE <= each <= 1 / MIN_EXPLAINED_SHARE for each in (together, alone)]
        effect = [*TABLE.types].index("effect_us")
        large = abs(self.recorded_us) >= MOST * self.chance_us
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
        return not change or self._alone_us(change) / abs(change) >= MIN_EXPLAINED_SHARE

    def _alone_us(self, change: float, least: float = 0.0) -> float:
        """Return how much of a change the rows explain one by one, µs; together they may explain more, as waits do."""
        rows = [dict(zip(TABLE.types, row, strict=True)) for row in self.rows]
        return float(sum(
            max(0.0, np.sign(change) * row["effect_us"]) for row in rows
            if max(abs(row["change_us"]), abs(row["rank_change_us"])) >= least * max(row["before_us"], row["after_us"])
        ))  # fmt: skip

    def to_frame(self) -> pd.DataFrame:
        """Return a row per name; the columns are documented at `Diff.causes`."""
        table = TABLE.frame(self.rows)
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
            share = np.where(table["kind"].isin(_MAY_WAIT), MOST, 1.0)
            return share * table[["change_us", "rank_change_us"]].abs().max(axis=1).to_numpy()
        likely = [self.likely_us(row) for row in table.to_dict("records")]
        return np.sign(self.change_us) * table["effect_us"].to_numpy() + np.array(likely, np.float64)


def effects(
    tree: Alignment,
    parts: tuple[ComparedPart, ComparedPart],
    count: int,
    change_us: float = 0.0,
    chance_us: float = 0.0,
) -> Effects:
    """Return the effects of changes of own time; see `Diff.causes`.

    The `count` names that changed most are replayed one by one; all names together are replayed in any case. The mean
    step time changed by `change_us`, 0 for no change; it may change by `chance_us` by chance.
    """
    if not all(len(part.activities) for part in parts):
        return Effects([], 0.0)
    both = [OwnWork.of(part) for part in parts]
    calls, lasted = zip(*(part.sums(path, len(tree)) for path, part in zip(tree.path, parts, strict=True)), strict=True)
    keys, group, labels, rank, path = _keys(
        tree, both, [each / part.repeats for each, part in zip(calls, parts, strict=True)]
    )
    size = len(group)
    (old, new), shown = (
        [
            np.bincount(key, times, size) / part.repeats / 1000
            for key, times, part in zip(keys, each, parts, strict=True)
        ]
        for each in ([own.time for own in both], [own.shown for own in both])
    )  # fmt: skip
    factors = _ratio(new, old), _ratio(old, new)  # these make the job before like the job after, and vice versa

    def effect(chosen: Array) -> float:
        caused = 0.0
        for job, sign, moved in ((1, 1, new > old), (0, -1, new < old)):
            if (chosen & moved).any():
                factor = np.where(chosen & moved, factors[job], 1.0)[keys[job]]
                caused += sign * _saved(both[job], factor, parts[job])
        return caused

    def of(key: Key) -> Array:
        return whole_of[path] == number[key[:2]] if key[2] else group == number[key[:2]]

    def row(key: Key, us: float) -> tuple[Any, ...]:
        mine = of(key)
        times = [float(each[mine].sum()) for each in shown]
        by_rank = _by_rank(rank[mine], (shown[1] - shown[0])[mine], parts)
        return (*key[:2], *times, times[1] - times[0], us, *by_rank, key[2])

    root = tree.outermost((calls[0] == 0) | (calls[1] == 0))
    of_path, _ = _groups(tree)
    whole_of = np.where(root >= 0, of_path[root], -1)
    number = {label: i for i, label in enumerate(labels)}
    most = np.abs(np.bincount(group, new - old, len(labels)))
    every = np.argsort(-most, kind="stable")[:count].tolist()
    alone = {(*labels[which], False): effect(group == which) for which in every if most[which]}
    together = effect(np.ones(size, np.bool_))
    if change_us and together / change_us >= MIN_EXPLAINED_SHARE > sum(alone.values()) / change_us:
        outer = np.flatnonzero(root == np.arange(len(root)))  # only one job has them
        longest = outer[np.argsort(-(lasted[0] + lasted[1])[outer], kind="stable")][:count].tolist()
        outermost = dict.fromkeys(labels[of_path[each]] for each in longest)
        whole = {(*label, True): effect(of((*label, True))) for label in outermost}
        alone = _or_whole(alone, whole, _LEAST_EFFECT * abs(change_us))
    work = [np.bincount(group, each, len(labels)) for each in shown]
    return Effects(
        [row(*each) for each in alone.items()],
        together, change_us, chance_us, lambda chosen: effect(np.any([of(key) for key in chosen], axis=0)),
        dict(zip(labels, zip(work[0].tolist(), work[1].tolist(), strict=True), strict=True)),
    )  # fmt: skip


def _or_whole(alone: dict[Key, float], whole: dict[Key, float], least: float) -> dict[Key, float]:
    """Return the effects, of calls with all inside them where that is larger than of their own time by `least`.

    Two calls that wait for the same, such as a copy and a synchronization, gain only if both go.
    """
    larger = {key: us for key, us in whole.items() if abs(us) > abs(alone.get((*key[:2], False), 0.0)) + least}
    return {key: us for key, us in alone.items() if (*key[:2], True) not in larger} | larger


def _by_rank(rank: Array, change: Array, parts: tuple[ComparedPart, ComparedPart]) -> tuple[int, float]:
    """Return (the rank whose own time per step changed most, by how much, µs); (-1, 0) if unknown."""
    if parts[0].graph.ranks != parts[1].graph.ranks:
        return -1, 0.0
    by_rank = np.bincount(rank, change, 1)
    most = int(np.abs(by_rank).argmax())  # repeats are pairs of rank and step
    return most - 1, float(by_rank[most]) * len(parts[0].chosen_ranks)


def _keys(
    tree: Alignment, both: list[OwnWork], often: list[Array]
) -> tuple[list[Array], Array, list[tuple[str, str]], Array, Array]:
    """Return (for both jobs, a key of each own time; group of each key; names and kinds; rank + 1, path of each key).

    A key is a place, and the rank if both jobs have the same ranks, so that one slow rank is kept separate. Of
    communication cut into more or fewer calls per repeat (`often`) it is the path: only sums can be compared.
    """
    summed = np.isin(tree.kinds, [each.label for each in COMMUNICATION])
    summed &= (often[0] != often[1]) & (np.minimum(*often) > 0)
    places = max(int(each.max(initial=0)) for each in tree.place) + 1
    graphs = [own.state.graph for own in both]
    ranks = [each.activities.rank[own.whose].astype(np.int64) + 1 for each, own in zip(graphs, both, strict=True)]
    if graphs[0].ranks != graphs[1].ranks:
        ranks = [np.zeros_like(each) for each in ranks]
    width = max(int(each.max(initial=0)) for each in ranks) + 1
    codes = [
        (2 * np.where(summed[path], places + path, place)[own.whose] + own.before) * width + rank
        for path, place, own, rank in zip(tree.path, tree.place, both, ranks, strict=True)
    ]
    unique, first, number = np.unique(np.concatenate(codes), return_index=True, return_inverse=True)
    path = np.concatenate([each[own.whose] for each, own in zip(tree.path, both, strict=True)])[first]
    of_path, labels = _groups(tree)
    group = np.where(unique // width % 2 == 1, 0, of_path[path])
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


def _saved(own: OwnWork, factor: Array, part: ComparedPart) -> float:
    """Return how much shorter the mean step time is with own times multiplied by `factor`, µs.

    A call whose own times are all multiplied by 0 is gone: nothing waits in it any more.
    """
    graph = part.graph
    state = _unblocked(with_factor(own.state, own.where, factor), own.whose, factor)
    time = predict(graph, state.lag, state.gap, state.head)
    if part.window is not None:
        was, now = (part.window.mean(each) for each in (graph.time, time))
        return (was - now) / 1000
    rows = part.activities[graph.awake[part.activities]]
    was, now = (int(each[2 * rows + 1].max()) - int(each[2 * rows].min()) for each in (graph.time, time))
    return (was - now) / 1000


def _unblocked(state: State, whose: Array, factor: Array) -> State:
    """Return the state in which calls that are gone wait for no device."""
    graph = state.graph
    kept = np.zeros(len(graph.activities), np.float64)
    np.maximum.at(kept, whose, factor)
    gone = np.isin(np.arange(len(kept)), whose[factor == 0]) & (kept == 0)
    waits = of_kind(graph, *BLOCKING) & gone[graph.edges.target >> 1]
    return without_waits(state, waits) if waits.any() else state
