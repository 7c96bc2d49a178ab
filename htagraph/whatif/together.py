"""Changes together: what sets of changes save, each without a replay of the whole job, and which set saves most.

A change that only makes times shorter takes an amount off some lags and gaps. Where several changes of a set shorten
the same lag, the largest amount counts: an operator and its kernel, each twice as fast, are twice as fast together, not
four times. So each lag is divided once into layers, and a set takes the layers that any of its changes takes: the job
in runs (`htagraph.core.runs`), which has the times of the graph to the ns, is made once and tells how long the job is
with each set.

A change that puts work in the place of other work (one kernel for many) has a graph of its own. Sets with it are layers
of that graph; no set has two such changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np

from htagraph.core.arrays import Array, Ints, run_starts
from htagraph.core.errors import SelectionError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import duration_ns, gain_steps, last_end
from htagraph.queries.weights import State, initial
from htagraph.whatif.candidates import Baseline
from htagraph.whatif.links import assumed
from htagraph.whatif.outcome import Outcome
from htagraph.whatif.readings import runs_of_state, runs_with
from htagraph.whatif.scenario import Scenario, what_if

__all__ = ["COUNTS_ONCE", "Best", "Offer", "Savings", "best_sets", "outcome_of", "savings_of"]

COUNTS_ONCE = "a time that several of the changes shorten is as short as the change that takes most leaves it"
"""Note of an outcome in which changes that follow one another would shorten a time more than each change alone."""

_MOST_SETS = 700
"""How many sets of one budget are compared, at most, to be sure of the best one. Chosen: all sets of up to 3 of 16
changes; each takes 4 ms at a million activities. Doubled, all of up to 3 of 20, in twice the time."""
_LEAST_SHARE = 0.001
"""Share of the job that one more change has to save beside the others. Chosen: less is no digit of a report. Doubled, a
plan may have a change less."""


@dataclass(frozen=True)
class Offer:
    """A change that a set may have."""

    name: str
    options: tuple[str, ...]
    """The options of ``htagraph what-if`` that make it."""
    apply: Callable[[Scenario], Scenario]


class Savings(NamedTuple):
    """What sets of changes save; a set is a sorted tuple of positions in `changes`."""

    changes: tuple[Offer, ...]
    """Those that can be put into sets; no two of them are the same."""
    left_out: tuple[str, ...]
    """Names of changes that no layers describe, as transfers share links after these."""
    of: Callable[[tuple[int, ...]], float]
    """How much shorter a usual step is with a set, ns; of a job without usual steps, how much shorter the job is."""
    bound: Callable[[tuple[int, ...]], float]
    """What a set saves at most, ns: known without its time, infinite if nothing is known."""
    apart: frozenset[tuple[int, int]]
    """Pairs of changes that both put work in the place of other work, or that leave nothing of each other's time."""
    in_place: int = 0
    """How many of the first changes put work in the place of other work: these come first in a set."""

    def may_be(self, which: tuple[int, ...]) -> bool:
        """Return whether a set has no two changes that cannot be combined."""
        return not any(pair in self.apart for pair in combinations(which, 2))


class Best(NamedTuple):
    """The set of one size that saves most."""

    changes: tuple[int, ...]
    """Positions in `Savings.changes`, in the order in which each adds most."""
    saved: float
    """ns."""
    possible: float
    """What the best set of this size saves at most, ns; the same as `saved` if no set saves more."""


class _Shorter(NamedTuple):
    """How much shorter a change makes some lags and gaps."""

    at: Ints
    """Edges, then vertices behind the number of edges, ascending."""
    amount: Ints
    """ns, above 0."""


def savings_of(
    graph: DependencyGraph,
    changes: Sequence[Offer],
    start: State | None = None,
    *,
    is_whole: bool = False,
) -> Savings:
    """Return what sets of changes save of a job, or of a job from whose `start` some times are gone.

    With `is_whole`, savings are of the whole job, also where it has usual steps.

    Example:
        >>> import htagraph as hg
        >>> job = hg.load("data/demo")
        >>> none = Offer("kernels", (), lambda each: each.scale(factor=0, kind="computation"))
        >>> savings = savings_of(job, [none])
        >>> savings.of((0,)) == hg.what_if(job).run().baseline_step_ns - none.apply(hg.what_if(job)).run().step_ns
        True
    """
    state = initial(graph)
    first = start or state
    started = _shorter(state, first)
    assert started is not None  # a start only takes time away
    steps = 1 if is_whole else max(gain_steps(graph), 1)
    parted = _parted(graph, changes)
    baseline = Baseline(state)
    shares_links = baseline.links.may_share
    in_place, lengths = parted.in_place, list[_Beside]()
    if not shares_links:
        layered = [(change, _beside(graph, change, first, parted.kept, steps)) for change in in_place]
        in_place = [change for change, lasts in layered if lasts]
        lengths = [lasts for _, lasts in layered if lasts]
    left_out = [change.name for change in parted.in_place if change not in in_place]
    kept = [*in_place, *parted.kept]
    count = len(in_place)
    shorter = parted.shorter
    length = _in_layers(graph, state, [*shorter, started], steps) if shorter and not shares_links else None

    @cache
    def after(which: tuple[int, ...]) -> float:
        numbers = tuple(number - count for number in which if number >= count)
        first_change = min(which, default=count)
        if lengths and first_change < count:
            return lengths[first_change].of(numbers)
        if length:
            return length((*numbers, len(shorter)))
        outcome = outcome_of(graph, (kept[number] for number in which), start)
        return _lasts(outcome.state.graph, outcome.time, graph, steps)

    def of(which: tuple[int, ...]) -> float:
        return (after(()) - after(which)) / steps

    *on_path, at_start = _on_path(baseline, [*shorter, started])

    def bound(which: tuple[int, ...]) -> float:
        known = steps == 1 and not shares_links and min(which, default=count) >= count
        spent = _lasts(graph, graph.time, graph, steps) - after(
            ()
        )  # of what the start takes, so much is no change's any more
        return sum(on_path[number - count] for number in which) + at_start - spent if known else float("inf")

    apart = set(combinations(range(count), 2))  # their order would matter
    apart |= {(number, excluded + count) for number, lasts in enumerate(lengths) for excluded in lasts.excluded}
    return Savings(tuple(kept), tuple(left_out), of, bound, frozenset(apart), count)


class _Parted(NamedTuple):
    """Changes by whether they only take time away."""

    kept: list[Offer]
    """Changes that only make lags and gaps shorter, no two of these the same."""
    shorter: list[_Shorter]
    """How much shorter each of these makes lags and gaps."""
    in_place: list[Offer]
    """Changes that put work or dependencies in the place of recorded work, or make a time longer."""


def _parted(graph: DependencyGraph, changes: Sequence[Offer]) -> _Parted:
    """Return changes parted by whether they only take time away; a change that takes none is left out."""
    parted = _Parted([], [], [])
    for change in changes:
        less = _shorter(initial(graph), change.apply(what_if(graph)).state)
        if less is None:
            parted.in_place.append(change)
        elif len(less.at) and not any(all(map(np.array_equal, less, same)) for same in parted.shorter):
            parted.kept.append(change)
            parted.shorter.append(less)
    return parted


class _Beside(NamedTuple):
    """Sets of changes beside one that puts work in the place of other work."""

    of: Callable[[tuple[int, ...]], float]
    """How long the job takes with this change and a set of further changes, ns."""
    excluded: list[int]
    """The further changes that cannot be made beside this one, or do more than take time away then."""


def _lasts(graph: DependencyGraph, time: Array, recorded: DependencyGraph, steps: int) -> float:
    """Return how long so many usual steps take, ns; for one step, how long the whole job takes.

    Args:
        graph: the job, as recorded or with changes.
        time: the moment of each vertex, ns.
        recorded: the job as recorded.
        steps: how many usual steps.
    """
    if steps > 1:
        return duration_ns(graph, time, recorded)
    last = last_end(graph, time)
    return 0.0 if last is None else float(last - recorded.origin_ns)


def _beside(
    graph: DependencyGraph,
    change: Offer,
    start: State,
    further: Sequence[Offer],
    steps: int,
) -> _Beside | None:
    """Return how long the job takes with sets of further changes beside one change; None if no layers describe that.

    The one change comes first: the further changes take from the time that is left.
    """
    scenario = change.apply(Scenario(graph, start))
    state = scenario.state
    if state.jitter or assumed(state).may_share:
        return None
    nothing = _Shorter(np.zeros(0, np.int64), np.zeros(0, np.int64))
    shorter, excluded = [], []
    for number, further_change in enumerate(further):
        less = None
        with suppress(SelectionError):  # nothing of its time is left
            less = _shorter(state, further_change.apply(scenario).state)
        excluded += [number] if less is None else []
        shorter.append(less or nothing)
    return _Beside(_in_layers(graph, state, shorter, steps), excluded)


def outcome_of(graph: DependencyGraph, changes: Iterable[Offer], start: State | None = None) -> Outcome:
    """Return the prediction of some changes to a job, as recorded or from a `start`, by a replay of the whole job.

    Changes that put work in the place of other work come first. A time that several further changes shorten is
    as short as the change that takes most leaves it.
    """
    before = Scenario(graph, start or initial(graph))
    scenario = before
    lag = before.state.lag
    gap = before.state.gap
    for change in changes:
        alone = change.apply(before).state
        scenario = change.apply(scenario)
        if _shorter(before.state, alone) is None:
            before = scenario
            lag = scenario.state.lag
            gap = scenario.state.gap
        else:
            lag = np.minimum(lag, alone.lag)
            gap = np.minimum(gap, alone.gap)
    state = scenario.state
    is_shorter = bool((state.lag < lag).any() or (state.gap < gap).any())
    state = state.with_note(COUNTS_ONCE) if is_shorter else state
    return replace(scenario, state=replace(state, lag=lag, gap=gap)).run()


def _shorter(state: State, changed: State) -> _Shorter | None:
    """Return how much shorter a change makes lags and gaps; None if it does something else."""
    if changed.graph is not state.graph or changed.shared_link != state.shared_link or changed.jitter:
        return None
    lag, gap = state.lag - changed.lag, state.gap - changed.gap
    if (lag < 0).any() or (gap < 0).any() or not np.array_equal(state.head, changed.head):
        return None
    edges, vertices = np.flatnonzero(lag), np.flatnonzero(gap)
    return _Shorter(np.concatenate((edges, len(lag) + vertices)), np.concatenate((lag[edges], gap[vertices])))


def _on_path(baseline: Baseline, shorter: Sequence[_Shorter]) -> list[float]:
    """Return how much of what each change takes is on the recorded critical path, ns: no set saves more of the job."""
    vertices, edges = baseline.path
    on = np.zeros(len(baseline.state.lag) + len(baseline.state.gap), np.bool_)
    on[edges], on[len(baseline.state.lag) + vertices] = True, True
    return [float(each.amount[on[each.at]].sum()) for each in shorter]


def _in_layers(
    recorded: DependencyGraph,
    state: State,
    shorter: Sequence[_Shorter],
    steps: int,
) -> Callable[[tuple[int, ...]], float]:
    """Return a function of a set: how long the job takes with these changes of a state, ns."""
    graph, count = state.graph, len(state.lag)
    at, amount, mask = _layers(shorter)
    most = np.zeros(count + len(state.gap), np.int64)
    np.add.at(most, at, amount)
    least = state.lag - most[:count], state.gap - most[count:], state.head
    runs = runs_of_state(state)
    if runs.reweighted(*least) is None:  # an end that may be last with the changes has to stay
        made = runs_with(graph, *least).reweighted(state.lag, state.gap, state.head)
        assert made is not None  # nothing that covered an end with less covers it no more
        runs = made
    owner, order = np.concatenate((runs.run, runs.run_of_gap))[at], np.argsort(mask, kind="stable")
    starts = run_starts(mask[order])
    parts = np.split(order, starts[1:]) if len(order) else []
    by_mask = list(zip(mask[order][starts].tolist(), parts, strict=True))
    spans = graph.step_spans
    marks = np.concatenate((spans.start, spans.end))
    places, time = runs.place[marks], np.zeros(graph.vertex_count, np.int64)

    def length(which: tuple[int, ...]) -> float:
        chosen = sum(1 << each for each in which)
        rows = [rows for bits, rows in by_mask if bits & chosen]
        moments = runs.after(np.concatenate(rows) if rows else order[:0], amount, owner)
        if steps <= 1:
            return float(moments[runs.last].max() - recorded.origin_ns)
        time[marks] = moments[places]
        return _lasts(graph, time, recorded, steps)

    return length


def _layers(shorter: Sequence[_Shorter]) -> tuple[Array, Array, Array]:
    """Return layers of lags and gaps: (where each is, its amount in ns, a bit for each change that takes it)."""
    nothing = np.zeros(0, np.int64)
    at = np.concatenate([nothing, *(each.at for each in shorter)])
    amount = np.concatenate([nothing, *(each.amount for each in shorter)])
    bit = np.repeat(np.int64(1) << np.arange(len(shorter)), [len(each.at) for each in shorter])
    order = np.lexsort((amount, at))
    at, amount, bit = at[order], amount[order], bit[order]
    if not len(at):
        return at, amount, bit
    starts = run_starts(at)
    stops = np.append(starts[1:], len(at))
    below = np.append(0, amount[:-1])
    below[starts] = 0
    # a layer is taken by all changes that take as much or more: those from its row to the last one of the same lag
    sums = np.append(np.cumsum(bit[::-1])[::-1], 0)
    mask = sums[:-1] - np.repeat(sums[stops], stops - starts)
    some = amount > below
    return at[some], (amount - below)[some], mask[some]


def best_sets(savings: Savings, budget: int, job_ns: float, first: Collection[int] = ()) -> list[Best]:
    """Return the best set of each number of changes, from 1 to `budget`, as long as one more change saves more.

    All sets of a size are compared that may save more than the best one known, which begins with the best smaller set
    and the change that adds most. Where these are too many, this first set remains, and one change after the other is
    exchanged for a better one; then `Best.possible` is more than `Best.saved`.

    Args:
        savings: what sets save.
        budget: how many changes at most.
        job_ns: the time of a usual step, or of the job, ns.
        first: positions of changes that stand first: other changes are put beside the best set of these.
    """
    everything = range(len(savings.changes))
    found: list[Best] = []
    if first:
        found = _best_sets(savings, budget, job_ns, found, _Pool(tuple(sorted(first)), ()))
    kept = found[-1].changes if found else ()
    others = tuple(number for number in everything if number not in kept)
    found = _best_sets(savings, budget, job_ns, found, _Pool(others, kept))
    return [best._replace(changes=_in_order(savings, best.changes)) for best in found]


class _Pool(NamedTuple):
    """The changes that sets are made of."""

    free: tuple[int, ...]
    """Positions of changes that a set may have."""
    kept: tuple[int, ...]
    """Positions of changes that each set has."""


def _best_sets(savings: Savings, budget: int, job_ns: float, found: list[Best], pool: _Pool) -> list[Best]:
    """Return best sets with larger ones behind them, of changes of a pool."""
    found = list(found)
    compared = 0
    for size in range(len(found) + 1, min(budget, len(pool.free) + len(pool.kept)) + 1):
        start = _extended(savings, found[-1].changes if found else (), pool.free)
        chosen = combinations(pool.free, size - len(pool.kept))
        sets = [members for part in chosen if savings.may_be(members := tuple(sorted((*pool.kept, *part))))]
        worth = [members for members in sets if savings.bound(members) > savings.of(start)]
        compared += len(worth)
        if compared <= _MOST_SETS:
            which = max([start, *worth], key=savings.of)
            possible = savings.of(which)
        else:
            which = _exchanged(savings, start, pool)
            possible = max(savings.of(which), _possible(savings, size, job_ns))
        if savings.of(which) - (found[-1].saved if found else 0.0) <= _LEAST_SHARE * job_ns:
            break
        found.append(Best(which, savings.of(which), possible))
    return found


def _extended(savings: Savings, which: tuple[int, ...], free: Sequence[int]) -> tuple[int, ...]:
    """Return a set with the free change more that adds most; the same set where none can be added."""
    others = [tuple(sorted((*which, number))) for number in free if number not in which]
    return max(filter(savings.may_be, others), key=savings.of, default=which)


def _exchanged(savings: Savings, which: tuple[int, ...], pool: _Pool) -> tuple[int, ...]:
    """Return a set in which no exchange of one change saves more."""
    while True:
        smaller = [tuple(number for number in which if number != left) for left in which if left not in pool.kept]
        better = max((_extended(savings, members, pool.free) for members in smaller), key=savings.of)
        if savings.of(better) <= savings.of(which):
            return which
        which = better


def _possible(savings: Savings, size: int, job_ns: float) -> float:
    """Return what no set of some changes can exceed, ns: the largest bounds together, and all of the job."""
    most = sorted((savings.bound((each,)) for each in range(len(savings.changes))), reverse=True)
    return min(sum(most[:size]), job_ns)


def _in_order(savings: Savings, which: tuple[int, ...]) -> tuple[int, ...]:
    """Return a set in the order in which each change adds most to those before it."""
    order: list[int] = []
    while len(order) < len(which):
        rest = (each for each in which if each not in order)
        order.append(max(rest, key=lambda each: savings.of(tuple(sorted((*order, each))))))
    return tuple(order)
