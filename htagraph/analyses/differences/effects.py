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
from htagraph.analyses.differences.step_change import change_of_times
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
    Col("plus_minus_us"),
)
Key: TypeAlias = tuple[str, str, bool]
"""What a row is of: name, kind, and whether of the outermost calls of that name with all inside them."""
_MAY_WAIT = frozenset((PYTHON_BETWEEN[1], *(each.label for each in (*ANNOTATIONS, *COMMUNICATION))))
"""Kinds whose own time may hide waiting: code that no operator covers, and communication without its partners."""
MIN_EXPLAINED_SHARE = 0.7
"""Share of the change of the step time that replays must explain to be all that decides the order of causes, or that
durations must explain, below which a sentence says where the rest is.

Chosen: dependencies that were not recorded are common on hosts. Doubled, replays never decide alone."""

_LEAST_EFFECT = 0.01
"""Share of the change of the step time by which the effect of calls with all inside them must exceed that of their own
time, to be shown instead. Chosen: a fifth of what a sentence names. Doubled, 1 to 2 % of it are not shown."""


@dataclass(frozen=True, eq=False)
class Effects:
    """Effects of changes of work on the usual step."""

    rows: list[tuple[Any, ...]]
    explained_us: float
    """Change of the usual step that all changes of work cause together, µs."""
    change_us: float = 0.0
    """Change of the usual step that needs a cause, µs: as recorded, 0 where it is noise."""
    replayed: Callable[[Sequence[Key]], float] = lambda _: 0.0
    """Returns the effect of several rows together, µs; what two of them contain counts once."""
    own_us: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    """Own time per rank and step before and after, by name and kind, µs; also of those that are no rows."""
    calls: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)
    """Activities per rank and step before and after, by name and kind."""

    @property
    def is_explained(self) -> bool:
        """Whether replays explain most of the change, so that a row without effect is no cause."""
        change = self.change_us
        return not change or self._alone_us(change) / abs(change) >= MIN_EXPLAINED_SHARE

    def _alone_us(self, change: float) -> float:
        """Return how much of a change the rows explain one by one, µs; together they may explain more, as waits do."""
        effect = [*TABLE.types].index("effect_us")
        return float(sum(max(0.0, np.sign(change) * row[effect]) for row in self.rows))

    def to_frame(self) -> pd.DataFrame:
        """Return a row per name; the columns are documented at `Diff.causes`."""
        table = TABLE.frame(self.rows)
        is_noise = (table["change_us"].abs() <= table["plus_minus_us"]).to_numpy()
        order = np.lexsort((-table["effect_us"].abs().to_numpy(), -self._weight(table), is_noise))
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


def effects(tree: Alignment, parts: tuple[ComparedPart, ComparedPart], count: int, change_us: float = 0.0) -> Effects:
    """Return the effects of changes of own time; see `Diff.causes`.

    The `count` names that changed most are replayed one by one; all names together are replayed in any case. The usual
    step changed by `change_us`, 0 for no change.
    """
    if not all(len(part.activities) for part in parts):
        return Effects([], 0.0)
    both = [OwnWork.of(part) for part in parts]
    calls, lasted = (
        [each / part.repeats for each, part in zip(column, parts, strict=True)]
        for column in zip(
            *(part.sums(path, len(tree)) for path, part in zip(tree.path, parts, strict=True)), strict=True
        )
    )
    keys, group, labels, rank, path = _keys(tree, both, calls)
    size = len(group)
    counted = [part.per_step(own.whose) / 1000 for own, part in zip(both, parts, strict=True)]
    (old, new), shown = (
        [np.bincount(key, times * each, size) for key, times, each in zip(keys, column, counted, strict=True)]
        for column in ([own.time for own in both], [own.shown for own in both])
    )
    factors = _ratio(new, old), _ratio(old, new)  # these make the job before like the job after, and vice versa
    root = tree.outermost((calls[0] == 0) | (calls[1] == 0))
    of_path, _ = _groups(tree)
    whole_of = np.where(root >= 0, of_path[root], -1)[path]
    number = {label: i for i, label in enumerate(labels)}
    inside = np.zeros(size, np.bool_)  # the calls that are told with all inside them

    def effect(chosen: Array) -> float:
        caused = 0.0
        for job, sign, moved in ((1, 1, new > old), (0, -1, new < old)):
            if (chosen & moved).any():
                factor = np.where(chosen & moved, factors[job], 1.0)[keys[job]]
                caused += sign * _saved(both[job], factor, parts[job])
        return caused

    def of(key: Key) -> Array:
        return whole_of == number[key[:2]] if key[2] else (group == number[key[:2]]) & ~inside

    def row(key: Key, us: float) -> tuple[Any, ...]:
        mine = of(key)
        times = [float(each[mine].sum()) for each in shown]
        by_rank = _by_rank(rank[mine], (shown[1] - shown[0])[mine], parts)
        noise = _noise_us([_by_step(own, mine[each], part) for own, each, part in zip(both, keys, parts, strict=True)])
        return (*key[:2], *times, times[1] - times[0], us, *by_rank, key[2], noise)

    most = np.abs(np.bincount(group, new - old, len(labels)))
    every = np.argsort(-most, kind="stable")[:count].tolist()
    alone = {(*labels[which], False): effect(group == which) for which in every if most[which]}
    if change_us:
        long = sum(lasted) >= 1000 * _LEAST_EFFECT * abs(change_us)
        outer = np.flatnonzero((root == np.arange(len(root))) & long)  # only one job has them
        longest = outer[np.argsort(-sum(lasted)[outer], kind="stable")][:count].tolist()
        outermost = dict.fromkeys(labels[of_path[each]] for each in longest)
        whole = {(*label, True): effect(of((*label, True))) for label in outermost}
        whole = _larger(whole, alone, _LEAST_EFFECT * abs(change_us))
        inside = np.isin(whole_of, [number[key[:2]] for key in whole])
        beside = {
            key: effect(of(key)) if (inside & (group == number[key[:2]])).any() else us for key, us in alone.items()
        }
        alone = {key: us for key, us in beside.items() if (new - old)[of(key)].any()} | whole
    work, often = (
        dict(
            zip(
                labels,
                zip(*(np.bincount(code, each, len(labels)).tolist() for each in column), strict=True),
                strict=True,
            )
        )
        for code, column in ((group, shown), (of_path, calls))
    )
    return Effects(
        [row(*each) for each in alone.items()], effect(np.ones(size, np.bool_)), change_us,
        lambda chosen: effect(np.any([of(key) for key in chosen], axis=0)),
        work, often,
    )  # fmt: skip


def _larger(whole: dict[Key, float], alone: dict[Key, float], least: float) -> dict[Key, float]:
    """Return the effects of calls with all inside them that are larger than those of their own time by `least`.

    Two calls that wait for the same, such as a copy and a synchronization, gain only if both go.
    """
    return {key: us for key, us in whole.items() if abs(us) > abs(alone.get((*key[:2], False), 0.0)) + least}


def _by_step(own: OwnWork, mine: Array, part: ComparedPart) -> npt.NDArray[np.float64]:
    """Return how long some own times last in each compared step, µs per rank."""
    steps = part.graph.activities.step[own.whose[mine]]
    by_step = np.bincount(np.maximum(steps, 0), own.shown[mine], len(part.weights))[list(part.steps or (0,))]
    return by_step * len(part.steps or (0,)) / part.repeats / 1000


def _noise_us(times: list[npt.NDArray[np.float64]]) -> float:
    """Return half the 99 % interval of the change between times of two jobs' steps, µs; NaN if nobody knows it."""
    change = change_of_times(*([each] for each in sorted(times, key=np.median)))  # the same both ways round
    return change.plus_minus_percent * change.before_us / 100 if change.is_known else np.nan


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
    """Return how much shorter the usual step is with own times multiplied by `factor`, µs.

    A call whose own times are all multiplied by 0 is gone: nothing waits in it any more.
    """
    graph = part.graph
    state = _unblocked(with_factor(own.state, own.where, factor), own.whose, factor)
    time = predict(graph, state.lag, state.gap, state.head)
    return part.saved_ns(time) / 1000


def _unblocked(state: State, whose: Array, factor: Array) -> State:
    """Return the state in which calls that are gone wait for no device."""
    graph = state.graph
    kept = np.zeros(len(graph.activities), np.float64)
    np.maximum.at(kept, whose, factor)
    gone = np.isin(np.arange(len(kept)), whose[factor == 0]) & (kept == 0)
    waits = of_kind(graph, *BLOCKING) & gone[graph.edges.target >> 1]
    return without_waits(state, waits) if waits.any() else state
