"""Operators and kernels of two jobs side by side, as HTA's TraceDiff shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.hta.shapes.frame import partners, step_of_events, whole
from htagraph.hta.shapes.names import is_step, shorten, step_of
from htagraph.hta.shapes.window import device_side

if TYPE_CHECKING:
    from htagraph.hta.common.trace import Trace
    from htagraph.hta.common.trace_symbol_table import TraceSymbolTable

__all__ = ["DeviceType", "brief_frame", "compared", "events_of", "groups_of", "ops_summary", "steps_of"]

Array = npt.NDArray[Any]
_NOT_DEVICE = (
    "cpu_op", "user_annotation", "python_function", "cuda_runtime", "cuda_driver", "mtia_runtime", "cuda_sync",
)  # fmt: skip


class DeviceType(Enum):
    """Whose events are compared."""

    CPU = 1
    GPU = 2
    ALL = 3


def steps_of(symbols: TraceSymbolTable) -> pd.DataFrame:
    """Return the profiler steps among the symbols: ``symbol`` (str), ``id`` and ``iteration`` (int64)."""
    steps = {symbol: number for symbol, number in symbols.get_sym_id_map().items() if is_step(symbol)}
    steps = {symbol: number for symbol, number in steps.items() if step_of(symbol) >= 0}
    return pd.DataFrame({
        "symbol": pd.array(list(steps), dtype="str"),
        "id": np.array(list(steps.values()), np.int64),
        "iteration": np.array([step_of(symbol) for symbol in steps], np.int64),
    })  # fmt: skip


def events_of(
    frames: Mapping[int, pd.DataFrame], iterations: Sequence[int], device_type: DeviceType, symbols: TraceSymbolTable
) -> pd.DataFrame:
    """Return the events of some ranks that lie in some steps.

    The device's are those on a stream. Operators that name a stream, and records of synchronization, are the host's:
    HTA counts both as device work.

    Args:
        frames: of each rank; of several one after the other, with the columns ``rank`` and ``idx`` before the others.
        iterations: numbers of steps.
        device_type: whose.
        symbols: what the numbers in the frames stand for.
    """
    table = symbols.get_sym_id_map()
    not_device = [table[word] for word in _NOT_DEVICE if word in table]
    parts = []
    for frame in frames.values():
        wanted = frame["iteration"].isin(iterations)
        if device_type is not DeviceType.ALL:
            on_device = frame["stream"].ne(-1) & ~frame["cat"].isin(not_device)
            wanted &= on_device if device_type is DeviceType.GPU else ~on_device
        parts.append(frame[wanted])
    if len(parts) == 1:
        return parts[0]
    return pd.concat(parts, keys=list(frames), names=["rank", "idx"]).reset_index()


def brief_frame(trace: Trace, rank: int) -> pd.DataFrame:
    """Return the columns of a rank's frame to sum up: ``cat``, ``name``, ``dur`` (µs), ``stream``, ``iteration``."""
    read, index = trace.job.of_rank(rank), trace.symbol_table.get_sym_id_map()
    events = read.events
    names, categories = (np.array([index[word] for word in words], np.int64) for words in (read.names, read.categories))
    partner = partners(read, device_side(read))
    return pd.DataFrame({
        "cat": categories[events.category], "name": names[events.name], "dur": events.duration / 1000,
        "stream": events.arg("stream"), "iteration": step_of_events(read, partner),
    })  # fmt: skip


def ops_summary(ops: pd.DataFrame, symbols: TraceSymbolTable) -> pd.DataFrame:
    """Return how often and how long each name of each category occurs among some events.

    Returns:
        One row per category and name in the order of their numbers: ``cat``, ``name``, ``short_name`` (str),
        ``counts`` (int64), ``total_duration`` (µs, int64 where all are whole), ``cat_id``, ``name_id``.
    """
    words = symbols.get_sym_table()
    category, name = ops["cat"].to_numpy(np.int64), ops["name"].to_numpy(np.int64)
    pairs, row = np.unique(category * len(words) + name, return_inverse=True)
    categories, numbers = np.divmod(pairs, max(len(words), 1))
    names = [words[i] for i in numbers]
    return pd.DataFrame({
        "cat": pd.array([words[i] for i in categories], dtype="str"),
        "name": pd.array(names, dtype="str"),
        "short_name": pd.array([shorten(name) for name in names], dtype="str"),
        "counts": np.bincount(row, minlength=len(pairs)),
        "total_duration": whole(np.bincount(row, ops["dur"].to_numpy(np.float64), len(pairs))),
        "cat_id": categories,
        "name_id": numbers,
    })  # fmt: skip


def compared(summaries: Sequence[pd.DataFrame], labels: Sequence[str], by: str) -> pd.DataFrame:
    """Return two summaries side by side, indexed by ``name`` or ``short_name``; names that one lacks have 0 there.

    Args:
        summaries: of `ops_summary`, control and test.
        labels: what their columns begin with.
        by: the column to compare by.
    """
    sides = [each.groupby(by)[["counts", "total_duration"]].sum() for each in summaries]
    names = sides[0].index.append(sides[1].index.difference(sides[0].index, sort=False))
    sides = [each if each.index.equals(names) else each.reindex(names).fillna(0) for each in sides]
    columns: dict[str, Any] = {}
    for label, side in zip(labels, sides, strict=True):
        columns |= {f"{label}_counts": side["counts"], f"{label}_total_duration": side["total_duration"]}
    columns["diff_counts"] = sides[1]["counts"] - sides[0]["counts"]
    columns["diff_duration"] = sides[1]["total_duration"] - sides[0]["total_duration"]
    signs = np.sign(columns["diff_counts"].to_numpy()).astype(np.int64)
    columns["counts_change_categories"] = pd.array(np.array(["=", "+", "-"], object)[signs], dtype="str")
    return pd.DataFrame(columns, index=names)


def groups_of(table: pd.DataFrame, labels: Sequence[str]) -> dict[str, list[str]]:
    """Return the names of `compared` that were added, deleted, increased, decreased, or are as many as before."""
    control, test = (table[f"{label}_counts"] for label in labels)
    return {
        group: table.index[mask].tolist()
        for group, mask in {
            "added": (control == 0) & (test > 0),
            "deleted": (control > 0) & (test == 0),
            "increased": (control > 0) & (test > control),
            "decreased": (test > 0) & (test < control),
            "unchanged": (test > 0) & (test == control),
        }.items()
    }
