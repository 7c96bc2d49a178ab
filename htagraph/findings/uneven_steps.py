"""Some steps take far longer or shorter than other steps: why, if something runs in these alone or takes longer there.

Figures per step are of the other steps. The finding names the region, frame or operator that explains most of how much
longer a rank's steps are: other steps lack it, or its own time is longer. Of another thread it has to be in long steps
alone, more often than by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import NamedTuple, TypeAlias

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import ADDED, COMMUNICATION, ActivityKind, of_kinds
from htagraph.core.statistics import CHANCE, MOST, SEVERAL
from htagraph.findings.change import Gain
from htagraph.findings.finding import Claim, Evidence, Finding, gain_in, in_short, of_activities
from htagraph.findings.limits import LARGE_SHARE, MAX_LISTED, MIN_PERCENT, MOST_ROWS
from htagraph.findings.phrases import and_list, plural, ranks_text, time_text
from htagraph.findings.results import Results
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part
from htagraph.graph.measures.steps import Cadence, cadence_of, is_paced_by_ends, mean_by, usual_step_ns
from htagraph.graph.tolerances import LIMITS

__all__ = [
    "UNEVEN_STEPS",
    "LongReason",
    "StepTimes",
    "StepsInWords",
    "UnevenStepsClaim",
    "step_range_text",
    "step_text",
    "steps_in_words",
    "usual_step_text",
]

_Long: TypeAlias = tuple[Array, Array, Array, Array]
"""Of the steps of a rank: their numbers; how much longer than usual each takes, ns, 0 where it is not far longer; which
neither warm up nor lie at the edge of the recording, where steps may be long; the steps that long steps are
compared with."""
_Cause: TypeAlias = tuple[Array, bool, bool, Array]
"""What makes steps long: how much of each, ns; whether the other steps lack it; whether it runs on another thread than
the steps; its activities in them, the longest first."""


class LongReason(NamedTuple):
    """A region, frame or operator makes steps long."""

    more_us: float
    """How much longer than usual these steps are on average, µs."""
    own_us: float
    """How much of that it takes itself, µs."""
    is_lacking: bool
    """Whether the other steps lack it."""
    is_aside: bool
    """Whether it runs in another thread than the steps."""
    is_of_some: bool
    """Whether it runs on some ranks alone."""


class StepTimes(NamedTuple):
    """How long odd steps take, and usual steps."""

    low_us: float
    """The shortest odd step, µs."""
    high_us: float
    """The longest odd step, µs."""
    usual_us: float
    """Usual steps, µs."""


@dataclass(frozen=True, kw_only=True)
class UnevenStepsClaim(Claim):
    """Steps take far longer or shorter than usual; the figure is how many."""

    odd: tuple[int, ...]
    """The numbers of these steps."""
    how: LongReason | StepTimes
    """Why they are long, or, where nothing explains it, how long steps take."""


class StepsInWords(NamedTuple):
    """How many steps take how long."""

    number: int
    """The steps of the average."""
    lasts: str
    """The average, with the range where some step is not near the median, and all other steps."""

    @property
    def text(self) -> str:
        """Number and average, as a part of a sentence."""
        return f"{plural(self.number, 'step')} of {self.lasts}"


def step_text(graph: DependencyGraph) -> str:
    """Return how many steps take how long on average, with the range where some step is not near the median.

    Odd steps and steps that warm up are no part of the average: the text names such steps and gives their times.

    Example:
        >>> import htagraph as hg
        >>> step_text(hg.load("data/demo"))
        '3 steps of 8.70 ms'
    """
    words = steps_in_words(graph)
    return words.text if words else ""


def steps_in_words(graph: DependencyGraph) -> StepsInWords | None:
    """Return the parts of `step_text`; None without steps.

    Example:
        >>> import htagraph as hg
        >>> steps_in_words(hg.load("data/demo"))
        StepsInWords(number=3, lasts='8.70 ms')
    """
    cadence = cadence_of(graph)
    spans = graph.step_spans
    if cadence is None:
        return None
    usual = usual_step_ns(graph, graph.time)
    other = _is_other(graph, cadence, usual)
    lasted = graph.time[spans.end] - graph.time[spans.start]
    numbers, took = mean_by(spans.step[other], lasted[other])
    without = f", without {_these(numbers.tolist())} ({_range(took)})" if len(numbers) else ""
    count = int(np.bincount(spans.rank[~other]).max())
    behind = _behind_earlier_work(graph, cadence, usual)
    return StepsInWords(count, f"{_average(cadence, usual)}{without}{behind}")


def usual_step_text(graph: DependencyGraph) -> str:
    """Return how many steps take how long on average; empty without steps.

    Odd steps and steps that warm up are no part of it.

    Example:
        >>> import htagraph as hg
        >>> usual_step_text(hg.load("data/demo"))
        '3 steps of 8.70 ms'
    """
    cadence = cadence_of(graph)
    if cadence is None:
        return ""
    usual = usual_step_ns(graph, graph.time)
    other = _is_other(graph, cadence, usual)
    recorded = int(np.bincount(graph.step_spans.rank).max())
    count = int(np.bincount(graph.step_spans.rank[~other]).max())
    time = time_text(usual / 1000)
    odd_count = recorded - count
    if odd_count >= SEVERAL and odd_count > LARGE_SHARE * recorded:  # a part of the job, not odd steps
        return f"{count} of {plural(recorded, 'step')}, of {time}"
    if other.any() and 1 < count < SEVERAL:  # too few to call all others odd
        return f"{count} of {plural(recorded, 'step')}, of {time}"
    if not other.any() and _are_far_apart(graph):
        return f"{plural(count, 'step')} of {time} in the mean"
    is_usual = "usual " if other.any() and count > 1 else ""
    return f"{plural(count, f'{is_usual}step')} of {time}"


def step_range_text(graph: DependencyGraph) -> str:
    """Return the range of all steps, where the steps of the average are few, or steps are far apart; else empty.

    Example:
        >>> import htagraph as hg
        >>> step_range_text(hg.load("data/demo"))
        ''
    """
    cadence = cadence_of(graph)
    if cadence is None or not _are_far_apart(graph):
        return ""
    usual = usual_step_ns(graph, graph.time)
    other = _is_other(graph, cadence, usual)
    count = int(np.bincount(graph.step_spans.rank[~other]).max())
    if other.any() and not 1 < count < SEVERAL:
        return ""
    shortest_ns, longest_ns = _extremes(graph)
    return f"{time_text(shortest_ns / 1000)} to {time_text(longest_ns / 1000)}"


def _are_far_apart(graph: DependencyGraph) -> bool:
    """Return whether the longest step takes more than twice as long as the shortest."""
    extremes = _extremes(graph)
    return extremes.longest_ns > LIMITS.uneven * extremes.shortest_ns


class _Extremes(NamedTuple):
    """The shortest and the longest step of a recording."""

    shortest_ns: float
    longest_ns: float


def _extremes(graph: DependencyGraph) -> _Extremes:
    """Return the shortest and the longest step of any rank, as where two kinds of steps take turns on ranks.

    A step lasts to the next one, or from the one before; without this neighbour, from its begin to its end.
    """
    spans = graph.step_spans
    by_ends = is_paced_by_ends(graph)
    mark = graph.time[spans.end if by_ends else spans.start]
    lasted = graph.time[spans.end] - graph.time[spans.start]
    follows = np.flatnonzero((np.diff(spans.rank) == 0) & (np.diff(spans.step) == 1))
    lengths = lasted.copy()
    lengths[follows + by_ends] = np.diff(mark)[follows]
    return _Extremes(float(lengths.min()), float(lengths.max()))


def _is_other(graph: DependencyGraph, cadence: Cadence, usual_ns: float) -> Array:
    """Return which of the spans of steps belong to odd steps, or to steps that warm up."""
    said = _like_regular_steps(graph, cadence, usual_ns)
    return ~np.isin(graph.step_spans.step, cadence.steps[said])


def _behind_earlier_work(graph: DependencyGraph, cadence: Cadence, usual_ns: float) -> str:
    """Return how much of a step devices had, where they first did work begun before the recording; else empty.

    A step without a neighbour lasts from its begin to its end, with the time until that work is over.
    """
    spans = graph.step_spans
    lasted = float((graph.time[spans.end] - graph.time[spans.start]).mean())
    is_alone = len(cadence.steps) == 1
    is_shorter = cadence.usual_ns < (1 - LIMITS.small) * lasted
    if not (is_alone and is_shorter):
        return ""
    own = min(cadence.usual_ns, usual_ns)
    return f" ({time_text(own / 1000)} behind earlier work of the device)"


def _like_regular_steps(graph: DependencyGraph, cadence: Cadence, usual_ns: float) -> Array:
    """Return which steps are regular or, at the edge of the recording, last as long as regular steps."""
    if not cadence.chosen.any():
        return np.ones(len(cadence.steps), np.bool_)
    spans = graph.step_spans
    lasted = graph.time[spans.end] - graph.time[spans.start]
    numbers, from_begin_to_end = mean_by(spans.step, lasted)
    own = from_begin_to_end[np.isin(numbers, cadence.steps)]
    lengths = np.where(np.isnan(cadence.lengths), own, cadence.lengths)
    is_longer = lengths > LIMITS.uneven * usual_ns
    is_shorter = LIMITS.uneven * lengths < usual_ns
    return cadence.chosen | ~(cadence.odd | is_longer | is_shorter)


def _average(cadence: Cadence, usual_ns: float) -> str:
    """Return the average of regular steps, and the range of the steps or the only step that is not near the median."""
    chosen = cadence.chosen if cadence.chosen.any() else ~np.isnan(cadence.lengths)
    lengths = cadence.lengths[chosen]
    far = chosen & ~cadence.near
    text = time_text(usual_ns / 1000)
    if not far.any() or len(lengths) == 1:
        return text
    if len(cadence.steps) <= 2:
        return _range(lengths)
    if far.sum() > 1 or not cadence.chosen.any():
        return f"{text} ({_range(lengths)})"
    odd = f"step {cadence.steps[far][0]}: {_range(cadence.lengths[far])}"
    near = _range(cadence.lengths[chosen & ~far])
    return f"{text} ({odd}, the others: {near})"


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
        sure = np.isin(spans.step[own], cadence.steps[cadence.warm_up :])
        sure[0 if ends else -1] = False
        is_long = lengths > LIMITS.uneven * np.median(lengths)
        if not is_long[sure].any():
            continue
        compared = _comparable(graph, rank, spans.step[own], is_long)
        usual = float(np.median(lengths[compared]))
        excess = np.where(is_long & (lengths > LIMITS.uneven * usual), lengths - usual, 0.0)
        if excess[sure].any():
            long[rank] = spans.step[own], excess, sure, compared
    return long


def _comparable(graph: DependencyGraph, rank: int, steps: Array, is_long: Array) -> Array:
    """Return the steps of a rank that long steps are compared with: steps that do the same, or all other steps.

    Steps take turns where some evaluate and others train. Names that some steps have, and not all, tell what a step
    does; a name that a single step has says nothing.
    """
    acts, count = graph.activities, len(steps)
    rows = np.arange(len(acts))[acts.of_rank(rank)]
    rows = rows[np.isin(acts.step[rows], steps) & ~of_kinds(acts.kind[rows], (ActivityKind.STEP, *ADDED))]
    place = np.searchsorted(steps, acts.step[rows])
    pairs = np.unique(acts.name[rows].astype(np.int64) * count + place)
    name, place = np.divmod(pairs, count)
    steps_with_name = np.bincount(name)[name]
    tells = (steps_with_name > 1) & (steps_with_name < count)
    # steps of the same names have the same sum of numbers that are drawn, one per name
    number = np.random.default_rng(0).random(len(graph.names))
    kinds = np.bincount(place[tells], number[name[tells]], count)
    alike = ~is_long & np.isin(kinds, kinds[is_long])
    return alike if np.isin(kinds[is_long], kinds[alike]).all() else ~is_long


def _cause(graph: DependencyGraph, rank: int, long: _Long) -> _Cause | None:
    """Return what explains most of how much longer some steps of a rank are; None for nothing."""
    (steps, excess, sure, usual), acts, spans = long, graph.activities, graph.step_spans
    count = len(steps)
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


def _explained(results: Results) -> list[UnevenStepsClaim]:
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
    gain = Gain(saved, 0.0, saved, 0, results.path.makespan_ns / 1000)  # no replay says how much of it is gained
    if gain.percent < MIN_PERCENT:
        return []
    steps, excess, sure, _ = long[rank]
    more, own = (float(each[(explained > 0) & sure].mean()) / 1000 for each in (excess, explained))
    odd = tuple(steps[explained > 0].tolist())
    claim = UnevenStepsClaim(
        "uneven_steps",
        graph.names[name],
        len(odd),
        "count",
        rows=tuple(rows[:MOST_ROWS].tolist()),
        gain=gain,
        ranks=tuple(ranks),
        odd=odd,
        how=LongReason(more, own, lacking, aside, len(ranks) < len(graph.ranks)),
    )
    return [claim]


def _when(results: Results) -> list[UnevenStepsClaim]:
    cadence = cadence_of(results.graph)
    if cadence is None or len(cadence.steps) < 2:
        return []
    explained = _explained(results) if results.is_whole else []
    odd = cadence.odd
    if explained or not (odd.any() and cadence.alike):  # else the range is said with the figure of a step
        return explained
    numbers = tuple(cadence.steps[odd].tolist())
    lengths_us = cadence.lengths[odd] / 1000
    times = StepTimes(float(lengths_us.min()), float(lengths_us.max()), cadence.usual_ns / 1000)
    about = ", ".join(map(str, numbers))
    return [UnevenStepsClaim("uneven_steps", about, len(numbers), "count", odd=numbers, how=times)]


def _these(steps: Sequence[int]) -> str:
    some = f"step{'s' * (len(steps) > 1)} {and_list(map(str, steps))}"
    return some if len(steps) <= MAX_LISTED else f"{len(steps)} steps"


def _which(steps: tuple[int, ...]) -> str:
    return f"{_these(steps).capitalize()} {'takes' if len(steps) == 1 else 'take'}"


def _short(claim: UnevenStepsClaim) -> str:
    which = _which(claim.odd)
    if isinstance(claim.how, LongReason):
        return f"{which} {_explanation(claim, claim.how)}"
    low, high = time_text(claim.how.low_us), time_text(claim.how.high_us)
    lasted = low if low == high else f"{low} to {high}"
    others = f"the others about {time_text(claim.how.usual_us)}"
    return f"{which} {lasted}, {others}; figures per step are of the others."


def _explanation(claim: UnevenStepsClaim, reason: LongReason) -> str:
    """Return how much longer steps take, why, and the gain of the job without the reason."""
    runs = "runs then" if reason.is_lacking else f"takes {time_text(reason.own_us)} more then"
    where = " in another thread" if reason.is_aside else ""
    where += f" on {ranks_text(claim.ranks)}" if reason.is_of_some else ""
    gain = gain_in(claim)
    saved = f"{time_text(gain.value_us)} less ({gain.percent:.0f} %)"
    text = f"{time_text(reason.more_us)} longer than usual: {in_short(claim.about)} {runs}"
    return f"{text}{where}. Without that, the job would take up to {saved}."


def _why(claim: UnevenStepsClaim) -> str:
    """Return which steps are long, and for what; empty where nothing explains it."""
    if not isinstance(claim.how, LongReason):
        return ""
    runs = "runs then" if claim.how.is_lacking else "takes longer then"
    more = time_text(claim.how.more_us)
    return f"{_which(claim.odd)} {more} longer than usual: {in_short(claim.about)} {runs}."


def _advice(claim: UnevenStepsClaim) -> str:
    if not (
        isinstance(claim.how, LongReason) and claim.how.is_lacking
    ):  # what also runs in the others has findings of its own
        return ""
    return f"See whether {in_short(claim.about)} has to run as often, and whether it can run in a process of its own."


UNEVEN_STEPS = Finding(
    "uneven_steps", needs=frozenset({Part.MEANING}), when=_when, short=_short, why=_why,
    advice=_advice, evidence=lambda results, claim: Evidence(
        rows=of_activities(results, claim.rows, "The longest of it in the long steps")
    ) if claim.rows else Evidence(),
)  # fmt: skip
