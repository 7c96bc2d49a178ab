"""HTA's breakdowns: temporal, idle, kernels, user annotations, overlap.

Each function whose name begins with ``get_`` is a method of `TraceAnalysis`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from htagraph.analyses.kernel_types import kernel_types
from htagraph.analyses.overlap import overlap
from htagraph.analyses.temporal_breakdown import temporal_breakdown
from htagraph.core.arrays import Array, inverse_of
from htagraph.core.kinds import DEVICE_WORK, KERNELS, ActivityKind
from htagraph.core.statistics import described, summed
from htagraph.hta.common.trace_symbol_table import decode_symbol_id_to_symbol_name
from htagraph.hta.shapes import figures
from htagraph.hta.shapes.frame import frame_of, in_whole, rows_of, smallest_type, whole
from htagraph.hta.shapes.job import HasJob, HtaJob, Ranks, analyzer
from htagraph.hta.shapes.names import stream_of_events
from htagraph.queries.recorded_events import narrowest

__all__ = [
    "get_comm_comp_overlap", "get_gpu_kernel_breakdown", "get_gpu_kernels_with_user_annotations",
    "get_gpu_user_annotation_breakdown", "get_idle_time_breakdown", "get_temporal_breakdown",
]  # fmt: skip

Part: TypeAlias = tuple[dict[str, Any], list[str], dict[str, Array]]
"""Columns that are the same in all rows, names, statistics by name."""

_TEMPORAL = {
    "idle": ("idle",), "compute": ("computation",),
    "non_compute": ("exposed_communication", "exposed_memory", "other"), "kernel": ("window",),
}  # fmt: skip
"""HTA's parts of a device's time, each with the native parts that it is the sum of."""
_CATEGORIES = ("host_wait", "kernel_wait", "other")
_QUARTERS = {"p25": "25%", "median": "50%", "p75": "75%"}
_RENAMED = {"sum": "sum (us)", "max": "max (us)", "min": "min (us)", "std": "stddev", "mean": "mean (us)"}
_NO_DEVICE_WORK = "no device work, so there is nothing to break down"


def get_temporal_breakdown(self: HasJob, visualize: bool = True) -> pd.DataFrame:
    """Return how each rank's time splits into computation, other device work and idle time.

    Args:
        visualize: show a stacked bar per rank.

    Returns:
        One row per rank with device work: ``rank``, ``idle_time(us)``, ``compute_time(us)``, ``non_compute_time(us)``,
        ``kernel_time(us)`` (first start to last end of device work), and ``idle_time_pctg``,
        ``compute_time_pctg``, ``non_compute_time_pctg`` of it, rounded to 2 digits.
    """
    native = temporal_breakdown(self.job.graph, by="rank", begin="first")
    native = native[(native["executor"] == "device").to_numpy()]
    if not len(native):
        self.job.warn(_NO_DEVICE_WORK)
    us = {part: np.sum([native[f"{name}_us"].to_numpy() for name in names], 0) for part, names in _TEMPORAL.items()}
    times = in_whole(self.job, {f"{part}_time(us)": each for part, each in us.items()})
    window = np.where(us["kernel"] > 0, us["kernel"], np.nan)
    shares = {f"{part}_time_pctg": (100 * (each / window)).round(2) for part, each in us.items() if part != "kernel"}
    table = pd.DataFrame({"rank": native["rank"].to_numpy(), **times, **shares})
    if visualize:
        figures.show(figures.temporal_breakdown(table))
    return table


def get_comm_comp_overlap(self: HasJob, visualize: bool = True) -> pd.DataFrame:
    """Return the share of each rank's communication that overlaps with computation.

    Args:
        visualize: show a bar per rank.

    Returns:
        One row per rank: ``rank``, ``comp_comm_overlap_pctg`` (rounded to 2 digits, NaN without communication).
    """
    native = overlap(self.job.graph, by="rank")
    communication = native["communication_us"].to_numpy()
    share = 100 * (native["hidden_us"].to_numpy() / np.where(communication > 0, communication, np.nan))
    on_device = np.isin(native["rank"].to_numpy(), _with_device(self.job))
    columns = {"rank": native["rank"].to_numpy(), "comp_comm_overlap_pctg": np.where(on_device, share, np.nan).round(2)}
    table = pd.DataFrame(columns)
    if visualize:
        figures.show(figures.comm_comp_overlap(table))
    return table


def get_idle_time_breakdown(
    self: HasJob,
    ranks: Ranks = None,
    streams: Sequence[int] | None = None,
    visualize: bool = True,
    visualize_pctg: bool = True,
    show_idle_interval_stats: bool = False,
    consecutive_kernel_delay: int = 30,
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return why streams are idle: ``host_wait``, ``kernel_wait`` or ``other``.

    ``host_wait``: the launch began after all earlier work of the stream had ended. ``kernel_wait``: the launch did not
    begin that late, and the pause is shorter than `consecutive_kernel_delay`. ``other``: all other pauses, and the
    first work of a stream, which has no pause before it.

    Args:
        ranks: rank 0 if not given.
        streams: all if not given.
        visualize: show a stacked bar per stream.
        visualize_pctg: show bars of shares, not of µs.
        show_idle_interval_stats: return the second table too.
        consecutive_kernel_delay: gaps shorter than this (µs) that the host did not cause are ``kernel_wait``.

    Returns:
        (``rank``, ``stream``, ``idle_category``, ``idle_time``, ``idle_time_ratio``; and, if asked for, the
        statistics of the gaps by ``idle_category``: ``rank``, ``stream``, ``count``, ``mean``, ``std``, ``min``,
        ``25%``, ``50%``, ``75%``, ``max``, else None), rounded to 2 digits.
    """
    rank_of, stream_of, category, pause = _pauses(self.job, consecutive_kernel_delay)
    chosen = self.job.ranks(ranks)
    places = [
        (rank, stream) for rank in chosen for stream in streams or dict.fromkeys(stream_of[rank_of == rank].tolist())
    ]
    rows = [np.flatnonzero((rank_of == rank) & (stream_of == stream)) for rank, stream in places]
    row = np.concatenate([*rows, np.zeros(0, np.int64)])
    if not len(row):
        self.job.warn("no device work on the streams asked for, so there is no idle time to break down", chosen)
    code = np.repeat(np.arange(len(rows)), [len(each) for each in rows]) * len(_CATEGORIES) + category[row]
    codes, group = np.unique(code, return_inverse=True)
    place, which = np.divmod(codes, len(_CATEGORIES))
    keys = dict(zip(("rank", "stream"), np.array(places, np.int64).reshape(-1, 2)[place].T, strict=True))
    if not streams:  # as HTA keeps them
        smallest = [smallest_type(stream_of_events(self.job.of_rank(rank))) for rank in chosen]
        # a device event without the argument is on the stream of its thread id, which may need a larger type
        keys["stream"] = keys["stream"].astype(np.result_type(smallest_type(keys["stream"]), *smallest))
    words = pd.array(np.array(_CATEGORIES, object)[which], dtype="str")
    total = np.bincount(group, np.nan_to_num(pause[row]))
    of_stream = np.bincount(place, total)[place]
    ratio = total / np.where(of_stream != 0, of_stream, np.nan)
    begins = np.flatnonzero(np.diff(keys["rank"], prepend=-1))  # HTA counts each rank's rows from 0
    index = np.arange(len(place)) - np.repeat(begins, np.diff(begins, append=len(place)))
    figures_of_time = {"idle_time": total.round(2), "idle_time_ratio": ratio.round(2)}
    table = pd.DataFrame({**keys, "idle_category": words, **figures_of_time}, index=index)
    if visualize:
        figures.show(figures.idle_time_breakdown(table, percent=visualize_pctg))
    if not show_idle_interval_stats:
        return table, None
    known = ~np.isnan(pause[row])
    statistics = described(pause[row][known], group[known], len(words))
    columns = {_QUARTERS.get(name, name): each.astype(np.float64).round(2) for name, each in statistics.items()}
    return table, pd.DataFrame({**keys, **columns}, index=pd.Index(words, name="idle_category"))


def _pauses(job: HtaJob, consecutive_kernel_delay: float) -> tuple[Array, Array, Array, Array]:
    """Return (rank, stream, category, pause before it in µs) of all device work, in the order of the file."""
    acts = job.graph.activities
    device = np.flatnonzero(acts.on_device)
    category, pause = np.full(len(acts), 2), np.full(len(acts), np.nan)
    pauses = job.graph.pauses
    launch = acts.cause[pauses.after]
    launched = (launch >= 0) & (acts.kind[launch] == ActivityKind.LAUNCH)  # an operator is no launch
    late = launched & (acts.start[launch] > pauses.free)
    category[pauses.after] = np.select((late, pauses.length < 1000 * consecutive_kernel_delay), (0, 1), 2)
    pause[pauses.after] = pauses.length / 1000
    streams = np.array([lane.stream for lane in job.graph.lanes] or [-1], np.int64)
    return acts.rank[device], streams[acts.lane[device]], category[device], pause[device]


def get_gpu_kernel_breakdown(
    self: HasJob,
    visualize: bool = True,
    duration_ratio: float = 0.8,
    num_kernels: int = 10,
    include_memory_kernels: bool = True,
    image_renderer: str = "",
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return how the device time splits by kind of kernel and by kernel.

    Args:
        visualize: show the shares of the kinds, and of the kernels of each kind and rank.
        duration_ratio: kernels beyond this quantile of the cumulative time are summed up as ``others``.
        num_kernels: how many kernels of each kind and rank have a row of their own; if there are no more, all of them
            do.
        include_memory_kernels: count copies and sets.
        image_renderer: plotly's name of the renderer that shows the figures.

    Returns:
        (``kernel_type``, ``sum`` (µs), ``percentage``; and ``name``, ``sum (us)``, ``max (us)``, ``min (us)``,
        ``stddev``, ``mean (us)``, ``kernel_type``, ``rank``). All statistics are over kernels.
    """
    job, acts = self.job, self.job.graph.activities
    types, parts = DEVICE_WORK if include_memory_kernels else KERNELS, []
    for rank in job.traces:
        of_rank = acts.of_rank(rank)
        for kind in types:
            rows = of_rank.start + np.flatnonzero(acts.kind[of_rank] == kind)
            us = acts.duration[rows] / 1000
            words, statistics = _aggregated(job.graph.names, acts.name[rows], us, duration_ratio, num_kernels)
            parts.append(({"kernel_type": kind.name, "rank": rank}, words, statistics))
    if not len(_with_device(job)):
        job.warn(_NO_DEVICE_WORK)
    tables = _type_times(job, types), _together(job, parts, ["kernel_type", "name", "rank"])
    if visualize:
        figures.show(*figures.gpu_kernel_breakdown(*tables), renderer=image_renderer)
    return tables


def _type_times(job: HtaJob, types: Sequence[ActivityKind]) -> pd.DataFrame:
    """Return the device time of all ranks by the types of kernel that run at once."""
    table, with_device, totals = kernel_types(job.graph, by="rank"), _with_device(job), dict[str, float]()
    columns = (table[column].tolist() for column in ("rank", "kinds", "total_us"))
    for rank, kinds, us in zip(*columns, strict=True):
        words = " overlapping ".join(kind.name for kind in types if kind.label in kinds.split(" + "))
        if words and rank in with_device:
            totals[words] = totals.get(words, 0.0) + us
    chosen = sorted(totals, key=lambda words: (-totals[words], words))
    us = np.array([totals[words] for words in chosen], np.float64)
    share = (us / us.sum() * 100).round(1) if len(us) else us
    return pd.DataFrame({"kernel_type": pd.array(chosen, dtype="str"), "sum": whole(us), "percentage": share})


def get_gpu_user_annotation_breakdown(
    self: HasJob,
    use_gpu_annotation: bool = True,
    visualize: bool = True,
    duration_ratio: float = 0.8,
    num_kernels: int = 1000,
    allowlist_patterns: Sequence[str] | None = None,
    image_renderer: str | None = None,
) -> pd.DataFrame | None:
    """Return the time in each user annotation.

    Args:
        use_gpu_annotation: on the device, else on the host.
        visualize: show the shares of each rank.
        duration_ratio: as for kernels.
        num_kernels: how many annotations of a rank have a row of their own.
        allowlist_patterns: annotations whose names contain one of these texts have a row of their own in any case.
        image_renderer: plotly's name of the renderer that shows the figures.

    Returns:
        ``name``, ``sum (us)``, ``max (us)``, ``min (us)``, ``stddev``, ``mean (us)``, ``rank``; None if no trace
        has such annotations.
    """
    category, job = "gpu_user_annotation" if use_gpu_annotation else "user_annotation", self.job
    if category not in job.symbols.sym_index:
        job.warn(f"no user annotation in it: no events of category {category}")
        return None
    parts, kept = [], tuple(allowlist_patterns or ())
    for rank, trace in job.traces.items():
        rows = trace.in_categories(category)
        us = trace.events.duration[rows] / 1000
        words, statistics = _aggregated(trace.names, trace.events.name[rows], us, duration_ratio, num_kernels, kept)
        parts.append(({"rank": rank}, words, statistics))
    table = _together(job, parts, ["rank", "name"])
    if visualize:
        figures.show(*figures.user_annotation_breakdown(table), renderer=image_renderer)
    return table


def _aggregated(
    names: Sequence[str], codes: Array, us: Array, duration_ratio: float, num_kernels: int, kept: Sequence[str] = ()
) -> tuple[list[str], dict[str, Array]]:
    """Return (names, statistics of their durations); the names beyond HTA's cut are one, ``others``."""
    used, group = np.unique(codes, return_inverse=True)
    words = [names[code] for code in used.tolist()]
    totals = np.bincount(group, us, len(used))
    order = sorted(range(len(used)), key=lambda i: (-totals[i], words[i]))
    words = [words[i] for i in order]
    place = inverse_of(order, len(used))
    if len(words) > num_kernels:
        running = np.cumsum(totals[order])
        cut = (running > np.quantile(running, duration_ratio)) | (np.arange(len(words)) >= num_kernels)
        cut &= ~np.array([any(pattern in word for pattern in kept) for word in words])
        words = [word for word, out in zip(words, cut.tolist(), strict=True) if not out]
        place = np.where(cut, len(words), np.cumsum(~cut) - 1)[place]
        words += [figures.OTHERS] * bool(cut.any())
    return words, summed(us, place[group], len(words))


def _together(job: HtaJob, parts: Sequence[Part], order: Sequence[str]) -> pd.DataFrame:
    """Return one table of all parts, sorted by some of its columns."""
    count = [len(words) for _, words, _ in parts]
    us = {shown: np.concatenate([each[name] for *_, each in parts]) for name, shown in _RENAMED.items()}
    us["stddev"] = np.nan_to_num(us["stddev"])
    us |= in_whole(job, {name: us[name] for name in ("sum (us)", "max (us)", "min (us)")})
    keys = {name: np.repeat(np.array([key[name] for key, *_ in parts], object), count) for name in parts[0][0]}
    table = pd.DataFrame({"name": [word for _, words, _ in parts for word in words], **us, **keys})
    kinds = {name: "int64" if name == "rank" else "str" for name in ("name", *keys)}
    return table.astype(kinds).sort_values(list(order), kind="stable", ignore_index=True)


def get_gpu_kernels_with_user_annotations(
    self: HasJob, rank: int, expand_names: bool = True, shorten_names: bool = True
) -> pd.DataFrame | None:
    """Return the device events of a rank with the innermost user annotation over each.

    Args:
        rank: which rank.
        expand_names: add ``s_name``, ``s_cat`` and ``s_user_annotation``, the texts behind the numbers.
        shorten_names: without template arguments and parameters.

    Returns:
        The columns of the rank's frame and ``user_annotation`` (a symbol's number, -1 for none); None if no
        trace has annotations on the device.
    """
    job, trace, category = self.job, self.job.of_rank(rank), "gpu_user_annotation"
    if category not in job.symbols.sym_index:
        job.warn(f"no user annotation on a device: no events of category {category}", [rank])
        return None
    events, acts = trace.events, job.graph.activities
    marks, of_rank = trace.in_categories(category), acts.of_rank(rank)
    work = np.isin(events.index, acts.event[of_rank][acts.on_device[of_rank]])
    numbers = np.array([*(job.symbols.sym_index[name] for name in trace.names), -1], np.int64)
    over = np.full(len(events), -1, np.int64)
    for lane in np.unique(events.lane[marks]):
        here = events.lane == lane
        rows, around = np.flatnonzero(work & here), np.flatnonzero(marks & here)
        narrowest_around = narrowest(events.start[rows], events.end[rows], events.start[around], events.end[around])
        over[rows] = numbers[np.append(events.name[around], -1)[narrowest_around]]
    # device work has no arguments that are left in the file
    frame = frame_of(job, rank, from_file=False, only=work).reset_index(drop=True)
    frame["end"] = frame["ts"] + frame["dur"]
    frame["user_annotation"] = over[rows_of(job, trace, work)]
    if not expand_names:
        return frame
    decode_symbol_id_to_symbol_name(frame, job.symbols, shorten_names)
    return frame.astype(dict.fromkeys(("s_name", "s_cat", "s_user_annotation"), "str"))


def _with_device(job: HtaJob) -> list[int]:
    acts = job.graph.activities
    return np.unique(acts.rank[acts.on_device]).tolist()


BreakdownAnalysis = analyzer(
    "BreakdownAnalysis", get_gpu_kernel_breakdown, get_gpu_kernels_with_user_annotations,
    get_gpu_user_annotation_breakdown, get_idle_time_breakdown, get_temporal_breakdown,
)  # fmt: skip
CommunicationAnalysis = analyzer("CommunicationAnalysis", get_comm_comp_overlap)
