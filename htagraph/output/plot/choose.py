"""Which figure a result has."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["FIGURES", "figure_of"]

_TOPICS: Mapping[str, tuple[str, ...]] = {
    "breakdowns": ("temporal_breakdown", "overlap", "idle_breakdown", "collectives", "stragglers"),
    "counters": ("queue_length", "memory_bandwidth", "memory_timeline"),
    "kernels": (
        "kernel_breakdown", "operator_breakdown", "module_breakdown", "kernel_owners", "kernel_distribution",
        "roofline",
    ),
    "launches": ("launch_stats", "slack"),
    "timeline": ("timeline", "critical_path"),
    "what_if": ("what_if", "sweep", "diff", "opportunities"),
}  # fmt: skip
FIGURES: Mapping[str, str] = {name: topic for topic, names in _TOPICS.items() for name in names}
"""The figures by name, each with the module that it is in."""
_OF_TYPES = {
    "CriticalPath": "critical_path", "Outcome": "what_if", "Stragglers": "stragglers", "Diff": "diff",
    "DependencyGraph": "timeline", "MemorySnapshot": "memory_timeline",
}  # fmt: skip
_OF_COLUMNS: tuple[tuple[str, frozenset[str]], ...] = (
    ("temporal_breakdown", frozenset({"window_us", "computation_us", "exposed_communication_us", "idle_percent"})),
    ("overlap", frozenset({"communication_us", "hidden_us"})),
    ("idle_breakdown", frozenset({"rank", "cause", "idle_us"})),
    ("kernel_distribution", frozenset({"relative", "slowest_rank"})),
    ("kernel_owners", frozenset({"module", "operator", "device_us"})),
    ("module_breakdown", frozenset({"host_self_us", "device_us", "kind", "name"})),
    ("kernel_breakdown", frozenset({"kind", "name", "count", "total_us", "share_percent"})),
    ("launch_stats", frozenset({"launch", "work_kind", "delay_us", "launch_us"})),
    ("queue_length", frozenset({"queue_length", "time_us", "stream"})),
    ("memory_bandwidth", frozenset({"bandwidth_gb_s", "time_us", "copy"})),
    ("memory_timeline", frozenset({"time_us", "allocated_bytes", "device"})),
    ("memory_timeline", frozenset({"time_us", "total_bytes", "parameter_bytes"})),
    ("roofline", frozenset({"intensity", "tflop_s", "bound"})),
    ("collectives", frozenset({"collective", "wait_us", "wait_or_transfer_us", "start_us"})),
    ("slack", frozenset({"slack_us", "critical", "kind"})),
    ("opportunities", frozenset({"what", "gain_us", "critical_us", "gain_percent"})),
    ("sweep", frozenset({"factor", "makespan_us", "saved_us"})),
)
"""Figures of tables by the columns that they need; the first whose columns are all there is taken."""


def figure_of(result: Any) -> Figure:  # noqa: ANN401 - any result
    """Return the figure of a result, a table or a report.

    Args:
        result: an object or table that an analysis gave, a job, or a `Report` or `Summary`, of which the first table
            that has a figure is drawn.

    Raises:
        ValueError: there is no figure of it.

    Example:
        >>> import htagraph as hg
        >>> figure_of(hg.temporal_breakdown(hg.load("data/demo"))).layout.barmode
        'stack'
    """
    name = _name_of(result)
    if name:
        return figure_function(name)(result)
    tables = getattr(result, "tables", None)
    for table in tables.values() if isinstance(tables, dict) else ():
        if _name_of(table):
            return figure_of(table)
    known = ", ".join(FIGURES)
    msg = f"there is no figure of {type(result).__name__}: draw one of {known} (hg.plot.{next(iter(FIGURES))}, …)"
    raise ValueError(msg)


def figure_function(name: str) -> Callable[[Any], Figure]:
    """Return the function of a figure."""
    return getattr(importlib.import_module(f"htagraph.output.plot.{FIGURES[name]}"), name)


def _name_of(result: Any) -> str:  # noqa: ANN401
    """Return the name of a result's figure; empty for none."""
    for each in type(result).__mro__:
        if each.__name__ in _OF_TYPES:
            return _OF_TYPES[each.__name__]
    columns = frozenset(map(str, getattr(result, "columns", ())))
    return next((name for name, needed in _OF_COLUMNS if needed <= columns), "")
