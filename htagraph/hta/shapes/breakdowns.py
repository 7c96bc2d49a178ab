"""HTA's breakdowns: temporal, idle, kernels, user annotations, overlap."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionArray

from htagraph.analyses.kernel_types import kernel_types
from htagraph.analyses.overlap import overlap
from htagraph.analyses.temporal_breakdown import temporal_breakdown as native_temporal_breakdown
from htagraph.core.arrays import Array
from htagraph.core.kinds import DEVICE_WORK, KERNELS, ActivityKind
from htagraph.core.statistics import described, summed
from htagraph.hta.shapes.frame import frame_of, in_whole, rows_of, smallest_type, whole
from htagraph.hta.shapes.job import HtaJob
from htagraph.hta.shapes.names import shorten
from htagraph.queries.recorded_events import narrowest

__all__ = [
    "comm_comp_overlap", "gpu_kernel_breakdown", "gpu_kernels_with_user_annotations", "idle_time_breakdown",
    "temporal_breakdown", "user_annotation_breakdown",
]  # fmt: skip

Part: TypeAlias = tuple[dict[str, Any], list[str], dict[str, Array]]
"""Columns that are the same in all rows, names, statistics by name."""

_CATEGORIES = ("host_wait", "kernel_wait", "other")
_HIDDEN = ("exposed_communication", "exposed_memory", "other")
_QUARTERS = {"p25": "25%", "median": "50%", "p75": "75%"}
_RENAMED = {"sum": "sum (us)", "max": "max (us)", "min": "min (us)", "std": "stddev", "mean": "mean (us)"}
_OTHERS = "others"


def temporal_breakdown(job: HtaJob) -> pd.DataFrame:
    """Return how long each rank's device is idle, computes, or does something else, in µs and percent.

    Ranks without device work have no row.
    """
    table = native_temporal_breakdown(job.graph)
    table = table[(table["executor"] == "device").to_numpy()]
    if not len(table):
        _say(job, "no device work, so there is nothing to break down")
    us = {name: table[f"{name}_us"].to_numpy() for name in (*_HIDDEN, "computation", "idle", "window")}
    hidden = np.sum([us[name] for name in _HIDDEN], axis=0)
    parts = {"idle": us["idle"], "compute": us["computation"], "non_compute": hidden}
    times = {f"{part}_time(us)": each for part, each in (*parts.items(), ("kernel", us["window"]))}
    window = np.where(us["window"] > 0, us["window"], np.nan)
    shares = {f"{part}_time_pctg": (100 * (each / window)).round(2) for part, each in parts.items()}
    return pd.DataFrame({"rank": table["rank"].to_numpy(), **in_whole(job, times), **shares})


def idle_time_breakdown(
    job: HtaJob,
    ranks: Sequence[int] | None = None,
    streams: Sequence[int] | None = None,
    consecutive_kernel_delay: float = 30,
    *,
    show_idle_interval_stats: bool = True,
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Return (idle time of each stream by category, statistics of the pauses behind it or None), µs.

    ``host_wait``: the launch began after all earlier work of the stream had ended. ``kernel_wait``: it did not, and the
    pause is shorter than `consecutive_kernel_delay`. ``other``: the rest, the first work of a stream among it, before
    which there is no pause to measure.
    """
    rank_of, stream_of, category, pause = _pauses(job, consecutive_kernel_delay)
    chosen = job.ranks(ranks)
    picked, where = [], []
    for rank in chosen:
        rank_rows = np.flatnonzero(rank_of == rank)
        wanted = stream_of[rank_rows][np.sort(np.unique(stream_of[rank_rows], return_index=True)[1])].tolist()
        for stream in streams or wanted:
            rows = rank_rows[stream_of[rank_rows] == stream]
            if len(rows):
                picked.append(rows)
                where.append((rank, stream))
    if not picked:
        _say(job, "no device work on the streams asked for, so there is no idle time to break down", chosen)
    row = np.concatenate([*picked, np.zeros(0, np.int64)])
    code = np.repeat(np.arange(len(picked)), [len(rows) for rows in picked]) * len(_CATEGORIES) + category[row]
    codes, group = np.unique(code, return_inverse=True)
    keys = _idle_keys(np.array(where, np.int64).reshape(-1, 2)[codes // len(_CATEGORIES)])
    if not streams:  # as HTA keeps them
        smallest = [smallest_type(job.of_rank(rank).events.arg("stream")) for rank in chosen]
        # a device event without the argument is on the stream of its thread id, which may need a larger type
        keys["stream"] = keys["stream"].astype(np.result_type(smallest_type(keys["stream"]), *smallest))
    words = pd.array(np.array(_CATEGORIES, object)[codes % len(_CATEGORIES)], dtype="str")
    table = _idle_times(keys, words, codes // len(_CATEGORIES), np.bincount(group, np.nan_to_num(pause[row])))
    return table, _idle_statistics(keys, words, pause[row], group) if show_idle_interval_stats else None


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


def _idle_keys(places: Array) -> dict[str, Array]:
    return {"rank": places[:, 0], "stream": places[:, 1]}


def _idle_times(keys: Mapping[str, Array], words: ExtensionArray, stream: Array, total: Array) -> pd.DataFrame:
    of_stream = np.bincount(stream, total)[stream] if len(stream) else total
    begins = np.flatnonzero(np.diff(keys["rank"], prepend=-1))
    index = np.arange(len(stream)) - np.repeat(begins, np.diff(begins, append=len(stream)))
    figures = {
        "idle_time": total.round(2), "idle_time_ratio": (total / np.where(of_stream != 0, of_stream, np.nan)).round(2)
    }  # fmt: skip
    return pd.DataFrame({**keys, "idle_category": words, **figures}, index=index)  # HTA counts each rank's rows from 0


def _idle_statistics(keys: Mapping[str, Array], words: ExtensionArray, pause: Array, group: Array) -> pd.DataFrame:
    some = ~np.isnan(pause)
    figures = described(pause[some], group[some], len(words))
    columns = {_QUARTERS.get(name, name): each.astype(np.float64).round(2) for name, each in figures.items()}
    return pd.DataFrame({**keys, **columns}, index=pd.Index(words, name="idle_category"))


def gpu_kernel_breakdown(
    job: HtaJob, duration_ratio: float = 0.8, num_kernels: int = 10, *, include_memory_kernels: bool = True
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return (device time of all ranks by the types of kernel that run at once, each rank's kernels by type and name).

    Of more than `num_kernels` names of a rank and type, those are summed up as ``others`` that come later than
    `num_kernels` in the order of their total time, or behind which the running total is above its `duration_ratio`
    quantile. All statistics are over kernels.
    """
    acts, types = job.graph.activities, DEVICE_WORK if include_memory_kernels else KERNELS
    names, parts = job.graph.names, []
    for rank in job.traces:
        for kind in types:
            of_rank = acts.of_rank(rank)
            rows = of_rank.start + np.flatnonzero(acts.kind[of_rank] == kind)
            words, figures = _aggregated(
                names, acts.name[rows], acts.duration[rows] / 1000, duration_ratio, num_kernels
            )
            parts.append(({"kernel_type": kind.name, "rank": rank}, words, figures))
    if not len(_with_device(job)):
        _say(job, "no device work, so there is nothing to break down")
    return _type_times(job, types), _together(job, parts, ["kernel_type", "name", "rank"])


def _type_times(job: HtaJob, types: Sequence[ActivityKind]) -> pd.DataFrame:
    table, with_device, totals = kernel_types(job.graph), _with_device(job), dict[str, float]()
    columns = (table[column].tolist() for column in ("rank", "kinds", "total_us"))
    for rank, kinds, us in zip(*columns, strict=True):
        words = " overlapping ".join(kind.name for kind in types if kind.label in kinds.split(" + "))
        if words and rank in with_device:
            totals[words] = totals.get(words, 0.0) + us
    chosen = sorted(totals, key=lambda words: (-totals[words], words))
    us = np.array([totals[words] for words in chosen], np.float64)
    share = (us / us.sum() * 100).round(1) if len(us) else us
    return pd.DataFrame({"kernel_type": pd.array(chosen, dtype="str"), "sum": whole(us), "percentage": share})


def user_annotation_breakdown(
    job: HtaJob,
    duration_ratio: float = 0.8,
    num_kernels: int = 1000,
    allowlist_patterns: Sequence[str] | None = None,
    *,
    use_gpu_annotation: bool = True,
) -> pd.DataFrame | None:
    """Return the durations of user annotations on devices (or on the host) by rank and name, None if there are none.

    As in `gpu_kernel_breakdown`, some may be summed up as ``others``, but not names that contain one of the
    `allowlist_patterns`.
    """
    category = "gpu_user_annotation" if use_gpu_annotation else "user_annotation"
    if category not in job.symbols.sym_index:
        _say(job, f"no user annotation in it: no events of category {category}")
        return None
    parts = []
    for rank, trace in job.traces.items():
        rows = trace.in_categories(category)
        us, kept = trace.events.duration[rows] / 1000, tuple(allowlist_patterns or ())
        words, figures = _aggregated(trace.names, trace.events.name[rows], us, duration_ratio, num_kernels, kept)
        parts.append(({"rank": rank}, words, figures))
    return _together(job, parts, ["rank", "name"])


def _aggregated(
    names: Sequence[str], codes: Array, us: Array, duration_ratio: float, num_kernels: int, kept: Sequence[str] = ()
) -> tuple[list[str], dict[str, Array]]:
    """Return (names, statistics of their durations); the names beyond HTA's cut are one, ``others``.

    Args:
        names: of all codes.
        codes: the name of each duration.
        us: the durations.
        duration_ratio: which quantile of the running total the last name may reach.
        num_kernels: how many names may stay; up to so many, all do.
        kept: patterns of names that stay in any case.
    """
    used, group = np.unique(codes, return_inverse=True)
    words = [names[code] for code in used.tolist()]
    totals = np.bincount(group, us, len(used))
    order = sorted(range(len(used)), key=lambda i: (-totals[i], words[i]))
    words = [words[i] for i in order]
    place = np.empty(len(used), np.int64)
    place[order] = np.arange(len(used))
    if len(words) > num_kernels:
        running = np.cumsum(totals[order])
        cut = (running > np.quantile(running, duration_ratio)) | (np.arange(len(words)) >= num_kernels)
        cut &= ~np.array([any(pattern in word for pattern in kept) for word in words])
        words = [word for word, out in zip(words, cut.tolist(), strict=True) if not out]
        place = np.where(cut, len(words), np.cumsum(~cut) - 1)[place]
        words += [_OTHERS] * bool(cut.any())
    return words, summed(us, place[group], len(words))


def _together(job: HtaJob, parts: Sequence[Part], order: Sequence[str]) -> pd.DataFrame:
    """Return one table of all parts, sorted by some of its columns."""
    words = [word for _, own, _ in parts for word in own]
    keys = [{**key, "name": word} for key, own, _ in parts for word in own]
    rows = np.array(sorted(range(len(keys)), key=lambda i: [keys[i][column] for column in order]), np.int64)
    columns = {
        column: np.concatenate([figures[column] for *_, figures in parts] or [np.zeros(0)])[rows] for column in _RENAMED
    }
    columns["std"] = np.nan_to_num(columns["std"])
    figures = {_RENAMED[column]: each for column, each in columns.items()}
    figures |= in_whole(job, {_RENAMED[column]: columns[column] for column in ("sum", "max", "min")})
    table: dict[str, Any] = {"name": pd.array([words[row] for row in rows.tolist()], dtype="str"), **figures}
    if "kernel_type" in order:
        table["kernel_type"] = pd.array([keys[row]["kernel_type"] for row in rows.tolist()], dtype="str")
    return pd.DataFrame(table | {"rank": np.array([keys[row]["rank"] for row in rows.tolist()], np.int64)})


def gpu_kernels_with_user_annotations(
    job: HtaJob, rank: int, *, expand_names: bool = True, shorten_names: bool = True
) -> pd.DataFrame | None:
    """Return the rows of a rank's frame that are device work, each with the shortest annotation over it on its stream.

    ``user_annotation`` is a number of `HtaJob.symbols`, -1 for none; with `expand_names` the columns ``s_name``,
    ``s_cat`` and ``s_user_annotation`` hold the texts. None if the rank has no annotation on a device.
    """
    trace = job.of_rank(rank)
    events = trace.events
    marks = trace.in_categories("gpu_user_annotation")
    if "gpu_user_annotation" not in job.symbols.sym_index:
        _say(job, "no user annotation on a device: no events of category gpu_user_annotation", [rank])
        return None
    acts = job.graph.activities
    of_rank = acts.of_rank(rank)
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
    return _with_names(job, frame, shorten_names=shorten_names) if expand_names else frame


def _with_names(job: HtaJob, frame: pd.DataFrame, *, shorten_names: bool) -> pd.DataFrame:
    texts: Array = np.array([*(job.symbols.sym_table), ""], object)
    for column, source in (("s_name", "name"), ("s_cat", "cat"), ("s_user_annotation", "user_annotation")):
        codes = frame[source].to_numpy()
        if shorten_names:
            for code in np.unique(codes[codes >= 0]).tolist():
                texts[code] = shorten(job.symbols.sym_table[code])
        frame[column] = pd.Series(texts[codes], dtype="str")
    return frame


def comm_comp_overlap(job: HtaJob) -> pd.DataFrame:
    """Return the percentage of each rank's communication that computation overlaps; NaN without communication."""
    table, communication = overlap(job.graph), "communication_us"
    communicates = table[communication].to_numpy() > 0
    share = 100 * (table["hidden_us"].to_numpy() / np.where(communicates, table[communication].to_numpy(), np.nan))
    on_device = np.isin(table["rank"].to_numpy(), _with_device(job))
    return pd.DataFrame({
        "rank": table["rank"].to_numpy(), "comp_comm_overlap_pctg": np.where(on_device, share, np.nan).round(2)
    })  # fmt: skip


def _with_device(job: HtaJob) -> list[int]:
    acts = job.graph.activities
    return np.unique(acts.rank[acts.on_device]).tolist()


def _say(job: HtaJob, what: str, ranks: Sequence[int] | None = None) -> None:
    """Warn of what is missing in the traces, and name their files."""
    warnings.warn(f"{job.described(ranks)}: {what}", stacklevel=4)
