"""What lies in files: the reports of memory, of execution traces and of the cache of loaded jobs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from htagraph.core.tables import Col, Table
from htagraph.findings.verbs import files as findings
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.ledger import Part
from htagraph.output.report import Report, drawn, gives, report_beside, report_on
from htagraph.queries.arguments import LINKS, link_execution_trace
from htagraph.queries.inputs import inputs_of, issues_of, window_us
from htagraph.trace.readers import recorder_of

if TYPE_CHECKING:
    from htagraph.trace.profiler_files.memory_snapshot import MemorySnapshot

__all__ = [
    "cache_report", "cleared_report", "execution_trace_report", "memory_report", "snapshot_report", "timeline_report",
]  # fmt: skip

_AT_PEAK = Table(
    "What held memory at the peak",
    Col("rank", "int64", maybe=True),
    Col("device name", "str", maybe=True),
    Col("known", "bool", maybe=True),
    Col("bytes allocations", "int64"),
    Col("share_percent"),
    Col("operator where", "str", maybe=True),
    Col("stack", "int64", maybe=True),
)
_DEVICES = Table(
    "Allocator memory by device",
    Col(
        "device segments blocks reserved_bytes allocated_bytes requested_bytes inactive_bytes largest_free_bytes "
        "events",
        "int64",
    ),
    Col("peak_bytes peak_reserved_bytes peak_us"),
)
_NOW = Table(
    "What held memory when the snapshot was taken",
    Col("bytes allocations", "int64"),
    Col("share_percent"),
    Col("operator where", "str"),
    Col("stack", "int64"),
)
_CATEGORIES = Table(
    "Memory by category", Col("category", "str"), Col("most_bytes at_peak_bytes first_bytes last_bytes", "int64")
)
_CACHED = Table(
    "Graphs in the cache, the one used last first",
    Col("job", "str"),
    Col("files bytes", "int64"),
    Col("used_utc file", "str"),
)
_NODES = Table(
    "Nodes",
    Col("et_node", "int64"),
    Col("name", "str"),
    Col("parent rf_id", "int64"),
    Col("op_schema", "str"),
    Col("input_shapes input_types output_shapes output_types", "list"),
)
_LINKS = Table(LINKS.title, Col("activity", "int64"), *LINKS.cols)
_NAMES = Table(
    "Nodes by name, the most frequent first", Col("name", "str"), Col("nodes", "int64"), Col("op_schema", "str"),
    rank_by="nodes",
)  # fmt: skip


def _read(files: Sequence[tuple[int, str]]) -> pd.DataFrame:
    return pd.DataFrame(files, columns=["rank", "file"])


@gives(
    "memory",
    {
        "memory_peaks": "analyses.memory.peaks.TABLE", "memory_at_peak": _AT_PEAK, "memory_devices": _DEVICES,
        "memory_now": _NOW, "memory_categories": _CATEGORIES,
    },
    maybe=("memory_peaks", "memory_at_peak", "memory_devices", "memory_now", "memory_categories"),
    rests_on=frozenset({Part.MEANING}),
)  # fmt: skip
def memory_report(graph: DependencyGraph, inputs: Sequence[str] = (), *, top: int = 15) -> Report:
    """Return the report on the memory events of traces; `inputs` are the words that choose the job."""
    from htagraph.analyses import memory as analyses

    peaks, whose = analyses.peaks(graph), analyses.at_peak(graph)
    tables = {"memory_peaks": peaks, "memory_at_peak": whose.groupby(["rank", "device"], sort=False).head(top)}
    held = tables["memory_at_peak"].replace({"name": {"": "(before the recording)"}}).drop(columns="known")
    return report_on(
        graph, "memory", tables, findings.peak_sentences(peaks, recorder_of(graph.traces.values()), whose, inputs),
        brief={"memory_peaks": peaks.drop(columns=["activity"]), "memory_at_peak": held},
        plot=lambda: drawn("memory_timeline", analyses.timeline(graph)),
    )  # fmt: skip


def timeline_report(timeline: pd.DataFrame, path: Path) -> Report:
    """Return the report on what `htagraph.memory.read_timeline` read."""
    sizes = timeline.drop(columns=["time_ns", "time_us"])
    names = [str(column).removesuffix("_bytes") for column in sizes.columns]
    at = int(timeline["total_bytes"].to_numpy().argmax()) if len(timeline) else -1
    table = pd.DataFrame({
        "category": pd.array(names, dtype="str"),
        "most_bytes": sizes.max().to_numpy(),
        "at_peak_bytes": sizes.iloc[at].to_numpy() if at >= 0 else 0,
        "first_bytes": sizes.iloc[0].to_numpy() if at >= 0 else 0,
        "last_bytes": sizes.iloc[-1].to_numpy() if at >= 0 else 0,
    })  # fmt: skip
    sentences = ["The timeline is empty."]
    if at >= 0:
        row = table[table["category"] != "total"]
        largest = row.iloc[int(row["at_peak_bytes"].to_numpy().argmax())]
        peak = float(timeline["total_bytes"].iloc[at]), float(timeline["time_us"].iloc[at])
        sentences = [findings.timeline_sentence(*peak, str(largest["category"]), float(largest["at_peak_bytes"]))]
    window = float(timeline["time_us"].max()) if at >= 0 else 0.0
    return report_beside(
        "memory", _read([(-1, str(path))]), {"memory_categories": table}, sentences, window_us=window,
        plot=lambda: drawn("memory_timeline", timeline),
    )  # fmt: skip


def snapshot_report(snapshot: MemorySnapshot, *, top: int = 15) -> Report:
    """Return the report on a memory snapshot."""
    devices = snapshot.to_frame()
    held = {"memory_at_peak": snapshot.at_peak().head(top), "memory_now": snapshot.in_use().head(top)}
    known = {
        name: table.assign(where=table["where"].where(table["stack"] >= 0, "(before the history began)"))
        for name, table in held.items()
    }
    sentences = [sentence for row in devices.to_dict("records") for sentence in findings.device_sentences(row)]
    return report_beside(
        "memory", _read([(-1, str(snapshot.path))]), {"memory_devices": devices, **held},
        sentences or ["The snapshot holds no memory."],
        brief={"memory_devices": devices} | {name: table.drop(columns="stack") for name, table in known.items()},
        window_us=float(snapshot.events["time_us"].max()) if len(snapshot.events) else 0.0,
        plot=lambda: drawn("memory_timeline", snapshot),
    )  # fmt: skip


@gives("execution-trace", {"names": _NAMES, "nodes": _NODES, "links": _LINKS}, maybe=("links",))
def execution_trace_report(
    file: Path, nodes: pd.DataFrame, graph: DependencyGraph | None = None, *, rank: int | None = None, top: int = 15
) -> Report:
    """Return the report on an execution trace."""
    names = nodes.reset_index().groupby("name", as_index=False, sort=False).agg(
        nodes=("et_node", "size"), op_schema=("op_schema", "first")
    )  # fmt: skip
    names = _NAMES.ranked(names)
    tables = {"names": names, "nodes": nodes.reset_index()}
    inputs, brief = _read([(-1 if rank is None else rank, str(file))]), {"names": names.head(top)}
    if graph is None:
        return report_beside(
            "execution-trace", inputs, tables, findings.execution_trace_sentences(nodes, None), brief=brief
        )
    tables["links"] = link_execution_trace(graph, nodes, rank).reset_index()
    inputs = pd.concat([inputs, inputs_of(graph)[["rank", "file"]]], ignore_index=True)
    sentences = findings.execution_trace_sentences(nodes, tables["links"])
    return Report("execution-trace", inputs, issues_of(graph), window_us(graph), tables, sentences, brief=brief)


@gives(
    "cache info", {"cache": _CACHED},
    figures=(Col("folder", "str"), Col("graphs total_bytes limit_bytes", "int64")),
)  # fmt: skip
def cache_report() -> Report:
    """Return the report on what the cache of loaded jobs holds."""
    from htagraph.graph.storage.cache import cache_folder, cached_graphs, limit_bytes

    folder = cache_folder()
    graphs = cached_graphs(folder) if folder is not None else []
    size, limit = sum(graph.size for graph in graphs), limit_bytes()
    used = [time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(graph.used_s)) for graph in graphs]
    rows = [(each.job, each.files, each.size, when, each.path.name) for each, when in zip(graphs, used, strict=True)]
    table = pd.DataFrame(rows, columns=list(_CACHED.types))
    sentences = (
        findings.no_cache() if folder is None else findings.cache_contents(str(folder), len(graphs), size, limit)
    )
    figures = {"folder": str(folder or ""), "graphs": len(graphs), "total_bytes": size, "limit_bytes": limit}
    return report_beside(
        "cache info", _read([]), {"cache": table}, sentences, figures=figures,
        brief={"cache": table.drop(columns="file")},
    )  # fmt: skip


@gives("cache clear", figures=(Col("folder", "str"), Col("removed_graphs removed_bytes", "int64")))
def cleared_report() -> Report:
    """Empty the cache of loaded jobs, and return the report on it."""
    from htagraph.graph.storage.cache import cache_folder, clear

    folder = cache_folder()
    count, size = clear(folder) if folder is not None else (0, 0)
    sentences = findings.no_cache() if folder is None else findings.cache_cleared(str(folder), count, size)
    figures = {"folder": str(folder or ""), "removed_graphs": count, "removed_bytes": size}
    return report_beside("cache clear", _read([]), {}, sentences, figures=figures)
