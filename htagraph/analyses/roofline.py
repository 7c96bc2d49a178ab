"""How close operators come to the device's peak compute rate and memory bandwidth, and which of the two bounds them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from htagraph.core.arrays import Array, occurring
from htagraph.core.devices import peak_of
from htagraph.core.flops import DRAM_BYTES, DRAM_PARTS, flop_per_count
from htagraph.core.kernels import is_tf32_kernel
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import names_that
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.attribution import names_of
from htagraph.queries.device_record import unrecorded_ranks
from htagraph.queries.kernel_costs import device_name, operator_costs
from htagraph.queries.kernel_sequences import work_below
from htagraph.queries.recorded_events import counter_ranges, operators_around

__all__ = ["roofline"]

TABLE = Table(
    "Operators by time, with what they compute and move",
    Col("rank", "int64"),
    Col("operator", "str"),
    Col("shapes", "str", "shapes of the inputs that the operator reads"),
    Col("element_bytes", "int64", "bytes of an element of the first input; 0 if unknown"),
    Col("tf32", "bool", "whether a kernel multiplies 32-bit elements as TF32"),
    Col(
        "at_most",
        "bool",
        "``flop`` and the rates are the most they can be, as it was not recorded whether a mask is causal or "
        "where a grouped product ends",
    ),
    Col("source", "str"),
    Col("count", "int64"),
    Col("flop bytes", doc="operations and bytes of all calls; NaN if unknown"),
    Col(
        "time_us",
        doc="durations of the operators' device work; of the operators, on a rank without a device; NaN if unknown",
    ),
    Col("share_percent", doc="share of the rank's device work; NaN if unknown, as in all columns that follow"),
    Col("intensity", doc="flop / bytes", heading="intensity FLOP/B"),
    Col("tflop_s gb_s", doc="rates that the operator reaches"),
    Col("peak_tflop_s peak_gb_s", doc="peak rates of the device"),
    Col(
        "roof_percent",
        doc="100 · reached / what the lower roof allows at this intensity; above 100 where inputs lie in a cache",
    ),
    Col("bound", "str", "the lower roof, ``compute`` or ``memory``; empty if unknown"),
    rank_by="time_us",
)

_GROUP = ["rank", "operator", "shapes", "element_bytes", "tf32", "at_most", "source"]
_SUMS = ["count", "flop", "bytes", "time_us"]


@described(TABLE)
def roofline(
    graph: DependencyGraph, *, peak_tflop_s: float | None = None, peak_gb_s: float | None = None
) -> pd.DataFrame:
    """Return the compute rate and memory bandwidth that operators reach, with the peaks of their device.

    Operations come from the device's counters (``source`` = ``counters``) where a rank was recorded with CUPTI's range
    profiler, else from the shapes of the inputs (``shapes``) of products of matrices, linear layers, convolutions and
    attention, forward and backward, by the formulas of ``torch.utils.flop_counter``; under a causal mask, only the
    pairs of a query and a key that the mask leaves count. Of nested operators, only the innermost operator with known
    operations counts. Bytes come from the counters of the device's memory; without counters, each input is taken as
    read once and each output as written once, which is a lower bound. The time is that of the device work beneath the
    operator, summed.

    Args:
        graph: the job, recorded with ``record_shapes=True`` or with counters.
        peak_tflop_s: peak compute rate of the device, 10¹² operations/s; if not given, known by the device's name and
            the type of the elements.
        peak_gb_s: peak bandwidth of the device's memory, 10⁹ B/s; if not given, known by the device's name.

    Returns:
        One row per rank, operator and shapes, most time first: {columns}.

    Raises:
        ValueError: a peak is no number above 0.
        TraceError: a file is gone or was changed since it was loaded.

    Example:
        >>> import htagraph as hg
        >>> table = hg.roofline(hg.load("data/gloo_ddp", ranks=[0]))
        >>> row = table[table["operator"] == "aten::addmm"].iloc[0]
        >>> bool(row["flop"] > row["count"])
        True

    Source: Williams, Waterman, Patterson 2009; torch.utils.flop_counter.
    """
    for name, peak in (("peak_tflop_s", peak_tflop_s), ("peak_gb_s", peak_gb_s)):
        if peak is not None and not 0 < peak < float("inf"):
            msg = f"{name}={peak!r}: give what the device does at most, a number above 0"
            raise ValueError(msg)
    costs, left_out = operator_costs(graph)
    counted = costs["activity"].to_numpy(np.int64)
    shaped = costs.assign(rank=graph.activities.rank[counted], operator=names_of(graph, counted), source="shapes")
    measured = _by_counters(graph)
    if len(measured):
        shaped = shaped[~shaped["rank"].isin(measured["rank"])]
    parts = [part for part in (measured, shaped) if len(part)]
    table = TABLE.frame()
    if parts:
        table = _table(graph, pd.concat(parts, ignore_index=True), (peak_tflop_s, peak_gb_s))
    table.attrs["left_out"] = left_out
    return table


def _table(graph: DependencyGraph, each: pd.DataFrame, peaks: tuple[float | None, float | None]) -> pd.DataFrame:
    """Return the operators by rank, name and shapes."""
    operators = each["activity"].to_numpy(np.int64)
    work, owner = work_below(graph, graph.tree.parent, operators)
    each["time_us"] = _time_us(graph, operators, work, owner)
    on_tf32 = names_that(is_tf32_kernel, graph.names)[graph.activities.name[work]]
    each["tf32"] = (each["element_bytes"] == 4) & np.isin(operators, owner[on_tf32])
    table = each.assign(count=1).groupby(_GROUP, as_index=False, sort=False)[_SUMS].sum(min_count=1)
    table = _rates(table, graph, *peaks)
    order = table.sort_values(["rank", "time_us"], ascending=[True, False], kind="stable", ignore_index=True)
    return TABLE.frame(order)


def _by_counters(graph: DependencyGraph) -> pd.DataFrame:
    """Return the innermost operators around the kernels that were counted."""
    parts = []
    for rank in graph.ranks:
        ranges = counter_ranges(graph, rank)
        counters = [name for name in ranges.columns[3:] if flop_per_count(name)]
        launch = ranges["launch"].to_numpy(np.int64)
        stacks = operators_around(graph, launch)
        inner = np.array([stack[-1] if stack else -1 for stack in stacks], np.int64)
        if not counters or not (inner >= 0).any():
            continue
        value = ranges[ranges.columns[3:]].apply(pd.to_numeric, errors="coerce").astype("float64")
        flop = sum(value[name].fillna(0) * flop_per_count(name) for name in counters)
        table = pd.DataFrame({"activity": inner, "flop": flop, "bytes": _moved(value)})[inner >= 0]
        parts.append(table.groupby("activity", as_index=False).sum(min_count=1).assign(rank=rank))
    if not parts:
        return pd.DataFrame()
    table = pd.concat(parts, ignore_index=True)
    operator = names_of(graph, table["activity"])
    return table.assign(operator=operator, shapes="", element_bytes=0, at_most=False, source="counters")


def _moved(value: pd.DataFrame) -> pd.Series[float]:
    """Return the bytes that each kernel moved to and from the device's memory, NaN where nothing counted them."""
    whole = [name for name in value if name == DRAM_BYTES]
    parts = [name for name in value if name in DRAM_PARTS]
    if whole or len(parts) == 2:
        return value[whole or parts].sum(axis=1, min_count=1)
    return pd.Series(np.nan, index=value.index)


def _time_us(graph: DependencyGraph, operators: Array, work: Array, owner: Array) -> Array:
    """Return the durations of the work of operators; on ranks without a device, their own, µs."""
    acts = graph.activities
    took_us = np.bincount(owner, acts.duration[work] / 1000, len(acts))[operators].astype(np.float64)
    rank = acts.rank[operators]
    is_on_host = ~np.isin(rank, occurring(acts.rank[acts.on_device]))
    is_enqueuing = np.isin(rank, unrecorded_ranks(graph))
    took_us[is_on_host] = acts.duration[operators[is_on_host]] / 1000
    took_us[is_enqueuing] = np.nan  # a host that enqueues work takes no time for it
    return took_us


def _rates(
    table: pd.DataFrame, graph: DependencyGraph, peak_tflop_s: float | None, peak_gb_s: float | None
) -> pd.DataFrame:
    acts = graph.activities
    work = acts.on_device & (acts.kind != ActivityKind.DEVICE_OTHER)
    total = pd.Series(np.bincount(acts.rank[work], acts.duration[work] / 1000, max(graph.ranks) + 1))
    seconds, some = table["time_us"].where(table["time_us"] > 0) / 1e6, table["bytes"].where(table["bytes"] > 0)
    all_us = table["rank"].map(total)
    table["share_percent"] = 100 * table["time_us"] / all_us.where(all_us > 0)
    table["intensity"] = table["flop"] / some
    table["tflop_s"], table["gb_s"] = table["flop"] / seconds / 1e12, some / seconds / 1e9
    peaks = {rank: peak_of(device_name(graph, rank)) for rank in table["rank"].unique()}
    limits = [peaks[rank] for rank in table["rank"]]
    sizes = zip(limits, table["element_bytes"].tolist(), table["tf32"].tolist(), strict=True)
    own = [peak.tflop_s(size, tf32=tf32) if peak else 0.0 for peak, size, tf32 in sizes]
    table["peak_tflop_s"] = _known(own if peak_tflop_s is None else [peak_tflop_s] * len(table))
    moved = [peak.gb_s if peak else 0.0 for peak in limits]
    table["peak_gb_s"] = _known(moved if peak_gb_s is None else [peak_gb_s] * len(table))
    by_memory = table["intensity"] * table["peak_gb_s"] / 1000
    roof = by_memory.clip(upper=table["peak_tflop_s"]).where(table["peak_tflop_s"].notna())
    table["roof_percent"] = 100 * table["tflop_s"] / roof.where(roof > 0)
    table["bound"] = np.where(roof.isna(), "", np.where(by_memory < table["peak_tflop_s"], "memory", "compute"))
    return table


def _known(values: list[float]) -> Array:
    return np.array([value if value > 0 else np.nan for value in values], np.float64)
