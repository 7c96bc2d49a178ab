"""How much of a job the graph's dependencies cover, how each of them is known, and what was refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from htagraph.core.arrays import in_runs
from htagraph.core.errors import check_choice
from htagraph.core.kinds import COMMUNICATION, LAUNCHES, ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import replayed
from htagraph.graph.measures.launch_calls import is_device_work
from htagraph.graph.measures.ledger import Part, RankLedger

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["coverage", "ledger_by"]

_REFUSALS = ("edge_refused", "cycle_broken", "collectives_refused", "waits_unresolved")
_Row = tuple[str, str, int, int, str]


def coverage(graph: DependencyGraph) -> pd.DataFrame:
    """Return what the dependencies of a graph cover; documented at `DependencyGraph.coverage`."""
    rows = [*_recording(graph), *_device_work(graph), *_collectives(graph), *_edges(graph), *_refused(graph)]
    table = pd.DataFrame(rows, columns=["part", "what", "count", "total", "detail"])
    table.insert(4, "share_percent", 100 * table["count"] / table["total"].where(table["total"] > 0))
    return table.astype({"part": "str", "what": "str", "count": "int64", "total": "int64", "detail": "str"})


def ledger_by(graph: DependencyGraph, by: str) -> pd.DataFrame:
    """Return the ledger of a recording in groups; documented at `DependencyGraph.coverage`."""
    check_choice("by", by, tuple(_GROUPED))
    return _GROUPED[by](graph)


def _by_rank(graph: DependencyGraph) -> pd.DataFrame:
    """Return one row for each rank."""
    ranks = graph.ledger.ranks
    table = pd.DataFrame([rank._asdict() for rank in ranks], columns=list(RankLedger._fields))
    table["lacks"] = [", ".join(sorted(lost.value for lost in rank.lacks)) for rank in ranks]
    return table


def _by_call(graph: DependencyGraph) -> pd.DataFrame:
    """Return one row for each rank and name of launch calls, the calls with the most lost work first."""
    acts = graph.activities
    calls = graph.ledger.launches
    table = _launches(graph)
    table["call"] = [graph.names[name] for name in acts.name[calls.activity].tolist()]
    sums = table.groupby(["rank", "call"], as_index=False)[["launches", "without_work", "lost"]].sum()
    return sums.sort_values(["rank", "lost", "call"], ascending=[True, False, True], ignore_index=True)


def _by_step(graph: DependencyGraph) -> pd.DataFrame:
    """Return one row for each rank and step, -1 for launches outside steps."""
    table = _launches(graph)
    table["step"] = graph.activities.step[graph.ledger.launches.activity].astype(np.int64)
    return table.groupby(["rank", "step"], as_index=False)[["launches", "without_work", "lost"]].sum()


def _launches(graph: DependencyGraph) -> pd.DataFrame:
    """Return one row for each launch call."""
    calls = graph.ledger.launches
    return pd.DataFrame(
        {
            "rank": graph.activities.rank[calls.activity].astype(np.int64),
            "launches": 1,
            "without_work": (calls.works == 0).astype(np.int64),
            "lost": calls.is_lost.astype(np.int64),
        }
    )


def _by_stream(graph: DependencyGraph) -> pd.DataFrame:
    """Return one row for each rank, device and stream with recorded work."""
    return _work(graph, ["rank", "device", "stream"])


def _by_device(graph: DependencyGraph) -> pd.DataFrame:
    """Return one row for each rank and device with recorded work."""
    return _work(graph, ["rank", "device"])


def _work(graph: DependencyGraph, keys: list[str]) -> pd.DataFrame:
    """Return the recorded work of devices in groups."""
    acts = graph.activities
    work = np.flatnonzero(is_device_work(graph))
    lane = acts.lane[work]
    table = pd.DataFrame(
        {
            "rank": acts.rank[work].astype(np.int64),
            "device": np.array([place.device for place in graph.lanes], np.int64)[lane],
            "stream": np.array([place.stream for place in graph.lanes], np.int64)[lane],
            "works": 1,
            "busy_us": acts.duration[work] / 1000,
            "first_us": (graph.time[2 * work] - graph.origin_ns) / 1000,
            "last_us": (graph.time[2 * work + 1] - graph.origin_ns) / 1000,
        }
    )
    groups = table.groupby(keys, as_index=False)
    return groups.agg({"works": "sum", "busy_us": "sum", "first_us": "min", "last_us": "max"})


_GROUPED: Final[dict[str, Callable[[DependencyGraph], pd.DataFrame]]] = {
    "rank": _by_rank,
    "device": _by_device,
    "stream": _by_stream,
    "step": _by_step,
    "call": _by_call,
}
"""The tables of the ledger, by the groups of their rows."""


def _recording(graph: DependencyGraph) -> list[_Row]:
    """Return how many launches and steps have device work in the file, and which parts are missing, over all ranks."""
    ranks = graph.ledger.ranks
    launches = sum(rank.launches for rank in ranks)
    graphs = sum(rank.graph_launches for rank in ranks)
    steps = sum(rank.steps for rank in ranks)
    with_work = launches - sum(rank.launches_without_work for rank in ranks)
    graphs_with_work = graphs - sum(rank.graph_launches_without_work for rank in ranks)
    steps_with_work = steps - sum(rank.steps_without_work for rank in ranks)
    counted = (
        ("launches with work", with_work, launches),
        ("graph launches with work", graphs_with_work, graphs),
        ("steps with device work", steps_with_work, steps),
    )
    rows = [("recording", what, count, total, "of all ranks") for what, count, total in counted if total]
    for part in Part:
        lacking = graph.ledger.lacking(part)
        if lacking:
            listed = ", ".join(in_runs([rank.rank for rank in lacking]))
            rows.append(("recording", f"lacks {part.value}", len(lacking), len(ranks), f"ranks {listed}"))
    return rows


def _device_work(graph: DependencyGraph) -> list[_Row]:
    acts, edges = graph.activities, graph.edges
    work = acts.on_device & (acts.kind != ActivityKind.DEVICE_OTHER)
    total = int(work.sum())

    def started_by(*kinds: EdgeKind) -> int:
        has_edge = np.zeros(len(acts), np.bool_)
        into = edges.target[np.isin(edges.kind, kinds) if kinds else slice(None)]
        has_edge[into[into % 2 == 0] // 2] = True
        return int((has_edge & work).sum())

    return [
        ("device work", "any predecessor", started_by(), total, "what kernels, copies and memsets wait for"),
        ("device work", "launch", started_by(*LAUNCHES), total, "the call that enqueued it, by correlation id"),
        ("device work", "event_wait", started_by(EdgeKind.EVENT_WAIT), total, "work of another stream"),
        *_replayed(graph),
    ]


def _replayed(graph: DependencyGraph) -> list[_Row]:
    """Return how many kernels and copies of replayed CUDA graphs have operators of a capture, and how surely."""
    acts = graph.activities
    total = int(replayed(acts, graph.names).sum())
    sure = acts.args["borrowed_percent"].values if "borrowed_percent" in acts.args else np.zeros(0, np.int64)
    told = (
        f"operators of a capture, confidence {sure.min()} to {sure.max()} %" if len(sure) else "no capture names them"
    )
    return [("device work", "replayed and named", len(sure), total, told)] if total else []


def _collectives(graph: DependencyGraph) -> list[_Row]:
    matches, acts = graph.matches, graph.activities
    total = int(np.isin(acts.kind, COMMUNICATION).sum())
    members = 0 if matches is None else len(np.unique(matches.activity))
    rows: list[_Row] = [("collectives", "members matched", members, total, "activities that communicate")]
    if matches is None:
        return rows
    by_op_and_key = Counter(zip(matches.op, matches.key, strict=True))
    count = len(matches.op)
    return rows + [
        ("collectives", op or "unnamed", number, count, f"matched by {key}")
        for (op, key), number in sorted(by_op_and_key.items())
    ]


def _edges(graph: DependencyGraph) -> list[_Row]:
    edges, rows = graph.edges, []
    for kind in EdgeKind:
        of_kind = edges.kind == kind
        for provenance in Provenance:
            some = of_kind & (edges.provenance == provenance)
            if some.any():
                sure = edges.confidence[some]
                detail = f"{provenance.label}, confidence {sure.min()} to {sure.max()} %"
                rows.append(("edges", kind.label, int(some.sum()), int(of_kind.sum()), detail))
    return rows


def _refused(graph: DependencyGraph) -> list[_Row]:
    refusals: Counter[tuple[str, str]] = Counter()
    for issue in graph.issues:
        if issue.what in _REFUSALS:
            refusals[issue.what, issue.detail] += issue.count
    return [("refused", what, count, count, detail) for (what, detail), count in sorted(refusals.items())]
