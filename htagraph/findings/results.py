"""What findings are made of: a job and the results of its analyses, each computed once, when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from htagraph.analyses.critical_path import critical_path
from htagraph.analyses.idle_breakdown import idle_breakdown
from htagraph.analyses.interruptions import interruptions
from htagraph.analyses.launch_stats import launch_stats
from htagraph.analyses.stragglers import Stragglers, stragglers
from htagraph.analyses.temporal_breakdown import temporal_breakdown
from htagraph.core.arrays import Array
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import CATEGORIES, ActivityKind
from htagraph.core.naming import MEMORY_OF_DEVICE
from htagraph.core.tables import Col, Table
from htagraph.findings.change import Whole
from htagraph.findings.limits import LARGE_SHARE, MIN_SHARE
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import duration_ns, gain_steps, last_end, usual_steps
from htagraph.graph.selection import columns_of
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.inputs import inputs_of, window_us
from htagraph.queries.path_segments import Bound, Segments, bound_of
from htagraph.queries.paths import CriticalPath
from htagraph.queries.replay import predict
from htagraph.queries.start_up import first_calls, owners_in_start_up, without_start_up
from htagraph.queries.weights import State, initial
from htagraph.trace.readers import Recorder, recorder_of
from htagraph.whatif.changes.exclusive_device import exclusive_device
from htagraph.whatif.changes.free_dataloader import free_dataloader
from htagraph.whatif.changes.free_outside import free_outside
from htagraph.whatif.changes.infinite_host import infinite_host
from htagraph.whatif.changes.scale import scale
from htagraph.whatif.changes.scale_network import scale_network
from htagraph.whatif.opportunities import opportunities
from htagraph.whatif.scenario import Scenario

if TYPE_CHECKING:
    from htagraph.findings.finding import Claim

__all__ = ["CLOCKS", "FREE", "LAUNCHES", "Results"]

LAUNCHES = Table(
    "Launches",
    Col("rank launches", "int64"),
    Col("works", "int64", "pieces of device work linked to them", heading="kernels and copies"),
    Col("median_launch_us median_delay_us"),
    Col("short", "int64", "calls that take longer than all their work", heading="calls longer than their work"),
    Col("excessive_runtime", "int64", "calls over 50 µs", heading="calls > 50 µs"),
    Col("excessive_delay", "int64", "work that starts over 100 µs after its call", heading="delays > 100 µs"),
)
CLOCKS = Table(
    "Clock offsets between ranks, estimated from the ends of collectives",
    Col("rank", "int64"),
    Col("gauge", "int64", "the rank whose clock is taken as right"),
    Col("offset_us", doc="how much more the rank's clock shows than the gauge's clock"),
    Col("drift_ppm uncertainty_us residual_us", doc="NaN where no collective says anything"),
    Col("collectives", "int64", "how many the estimate rests on"),
)

FREE: Final[dict[str, tuple[Callable[[State], State], str]]] = {
    "host": (infinite_host, "--infinite-host"),
    "computation": (partial(scale, factor=0.0, kind=ActivityKind.COMPUTATION.label), "--scale kind=computation:0"),
    "communication": (partial(scale_network, factor=0.0), "--network 0"),
    "memory": (partial(scale, factor=0.0, kind=ActivityKind.MEMORY.label), "--scale kind=memory:0"),
    "data_loading": (free_dataloader, "--free-dataloader"),
    "outside": (free_outside, "--free-outside"),
    "other_work": (exclusive_device, "--exclusive-device"),
    "allocator": (partial(scale, factor=0.0, regex=MEMORY_OF_DEVICE), f"--scale regex={MEMORY_OF_DEVICE}:0"),
}
"""Cause of a bound → the change by which it takes no time, and the change as an option of ``htagraph what-if``."""


class Results:
    """The results of a job's analyses, and the claims that findings make of them.

    Args:
        graph: the job.
        known: results that the caller has, by the name of the property: ``path`` of a window of the job, ``slow``, or
            ``opportunities``.

    Example:
        >>> import htagraph as hg
        >>> Results(hg.load("data/demo")).bound.cause
        'computation'
    """

    def __init__(self, graph: DependencyGraph, **known: object) -> None:
        self.graph = graph
        self._claims: dict[Callable[[Results], Sequence[Claim]], list[Claim]] = {}
        vars(self).update(known)  # where a cached property looks first

    def claims(self, when: Callable[[Results], Sequence[Claim]]) -> list[Claim]:
        """Return what the `when` of a finding claims of this job; computed once."""
        if when not in self._claims:
            self._claims[when] = [replace(claim, recorder=self.recorder) for claim in when(self)]
        return self._claims[when]

    @cached_property
    def recorder(self) -> Recorder:
        """The program that recorded the job."""
        return recorder_of(self.graph.traces.values())

    @cached_property
    def path(self) -> CriticalPath:
        """The critical path of the whole job."""
        return critical_path(self.graph)

    @cached_property
    def is_whole(self) -> bool:
        """Whether the path is that of the whole job, not of a part of it."""
        first, last = self.path.window
        end = last_end(self.graph, self.graph.time)  # a thread that only waits may outlive the job
        return end is not None and last - first >= (1 - MIN_SHARE) * (end - self.graph.origin_ns)

    @cached_property
    def usual(self) -> list[int]:
        """The steps that conclusions are about, where these are not the whole recording (`usual_steps`)."""
        return usual_steps(self.graph) if self.is_whole else []

    @cached_property
    def first_calls(self) -> dict[int, int]:
        """The activities of start-up on the path, and how much of the path each takes beyond its usual time, ns."""
        return first_calls(self.path)

    @cached_property
    def usual_path(self) -> CriticalPath:
        """The path of the usual steps, or the path."""
        return critical_path(self.graph, self.usual) if self.usual else self.path

    @cached_property
    def warm_path(self) -> CriticalPath:
        """The path of the usual steps, or that of the job without start-up."""
        is_as_recorded = bool(self.usual) or self.warm_graph is self.graph or not self.is_whole
        return self.usual_path if is_as_recorded else critical_path(self.warm_graph)

    @cached_property
    def parts(self) -> Segments:
        """The segments that conclusions are about: the usual path without other steps, start-up and the head."""
        if self.warm_path is not self.usual_path:  # the replay left out start-up, and what waited for it
            return self.warm_path.segments
        parts = self.usual_path.segments
        spans = self.graph.step_spans
        before = self.graph.time[spans.end[np.isin(spans.step + 1, self.usual[:1])]]  # then devices did what was queued
        elsewhere = np.isin(self.graph.activities.step[parts.place], [-1, *self.usual], invert=True) & bool(self.usual)
        started = np.isin(owners_in_start_up(self.graph, parts), list(self.first_calls))
        is_head = (parts.category == CATEGORIES.index("head")) & (self.head_ns > 0)
        chosen = ~(started | is_head | elsewhere) & (parts.start + parts.length > before.max(initial=0))
        return parts.only(chosen) if chosen.any() else parts

    @cached_property
    def head_ns(self) -> int:
        """How long the device of a job's only rank did work from before the recording, if that is 5 % of the path."""
        parts = self.path.segments
        head = int(parts.length[parts.category == CATEGORIES.index("head")].sum())
        return head if len(self.graph.ranks) == 1 and head >= MIN_SHARE * self.path.makespan_ns else 0

    @cached_property
    def bound(self) -> Bound:
        """The bound of the window of the path: the cause with the largest share of the path, as its tables show it.

        A host that is nearly as slow bounds no job whose devices compute nearly all the time: the largest other cause
        does, and none where that is little, as the path then passes by what devices do.
        """
        bound = bound_of(self.warm_path, self.parts)
        if bound.cause != "host" or not self.computes or not self.is_whole:
            return bound
        shares = {cause: share for cause, share in bound.causes.items() if cause not in ("host", "head")}
        cause = next(iter(shares), "")
        if shares.get(cause, 0.0) < 100 * LARGE_SHARE:
            return bound._replace(cause="", leaders=())
        return bound._replace(cause=cause, leaders=(cause,))

    @cached_property
    def computes(self) -> bool:
        """Whether devices work nearly all the time, so that a host which is nearly as slow bounds nothing."""
        parts = ["computation_us", "exposed_memory_us", "other_us"]  # the last frames work that was not recorded
        works = self.busy.loc[self.busy["executor"] != "host", parts].sum(axis=1)
        return len(works) > 0 and works.mean() >= LIMITS.nearly_all * window_us(self.graph)

    @cached_property
    def free(self) -> dict[str, int]:
        """By cause of `bound`: how much shorter the job is if that takes no time, ns, the most first.

        Each is a replay, without start-up. Empty for the path of a part of the job.
        """
        if not self.is_whole:
            return {}
        before, gains = self._lasts(self.steady), {}
        for cause, (change, _) in FREE.items():
            with suppress(SelectionError):  # nothing of that kind
                gains[cause] = before - self._lasts(change(self.steady))
        return {cause: gains[cause] for cause in sorted(gains, key=lambda each: -gains[each]) if gains[cause] > 0}

    @cached_property
    def steady(self) -> State:
        """The weights of the job without the time of its start-up."""
        return initial(self.warm_graph)

    @cached_property
    def warm_graph(self) -> DependencyGraph:
        """The job without the time of its start-up, as predicted; as recorded where there is no start-up.

        Changes are tried on it, and gains are gains of it.
        """
        start_up = self.graph.start_up.activity
        if not len(start_up):
            return self.graph
        return Scenario(self.graph, without_start_up(self.graph, start_up)).run().graph

    @property
    def judged_graph(self) -> DependencyGraph:
        """The job of whose time shares are: as recorded for usual steps, else without start-up."""
        return self.graph if self.usual else self.warm_graph

    @property
    def window_us(self) -> float:
        """The time that waits of ranks are shares of, summed over ranks, µs: all of a job that lost its start-up."""
        if self.warm_graph is self.graph:
            return float(self.busy["window_us"].sum())
        return window_us(self.warm_graph) * len(self.graph.ranks)

    def _lasts(self, state: State) -> int:
        time = predict(state.graph, state.lag, state.gap, state.head)
        return round(duration_ns(state.graph, time, self.warm_graph))

    @cached_property
    def makespan_ns(self) -> int:
        """The time that gains are shares of, ns: of as many usual steps, or of all but start-up and the head."""
        return self._lasts(self.steady) - (0 if self.steps > 1 else self.head_ns)

    @cached_property
    def steps(self) -> int:
        """How many steps the times of gains are divided by; 0 for none."""
        return gain_steps(self.warm_graph)

    @property
    def whole(self) -> Whole:
        """The base of gains in percent."""
        return Whole(self.makespan_ns, self.steps, self.warm_graph is not self.graph)

    @cached_property
    def inputs(self) -> pd.DataFrame:
        """What was read; the columns are those of `INPUTS` of `htagraph.queries.inputs`."""
        return inputs_of(self.graph)

    @cached_property
    def temporal(self) -> pd.DataFrame:
        """Time by rank: result of `htagraph.temporal_breakdown`."""
        return temporal_breakdown(self.graph)

    @cached_property
    def busy(self) -> pd.DataFrame:
        """The rows of the time by rank with a window: ranks of which anything was recorded."""
        return self.temporal[self.temporal["window_us"] > 0]

    @cached_property
    def rank_idle(self) -> pd.DataFrame:
        """Idle device time by rank and cause: result of `htagraph.idle_breakdown`."""
        return idle_breakdown(self.graph, by="rank")

    @cached_property
    def slow(self) -> Stragglers:
        """Result of `htagraph.stragglers` of the job without start-up."""
        return stragglers(self.warm_graph)

    @cached_property
    def opportunities(self) -> pd.DataFrame:
        """Result of `htagraph.opportunities`."""
        return opportunities(self.warm_graph, top=10 * self.wide)

    @cached_property
    def wide(self) -> int:
        """How many times as many opportunities are looked at, as their gain may be in other steps."""
        return 2 if self.usual else 1

    @cached_property
    def interruptions(self) -> pd.DataFrame:
        """Result of `htagraph.interruptions`."""
        return interruptions(self.graph)

    @cached_property
    def collectives(self) -> pd.DataFrame:
        """Each rank's part in each collective: result of `htagraph.collectives`."""
        from htagraph.analyses.collectives import collectives  # a summary does without

        return collectives(self.graph)

    @cached_property
    def launches(self) -> pd.DataFrame:
        """Launch calls by rank; the columns are described at `LAUNCHES`."""
        stats = launch_stats(self.graph)
        calls = stats.drop_duplicates("launch").groupby("rank").agg(
            launches=("launch", "size"), median_launch_us=("launch_us", "median"), short=("short", "sum"),
            excessive_runtime=("excessive_runtime", "sum"),
        )  # fmt: skip
        works = stats.groupby("rank").agg(
            works=("work", "size"), median_delay_us=("delay_us", "median"), excessive_delay=("excessive_delay", "sum")
        )
        return calls.join(works).reset_index()[list(LAUNCHES.types)]

    @cached_property
    def clocks(self) -> pd.DataFrame:
        """How far each rank's clock is from that of its gauge, and how well that is known."""
        rows = [
            (
                clock.rank, clock.gauge, clock.offset_ns / 1000, clock.drift_ppm,
                clock.uncertainty_ns / 1000 if clock.uncertainty_ns >= 0 else float("nan"), clock.residual_ns / 1000,
                clock.collectives,
            )
            for clock in self.graph.clocks
        ]  # fmt: skip
        return CLOCKS.frame(rows)

    def rows(self, activities: Array) -> pd.DataFrame:
        """Return activities as a table: ``name``, ``rank``, ``where``, ``start_us``, ``duration_us``."""
        table = pd.DataFrame(columns_of(self.graph, activities, "name", "rank", "lane", "start_us"))
        lasted = self.graph.time[2 * activities + 1] - self.graph.time[2 * activities]
        return table.rename(columns={"lane": "where"}).astype({"rank": "int64"}).assign(duration_us=lasted / 1000)
