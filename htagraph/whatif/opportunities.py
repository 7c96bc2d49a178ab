"""What to improve first: kernels, operators, functions, ranks, groups and host phases ranked by simulated gain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from typing import Any

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array
from htagraph.core.computing import ahead, threads_for
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import unrecorded_host
from htagraph.graph.measures.own_time import bound_times
from htagraph.graph.measures.steps import gain_steps
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.on_workers import UPPER_BOUND
from htagraph.queries.straggler import straggler_of
from htagraph.queries.weights import OwnTime, State, checked, initial
from htagraph.whatif.candidates import Baseline, Candidate, candidates, target_of, time_of
from htagraph.whatif.changes.fix_straggler import fix_straggler
from htagraph.whatif.options import criteria_text

__all__ = ["opportunities", "straggler_gain"]

_SAME_GAIN = 0.97
"""A candidate is left out if one with this share of its time inside it gains at least this share of its gain.

Chosen: smaller differences are within the error of a prediction. Nearer to 1, wrappers
appear beside what they wrap; halved, an operator gives way to a kernel with half of its gain. The gains themselves do
not depend on it."""
TABLE = Table(
    "Opportunities, by the largest possible gain (of the whole recording)",
    Col(
        "what",
        "str",
        '``"kernel"``, ``"call"``: a runtime call, ``"operator"``, ``"function"``: a Python function\'s own code, '
        '``"rank"``, ``"straggler"``: what the straggler (`htagraph.stragglers`) takes longer than its peers, '
        '``"group"`` or ``"phase"``: an annotation, the data loader, or a class of work',
    ),
    Col("name", "str"),
    Col("target", "str", "the criteria for ``htagraph what-if --scale``; empty where none select exactly this"),
    Col(
        "time_us",
        doc="own time of the target, summed over ranks and steps; where the path also waits until work that it "
        "launches starts, that latency is part of it",
    ),
    Col(
        "critical_us",
        doc="the part of that time on the critical path; no gain is larger, unless transfers share links and the other "
        "transfers become faster",
    ),
    Col("gain_us", doc="gain if the target took no time"),
    Col("gain_percent", doc="gain as a share of the makespan"),
    Col("gain_per_step_us", doc="by how much a usual step is shorter; NaN where steps do not cover the recording"),
    Col(
        "gain_at_75_us gain_at_50_us gain_at_25_us gain_at_0_us",
        doc="for each factor of the curve: gain if the target took this percentage of its time; where transfers share "
        "links, gains need not grow with the speedup",
    ),
    Col("note", "str", "what the time includes"),
    Col("inside", "str", "name of the smallest row that contains the target; empty for none"),
    UPPER_BOUND,
    rank_by="gain_us",
)


@dataclass(frozen=True, eq=False)
class _Tried:
    gain: int
    """How much shorter the job is if it takes no time, ns."""
    candidate: Candidate
    time: OwnTime
    counted: tuple[Array, Array]
    """How much time each of its edges and each of its gaps is, ns."""

    @property
    def size(self) -> int:
        """How many edges and gaps it has."""
        return len(self.time.edges) + len(self.time.gaps)

    @property
    def total(self) -> int:
        """How much time it is, ns."""
        return int(self.counted[0].sum() + self.counted[1].sum())


@described(TABLE)
def opportunities(
    graph: DependencyGraph, *, top: int = 10, curve: Sequence[float] = (0.75, 0.5, 0.25, 0.0)
) -> pd.DataFrame:
    """Return what could be improved, ranked by how much shorter the job would be, by simulation.

    Each candidate is replayed as if it took no time, with all waits derived. Its gain is the most that any speedup of
    the candidate is worth (unless transfers share links, see below), and less than the candidate's time where something
    else is critical then. Removing a candidate altogether may gain more, since the calls that launch it go too.
    Candidates overlap (an operator contains its kernels), so gains do not add up. A candidate that gains at most 3 %
    more than a candidate inside it is left out: the smaller candidate is the one to change. Every kernel, call,
    operator, annotation, Python function, rank and process group with time on the critical path is a candidate; a
    candidate whose time on the path is less than the last gain shown needs no replay. At most 64 candidates and 8 for
    each row are replayed, those with most time on the path.

    Args:
        graph: the job.
        top: how many rows at most.
        curve: factors for which the gain is given as well, 0.5 for twice as fast.

    Returns:
        One row per candidate that gains anything, best first, durations that were cut apart: {columns}.

    Raises:
        SelectionError: `top` or a factor is negative.

    Example:
        >>> import htagraph as hg
        >>> table = hg.opportunities(hg.load("data/demo"), top=3)
        >>> bool(table["gain_us"].is_monotonic_decreasing)
        True
    """
    checked(top, "top")
    factors = {f"gain_at_{100 * checked(factor, 'curve'):g}_us": float(factor) for factor in curve}
    kinds = {name: kind for name, kind in TABLE.types.items() if not name.startswith("gain_at_")}
    ends = {name: kinds.pop(name) for name in ("note", "inside", UPPER_BOUND.names)}
    kinds |= dict.fromkeys(factors, "float64") | ends
    baseline, steps = Baseline(initial(graph)), gain_steps(graph)
    bound = np.append(bound_times(graph), 0)  # the last one is for edges of no activity
    rows = []
    best = _best(baseline, top)
    for at, tried in enumerate(best):
        gain, candidate, time = tried.gain, tried.candidate, tried.time
        critical = baseline.on_path(time)
        gains = {
            column: float(gain if factor == 0 else baseline.gain(time, factor)) / 1000
            for column, factor in factors.items()
        }
        rows.append(
            {
                "what": candidate.what,
                "name": candidate.name,
                "target": criteria_text(target_of(baseline.state, candidate, time)),
                "time_us": max(tried.total, critical) / 1000,
                "critical_us": critical / 1000,
                **_gained(baseline, gain, time, steps),
                **gains,
                "note": candidate.note,
                "inside": next((more.candidate.name for more in reversed(best[:at]) if _within(tried, more)), ""),
                "at_most_us": float(bound[graph.edges.activity[time.edges]].sum()) / 1000,
            }
        )
    rows = sorted([*rows, *straggler_gain(baseline, factors, steps)], key=_known_gain_us, reverse=True)[:top]
    table = pd.DataFrame(rows, columns=list(kinds))
    table = table.fillna({"at_most_us": 0.0}).astype(kinds)
    if table["at_most_us"].any():
        return table
    return table.drop(columns="at_most_us")


def _known_gain_us(row: Mapping[str, Any]) -> float:
    """Return the gain of a row without durations that were cut at the next start, whose true length is unknown."""
    return float(max(row["gain_us"] - row.get("at_most_us", 0.0), 0.0))


def _gained(baseline: Baseline, gain: int, changed: OwnTime | State, steps: int) -> dict[str, float]:
    """Return a gain in ns as the columns that state it; `changed` is the time that is none, or the job as it is."""
    return {
        "gain_us": gain / 1000,
        "gain_percent": 100 * gain / baseline.makespan,
        "gain_per_step_us": baseline.gained_per_step(changed) / 1000 if steps > 1 else gain / 1000 if steps else np.nan,
    }


def _best(baseline: Baseline, top: int) -> list[_Tried]:
    """Return the candidates that gain most, best first.

    They are tried in the order of their bounds, until no candidate that is left can be among the best.
    """
    tried: list[_Tried] = []
    unrecorded = unrecorded_host(baseline.state.graph)
    within = cache(_within)  # of two it is asked again for each candidate that is tried

    def may_be_best(candidate: Candidate) -> bool:
        bound = candidate.bound + baseline.shared
        return bound >= max(1, _SAME_GAIN * _least_of_best(tried, top, bound, within))

    def replayed(candidate: Candidate) -> _Tried:
        time = time_of(baseline.state, candidate)
        is_known = not unrecorded[time.gaps].any()
        gain = baseline.gain(time, 0.0) if is_known else 0
        return _Tried(gain, candidate, time, baseline.counted(time))

    # the rest is left out for time: regions within regions all have the same bound, however many they are
    ordered = sorted(candidates(baseline), key=lambda each: -each.bound)[: LIMITS.tried + LIMITS.few * top]
    threads = threads_for(baseline.state.graph.vertex_count)
    # in one thread, the last candidate is not replayed for nothing
    for candidate, one in ahead(replayed, takewhile(may_be_best, ordered) if threads == 1 else ordered, threads):
        if threads > 1 and not may_be_best(candidate):
            break
        if one.gain > 0:
            tried.append(one)
    return _smallest(tried, within)[:top]


def _least_of_best(tried: list[_Tried], top: int, bound: int, within: Callable[[_Tried, _Tried], bool]) -> float:
    """Return the gain of the last of the best, ns; 0 where there are fewer, or the bound is larger anyway."""
    gains = sorted((each.gain for each in tried), reverse=True)
    if not top:
        return float("inf")
    if len(gains) < top or bound >= _SAME_GAIN * gains[top - 1]:
        return 0.0
    best = _smallest(tried, within)
    return best[top - 1].gain if len(best) >= top else 0.0


def _smallest(tried: list[_Tried], within: Callable[[_Tried, _Tried], bool]) -> list[_Tried]:
    """Return the candidates that gain clearly more than any other inside them, best first."""
    best: list[_Tried] = []
    for one in sorted(tried, key=lambda each: (each.gain, each.size)):
        if not any(part.gain >= _SAME_GAIN * one.gain and within(part, one) for part in best):
            best.append(one)
    return sorted(best, key=lambda each: -each.gain)


def _within(some: _Tried, other: _Tried) -> bool:
    """Return True if nearly all of some time is part of other time."""
    from htagraph.core.counting import sum_in_common  # numba takes a moment to load

    lags, gaps = some.counted
    least = _SAME_GAIN * some.total
    common = sum_in_common(some.time.edges, lags, other.time.edges)
    return common + sum_in_common(some.time.gaps, gaps, other.time.gaps) >= least


def straggler_gain(baseline: Baseline, factors: Mapping[str, float], steps: int) -> list[dict[str, Any]]:
    """Return the row of the straggler in `htagraph.opportunities`, if there is one whose fix gains."""
    state = baseline.state
    rank = straggler_of(state.graph)[0]
    if rank is None:
        return []
    fixed = fix_straggler(state, rank=rank)
    lag, gap = state.lag - fixed.lag, state.gap - fixed.gap
    gain = baseline.gained(fixed)
    if gain <= 0 or gap[unrecorded_host(state.graph)].any():
        return []
    vertices, edges = baseline.path
    gains = {}
    for column, factor in factors.items():
        more = (np.rint(factor * each).astype(np.int64) for each in (lag, gap))
        part = replace(state, lag=fixed.lag + next(more), gap=fixed.gap + next(more))
        gains[column] = baseline.gained(part) / 1000
    row = {
        "what": "straggler",
        "name": f"rank {rank} beyond its peers'",
        "target": "",
        "time_us": float(lag.sum() + gap.sum()) / 1000,
        "critical_us": float(lag[edges].sum() + gap[vertices].sum()) / 1000,
        **_gained(baseline, gain, fixed, steps),
        **gains,
        "note": f"work that takes longer than its peers'; to predict it: --fix-straggler {rank}",
        "inside": "",
    }
    return [row]
