"""What launching costs and how long queues are: the reports of launches and counters."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import pandas as pd

import htagraph as hg
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import BLOCKING, FULL_QUEUE, ActivityKind, of_kinds
from htagraph.core.naming import sibling_names
from htagraph.core.tables import Col, Table
from htagraph.findings.change import scenario_of
from htagraph.findings.finding import MEASURES
from htagraph.findings.incomplete import missing_parts
from htagraph.findings.phrases import shortened
from htagraph.findings.verbs import queues as findings
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.allocator import allocator_calls
from htagraph.graph.measures.ledger import Part
from htagraph.output.report import Report, drawn, gives, report_on, top_rows
from htagraph.queries.device_record import device_record
from htagraph.queries.launch_queues import calls_at_full_queues, host_wait_percent, queue_use

__all__ = ["by_call", "counters_report", "launches_report"]

_ARROW: Final = " -> "
"""What stands between the kernels of a sequence in the table of operators."""
_LETTERS: Final = 40
"""Letters of a kernel in a sequence. Chosen: two kernels fit beside the figures. Doubled, one does."""
_LAUNCHES_FOR_PROGRAMS: Final = ["launch", "graph_id", "gap_us", "communication_us", "example", "triton_us"]
_CALLS: Final = Table(
    "Launch calls",
    Col("rank", "int64"),
    Col("name", "str"),
    Col("calls", "int64"),
    Col("works", "int64", heading="kernels and copies"),
    Col("total_us mean_us max_us", doc="the calls' durations"),
    Col("excessive", "int64", "calls that take longer than 50 µs", heading="calls > 50 µs"),
    Col("median_delay_us", doc="from the call's end to the start of its first kernel or copy"),
    Col("short_percent", doc="calls that took longer than the kernels and copies they launched"),
    rank_by="total_us",
)


@gives(
    "launches",
    {
        "calls": _CALLS, "operators": "analyses.operator_kernels.TABLE",
        "graph_launches": "analyses.graph_launches.TABLE", "compiled_regions": "analyses.compiled_regions.TABLE",
        "phases": "analyses.phases.TABLE",
    },
    titles={"phases": "Phases (by annotation)"},
    headings={"least_us": "least of a rank_us", "most_us": "most of a rank_us"},
    rests_on=MEASURES,
)  # fmt: skip
def launches_report(graph: DependencyGraph, inputs: Sequence[str], *, top: int = 10) -> Report:
    """Return the report on a graph's launches; `inputs` are the words that choose what is read."""
    from htagraph.analyses.operator_kernels import TABLE

    stats = _launches_of_work(graph)
    tables = {
        "calls": by_call(stats),
        "operators": TABLE.ranked(hg.operator_kernels(graph)),
        "graph_launches": hg.graph_launches(graph),
        "compiled_regions": hg.compiled_regions(graph),
        "phases": hg.phases(graph),
    }
    shown = {
        "calls": _calls_over_ranks(stats),
        "operators": _operators_over_ranks(tables["operators"], top),
        "graph_launches": tables["graph_launches"],
        "compiled_regions": tables["compiled_regions"],
    }
    brief = {
        name: _without_unknown(top_rows(table, top).drop(columns=_LAUNCHES_FOR_PROGRAMS, errors="ignore"))
        for name, table in shown.items()
        if len(stats) and len(table)
    }
    conclusions = findings.launches_sentences(
        stats,
        tables["graph_launches"],
        _waits(graph, stats),
        inputs,
        record=device_record(graph),
        costs=_costs(graph, has_launches=len(stats) > 0),
    )
    return report_on(graph, "launches", tables, conclusions, brief=brief, plot=lambda: drawn("launch_stats", stats))


def _costs(graph: DependencyGraph, *, has_launches: bool) -> findings.LaunchCosts:
    """Return what launching costs a job beside the time of its calls."""
    if not has_launches:
        return findings.LaunchCosts()
    acts = graph.activities
    calls = allocator_calls(graph)
    names = [graph.names[name] for name in acts.name[calls].tolist()]
    spent = pd.Series(acts.duration[calls] / 1000, dtype="float64").groupby(names).sum()
    return findings.LaunchCosts(
        path_percent=_launching_percent(graph),
        saved_percent=_saved_percent(graph),
        allocator=spent.sort_values(ascending=False),
        allocator_calls=len(calls),
        at_full_queue=calls_at_full_queues(graph).tolist(),
    )


def _saved_percent(graph: DependencyGraph) -> float:
    """Return how much shorter the job is if launch calls take no time, percent; NaN where that is not known."""
    if missing_parts(graph):
        return float("nan")
    with suppress(SelectionError):  # no call is a launch
        outcome = scenario_of(graph, [findings.SHORTER_LAUNCHES]).run()
        return 100 * outcome.saved_ns / max(outcome.baseline_ns, 1)
    return float("nan")


def _launches_of_work(graph: DependencyGraph) -> pd.DataFrame:
    """Return the result of `htagraph.launch_stats` without rows of devices that only record or await an event."""
    stats = hg.launch_stats(graph)
    return stats[stats["work_kind"] != ActivityKind.DEVICE_OTHER.label]


def _waits(graph: DependencyGraph, stats: pd.DataFrame) -> pd.Series[bool]:
    """Return which rows of `htagraph.launch_stats` are of calls that waited for the device."""
    return stats["launch"].isin(graph.edges.target[of_kinds(graph.edges.kind, BLOCKING)] >> 1)


def _launching_percent(graph: DependencyGraph) -> float:
    """Return the share of launch calls and launch latencies in the critical path; NaN where the path is not known."""
    if missing_parts(graph):
        return float("nan")
    shares = hg.critical_path(graph).summary()
    return float(shares.loc[(shares["group"] == "category") & (shares["key"] == "launch"), "share_percent"].sum())


def _without_unknown(table: pd.DataFrame) -> pd.DataFrame:
    """Return what is read: no column that is -1 (unknown) or NaN throughout; a name where no region launched."""
    numbers = table.drop(columns="rank", errors="ignore")
    unknown = table.isna().all() | numbers.eq(-1).all().reindex(table.columns, fill_value=False)
    table = table.drop(columns=[*table.columns[unknown]])
    if "region" in table:
        table["region"] = table["region"].replace("", "(outside all regions)")
        table["count"] = table["count"].astype(object).where(table["count"] > 0, "-")
    return table


def _each_call(stats: pd.DataFrame) -> pd.DataFrame:
    """Return one row per launching call of the result of `htagraph.launch_stats`."""
    return stats.groupby(["rank", "launch"], as_index=False).agg(
        name=("launch_name", "first"),
        works=("work", "size"),
        took=("launch_us", "first"),
        short=("short", "first"),
        excessive=("excessive_runtime", "first"),
        delay=("delay_us", "min"),
    )


def _summed(each: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return figures of launching calls by some keys."""
    table = each.groupby(keys, as_index=False).agg(
        calls=("launch", "size"),
        works=("works", "sum"),
        total_us=("took", "sum"),
        mean_us=("took", "mean"),
        max_us=("took", "max"),
        excessive=("excessive", "sum"),
        median_delay_us=("delay", "median"),
        short_percent=("short", "mean"),
    )
    table["short_percent"] = 100 * table["short_percent"].astype("float64")
    return table


def by_call(stats: pd.DataFrame) -> pd.DataFrame:
    """Return one row per rank and launching call of the result of `htagraph.launch_stats`, most time first."""
    table = _summed(_each_call(stats), ["rank", "name"])
    return table.sort_values(["rank", "total_us"], ascending=[True, False], kind="stable", ignore_index=True)


def _calls_over_ranks(stats: pd.DataFrame) -> pd.DataFrame:
    """Return one row per launching call of all ranks, with the least and the most time of a rank."""
    each = _each_call(stats)
    table = _summed(each, ["name"]).sort_values("total_us", ascending=False, kind="stable", ignore_index=True)
    of_rank = each.groupby(["name", "rank"])["took"].sum()
    if each["rank"].nunique() <= 1:
        return table
    by_name = of_rank.groupby("name")
    at = list(table.columns).index("mean_us")
    table.insert(1, "ranks", table["name"].map(by_name.size()))
    table.insert(at + 1, "least_us", table["name"].map(by_name.min()))
    table.insert(at + 2, "most_us", table["name"].map(by_name.max()))
    return table


def _operators_over_ranks(table: pd.DataFrame, top: int) -> pd.DataFrame:
    """Return the operators with what they launch, one row for all ranks, with short names of kernels.

    Args:
        table: the result of `htagraph.operator_kernels`.
        top: how many rows are shown: only their kernels are told apart by name.
    """
    weighted = table.assign(
        launch_delay_us=table["launch_delay_us"] * table["count"],
        kernel_delay_us=table["kernel_delay_us"] * table["count"],
    )
    sums = weighted.groupby(["operator", "kernel_sequence", "kernels"], as_index=False, sort=False).agg(
        ranks=("rank", "nunique"),
        count=("count", "sum"),
        launch_delay_us=("launch_delay_us", "sum"),
        kernel_delay_us=("kernel_delay_us", "sum"),
        device_us=("device_us", "sum"),
    )
    for delay in ("launch_delay_us", "kernel_delay_us"):
        sums[delay] = sums[delay] / sums["count"]
    sums = sums.sort_values("device_us", ascending=False, kind="stable", ignore_index=True)
    shown = sums["kernel_sequence"].tolist()[:top]
    sums["kernel_sequence"] = [*_short_sequences(shown), *sums["kernel_sequence"].tolist()[top:]]
    return sums if table["rank"].nunique() > 1 else sums.drop(columns="ranks")


def _short_sequences(sequences: Sequence[str]) -> list[str]:
    """Return sequences of kernels with short names; names that would look alike keep what tells them apart."""
    split = [sequence.split(_ARROW) for sequence in sequences]
    names = list(dict.fromkeys(name for kernels in split for name in kernels))
    short = dict(zip(names, sibling_names(names), strict=True))
    return [_ARROW.join(shortened(short[name], _LETTERS) for name in kernels) for kernels in split]


@gives(
    "counters",
    {
        "queues": "analyses.queue_length.STREAMS", "bandwidth": "analyses.memory_bandwidth.COPIES",
        "samples": "analyses.device_samples.COUNTERS",
        "queue_length": "analyses.queue_length.TABLE", "memory_bandwidth": "analyses.memory_bandwidth.TABLE",
        "device_samples": "analyses.device_samples.TABLE",
    },
    maybe=("samples", "queue_length", "memory_bandwidth", "device_samples"), rests_on=MEASURES,
)  # fmt: skip
def counters_report(
    graph: DependencyGraph, inputs: Sequence[str], *, full: int = FULL_QUEUE, series: bool = False
) -> Report:
    """Return the report on a graph's counters; `inputs` are the words that choose what is read."""
    queues, copies = hg.queue_length(graph, by="stream", full=full), hg.memory_bandwidth(graph, by="copy")
    samples = hg.device_samples(graph, by="counter")
    tables = {"queues": queues, "bandwidth": copies} | ({"samples": samples} if len(samples) else {})
    if series:
        tables |= {"queue_length": hg.queue_length(graph), "memory_bandwidth": hg.memory_bandwidth(graph)}
    if series and len(samples):
        tables["device_samples"] = hg.device_samples(graph)
    is_known = Part.CALLS not in graph.ledger.lacks and not missing_parts(graph)
    host_percent = host_wait_percent(graph) if is_known else float("nan")
    sentences = findings.counters_sentences(queue_use(graph, full), full, host_percent, inputs, samples)
    return report_on(graph, "counters", tables, sentences, plot=lambda: drawn("queue_length", hg.queue_length(graph)))
