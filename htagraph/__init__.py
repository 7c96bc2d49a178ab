"""htagraph: why is this PyTorch job slow? One dependency graph over every rank of its Kineto traces.

The names are imported when first used, so that ``import htagraph`` loads neither pandas nor numba; `__init__.pyi`
lists them. `_RENAMED` lists the names of earlier releases that have a new one.
"""

import functools
import importlib
import typing
import warnings

import lazy_loader

_new_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


class _Renamed(typing.NamedTuple):
    """What became of a name of an earlier release."""

    use: str
    """What to write instead."""
    module: str
    """Where it is, as in an import."""
    name: str
    by: str = ""
    """The value of `by=` with which the new function gives the old one's answer."""
    old_columns: tuple[tuple[str, str], ...] = ()
    """Columns that were renamed: (new name, old name)."""


_RENAMED = {
    "MemoryAnalysis": _Renamed(
        "htagraph.memory_analysis.MemoryAnalysis", "htagraph.memory_analysis", "MemoryAnalysis"
    ),
    "MemorySnapshot": _Renamed("htagraph.memory.Snapshot", "htagraph.analyses.memory", "Snapshot"),
    "link_execution_trace": _Renamed("htagraph.execution_trace.link", "htagraph.analyses.execution_trace", "link"),
    "memory_at_peak": _Renamed("htagraph.memory.at_peak", "htagraph.analyses.memory", "at_peak"),
    "memory_bandwidth_summary": _Renamed(
        'htagraph.memory_bandwidth(graph, by="copy")', "htagraph.analyses.memory_bandwidth", "memory_bandwidth", "copy",
        (
            ("mean_gb_s", "mean"), ("std_gb_s", "std"), ("min_gb_s", "min"), ("p25_gb_s", "p25"),
            ("median_gb_s", "median"), ("p75_gb_s", "p75"), ("max_gb_s", "max"), ("copied_gb", "gb"),
        ),
    ),
    "memory_peaks": _Renamed("htagraph.memory.peaks", "htagraph.analyses.memory", "peaks"),
    "memory_timeline": _Renamed("htagraph.memory.timeline", "htagraph.analyses.memory", "timeline"),
    "queue_summary": _Renamed(
        'htagraph.queue_length(graph, by="stream")', "htagraph.analyses.queue_length", "queue_length", "stream"
    ),
    "rank_idle": _Renamed(
        'htagraph.idle_breakdown(graph, by="rank")', "htagraph.analyses.idle_breakdown", "idle_breakdown", "rank"
    ),
    "read_execution_trace": _Renamed("htagraph.execution_trace.read", "htagraph.analyses.execution_trace", "read"),
    "read_memory_snapshot": _Renamed("htagraph.memory.read_snapshot", "htagraph.analyses.memory", "read_snapshot"),
    "read_memory_timeline": _Renamed("htagraph.memory.read_timeline", "htagraph.analyses.memory", "read_timeline"),
}  # fmt: skip


def __getattr__(name: str) -> typing.Any:  # noqa: ANN401 - whatever has that name
    old = _RENAMED.get(name)
    if old is None:
        return _new_name(name)
    warnings.warn(f"htagraph.{name} is now {old.use}", DeprecationWarning, stacklevel=2)
    return _as_it_was(old)


def _as_it_was(old: _Renamed) -> typing.Any:  # noqa: ANN401 - whatever had that name
    """Return the object that an earlier release had under another name, with its old columns if it is a function."""
    new = getattr(importlib.import_module(old.module), old.name)
    if not old.by:
        return new

    @functools.wraps(new)
    def as_it_was(*args: typing.Any, **options: typing.Any) -> typing.Any:  # noqa: ANN401 - the new function's
        return new(*args, by=old.by, **options).rename(columns=dict(old.old_columns))

    return as_it_was
