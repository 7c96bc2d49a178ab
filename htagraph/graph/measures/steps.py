"""`graph.step_spans`, when each step starts and ends, and what follows: the usual, odd and comparable steps.

All verbs give one figure for the time of a step (`usual_step_ns`): the mean time from step to step of the regular
steps, without first steps that warm up and without odd steps. A gain per step is the fall of this figure: the saving in
all regular steps over their number. So gains of disjoint work add up to at most the time of a step. Of a median, where
few steps differ, a single step decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, marked
from htagraph.core.computing import once
from htagraph.core.kinds import ADDED, DEVICE_WORK, ActivityKind, of_kinds
from htagraph.core.statistics import MOST, SEVERAL
from htagraph.graph.activities import frozen
from htagraph.graph.tolerances import LIMITS

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.graph.selection import IntSelector

__all__ = [
    "Cadence", "StepWindow", "Steps", "cadence_of", "duration_ns", "gain_steps", "is_paced_by_ends", "known_lengths",
    "last_end", "mean_by", "mean_step_ns", "regular_steps", "step_lengths", "step_window", "steps_of", "usual_step_ns",
    "usual_steps", "whole_steps",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class Steps:
    """The steps of all ranks, by (rank, step)."""

    rank: npt.NDArray[np.int64]
    step: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    """The vertex at which the step's annotation starts."""
    end: npt.NDArray[np.int64]
    """The vertex at which the annotation and all work launched in it are over."""

    def __len__(self) -> int:
        return len(self.rank)

    def columns(self, start: Array, end: Array) -> dict[str, Array]:
        """Return the columns of `htagraph.step_times`; `start` and `end` of each step are ns since the job's origin."""
        lasted = (end - start) / 1000
        return {
            "rank": self.rank, "step": self.step, "start_us": start / 1000, "end_us": end / 1000, "duration_us": lasted
        }  # fmt: skip


def steps_of(graph: DependencyGraph) -> Steps:
    """Return what `graph.step_spans` is. Of several annotations with the same number, the one that starts first counts.

    Where devices work in steps, a rank's last one is none if nothing was recorded in it: the recording stopped there.

    Example:
        >>> import htagraph as hg
        >>> steps = hg.load("data/demo").step_spans
        >>> steps.rank[:4].tolist(), steps.step[:4].tolist()
        ([0, 0, 0, 1], [5, 6, 7, 5])
    """
    acts = graph.activities
    ends, marks = (np.flatnonzero(acts.kind == kind) for kind in (ActivityKind.BOUNDARY, ActivityKind.STEP))
    ends = ends[np.lexsort((acts.step[ends], acts.rank[ends]))]
    marks = marks[np.lexsort((acts.start[marks], acts.step[marks], acts.rank[marks]))]
    start = marks[np.searchsorted(acts.rank_and_step(marks), acts.rank_and_step(ends))]
    return Steps(acts.rank[ends].astype(np.int64), acts.step[ends].astype(np.int64), 2 * start, 2 * ends)


def last_end(graph: DependencyGraph, time: Array) -> int | None:
    """Return the last end of any activity on a thread or stream that takes part in the job, ns; None without any."""
    ends, awake = time[1::2], graph.awake
    if not awake.any():
        return None
    last = int(ends.max())
    if awake[np.argmax(ends)]:  # nearly always; to look at those that take part alone takes several times as long
        return last
    return int(ends.max(where=awake, initial=np.iinfo(np.int64).min))


def mean_step_ns(graph: DependencyGraph, time: Array) -> float:
    """Return the time from the first step's start on any rank to the last one's end over the number of steps, ns.

    Without steps, it is the time from the first moment to the last of any thread that does something. `time` is the
    moment of each vertex, ns, as recorded or as predicted.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> round(mean_step_ns(graph, graph.time) / 1e6, 2)
        8.72
    """
    steps = graph.step_spans
    if not len(steps):
        last = last_end(graph, time)  # no moment is later
        return 0.0 if last is None else float(last - graph.origin_ns)
    some = _with_work(graph)
    return float(time[steps.end[some]].max() - time[steps.start[some]].min()) / len(np.unique(steps.step[some]))


@once
def whole_steps(graph: DependencyGraph) -> int:
    """Return how many steps a recording consists of; 0 if they cover less than 90 % or their mean is no usual step."""
    steps = graph.step_spans
    if not len(steps):
        return 0
    covered, share = _covered(graph)
    most = int(np.bincount(steps.rank).max())  # ranks may number the same steps differently
    usual = most * usual_step_ns(graph, graph.time)
    is_usual = LIMITS.nearly_all * max(covered, usual) <= min(covered, usual)
    return most if is_usual and share >= LIMITS.nearly_all else 0


def _covered(graph: DependencyGraph) -> tuple[int, float]:
    """Return the time from the first step's start to the last one's end, ns, and its share of the recording."""
    covered = int(graph.time[graph.step_spans.end].max() - graph.time[graph.step_spans.start].min())
    return covered, covered / max(int(graph.time[1::2][graph.awake].max()) - graph.origin_ns, 1)


class Cadence(NamedTuple):
    """How long the steps of a recording take."""

    steps: npt.NDArray[np.int64]
    """Their numbers, ascending."""
    lengths: npt.NDArray[np.float64]
    """The time of each, ns, mean over ranks: to the next step, or from the one before. Of the step at the edge of the
    recording, which has no neighbour, from its start to its end; NaN where the end may be more than the step's."""
    counted: npt.NDArray[np.bool_]
    """Which steps have a time that may be compared: none that warms up, none at the edge of unknown length."""
    warm_up: int
    """How many steps at the begin take more than twice as long as usual ones."""

    @property
    def usual_ns(self) -> float:
        """How long a step takes: the mean of all steps where none is chosen."""
        return float(self.lengths[self.chosen].mean() if self.chosen.any() else self.lengths.mean())

    @property
    def near(self) -> npt.NDArray[np.bool_]:
        """Which steps that count take within 10 % of their median."""
        return (np.abs(self.lengths - self._middle) <= (1 - LIMITS.nearly_all) * self._middle) & self.counted

    @property
    def alike(self) -> bool:
        """Whether most steps that count are near their median, and at least two or all, so that some are usual."""
        count = int(self.counted.sum())
        return count > 0 and bool(self.near.sum() >= max(min(2, count), MOST * count))

    @property
    def chosen(self) -> npt.NDArray[np.bool_]:
        """Which steps are regular: steps that count and are not odd. Their mean time is the figure of a step."""
        return self.counted & ~self.odd

    @property
    def odd(self) -> npt.NDArray[np.bool_]:
        """Which steps take more than twice or less than half as long as the median."""
        return (self.lengths > LIMITS.uneven * self._middle) | (LIMITS.uneven * self.lengths < self._middle)

    @property
    def _middle(self) -> float:
        return float(np.median(self.lengths[self.counted]) if self.counted.any() else self.lengths.mean())


@once
def is_paced_by_ends(graph: DependencyGraph) -> bool:
    """Return whether steps are timed by their ends, as devices work in them: begins on a host run ahead of its device.

    On hosts, begins are better: an end includes what the profiler does, and other threads may be steps ahead.
    """
    acts = graph.activities
    return bool((acts.on_device & (acts.step >= 0)).any())


def step_lengths(
    graph: DependencyGraph, time: Array, *, ends: bool, some: Array | None = None
) -> tuple[Array, npt.NDArray[np.float64]]:
    """Return (numbers of steps, the time of each from step to step, mean over ranks, ns), by ends or by begins.

    `time` is the moment of each vertex, as recorded or as predicted, ns; `some` are the steps that count, by rank.
    """
    spans = graph.step_spans
    rows = np.arange(len(spans)) if some is None else np.flatnonzero(some)
    step, mark = spans.step[rows], time[(spans.end if ends else spans.start)[rows]]
    follows = np.flatnonzero((spans.rank[rows][1:] == spans.rank[rows][:-1]) & (np.diff(step) == 1))
    return mean_by(step[follows + ends], np.diff(mark)[follows])


def mean_by(key: Array, value: Array) -> tuple[Array, npt.NDArray[np.float64]]:
    """Return (the keys, ascending, the mean of the values of each)."""
    keys, at = np.unique(key, return_inverse=True)
    return keys, np.bincount(at.ravel(), value) / np.bincount(at.ravel())


def known_lengths(graph: DependencyGraph, time: Array, *, ends: bool) -> tuple[Array, npt.NDArray[np.float64]]:
    """Return the result of `step_lengths`, and where begins pace the steps, also the last step from begin to end."""
    number, length = step_lengths(graph, time, ends=ends)
    last = _last_steps(graph)
    last = last[graph.step_spans.step[last] > number.max(initial=-1)]
    if ends or not len(number) or not len(last):
        return number, length
    spans = graph.step_spans
    at_end, lasted = mean_by(spans.step[last], time[spans.end[last]] - time[spans.start[last]])
    return np.append(number, at_end), np.append(length, lasted)


def _last_steps(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return the row of `graph.step_spans` that holds the last step of each rank."""
    return np.flatnonzero(np.diff(graph.step_spans.rank, append=-1))


def _last_is_whole(graph: DependencyGraph, others: Array) -> bool:
    """Return whether the last step on a host is a step like the `others`, whose times are ns.

    An odd last step may hold work that follows the last step, or nothing. A rank that waits for other ranks may wait
    for a rank whose profiler has stopped; a last step no longer than the longest other step shows that it did not.
    """
    spans = graph.step_spans
    last = _last_steps(graph)
    lasted = graph.time[spans.end[last]] - graph.time[spans.start[last]]
    middle = float(np.quantile(others, 0.5, method="lower"))  # of two, one may warm up
    most = LIMITS.uneven * middle if len(last) == 1 else float(others.max())
    return float(lasted.max()) <= most and LIMITS.uneven * float(lasted.mean()) >= middle


def _with_work(graph: DependencyGraph) -> npt.NDArray[np.bool_]:
    """Return which of `graph.step_spans` hold anything: where devices work in steps, the last one of a rank may not."""
    acts, spans = graph.activities, graph.step_spans
    work = np.flatnonzero((acts.step >= 0) & ~of_kinds(acts.kind, (ActivityKind.STEP, *ADDED)))
    empty = np.isin(acts.rank_and_step(spans.end >> 1), acts.rank_and_step(work), invert=True)
    empty &= is_paced_by_ends(graph) & (np.diff(spans.rank, append=-1) != 0)
    return ~empty | (np.bincount(spans.rank)[spans.rank] == 1)


@once
def cadence_of(graph: DependencyGraph) -> Cadence | None:
    """Return how long the steps of a recording take; None without steps.

    Example:
        >>> import htagraph as hg
        >>> cadence = cadence_of(hg.load("data/demo"))
        >>> cadence.steps[cadence.counted].tolist(), round(cadence.usual_ns / 1e6, 2)
        ([6, 7], 8.7)
    """
    spans = graph.step_spans
    if not len(spans):
        return None
    ends, some = is_paced_by_ends(graph), _with_work(graph)
    own = graph.time[spans.end] - np.maximum(graph.time[spans.start], _queue_end(graph))
    numbers, lengths = mean_by(spans.step[some], own[some])
    known, between = step_lengths(graph, graph.time, ends=ends, some=some)
    places = np.searchsorted(numbers, known)
    lengths[places] = between
    if len(known) < SEVERAL:
        places = np.arange(len(numbers))
    at_end = not ends and len(known) > 0 and _last_is_whole(graph, between)
    if not ends and not at_end and len(known) >= SEVERAL:
        lengths[np.setdiff1d(np.arange(len(numbers)), places)] = np.nan
    normal = np.flatnonzero(lengths <= LIMITS.uneven * np.quantile(lengths[places], 0.5, method="lower"))
    warm_up = int(normal[0]) if len(normal) else 0
    counted = marked(np.searchsorted(numbers, known), len(numbers))
    counted[:warm_up] = False
    counted[-1] |= at_end and bool(counted.any())  # alone, the step at the edge says nothing
    return Cadence(numbers, lengths, counted, warm_up)


def _queue_end(graph: DependencyGraph) -> npt.NDArray[np.int64]:
    """Return when the device of each step's rank was done with what was launched before the recording, ns; or 0."""
    acts, spans = graph.activities, graph.step_spans
    done = np.zeros(len(spans), np.int64)
    for rank in {issue.rank for issue in graph.issues if issue.what == "launch_missing"}:
        works = np.flatnonzero(of_kinds(acts.kind, DEVICE_WORK) & (acts.rank == rank))
        begin, lost = graph.time[2 * works], acts.cause[works] < 0
        before = works[lost & (begin < begin[~lost].min(initial=np.iinfo(np.int64).max))]
        own, last = spans.rank == rank, graph.time[2 * before + 1].max(initial=0)
        since = last - graph.time[spans.start[own]].min(initial=last)
        done[own] = last if acts.duration[before].sum() >= LIMITS.nearly_all * since else 0  # a queue leaves no pause
    return done


def usual_step_ns(graph: DependencyGraph, time: Array, like: DependencyGraph | None = None) -> float:
    """Return how long a step takes, ns, of the steps that are chosen in the recording `like`, the graph itself.

    `time` is the moment of each vertex, ns, as recorded or as predicted. Without two steps it is `mean_step_ns`.
    """
    lengths = regular_steps(graph, time, like)[1]
    usual = float(lengths.mean()) if len(lengths) else 0.0
    return usual if usual > 0 else mean_step_ns(graph, time)  # ends that a change puts in another order are no steps


def regular_steps(
    graph: DependencyGraph, time: Array, like: DependencyGraph | None = None
) -> tuple[Array, npt.NDArray[np.float64]]:
    """Return (the numbers of the regular steps, the time of each, ns); see `usual_step_ns`."""
    if like is None and time is graph.time:
        return _recorded_regular_steps(graph)
    return _regular_steps(graph, time, like or graph)


@once
def _recorded_regular_steps(graph: DependencyGraph) -> tuple[Array, npt.NDArray[np.float64]]:
    """Return the result of `regular_steps` as recorded, which each gain and each finding asks for."""
    numbers, lengths = _regular_steps(graph, graph.time, graph)
    return frozen(numbers), frozen(lengths)


def _regular_steps(graph: DependencyGraph, time: Array, like: DependencyGraph) -> tuple[Array, npt.NDArray[np.float64]]:
    numbers, lengths = known_lengths(graph, time, ends=is_paced_by_ends(like))
    regular = np.isin(numbers, _regular_numbers(like))
    return numbers[regular], lengths[regular]


@once
def _regular_numbers(graph: DependencyGraph) -> Array:
    """Return the numbers of the regular steps of a recording, none without a cadence."""
    cadence = cadence_of(graph)
    return frozen(cadence.steps[cadence.chosen] if cadence else np.zeros(0, np.int64))


@once
def usual_steps(graph: DependencyGraph) -> list[int]:
    """Return the regular steps, where a recording holds much else, such as a warm-up or odd steps; else none.

    The regular steps (`Cadence.chosen`) stand for the recording if steps are alike, cover most of the recording, and
    take most of the time of the steps that count: where few steps take most of that time, the job is slow by these few.

    Example:
        >>> import htagraph as hg
        >>> usual_steps(hg.load("data/demo"))  # which are the whole recording
        []
    """
    cadence = None if whole_steps(graph) else cadence_of(graph)
    if cadence is None or _covered(graph)[1] < MOST:
        return []
    held = cadence.lengths[cadence.chosen].sum() >= MOST * cadence.lengths[cadence.counted].sum()
    return cadence.steps[cadence.chosen].tolist() if held and cadence.alike and cadence.chosen.sum() > 1 else []


def gain_steps(graph: DependencyGraph) -> int:
    """Return of how many steps a gain is: of the usual ones, or of all that the recording consists of; 0 for none."""
    return len(usual_steps(graph)) or whole_steps(graph)


def duration_ns(graph: DependencyGraph, time: Array, like: DependencyGraph | None = None) -> float:
    """Return how long a job takes, ns: as many steps as gains are of (`gain_steps`), or up to its last moment.

    So what few steps do, and work that the begin or the end of the recording cuts, is no gain per step. `time` is the
    moment of each vertex, as recorded or as predicted; the steps are those of the recording `like`.
    """
    count = gain_steps(like or graph)
    if count > 1:
        return count * usual_step_ns(graph, time, like)
    last = last_end(graph, time)
    return 0.0 if last is None else float(last - (like or graph).origin_ns)


@dataclass(frozen=True, eq=False)
class StepWindow:
    """Successive steps of one rank, and where they begin and end."""

    rank: int
    steps: npt.NDArray[np.int64]
    """Numbers of the steps that the rank recorded, ascending."""
    begins: npt.NDArray[np.int64]
    """The vertex at which each begins: the start of its annotation."""
    end: int
    """The vertex at which the last one ends: where the annotation and all its work are over."""

    def lengths(self, time: Array) -> npt.NDArray[np.int64]:
        """Return how long each step takes, ns: to the start of the next one, the last one to its end."""
        return np.diff(np.append(time[self.begins], time[self.end]))

    def mean(self, time: Array) -> float:
        """Return the mean step time, ns; steps that were not recorded count."""
        return float(time[self.end] - time[self.begins[0]]) / int(self.steps[-1] - self.steps[0] + 1)


def step_window(graph: DependencyGraph, steps: IntSelector = None, ranks: IntSelector = None) -> StepWindow | None:
    """Return the steps of the rank that says how long a step takes; None for a job without steps.

    Of the ranks with most steps and no shorter ones than others, it is the one whose last step is most like its others.
    Steps in which some rank did not record are left out where most were recorded by all.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> window = step_window(graph)
        >>> bool(window.mean(graph.time) == window.lengths(graph.time).mean())
        True
    """
    spans = graph.step_spans
    windows = _windows(spans, _in_common(spans, graph.select(step=steps, rank=ranks).activities))
    if not windows:
        return None
    most = max(len(each.steps) for each in windows)
    lengths = {each: each.lengths(graph.time) for each in windows if len(each.steps) == most}
    usual = {each: float(np.median(every[: max(1, most - 1)])) for each, every in lengths.items()}
    alike = [each for each in usual if usual[each] >= (1 - LIMITS.small) * max(usual.values())]
    return min(alike, key=lambda each: abs(lengths[each][-1] - usual[each]))


def _in_common(steps: Steps, chosen: Array) -> Array:
    """Return which of the steps are chosen and recorded by all ranks; all the chosen ones where those are few."""
    rows = np.flatnonzero(np.isin(steps.end >> 1, chosen))
    number, count = np.unique(steps.step[rows], return_counts=True)
    common = number[count == len(np.unique(steps.rank[rows]))]
    return rows[np.isin(steps.step[rows], common)] if len(common) >= MOST * len(number) else rows


def _windows(steps: Steps, chosen: Array) -> list[StepWindow]:
    """Return the window of each rank, given which steps are chosen."""
    by_rank = {rank: chosen[steps.rank[chosen] == rank] for rank in np.unique(steps.rank[chosen]).tolist()}
    return [
        StepWindow(rank, steps.step[rows], steps.start[rows], int(steps.end[rows[-1]]) + 1)
        for rank, rows in by_rank.items()
    ]
