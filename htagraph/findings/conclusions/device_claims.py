"""Claims about devices: why they are idle, what they wait for while they look busy, and launches that take too long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from htagraph.core.naming import is_graph_launch, names_that
from htagraph.findings.claim import Claim, Says
from htagraph.graph.measures.waits import waiting_devices
from htagraph.queries.host_time import late_reason

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.queries.path_segments import Bound

__all__ = ["device_claims"]

_Tables: TypeAlias = "Mapping[str, pd.DataFrame]"
_MIN_SHARE = 0.05
"""Share of the window; chosen: less is not worth a sentence. Doubled, 5 to 10 % of waiting is not named."""
_MAX_COVERED_SHARE = 0.8
"""Share of the recorded time; below it, shares of device time are said to leave out the rest. Chosen. Doubled,
always."""
_MIN_LAUNCHES = 100
"""Launch calls; chosen: the share of fewer is chance. Doubled, jobs of 100 to 200 calls get no sentence on launches."""
_MOST = 0.5
"""Share of kernels and copies; above it, CUDA graphs are no advice, since they are used. It cannot be doubled."""


def device_claims(
    busy: pd.DataFrame, tables: _Tables, inputs: pd.DataFrame, bound: Bound, graph: DependencyGraph
) -> list[Claim]:
    """Return why devices are idle, whether launches are too long, and what part of the recording that is.

    Args:
        busy: the rows of ``temporal_breakdown`` with a window.
        tables: results by name: ``rank_idle`` and ``launches``.
        inputs: what was read, as in the summary; of it ``rank`` and ``span_us``.
        bound: what bounds the job.
        graph: the job.
    """
    on_device = busy[busy["executor"] == "device"]
    window = float(on_device["window_us"].sum())
    if not window:
        return []
    claims = _idle(tables["rank_idle"], window, len(busy), graph)
    if any(claim.facts["host"] == "launches" for claim in claims):
        claims += _launching(tables["launches"], bound)
    span = float(inputs.loc[inputs["rank"].isin(on_device["rank"]), "span_us"].sum())
    if claims and window < _MAX_COVERED_SHARE * span:
        claims.append(Claim(Says.PARTLY_DEVICE, "", 100 * window / span, "percent"))
    return claims


def _idle(rank_idle: pd.DataFrame, window: float, ranks: int, graph: DependencyGraph) -> list[Claim]:
    idle = rank_idle.groupby("cause")["idle_us"].sum().sort_values(ascending=False)
    claims = []
    for cause, us in idle.items():
        if us < _MIN_SHARE * window:
            continue
        worst = rank_idle[rank_idle["cause"] == cause].sort_values("share_percent").iloc[-1]
        share = float(worst["share_percent"])
        facts = {"rank": int(worst["rank"]), "rank_percent": share, "several": ranks > 1, "host": ""}
        if cause == "host_wait":
            facts["host"] = _host_reason(graph, int(worst["rank"]))
            facts["in_collectives_percent"] = 100 * sum(waiting_devices(graph).values()) / 1000 / window
        claims.append(Claim(Says.DEVICE_IDLE, str(cause), 100 * us / window, "percent", facts=facts))
    return claims


def _host_reason(graph: DependencyGraph, rank: int) -> str:
    """Return why the host of a rank launches too late: one of `LATE_REASONS`, or ``"graphs"`` for many CUDA graphs."""
    reason = late_reason(graph, rank)
    return "graphs" if reason in ("launches", "few", "") and _in_graphs(graph) else reason or "launches"


def _in_graphs(graph: DependencyGraph) -> bool:
    """Return whether most kernels and copies were launched as parts of CUDA graphs."""
    acts = graph.activities
    cause = acts.cause[acts.on_device & (acts.cause >= 0)]
    in_graph = names_that(is_graph_launch, graph.names)[acts.name[cause]]
    return bool(len(cause)) and float(in_graph.mean()) > _MOST


def _launching(launches: pd.DataFrame, bound: Bound) -> list[Claim]:
    """Return whether most launches take longer than their work, where devices wait for launches and these are many."""
    total, short = int(launches["launches"].sum()), int(launches["short"].sum())
    if bound.cause != "host" or total < _MIN_LAUNCHES or short < total / 2:
        return []
    return [Claim(Says.SHORT_LAUNCHES, "", 100 * short / total, "percent", facts={"total": total})]
