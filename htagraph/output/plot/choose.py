"""Which figure a result has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

__all__ = ["FIGURES", "figure_function", "figure_of"]

_DRAWN: tuple[tuple[str, ...], ...] = (
    ("temporal_breakdown", "breakdowns", "window_us computation_us exposed_communication_us idle_percent"),
    ("overlap", "breakdowns", "communication_us hidden_us"),
    ("idle_breakdown", "breakdowns", "rank cause idle_us"),
    ("collectives", "breakdowns", "collective wait_us wait_or_transfer_us start_us"),
    ("stragglers", "breakdowns", "Stragglers"),
    ("queue_length", "counters", "queue_length time_us stream"),
    ("memory_bandwidth", "counters", "bandwidth_gb_s time_us copy"),
    (
        "memory_timeline", "counters", "MemorySnapshot", "time_us allocated_bytes device",
        "time_us total_bytes parameter_bytes",
    ),
    ("kernel_breakdown", "kernels", "kind name count total_us share_percent"),
    ("operator_breakdown", "kernels"),  # its table has the columns of modules, and so has its figure
    ("module_breakdown", "kernels", "host_self_us device_us kind name"),
    ("kernel_owners", "kernels", "module operator device_us"),
    ("kernel_distribution", "kernels", "relative slowest_rank"),
    ("roofline", "kernels", "intensity tflop_s bound"),
    ("launch_stats", "launches", "launch work_kind delay_us launch_us"),
    ("slack", "launches", "slack_us critical kind"),
    ("timeline", "timeline", "DependencyGraph"),
    ("critical_path", "timeline", "CriticalPath"),
    ("what_if", "what_if", "Outcome"),
    ("sweep", "what_if", "factor makespan_us saved_us"),
    ("diff", "what_if", "Diff"),
    ("opportunities", "what_if", "what gain_us critical_us gain_percent"),
)  # fmt: skip
"""Figures, each with its module and with what it is drawn of: a class, or the columns that a table needs."""
FIGURES: Mapping[str, str] = {name: module for name, module, *_ in _DRAWN}
"""The figures by name, each with the module that it is in."""


def figure_of(result: Any) -> Figure:  # noqa: ANN401 - any result
    """Return the figure of a result, a table or a job; of a `Report` or `Summary`, of the first table that has one.

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
    return resolve_name(f"htagraph.output.plot.{FIGURES[name]}:{name}")


def _name_of(result: Any) -> str:  # noqa: ANN401
    """Return the name of a result's figure, the last one that it could be drawn as; empty for none."""
    classes = {each.__name__ for each in type(result).__mro__}
    columns = frozenset(map(str, getattr(result, "columns", ())))
    fits = (name for name, _, *kinds in _DRAWN for kind in kinds if kind in classes or columns.issuperset(kind.split()))
    return ["", *fits][-1]
