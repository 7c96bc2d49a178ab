"""summarize: the main job. Where did the time go, and what bounds this job?"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from htagraph.analyses.idle_breakdown import idle_breakdown
from htagraph.analyses.kernel_breakdown import kernel_breakdown
from htagraph.analyses.overlap import overlap
from htagraph.analyses.step_times import step_times
from htagraph.core.errors import check_type
from htagraph.core.tables import Col, Table
from htagraph.findings.changes import ProposedChanges, changes_of
from htagraph.findings.device_idle import DeviceUse, device_use
from htagraph.findings.finding import Claim
from htagraph.findings.head import Head, RecordingExtent, head_of
from htagraph.findings.incomplete import is_judged
from htagraph.findings.limits import MOST_ROWS, SHORT_LIST
from htagraph.findings.next_change import NextChange, next_change_of
from htagraph.findings.phrases import plural, time_text, untraced_before
from htagraph.findings.results import CLOCKS, LAUNCHES, Results
from htagraph.findings.uneven_steps import step_range_text, step_text, usual_step_text
from htagraph.findings.verdict import ROWS, claims_of, rows_of, sentences
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.steps import usual_step_ns
from htagraph.output.report import SCHEMA_VERSION, envelope, gives, top_rows, with_shares
from htagraph.queries.inputs import INPUTS, ISSUES, NO_DEVICE, devices_in, issues_of, window_us
from htagraph.queries.on_workers import UPPER_BOUND, known_us, over_ranks
from htagraph.queries.replay import replay
from htagraph.whatif.opportunities import opportunities

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["SCHEMA_VERSION", "Summary", "summarize", "summary_of"]

_STEPS = Table(
    "Step times (a step ends when all work launched in it has finished)",
    Col("rank steps", "int64"),
    Col("period_us", doc="median from a step's start to the next; NaN for one step", heading="start to start_us"),
    Col("median_us min_us max_us", doc="until all work of a step is over; steps overlap where the host is ahead"),
)
_KERNELS = Table(
    "What takes the most time by kind, all ranks (share of the time of all of these)",
    Col("kind name", "str"),
    Col("ranks", "int64", "number of ranks with this kernel"),
    Col("count", "int64"),
    Col("total_us min_us max_us mean_us"),
    Col("share_percent", doc="of the summed durations of all kernels of all ranks"),
    UPPER_BOUND,
    rank_by="total_us",
)
_JUDGEMENTS = ("opportunities", "stragglers")
"""Tables that conclude or predict, and are empty where the recording lacks a part of the job."""
_OPPORTUNITIES_PER_KERNEL = 2
"""Opportunities for each kernel that is named; chosen: some only wrap others. Doubled, more replays run."""


@dataclass(frozen=True, repr=False)
class Summary:
    """The answers of `htagraph summary` as tables and sentences.

    Attributes:
        inputs: The ranks that were read, one row per rank.
        tables: Results by name, with the columns that ``htagraph schema summary`` describes; ``critical_path`` is
            `CriticalPath.summary`, ``gaps`` is `Replay.gap_shares`.
        issues: What was repaired, dropped or unmatched: ``rank``, ``file``, ``what``, ``detail``, ``count``.
        verdict: Sentences that say what bounds the job.
        window_us: From the first to the last moment of any rank, on the common clock, µs.
        claims: The conclusions of the verdict as values: subject, figure, interval, proof, and what makes each
            conclusion uncertain.
        step_us: How long a step takes, as for what-ifs, µs: the median from step to step, without first steps that warm
            up and the one at the edge of the recording; NaN without steps.
        step_text: How many steps take how long, in words, without earlier work, with the mean or range if it differs.
        device_use: The busy share of devices, in words; empty without device work.
        graph: The job.
        changes: The list of changes, the first thing to do first; see `htagraph.changes`.
        next_change: The change to make after the first one; None for none that adds a gain worth naming.
    """

    inputs: pd.DataFrame
    tables: dict[str, pd.DataFrame]
    issues: pd.DataFrame
    verdict: list[str]
    window_us: float
    claims: tuple[Claim, ...] = ()
    step_us: float = float("nan")
    step_text: str = ""
    device_use: DeviceUse = field(default_factory=DeviceUse)
    graph: DependencyGraph | None = None
    changes: ProposedChanges = field(default_factory=ProposedChanges)
    next_change: NextChange | None = None

    def __repr__(self) -> str:
        """Return what was read, the window and the first sentence of the verdict; the tables are in `tables`."""
        ranks = f"{len(self.inputs)} rank{'' if len(self.inputs) == 1 else 's'}"
        first = self.verdict[0] if self.verdict else ""
        return f"Summary({ranks}, {time_text(self.window_us)}, {len(self.tables)} tables: {first})"

    def _repr_html_(self) -> str:
        """Return the verdict and the time by rank, as notebooks show them."""
        sentences = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in self.verdict)
        time_by_rank = self.brief().get("temporal_breakdown")
        caption = ""
        if time_by_rank is not None:
            caption = f"<b>Time by rank</b>{time_by_rank.to_html(index=False, border=0, float_format='{:,.1f}'.format)}"
        return f"<div><b>Verdict</b><ul>{sentences}</ul>{caption}</div>"

    def plot(self) -> Figure:
        """Return the figure of what each rank's time is spent on; see `htagraph.plot.temporal_breakdown`."""
        from htagraph.output.plot.breakdowns import temporal_breakdown as figure

        return figure(self.tables["temporal_breakdown"])

    @cached_property
    def head(self) -> Head:
        """The head: the first change, the recording, the reasons, the next change and the unknown."""
        return head_of(self.claims, self.changes.rows, self.extent, self.next_change)

    def __str__(self) -> str:
        """Return the head, as `htagraph summary` begins."""
        return "\n".join(line.text for line in self.head.lines)

    def at_a_glance(self) -> str:
        """Return the extent of the recording, in a line: ranks, devices, steps or time, and how busy devices are."""
        return self.extent.text

    @property
    def extent(self) -> RecordingExtent:
        """The extent of the recording: ranks, devices, steps or time, and the busy share of devices."""
        read = len(self.inputs)
        size = int(self.inputs["world_size"].max()) if read else 0
        ranks = f"{read} of {size} ranks" if read < size else plural(read, "rank")
        devices = devices_in(self.inputs)
        kinds = devices if len(devices) < 2 else [f"{len(devices)} kinds of devices"]
        kinds = ["no device work" if kind == NO_DEVICE else kind for kind in kinds]
        length = time_text(self.window_us)
        if self.graph is not None:
            length = usual_step_text(self.graph) or length
        extent = ", ".join([ranks, *kinds, length])
        steps_range = step_range_text(self.graph) if self.graph is not None else ""
        longer = f"{extent} ({steps_range})" if steps_range else extent
        if not self.device_use.busy:
            return RecordingExtent(f"{extent}.", f"{longer}.")
        return RecordingExtent(f"{extent}; {self.device_use.busy}.", f"{longer}; {self.device_use.text}.")

    def brief(self) -> dict[str, pd.DataFrame]:
        """Return the tables that a reader wants to see first: time by rank, top kernels, problems in the files.

        Problems are summed up by kind.
        """
        brief = {}
        times = self.tables["temporal_breakdown"]
        if len(times):
            brief["temporal_breakdown"] = with_shares(times)
        kernels = self.tables["kernels"]
        if len(kernels):
            columns = ["kind", "name", "count", "total_us", "mean_us", "max_us", "share_percent", "at_most_us"]
            brief["kernels"] = kernels[[column for column in columns if column in kernels]]
        return brief | self._issues()

    def _issues(self) -> dict[str, pd.DataFrame]:
        """Return the table of problems in the files, one row for each kind, if there are any."""
        kinds = self.issues.groupby("what", as_index=False, sort=False)
        table = kinds.agg(count=("count", "sum"), files=("file", "nunique"), for_example=("detail", "first"))
        return {"issues": table} if len(table) else {}

    def whole(self) -> dict[str, pd.DataFrame]:
        """Return every table that is not empty, as a reader wants to see it.

        A part of the time and its share are one column; columns that say nothing are left out.
        """
        every = self.tables["critical_path"]
        path = every[every["key"] != "none"].groupby("group", sort=False).head(MOST_ROWS)
        path.attrs["rows"] = len(every)
        tables = {"inputs": self.inputs, **self.tables, "critical_path": path}
        whole = {name: table.copy() for name, table in tables.items() if len(table)} | self._issues()
        for table in whole.values():  # there are many tables of many ranks
            table.attrs["few"] = SHORT_LIST
        if not self.tables["clocks"]["collectives"].any():
            whole.pop("clocks", None)
        if "temporal_breakdown" in whole:
            whole["temporal_breakdown"] = with_shares(whole["temporal_breakdown"])
        if "rank_idle" in whole:
            by_cause = whole["rank_idle"].pivot(index="rank", columns="cause", values="idle_us")
            whole["rank_idle"] = by_cause.add_suffix("_us").reset_index()
            whole["rank_idle"].attrs["few"] = SHORT_LIST
        if "interruptions" in whole:
            longest = top_rows(whole["interruptions"].sort_values("interrupted_us", ascending=False), 2 * MOST_ROWS)
            # untraced code is named by what came after it
            name = longest["name"].where(longest["name"] != "", untraced_before(longest["before"]))
            columns = ["rank", "thread", "name", "start_us", "interrupted_us", "usual_us"]
            whole["interruptions"] = longest.assign(name=name)[columns]
        if "opportunities" in whole:
            from htagraph.output.reports.ranks import with_steps

            whole["opportunities"] = with_steps(whole["opportunities"], self.graph)
        if "idle_breakdown" in whole:
            whole["idle_breakdown"] = whole["idle_breakdown"].query("idle_us > 0")
        if not self.tables["overlap"]["communication_us"].any():
            whole.pop("overlap", None)
        elif not self.tables["overlap"]["beside_us"].any():
            whole["overlap"] = whole["overlap"].drop(columns="beside_us")
        return whole

    def to_dict(self) -> dict[str, Any]:
        """Return the versioned envelope that ``--format json`` prints; units are in the names.

        Example:
            >>> import htagraph as hg
            >>> hg.summarize(hg.load("data/demo")).to_dict()["schema_version"]
            1
        """
        findings = rows_of(self.claims)
        first = self.changes.first
        lines = [line.text for line in self.head.lines]
        heads = {"first": first.to_dict() if first else None, "head": lines}
        results = {**heads, **self.tables, "findings": findings, "verdict": self.verdict}
        return envelope("summary", self.inputs, self.issues, self.window_us, results)


@gives(
    "summary",
    {
        "steps": _STEPS, "temporal_breakdown": "analyses.temporal_breakdown.TABLE",
        "overlap": "analyses.overlap.TABLE", "rank_idle": "analyses.idle_breakdown.RANKS",
        "idle_breakdown": "analyses.idle_breakdown.TABLE", "kernels": _KERNELS, "launches": LAUNCHES,
        "critical_path": "queries.paths.SHARES", "opportunities": "whatif.opportunities.TABLE",
        "stragglers": "analyses.stragglers.TABLE", "interruptions": "analyses.interruptions.TABLE",
        "gaps": "queries.replay.GAPS", "clocks": CLOCKS, "findings": ROWS,
    },
    figures=(Col("first", "any"), Col("head", "list")),
    titles={
        "inputs": INPUTS.title, "issues": ISSUES.title,
        "critical_path": "Critical path, by what it consists of",
    },
    headings={"beside_us": "pending beside other work"},
    sentences="verdict",
)  # fmt: skip
def summarize(graph: DependencyGraph, *, top: int = 5) -> Summary:
    """Return the main answers about a job at once.

    Args:
        graph: the job.
        top: how many kernels of each kind, over all ranks, and how many opportunities are named.

    Returns:
        What was read, steps, temporal breakdown, overlap, idle time by cause (per rank and per stream), the top kernels
        by kind, launch statistics, the critical path, stragglers, opportunities, gaps, clocks, what was wrong with the
        files, and a verdict in words; every column is described at `Summary`.

    Example:
        >>> import htagraph as hg
        >>> summary = hg.summarize(hg.load("data/demo"))
        >>> sorted(summary.tables)[:3]
        ['clocks', 'critical_path', 'gaps']
    """
    check_type(graph, DependencyGraph, "htagraph.summarize takes a graph (of a job on workers: job.load([0, 1]))")
    results = Results(graph)
    results.opportunities = opportunities(results.warm_graph, top=results.wide * _OPPORTUNITIES_PER_KERNEL * top)
    return summary_of(results, top=top)


def summary_of(results: Results, *, top: int = 5) -> Summary:
    """Return the summary that `summarize` returns, of a job's results."""
    graph = results.graph
    tables = {
        "steps": _steps(graph),
        "temporal_breakdown": results.temporal,
        "overlap": overlap(graph),
        "rank_idle": results.rank_idle,
        "idle_breakdown": idle_breakdown(graph),
        "kernels": _top(kernel_breakdown(graph), top),
        "launches": results.launches,
        "critical_path": results.path.summary(),
        "opportunities": results.opportunities,
        "stragglers": results.slow.to_frame(),
        "interruptions": results.interruptions,
        "gaps": replay(graph).gap_shares(),
        "clocks": results.clocks,
    }
    if not is_judged(graph):
        tables |= {name: tables[name].head(0) for name in _JUDGEMENTS}
    claims = claims_of(results)
    changes = changes_of(results, claims)
    step_us = usual_step_ns(graph, graph.time) / 1000 if len(tables["steps"]) else float("nan")
    return Summary(
        results.inputs, tables, issues_of(graph), sentences(claims), window_us(graph),
        tuple(claims), step_us, step_text(graph), device_use(results), graph,
        changes, next_change_of(results, changes),
    )  # fmt: skip


def _steps(graph: DependencyGraph) -> pd.DataFrame:
    """Return per rank how many steps there are, how far apart they begin and how long they take."""
    steps = step_times(graph).groupby("rank")
    table = steps["duration_us"].agg(["count", "median", "min", "max"])
    table = table.set_axis(["steps", "median_us", "min_us", "max_us"], axis=1)
    period = steps["start_us"].agg(lambda start: float(start.sort_values().diff().quantile(0.5)))
    table.insert(1, "period_us", period.astype("float64"))
    return table.reset_index()


def _top(kernels: pd.DataFrame, top: int) -> pd.DataFrame:
    """Return the largest kernels of each kind over all ranks, the kind with the most time first."""
    sums = over_ranks(kernels)
    sums["known_us"] = known_us(sums)
    sums = sums.sort_values(["known_us", "name"], ascending=[False, True])
    best = sums.groupby("kind", sort=False).head(top)
    order = best.groupby("kind")["known_us"].transform("sum")
    return (
        best.assign(order=order)
        .sort_values(["order", "kind", "known_us"], ascending=[False, True, False])
        .drop(columns=["order", "known_us"])
        .reset_index(drop=True)
    )
