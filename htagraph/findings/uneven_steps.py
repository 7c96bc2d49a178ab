"""Some steps take far longer or shorter than the others: why, if something runs in these alone or takes longer there.

Else figures per step are of neither. What explains the most of how much longer a rank's steps are is named: a region,
frame or operator that the others lack, or whose own time is longer. Of another thread it has to be in those steps
alone, more often than by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import Any, TypeAlias

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import ADDED, COMMUNICATION, ActivityKind, of_kinds
from htagraph.core.statistics import CHANCE, MOST, SEVERAL
from htagraph.findings.finding import Claim, Evidence, Finding, in_short, of_activities
from htagraph.findings.limits import MAX_LISTED, MIN_PERCENT, MOST_ROWS
from htagraph.findings.phrases import and_list, plural, ranks_text, time_text
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part
from htagraph.graph.measures.steps import cadence_of, is_paced_by_ends, usual_step_ns
from htagraph.graph.tolerances import LIMITS

__all__ = ["UNEVEN_STEPS", "step_text"]

_Long: TypeAlias = tuple[Array, Array, Array]
"""Of the steps of a rank: their numbers; how much longer than usual each takes, ns, 0 where it is not far longer; which
neither warm up nor lie at the edge of the recording, where they may be long for that."""
_Cause: TypeAlias = tuple[Array, bool, bool, Array]
"""What makes steps long: how much of each, ns; whether the other steps lack it; whether it runs on another thread than
the steps; its activities in them, the longest first."""


def step_text(graph: DependencyGraph) -> str:
    """Return how many steps take how long: the usual time, and the mean where that differs, or the range if none is.

    Steps that the figure is not of, as where none is usual or no work was recorded, are named with their times.

    Example:
        >>> import htagraph as hg
        >>> step_text(hg.load("data/demo"))
        '3 steps of 8.70 ms'
    """
    cadence, spans = cadence_of(graph), graph.step_spans
    if cadence is None:
        return ""
    # without what profilers do, and without work that was begun before the recording
    usual = usual_step_ns(graph, graph.time) if cadence.chosen.any() else cadence.usual_ns
    said = cadence.chosen | cadence.alike | (not cadence.chosen.any())
    some, other = cadence.lengths[said], ~np.isin(spans.step, cadence.steps[said])
    numbers, at = np.unique(spans.step[other], return_inverse=True)
    took = np.bincount(at, (graph.time[spans.end] - graph.time[spans.start])[other]) / np.bincount(at)
    text, mean = time_text(usual / 1000), float(np.nanmean(some))
    if not cadence.alike and len(some) > 1:
        text = f"{text} ({_range(some)})" if len(cadence.steps) > 2 else _range(some)
    elif usual < LIMITS.nearly_all * mean:
        text += f" ({time_text(mean / 1000)} on average)"
    without = f", without {_these(numbers.tolist())} ({_range(took)})" if len(numbers) else ""
    return f"{plural(int(np.bincount(spans.rank[~other]).max()), 'step')} of {text}{without}"


def _range(lengths: Array) -> str:
    return " to ".join(dict.fromkeys(time_text(float(end(lengths)) / 1000) for end in (np.nanmin, np.nanmax)))


def _long_steps(graph: DependencyGraph) -> dict[int, _Long]:
    """Return the steps of the ranks some of whose steps are far longer than usual."""
    long: dict[int, _Long] = {}
    cadence, spans, ends = cadence_of(graph), graph.step_spans, is_paced_by_ends(graph)
    for rank in graph.ranks if cadence else ():
        own = np.flatnonzero(spans.rank == rank)
        if cadence is None or len(own) <= SEVERAL:
            continue
        begin, end = graph.time[spans.start[own]], graph.time[spans.end[own]]
        last = graph.time[1::2][graph.activities.rank == rank].max()  # what the last step began may go on behind it
        lengths = np.diff(end, prepend=begin[0]) if ends else np.diff(begin, append=last)
        usual = float(np.median(lengths))
        sure = np.isin(spans.step[own], cadence.steps[cadence.warm_up :])
        sure[0 if ends else -1] = False
        excess = np.where(lengths > LIMITS.uneven * usual, lengths - usual, 0.0)
        if excess[sure].any():
            long[rank] = spans.step[own], excess, sure
    return long


def _cause(graph: DependencyGraph, rank: int, long: _Long) -> _Cause | None:
    """Return what explains most of how much longer some steps of a rank are; None for nothing."""
    (steps, excess, sure), acts, spans = long, graph.activities, graph.step_spans
    count, usual = len(steps), excess == 0
    rows = np.arange(len(acts))[acts.of_rank(rank)]
    rows = rows[~of_kinds(acts.kind[rows], (ActivityKind.STEP, ActivityKind.SYNC, *ADDED, *COMMUNICATION))]
    rows = rows[np.isin(acts.step[rows], steps)]
    place, device = np.searchsorted(steps, acts.step[rows]), acts.on_device[rows]
    described = np.stack([acts.name[rows], acts.lane[rows], acts.kind[rows], device])
    items, item = np.unique(described, axis=1, return_inverse=True)
    size, item = items.shape[1], item.ravel()
    own = np.where(device, acts.duration[rows], graph.own_time[rows])
    took = np.concatenate([
        np.bincount(item * count + place, time, size * count).reshape(-1, count) for time in (acts.duration[rows], own)
    ])  # fmt: skip
    whole, (_, lane, kind, on_device) = np.arange(2 * size) < size, np.tile(items, 2)
    lacking = took[:, usual].max(axis=1, initial=0) == 0
    explained = np.clip(took - np.median(took[:, usual], axis=1)[:, None], 0, excess)
    explained[explained < MOST * excess] = 0
    aside = (lane != acts.lane[spans.start[spans.rank == rank][0] >> 1]) & (on_device == 0)
    chance = np.array([1 / comb(count, each) for each in (explained > 0).sum(axis=1).tolist()])
    region = np.isin(kind, (ActivityKind.ANNOTATION, ActivityKind.PYTHON))  # in an operator the host may wait
    fits = (explained[:, sure] > 0).any(axis=1) & ((lacking & region) | ~whole)
    score = explained.sum(axis=1) * (fits & (~aside | (lacking & (chance <= CHANCE))))
    if not score.any():
        return None
    nearly = score >= LIMITS.nearly_all * score.max()  # of what is as much, a region of the program, then the outermost
    at = int(np.lexsort((took.sum(axis=1), whole, kind == ActivityKind.ANNOTATION, nearly))[-1])
    some = rows[(item == at % size) & (explained[at][place] > 0)]
    return explained[at], bool(lacking[at]), bool(aside[at]), some[np.argsort(-acts.duration[some])]


def _explained(results: Results) -> list[Claim]:
    """Claim what makes steps long, of the rank where that is most, if the job lasts long for it."""
    graph, long = results.graph, _long_steps(results.graph)
    causes = {rank: cause for rank, each in long.items() if (cause := _cause(graph, rank, each))}
    if not causes:
        return []
    explains = {each: float(cause[0].sum()) for each, cause in causes.items()}
    rank = max(explains, key=lambda each: explains[each])
    explained, lacking, aside, rows = causes[rank]
    name = graph.activities.name[rows[0]]
    ranks = [each for each, other in causes.items() if graph.activities.name[other[3][0]] == name]
    # others that do not do it are faster by at most what their own long steps lose
    lost = {each: float(long[each][1].sum()) if each in long else 0.0 for each in graph.ranks}
    saved = min(explains[each] if each in ranks else lost[each] for each in graph.ranks) / 1000
    percent = 100_000 * saved / max(results.path.makespan_ns, 1)
    if percent < MIN_PERCENT:
        return []
    steps, excess, sure = long[rank]
    more, own = (float(each[(explained > 0) & sure].mean()) / 1000 for each in (excess, explained))
    facts: dict[str, Any] = {
        "odd": tuple(steps[explained > 0].tolist()), "more_us": more, "own_us": own, "lacking": lacking,
        "aside": aside, "percent": percent, "free_us": saved, "ranks": ranks, "alone": len(ranks) < len(graph.ranks),
    }  # fmt: skip
    proof = tuple(rows[:MOST_ROWS].tolist())
    return [Claim("uneven_steps", graph.names[name], len(facts["odd"]), "count", rows=proof, facts=facts)]


def _when(results: Results) -> list[Claim]:
    cadence = cadence_of(results.graph)
    if cadence is None or len(cadence.steps) < 2:
        return []
    explained = _explained(results) if results.is_whole else []
    odd = cadence.odd
    if explained or not (odd.any() and cadence.alike):  # else the range is said with the figure of a step
        return explained
    numbers, some = tuple(cadence.steps[odd].tolist()), cadence.lengths[odd] / 1000
    facts = {
        "odd": numbers, "low_us": some.min(), "high_us": some.max(), "usual_us": cadence.usual_ns / 1000,
        "warm_up": numbers == tuple(cadence.steps[: cadence.warm_up].tolist()),
    }  # fmt: skip
    return [Claim("uneven_steps", ", ".join(map(str, numbers)), len(numbers), "count", facts=facts)]


def _these(steps: Sequence[int]) -> str:
    some = f"step{'s' * (len(steps) > 1)} {and_list(map(str, steps))}"
    return some if len(steps) <= MAX_LISTED else f"{len(steps)} steps"


def _which(steps: tuple[int, ...]) -> str:
    return f"{_these(steps).capitalize()} {'takes' if len(steps) == 1 else 'take'}"


def _short(claim: Claim) -> str:
    facts = claim.facts
    if "more_us" in facts:
        runs = "runs then" if facts["lacking"] else f"takes {time_text(facts['own_us'])} more then"
        where = " in another thread" * facts["aside"] + f" on {ranks_text(facts['ranks'])}" * facts["alone"]
        saved = f"{time_text(facts['free_us'])} less ({facts['percent']:.0f} %)"
        text = f"{_which(facts['odd'])} {time_text(facts['more_us'])} longer than usual: {in_short(claim.about)} {runs}"
        return f"{text}{where}. Without that, the job would take up to {saved}."
    low, high = time_text(facts["low_us"]), time_text(facts["high_us"])
    lasted = low if low == high else f"{low} to {high}"
    why = "and the usual step is without first steps" if facts["warm_up"] else "so means per step fit neither"
    return f"{_which(facts['odd'])} {lasted}, the others about {time_text(facts['usual_us'])}, {why}."


def _advice(claim: Claim) -> str:
    if not claim.facts.get("lacking"):  # what also runs in the others has findings of its own
        return ""
    return f"See whether {in_short(claim.about)} has to run as often, and whether it can run in a process of its own."


UNEVEN_STEPS = Finding(
    "uneven_steps", needs=frozenset({Part.MEANING}), when=_when, short=_short, advice=_advice,
    evidence=lambda results, claim: Evidence(
        rows=of_activities(results, claim.rows, "The longest of it in the long steps")
    ) if claim.rows else Evidence(),
)  # fmt: skip
