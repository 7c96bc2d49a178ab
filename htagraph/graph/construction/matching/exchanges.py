"""Kernels that the recording shows to be communication, whatever their names say.

A kernel communicates if arguments name its process group, or if the operator that launched it is one of communication.
Without both, times of several ranks tell: kernels of one name that arrive at different times and still end together,
again and again, wait for each other. Kernels of a product, and kernels that an operator of ATen launched, compute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask, marked
from htagraph.core.errors import Issue
from htagraph.core.intervals import union
from htagraph.core.kernels import kernel_kind
from htagraph.core.kinds import ActivityKind, KernelKind, of_kinds
from htagraph.core.naming import collective_op, computes, short_name
from htagraph.core.parents import nearest
from htagraph.graph.accept import Odds, confidence, of_agreement
from htagraph.graph.activities import Activities
from htagraph.graph.tolerances import LIMITS
from htagraph.trace.discover import few_of

__all__ = ["named_by_calls", "shown_by_times", "with_communication"]

_OF_COLLECTIVES: Final = ("collective_name", "pg_name", "pg_ranks")
"""Arguments that only communication has."""
_MAY_COMMUNICATE: Final = (
    KernelKind.OTHER,
    KernelKind.COPY,
    KernelKind.INDEX,
)
"""Kinds by name of kernels that an operator of communication launches to communicate; other kinds prepare data."""


def with_communication(
    acts: Activities,
    names: Sequence[str],
) -> tuple[Activities, tuple[Issue, ...]]:
    """Return the activities with kernels as communication where the recording shows it, and an issue about these.

    Args:
        acts: the activities of all ranks.
        names: the texts that activities refer to.

    Returns:
        The activities, and one issue if times decided about kernels. Only computation becomes communication.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> with_communication(graph.activities, graph.names)[1]  # the names of its kernels say all
        ()
    """
    kernels = np.flatnonzero(acts.kind == ActivityKind.COMPUTATION)
    if not len(kernels):
        return acts, ()
    operator = _operators(acts, kernels)
    named = named_by_calls(acts, names, kernels, operator)
    kind = acts.kind.copy()
    kind[kernels[named]] = ActivityKind.COMMUNICATION
    acts = replace(acts, kind=kind)
    by_times = shown_by_times(acts, names, kernels[~named], operator[~named])
    if not len(by_times):
        return acts, ()
    kind[by_times] = ActivityKind.COMMUNICATION
    codes = np.unique(acts.name[by_times])
    words = sorted({short_name(names[code]) for code in codes.tolist()})
    detail = f"kernels that wait for those of other ranks, so they are communication: {few_of(words)}"
    issue = Issue("", "communication_by_times", detail, len(by_times))
    return acts, (issue,)


def _operators(acts: Activities, kernels: Array) -> Ints:
    """Return the innermost operator or annotation around the launch of each kernel; -1 for none."""
    call = acts.cause[kernels]
    call = call.astype(np.int64)
    around = np.where(call >= 0, acts.parent[call], -1).astype(np.int64)
    is_operator = of_kinds(acts.kind, (ActivityKind.OP, ActivityKind.ANNOTATION))
    is_named = (call >= 0) & is_operator[call]  # a file without the launch names the operator
    around[is_named] = call[is_named]
    in_frame = np.flatnonzero((around >= 0) & ~is_operator[around])
    around[in_frame] = nearest(acts.parent, is_operator, around[in_frame])
    return around


def _codes(acts: Activities, rows: Array) -> list[int]:
    """Return the different names of activities as numbers; rows of -1 are left out."""
    return list(np.unique(acts.name[rows[rows >= 0]]).tolist())


def named_by_calls(
    acts: Activities,
    names: Sequence[str],
    kernels: Array,
    operator: Array,
) -> Mask:
    """Return which kernels are communication by their arguments, or by the operator that launched them.

    A kernel whose call was not recorded is communication if calls say so of other kernels of its name.

    Args:
        acts: the activities of all ranks.
        names: the texts that activities refer to.
        kernels: the rows of the kernels.
        operator: the innermost operator or annotation around the launch of each kernel; -1 for none.

    Returns:
        A mask of the kernels.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> acts = graph.activities
        >>> kernels = np.flatnonzero(acts.kind == ActivityKind.COMPUTATION)
        >>> unknown = np.full(len(kernels), -1)
        >>> bool(named_by_calls(acts, graph.names, kernels, unknown).any())
        False
    """
    described = np.zeros(len(acts), np.bool_)
    for column in _OF_COLLECTIVES:
        if column in acts.args:
            described[acts.args[column].rows] = True
    calls = [code for code in _codes(acts, operator) if collective_op(names[code], host=True)]
    is_call = marked(calls, len(names))
    has_call = operator >= 0
    of_call = has_call & (described[operator] | is_call[acts.name[operator]])
    shown = described[kernels] | of_call
    codes = [code for code in _codes(acts, kernels[shown]) if kernel_kind(names[code]) in _MAY_COMMUNICATE]
    may_communicate = marked(codes, len(names))[acts.name[kernels]]
    return np.asarray(may_communicate & (shown | ~has_call))


# times of several ranks


@dataclass(frozen=True, eq=False)
class _Occurrences:
    """Kernels of one name on several ranks, beside each other in the order of starts: a row per rank."""

    start: Ints
    """ns on the clock of each rank."""

    end: Ints
    """ns on the clock of each rank."""

    beside: Mask
    """Which kernels ran while known communication of the rank did, which may have held them up."""


def shown_by_times(
    acts: Activities,
    names: Sequence[str],
    kernels: Array,
    operator: Array,
) -> Ints:
    """Return the kernels that wait for kernels of their name on other ranks, ascending.

    Args:
        acts: the activities of all ranks.
        names: the texts that activities refer to.
        kernels: the rows of the kernels that may be communication.
        operator: the innermost operator or annotation around the launch of each kernel; -1 for none.

    Returns:
        The rows of kernels that arrive apart on two ranks or more, and end together, again and again.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> acts = graph.activities
        >>> kernels = np.flatnonzero(acts.kind == ActivityKind.COMPUTATION)
        >>> unknown = np.full(len(kernels), -1)
        >>> len(shown_by_times(acts, graph.names, kernels, unknown))
        0
    """
    nothing = np.zeros(0, np.int64)
    ranks = acts.rank[: acts.ranked]
    if not len(kernels) or ranks[0] == ranks[-1]:
        return nothing
    aten = [code for code in _codes(acts, operator) if computes(names[code])]
    is_aten = marked(aten, len(names))
    kernels = kernels[(operator < 0) | ~is_aten[acts.name[operator]]]
    likely = [group for group in _by_name(acts, kernels) if _durations_vary(acts, group)]
    waiting = [nothing]
    for group in likely:
        tables = _side_by_side(acts, group)
        waits = any(_wait(table, len(likely)) for table in tables)
        if not waits:
            continue
        name = names[acts.name[group[0]]]
        if not kernel_kind(name).is_product:
            waiting.append(group)
    return np.sort(np.concatenate(waiting))


def _by_name(acts: Activities, kernels: Array) -> list[Ints]:
    """Return the kernels of each name, in the order of ranks, then of starts."""
    order = np.lexsort((acts.start[kernels], acts.rank[kernels], acts.name[kernels]))
    kernels = kernels[order]
    bounds = np.flatnonzero(np.diff(acts.name[kernels])) + 1
    return np.split(kernels, bounds)


def _durations_vary(acts: Activities, group: Array) -> bool:
    """Return whether kernels of one name, which may run often enough, differ in length by more than clocks do."""
    if len(group) < 2 * LIMITS.often or acts.rank[group[0]] == acts.rank[group[-1]]:
        return False
    duration = acts.duration[group]
    deviation = np.abs(duration - np.median(duration))
    return bool(np.quantile(deviation, LIMITS.typical) > LIMITS.tick_ns)


def _beside_communication(acts: Activities, kernels: Array) -> Mask:
    """Return which kernels of one rank run while known communication of the rank does."""
    of_rank = acts.of_rank(int(acts.rank[kernels[0]]))
    rows = of_rank.start + np.flatnonzero(acts.kind[of_rank] == ActivityKind.COMMUNICATION)
    begin, end = union(acts.start[rows], acts.end[rows])
    if not len(begin):
        return np.zeros(len(kernels), np.bool_)
    last = np.searchsorted(begin, acts.end[kernels]) - 1
    still_runs = end[np.maximum(last, 0)] > acts.start[kernels]
    return np.asarray((last >= 0) & still_runs)


def _side_by_side(acts: Activities, group: Array) -> Iterator[_Occurrences]:
    """Yield kernels of one name on several ranks side by side, from the first one on, then up to the last one.

    Ranks that have fewer kernels than most ranks are left out.
    """
    bounds = np.flatnonzero(np.diff(acts.rank[group])) + 1
    of_rank = np.split(group, bounds)
    lengths = np.sort([len(rows) for rows in of_rank])
    count = int(lengths[(len(lengths) - 1) // 2])
    chosen = [rows for rows in of_rank if len(rows) >= count][: LIMITS.host_ranks]
    if count < LIMITS.often or len(chosen) < 2:
        return
    spots = np.linspace(0, count - 1, min(count, LIMITS.tested)).astype(np.int64)
    yield _occurrences(acts, [rows[spots] for rows in chosen])
    if any(len(rows) > count for rows in chosen):
        yield _occurrences(acts, [rows[len(rows) - count + spots] for rows in chosen])


def _occurrences(acts: Activities, of_rank: Sequence[Ints]) -> _Occurrences:
    """Return the times of as many kernels on each rank."""
    table = np.stack(of_rank)
    beside = [_beside_communication(acts, rows) for rows in of_rank]
    return _Occurrences(
        acts.start[table],
        acts.end[table],
        np.stack(beside),
    )


def _wait(kernels: _Occurrences, names: int) -> bool:
    """Return whether kernels that arrive clearly apart end together, more often than chance explains.

    Args:
        kernels: kernels of one name.
        names: how many names are tried, each of which may agree by chance.
    """
    pairs = set[tuple[int, int]]()
    for rank in range(len(kernels.start)):
        partner = _partner(kernels, rank)
        pairs.add((min(rank, partner), max(rank, partner)))
    of_pairs = []
    for first, second in sorted(pairs):
        odds = _meetings(kernels, first, second)
        of_pairs.append(odds)
    odds = np.concatenate(of_pairs, axis=1)
    count = odds.shape[1]
    if count < LIMITS.proof:
        return False
    percent = confidence(odds, alternatives=names)
    return percent > 0


def _partner(kernels: _Occurrences, rank: int) -> int:
    """Return the row of another rank, with the steadiest differences of ends from the rank of a row."""
    ends = kernels.end - kernels.end[rank]
    middle = np.median(ends, axis=1, keepdims=True)
    spread = np.median(np.abs(ends - middle), axis=1)
    spread[rank] = np.inf
    return int(np.argmin(spread))


def _meetings(kernels: _Occurrences, first: int, second: int) -> Odds:
    """Return the odds of kernels of two ranks to end together, where neither ran beside other communication.

    Counted are occurrences whose arrivals lie much farther apart than ends do. By chance, a kernel has the duration of
    another occurrence.
    """
    is_beside = kernels.beside[first] | kernels.beside[second]
    alone = ~is_beside
    if alone.sum() < LIMITS.often:
        nothing = np.zeros(0)
        return nothing[None]
    when = kernels.end[first][alone]
    later_end = kernels.end[second][alone] - when
    ends = _steady(later_end, when)
    begins = kernels.start[first][alone]
    later_start = kernels.start[second][alone] - begins
    arrivals = _steady(later_start, when)
    spread = np.quantile(np.abs(ends), LIMITS.typical)
    reach = LIMITS.most * np.abs(arrivals)
    clear = np.flatnonzero(reach > spread + LIMITS.resolution_ns)
    near = reach[clear]
    apart = np.abs(ends[clear])
    agree = apart <= near
    longer = ends - arrivals  # by how much the second kernel of a pair lasts longer
    mixed = np.abs(arrivals[clear, None] + longer)
    meets = mixed <= near[:, None]
    count = len(clear)
    itself = np.arange(count)
    meets[itself, clear] = False
    rest = len(ends) - 1
    tried = max(1, count * rest)
    met = float(meets.sum())
    share = max(1.0, met) / tried
    chance = np.full(count, share)
    return of_agreement(agree, chance)


def _steady(difference: Array, when: Array) -> npt.NDArray[np.float64]:
    """Return differences between times of two clocks, ns, without the usual difference and the drift."""
    third = len(difference) // 3
    drift = 0.0
    if len(difference) >= 2 * LIMITS.proof:
        begin = np.median(when[:third])
        end = np.median(when[-third:])
        low = np.median(difference[:third])
        high = np.median(difference[-third:])
        if end > begin:
            drift = (high - low) / (end - begin)
    level = difference - drift * (when - when[0])
    return np.asarray(level - np.median(level))
