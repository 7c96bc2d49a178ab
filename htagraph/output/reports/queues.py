"""Reports of launches and counters: the cost of launching, and the length of queues."""

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
from htagraph.findings.finding import MEASURES
from htagraph.findings.incomplete import missing_parts
from htagraph.findings.phrases import shortened
from htagraph.findings.results import Results
from htagraph.findings.steady_gain import SteadyGain, steady_gain
from htagraph.findings.verbs import queues as findings
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.allocator import allocator_calls
from htagraph.graph.measures.ledger import Part
from htagraph.output.report import Report, drawn, gives, report_on, top_rows
from htagraph.queries.device_record import device_record
from htagraph.queries.launch_queues import calls_at_full_queues, host_wait_percent, queue_use

__all__ = ["by_call", "counters_report", "launches_report"]

_ARROW: Final = " -> "
"""The text between the kernels of a sequence in the table of operators."""
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
        "calls": _CALLS,
        "operators": "analyses.operator_kernels.TABLE",
        "graph_launches": "analyses.graph_launches.TABLE",
        "compiled_regions": "analyses.compiled_regions.TABLE",
        "phases": "analyses.phases.TABLE",
    },
    titles={"phases": "Phases (by annotation)"},
    headings={"least_us": "least of a rank_us", "most_us": "most of a rank_us"},
    rests_on=MEASURES,
)
def launches_report(graph: DependencyGraph, inputs: Sequence[str], *, top: int = 10) -> Report:
    """Return the report on a graph's launches.

    Args:
        graph: the job.
        inputs: the words of the command line that choose the job.
        top: how many rows of a table are shown.
    """
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
    brief = {}
    for name, table in shown.items():
        if len(stats) and len(table):
            rows = top_rows(table, top)
            for_readers = rows.drop(columns=_LAUNCHES_FOR_PROGRAMS, errors="ignore")
            brief[name] = _without_unknown(for_readers)
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
    """Return the cost of launching beside the time of its calls.

    Args:
        graph: the job.
        has_launches: whether any call launched work of a device.
    """
    if not has_launches:
        return findings.LaunchCosts()
    acts = graph.activities
    calls = allocator_calls(graph)
    names = [graph.names[name] for name in acts.name[calls].tolist()]
    spent = pd.Series(acts.duration[calls] / 1000, dtype="float64").groupby(names).sum()
    return findings.LaunchCosts(
        path_percent=_launching_percent(graph),
        saved=_saved(graph),
        allocator=spent.sort_values(ascending=False),
        allocator_calls=len(calls),
        at_full_queue=calls_at_full_queues(graph).tolist(),
    )


def _saved(graph: DependencyGraph) -> SteadyGain | None:
    """Return how much shorter the steady job is if launch calls take no time.

    The result is None where that is not known: parts are missing, or no call is a launch.
    """
    if missing_parts(graph):
        return None
    with suppress(SelectionError):  # no call is a launch
        return steady_gain(Results(graph), [findings.SHORTER_LAUNCHES])
    return None


def _launches_of_work(graph: DependencyGraph) -> pd.DataFrame:
    """Return the result of `htagraph.launch_stats` without rows of devices that only record or await an event."""
    stats = hg.launch_stats(graph)
    return stats[stats["work_kind"] != ActivityKind.DEVICE_OTHER.label]


def _waits(graph: DependencyGraph, stats: pd.DataFrame) -> pd.Series[bool]:
    """Return which rows of `htagraph.launch_stats` are of calls that waited for the device.

    Args:
        graph: the job.
        stats: the result of `htagraph.launch_stats`.
    """
    blocks = of_kinds(graph.edges.kind, BLOCKING)
    blocked = graph.edges.target[blocks] >> 1
    return stats["launch"].isin(blocked)


def _launching_percent(graph: DependencyGraph) -> float:
    """Return the share of launch calls and launch latencies in the critical path; NaN where the path is not known."""
    if missing_parts(graph):
        return float("nan")
    shares = hg.critical_path(graph).summary()
    is_category = shares["group"] == "category"
    is_launching = is_category & (shares["key"] == "launch")
    return float(shares.loc[is_launching, "share_percent"].sum())


def _without_unknown(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table without columns that are unknown (-1, NaN) throughout, and with a name for no region."""
    numbers = table.drop(columns="rank", errors="ignore")
    is_minus_one = numbers.eq(-1).all()
    unknown = table.isna().all() | is_minus_one.reindex(table.columns, fill_value=False)
    table = table.drop(columns=[*table.columns[unknown]])
    if "region" in table:
        is_counted = table["count"] > 0
        table["region"] = table["region"].replace("", "(outside all regions)")
        table["count"] = table["count"].astype(object).where(is_counted, "-")
    return table


def _each_call(stats: pd.DataFrame) -> pd.DataFrame:
    """Return one row per launching call.

    Args:
        stats: the result of `htagraph.launch_stats`.
    """
    return stats.groupby(["rank", "launch"], as_index=False).agg(
        name=("launch_name", "first"),
        works=("work", "size"),
        took=("launch_us", "first"),
        short=("short", "first"),
        excessive=("excessive_runtime", "first"),
        delay=("delay_us", "min"),
    )


def _summed(each: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return figures of launching calls by some keys.

    Args:
        each: a row per launching call.
        keys: the columns that tell the rows of the result apart.
    """
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
    """Return one row per rank and launching call, most time first.

    Args:
        stats: the result of `htagraph.launch_stats`.
    """
    table = _summed(_each_call(stats), ["rank", "name"])
    return table.sort_values(["rank", "total_us"], ascending=[True, False], kind="stable", ignore_index=True)


def _calls_over_ranks(stats: pd.DataFrame) -> pd.DataFrame:
    """Return one row per launching call of all ranks, with the least and the most time of a rank.

    Args:
        stats: the result of `htagraph.launch_stats`.
    """
    calls = _each_call(stats)
    table = _summed(calls, ["name"]).sort_values("total_us", ascending=False, kind="stable", ignore_index=True)
    of_rank = calls.groupby(["name", "rank"])["took"].sum()
    if calls["rank"].nunique() <= 1:
        return table
    by_name = of_rank.groupby("name")
    column = list(table.columns).index("mean_us")
    table.insert(1, "ranks", table["name"].map(by_name.size()))
    table.insert(column + 1, "least_us", table["name"].map(by_name.min()))
    table.insert(column + 2, "most_us", table["name"].map(by_name.max()))
    return table


def _operators_over_ranks(table: pd.DataFrame, top: int) -> pd.DataFrame:
    """Return the operators with the kernels they launch, one row for all ranks, with short names of kernels.

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
    further = sums["kernel_sequence"].tolist()[top:]
    sums["kernel_sequence"] = [*_short_sequences(shown), *further]
    return sums if table["rank"].nunique() > 1 else sums.drop(columns="ranks")


def _short_sequences(sequences: Sequence[str]) -> list[str]:
    """Return sequences of kernels with short names.

    Names that would look alike keep the part that tells one from another.
    """
    split = [sequence.split(_ARROW) for sequence in sequences]
    names = list(dict.fromkeys(name for kernels in split for name in kernels))
    siblings = sibling_names(names)
    short = {name: shortened(sibling, _LETTERS) for name, sibling in zip(names, siblings, strict=True)}
    return [_ARROW.join(short[name] for name in kernels) for kernels in split]


@gives(
    "counters",
    {
        "queues": "analyses.queue_length.STREAMS",
        "bandwidth": "analyses.memory_bandwidth.COPIES",
        "samples": "analyses.device_samples.COUNTERS",
        "queue_length": "analyses.queue_length.TABLE",
        "memory_bandwidth": "analyses.memory_bandwidth.TABLE",
        "device_samples": "analyses.device_samples.TABLE",
    },
    maybe=("samples", "queue_length", "memory_bandwidth", "device_samples"),
    rests_on=MEASURES,
)
def counters_report(
    graph: DependencyGraph, inputs: Sequence[str], *, full: int = FULL_QUEUE, series: bool = False
) -> Report:
    """Return the report on a graph's counters.

    Args:
        graph: the job.
        inputs: the words of the command line that choose the job.
        full: the number of launches at which a queue counts as full.
        series: whether each change of a counter is given.
    """
    samples = hg.device_samples(graph, by="counter")
    tables = {
        "queues": hg.queue_length(graph, by="stream", full=full),
        "bandwidth": hg.memory_bandwidth(graph, by="copy"),
    }
    if len(samples):
        tables["samples"] = samples
    if series:
        tables["queue_length"] = hg.queue_length(graph)
        tables["memory_bandwidth"] = hg.memory_bandwidth(graph)
    if series and len(samples):
        tables["device_samples"] = hg.device_samples(graph)
    is_known = Part.CALLS not in graph.ledger.lacks and not missing_parts(graph)
    host_percent = host_wait_percent(graph) if is_known else float("nan")
    use = queue_use(graph, full)
    sentences = findings.counters_sentences(use, full, host_percent, inputs, samples)
    return report_on(graph, "counters", tables, sentences, plot=lambda: drawn("queue_length", hg.queue_length(graph)))
