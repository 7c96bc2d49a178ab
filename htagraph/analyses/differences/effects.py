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
from htagraph.analyses.differences.step_change import by_spread, change_of_times
from htagraph.core.arrays import Array
from htagraph.core.kinds import BLOCKING, COMMUNICATION, ActivityKind
from htagraph.core.naming import BETWEEN_OPERATORS, short_name
from htagraph.core.statistics import MOST
from htagraph.core.tables import Col, Table
from htagraph.queries.replay import predict
from htagraph.queries.weights import State, of_kind, with_factor, without_waits

__all__ = ["PYTHON_BETWEEN", "Effects", "Key", "effects"]

PYTHON_BETWEEN = (BETWEEN_OPERATORS, "host")
"""Name and kind of the own time of steps, and of host code outside them."""
TABLE = Table(
    "Work that changed: time per rank and step, own or with all inside, and its effect (replayed)",
    Col("name kind", "str"),
    Col("before_us after_us change_us effect_us"),
    Col("rank", "int64"),
    Col("rank_change_us"),
    Col("whole", "bool"),
    Col("plus_minus_us"),
)
Key: TypeAlias = tuple[str, str, bool]
"""What a row is of: name, kind, and whether of the outermost calls of that name with all inside them."""
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
    own_us: Mapping[tuple[str, str], tuple[float, ...]] = field(default_factory=dict)
    """Own time per rank and step before and after, by name and kind, µs; also of those that are no rows."""
    calls: Mapping[tuple[str, str], tuple[float, ...]] = field(default_factory=dict)
    """Activities per rank and step before and after, by name and kind."""

    def to_frame(self) -> pd.DataFrame:
        """Return a row per name; the columns are documented at `Diff.causes`."""
        table = TABLE.frame(self.rows)
        own, effect = table[["change_us", "rank_change_us"]].abs().max(axis=1), table["effect_us"]
        weight = (effect * np.sign(self.change_us) if self.change_us else own).to_numpy()
        is_noise = (table["change_us"].abs() <= table["plus_minus_us"]).to_numpy() | (weight < 0)
        return table.iloc[np.lexsort((-effect.abs().to_numpy(), -weight, is_noise))].reset_index(drop=True)


def effects(tree: Alignment, parts: tuple[ComparedPart, ComparedPart], count: int, change_us: float = 0.0) -> Effects:
    """Return the effects of changes of own time; see `Diff.causes`.

    The `count` names that changed most are replayed one by one; all names together are replayed in any case. The usual
    step changed by `change_us`, 0 for no change.
    """
    if not all(len(part.activities) for part in parts):
        return Effects([], 0.0)
    both = [OwnWork.of(part) for part in parts]
    sums = [part.sums(path, len(tree)) for path, part in zip(tree.path, parts, strict=True)]
    calls, lasted = ([each[which] / part.repeats for each, part in zip(sums, parts, strict=True)] for which in (0, 1))
    keys, group, labels, rank, path = _keys(tree, both, calls)
    counted = [part.per_step(own.whose) / 1000 for own, part in zip(both, parts, strict=True)]
    (old, new), shown = (
        [np.bincount(key, times * each, len(group)) for key, times, each in zip(keys, column, counted, strict=True)]
        for column in ([own.time for own in both], [own.shown for own in both])
    )
    factors = _ratio(new, old), _ratio(old, new)  # these make the job before like the job after, and vice versa
    root = tree.outermost((calls[0] == 0) | (calls[1] == 0))
    of_path, _ = _groups(tree)
    whole_of = np.where(root >= 0, of_path[root], -1)[path]
    number = {label: i for i, label in enumerate(labels)}
    inside = np.zeros(len(group), np.bool_)  # the calls that are told with all inside them

    def effect(chosen: Array) -> float:
        caused = 0.0
        for job, sign, moved in ((1, 1, new > old), (0, -1, new < old)):
            if (chosen & moved).any():
                factor = np.where(chosen & moved, factors[job], 1.0)[keys[job]]
                caused += sign * _saved(both[job], factor, parts[job])
        return caused

    def of(key: Key) -> Array:
        return whole_of == number[key[:2]] if key[2] else (group == number[key[:2]]) & ~inside

    most = np.abs(np.bincount(group, new - old, len(labels)))
    every = np.argsort(-most, kind="stable")[:count].tolist()
    alone = {(*labels[which], False): effect(group == which) for which in every if most[which]}
    if change_us:
        least = _LEAST_EFFECT * abs(change_us)
        outermost = _outermost(root, lasted[0] + lasted[1], count, 1000 * least)
        whole = {key: effect(of(key)) for key in ((*labels[of_path[each]], True) for each in outermost)}
        # told where no work of one name says as much: a copy and a synchronization that wait for the same gain together
        whole = {
            key: us for key, us in whole.items()
            if abs(us) > least + max(
                abs(alone.get((*labels[part], False), 0.0)) for part in {number[key[:2]], *group[of(key)].tolist()}
            )
        }  # fmt: skip
        inside = np.isin(whole_of, [number[key[:2]] for key in whole])
        cut = {labels[each] for each in np.unique(group[inside]).tolist()}
        alone = {
            key: effect(of(key)) if key[:2] in cut else us for key, us in alone.items() if (new - old)[of(key)].any()
        } | whole
    work, often = _by_label(labels, group, shown), _by_label(labels, of_path, calls)
    return Effects(
        [_row(key, us, of(key), (both, keys, rank, shown), parts) for key, us in alone.items()],
        effect(np.ones(len(group), np.bool_)), change_us,
        lambda chosen: effect(np.any([of(key) for key in chosen], axis=0)), work, often,
    )  # fmt: skip


def _outermost(root: Array, total: Array, count: int, least: float) -> list[int]:
    """Return the paths of outermost calls that only one job has and that last longest, `least` ns or more."""
    outer = np.flatnonzero(root == np.arange(len(root)))
    return [each for each in outer[np.argsort(-total[outer], kind="stable")][:count].tolist() if total[each] >= least]


def _row(
    key: Key, us: float, mine: Array, work: tuple[list[OwnWork], list[Array], Array, list[Array]],
    parts: tuple[ComparedPart, ComparedPart],
) -> tuple[Any, ...]:  # fmt: skip
    """Return the row of a key with its effect, given which of the own times of `work` are its own."""
    both, keys, rank, shown = work
    times = [float(each[mine].sum()) for each in shown]
    by_rank = _by_rank(rank[mine], (shown[1] - shown[0])[mine], parts)
    noise = _noise_us(both, [mine[each] for each in keys], parts)
    return (*key[:2], *times, times[1] - times[0], us, *by_rank, key[2], noise)


def _by_label(
    labels: list[tuple[str, str]], code: Array, both: Sequence[Array]
) -> dict[tuple[str, str], tuple[float, ...]]:
    """Return the sums of both jobs by name and kind."""
    sums = [np.bincount(code, each, len(labels)).tolist() for each in both]
    return dict(zip(labels, zip(*sums, strict=True), strict=True))


def _noise_us(both: list[OwnWork], mine: list[Array], parts: tuple[ComparedPart, ComparedPart]) -> float:
    """Return half the 99 % interval of the change of some own times, as steps differ, µs; NaN if nobody knows it.

    It is Student's for means; or, if less, what the rank test does not show of it, which must be the smaller part: else
    pauses in single steps are most of the change.
    """
    times = []
    for own, some, part in zip(both, mine, parts, strict=True):
        steps = part.graph.activities.step[own.whose[some]]
        by_step = np.bincount(np.maximum(steps, 0), own.shown[some], len(part.weights))[np.flatnonzero(part.weights)]
        times.append(by_step * len(part.steps or (0,)) / part.repeats / 1000)
    if min(map(len, times)) < 2 or not all(part.steps for part in parts):
        return np.nan
    mean = abs(float(times[0].mean() - times[1].mean()))
    noise = by_spread([(float(each.var(ddof=1)) / len(each), len(each) - 1) for each in times])
    order = change_of_times(*([each] for each in sorted(times, key=np.mean)))  # the same both ways round
    shown = order.after_us - order.before_us - order.plus_minus_percent * order.before_us / 100
    return min(noise, mean - shown) if order.is_known and shown > MOST * mean else noise


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
    """Return (the group of each path, the name and kind of each group); the first is Python between operators."""
    # a kernel that replaces another under one path belongs to that one's group wherever it runs
    codes: dict[tuple[str, str], int] = {PYTHON_BETWEEN: 0}
    was = {short_name(new): short_name(tree.names[path]) for path, new in tree.renamed.items()}
    group = []
    for name, kind, device in zip(tree.names, tree.kinds, tree.on_device.tolist(), strict=True):
        word = was.get(short_name(name), short_name(name)) if device else name
        label = PYTHON_BETWEEN if kind == ActivityKind.STEP.label else (word, kind)
        group.append(codes.setdefault(label, len(codes)))
    return np.array(group, np.int64), list(codes)


def _saved(own: OwnWork, factor: Array, part: ComparedPart) -> float:
    """Return how much shorter the usual step is with own times multiplied by `factor`, µs."""
    # a call whose own times are all multiplied by 0 is gone: nothing waits in it any more
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
