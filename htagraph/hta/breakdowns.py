"""HTA's breakdowns: temporal, idle, kernels, user annotations, overlap."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.analyses.kernel_types import kernel_types
from htagraph.analyses.overlap import overlap
from htagraph.analyses.temporal_breakdown import temporal_breakdown as native_temporal_breakdown
from htagraph.annotations import narrowest
from htagraph.hta.frame import frame_of, whole
from htagraph.hta.job import HtaJob
from htagraph.hta.names import shorten
from htagraph.kinds import ActivityKind
from htagraph.pauses import stream_pauses

__all__ = [
    "comm_comp_overlap", "gpu_kernel_breakdown", "gpu_kernels_with_user_annotations", "idle_time_breakdown",
    "temporal_breakdown", "user_annotation_breakdown",
]  # fmt: skip

Array = npt.NDArray[Any]

_TYPES = (ActivityKind.COMPUTATION, ActivityKind.COMMUNICATION, ActivityKind.MEMORY)
_CATEGORIES = ("host_wait", "kernel_wait", "other")
_STATISTICS = ("sum", "max", "min", "std", "mean")
_RENAMED = {"sum": "sum (us)", "max": "max (us)", "min": "min (us)", "std": "stddev", "mean": "mean (us)"}
_OTHERS = "others"


def temporal_breakdown(job: HtaJob) -> pd.DataFrame:
    """Return how long each rank's device is idle, computes, or does something else, in µs and percent.

    Ranks without device work have no row.
    """
    table = native_temporal_breakdown(job.graph)
    table = table[table["executor"] == "device"].reset_index(drop=True)
    if not len(table):
        _say("no rank has device work: there is nothing to break down")
    hidden = table["exposed_communication_us"] + table["exposed_memory_us"] + table["other_us"]
    parts = {"idle": table["idle_us"], "compute": table["computation_us"], "non_compute": hidden}
    times = {f"{part}_time(us)": us for part, us in parts.items()} | {"kernel_time(us)": table["window_us"]}
    out = pd.DataFrame({"rank": table["rank"], **times})
    for part in parts:
        out[f"{part}_time_pctg"] = (100 * (out[f"{part}_time(us)"] / out["kernel_time(us)"])).round(2)
    return out


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
    pauses = _pauses(job, consecutive_kernel_delay)
    chosen = job.ranks(ranks)
    parts = []
    for rank in chosen:
        mine = pauses[pauses["rank"] == rank]
        wanted = [] if streams is None else list(streams)
        if not wanted:
            wanted = mine["stream"].unique().tolist()
            numbers = pd.to_numeric(job.of_rank(rank).events.arg("stream"), downcast="integer")
            mine = mine.astype({"stream": numbers.dtype})  # as HTA keeps them
        parts += [mine[mine["stream"] == stream] for stream in wanted]
    parts = [part for part in parts if len(part)]
    if not parts:
        _say(f"no device work on rank {', '.join(map(str, chosen))}: there is no idle time to break down")
    found = pd.concat(parts or [pauses[:0]], ignore_index=True)
    found["code"] = (
        np.repeat(np.arange(len(parts)), [len(part) for part in parts]) * len(_CATEGORIES) + found["category"]
    )
    return _idle_times(found), _idle_statistics(found) if show_idle_interval_stats else None


def _pauses(job: HtaJob, consecutive_kernel_delay: float) -> pd.DataFrame:
    """Return every device work in the order of the file, with its category and the pause before it in µs."""
    acts = job.graph.activities
    device = np.flatnonzero(acts.on_device)
    table = stream_pauses(job.graph)
    launch = table["launch"].to_numpy()
    launched = (launch >= 0) & (acts.kind[launch] == ActivityKind.LAUNCH)  # an operator is no launch
    late = launched & (acts.start[launch] > table["free_ns"].to_numpy())
    short = table["pause_ns"].to_numpy() < 1000 * consecutive_kernel_delay
    category, pause = np.full(len(acts), 2), np.full(len(acts), np.nan)
    category[table["after"]] = np.select((late, short), (0, 1), 2)
    pause[table["after"]] = table["pause_ns"] / 1000
    streams = np.array([lane.stream for lane in job.graph.lanes], np.int64)
    return pd.DataFrame({
        "rank": acts.rank[device].astype(np.int64), "stream": streams[acts.lane[device]],
        "category": category[device], "pause": pause[device],
    })  # fmt: skip


def _idle_times(pauses: pd.DataFrame) -> pd.DataFrame:
    codes, first = np.unique(pauses["code"].to_numpy(np.int64), return_index=True)
    total = np.bincount(pauses["code"], pauses["pause"].fillna(0.0))[codes] if len(codes) else np.zeros(0)
    stream = codes // len(_CATEGORIES)
    of_stream = np.bincount(stream, total, len(codes))[stream]
    rows = _idle_keys(pauses, codes, first)
    rows["idle_time"] = total.round(2)
    rows["idle_time_ratio"] = (total / np.where(of_stream != 0, of_stream, np.nan)).round(2)
    begins = np.flatnonzero(np.diff(rows["rank"], prepend=-1))
    rows.index = pd.Index(np.arange(len(rows)) - np.repeat(begins, np.diff(begins, append=len(rows))))
    return rows  # HTA counts each rank's rows from 0


def _idle_statistics(pauses: pd.DataFrame) -> pd.DataFrame:
    codes, first = np.unique(pauses["code"].to_numpy(np.int64), return_index=True)
    keys = _idle_keys(pauses, codes, first).set_index("idle_category")
    described = [_described(us[~np.isnan(us)]) for us in _groups(pauses["pause"].to_numpy(), pauses["code"].to_numpy())]
    figures = np.array(described, np.float64).reshape(-1, len(_DESCRIBED)).round(2)
    return keys.assign(**dict(zip(_DESCRIBED, figures.T, strict=True)))


_DESCRIBED = ("count", "mean", "std", "min", "25%", "50%", "75%", "max")


def _described(us: Array) -> tuple[float, ...]:
    """Return what pandas' `describe` says of one column, in a tenth of its time."""
    if not len(us):
        return 0.0, *[float("nan")] * (len(_DESCRIBED) - 1)
    deviation = us.std(ddof=1) if len(us) > 1 else float("nan")
    return len(us), us.mean(), deviation, *np.percentile(us, (0, 25, 50, 75, 100))


def _groups(values: Array, codes: Array) -> list[Array]:
    """Return the values of each code, by code."""
    order = np.argsort(codes, kind="stable")
    return np.split(values[order], np.flatnonzero(np.diff(codes[order])) + 1) if len(order) else []


def _idle_keys(pauses: pd.DataFrame, codes: Array, first: Array) -> pd.DataFrame:
    words = np.array(_CATEGORIES, object)[codes % len(_CATEGORIES)]
    keys = pauses[["rank", "stream"]].iloc[first].reset_index(drop=True)
    return keys.assign(idle_category=pd.array(words, dtype="str"))


def gpu_kernel_breakdown(
    job: HtaJob, duration_ratio: float = 0.8, num_kernels: int = 10, *, include_memory_kernels: bool = True
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return (device time of all ranks by the types of kernel that run at once, each rank's kernels by type and name).

    Of more than `num_kernels` names of a rank and type, those are summed up as ``others`` that come later than
    `num_kernels` in the order of their total time, or behind which the running total is above its `duration_ratio`
    quantile. All statistics are over kernels.
    """
    acts, types = job.graph.activities, _TYPES[: 3 if include_memory_kernels else 2]
    names, parts = job.graph.names, []
    for rank in job.traces:
        for kind in types:
            mine = acts.of_rank(rank)
            rows = mine.start + np.flatnonzero(acts.kind[mine] == kind)
            table = _aggregated(names, acts.name[rows], acts.duration[rows] / 1000, duration_ratio, num_kernels)
            parts.append(table.assign(kernel_type=kind.name, rank=rank))
    if not len(_with_device(job)):
        _say("no rank has device work: there is nothing to break down")
    return _type_times(job, types), _together(parts, ["kernel_type", "name", "rank"])


def _type_times(job: HtaJob, types: Sequence[ActivityKind]) -> pd.DataFrame:
    table = kernel_types(job.graph)
    table = table[table["rank"].isin(_with_device(job))]
    words = [[kind.name for kind in types if kind.label in kinds.split(" + ")] for kinds in table["kinds"]]
    table = table.assign(kernel_type=pd.array([" overlapping ".join(each) for each in words], dtype="str"))
    totals = table[table["kernel_type"] != ""].groupby("kernel_type")["total_us"].sum()
    totals = totals.sort_values(ascending=False, kind="stable")
    share = ((totals / totals.sum()) * 100).round(1)
    return pd.DataFrame({
        "kernel_type": totals.index.astype("str"), "sum": whole(totals.to_numpy()), "percentage": share.to_numpy(),
    })  # fmt: skip


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
        _say(f"the traces contain no {category}")
        return None
    parts = []
    for rank, trace in job.traces.items():
        events = trace.events
        rows = trace.in_categories(category)
        us, kept = events.duration[rows] / 1000, tuple(allowlist_patterns or ())
        table = _aggregated(trace.names, events.name[rows], us, duration_ratio, num_kernels, kept)
        parts.append(table.assign(rank=rank))
    return _together(parts, ["rank", "name"])


def _aggregated(
    names: Sequence[str], codes: Array, us: Array, duration_ratio: float, num_kernels: int, kept: Sequence[str] = ()
) -> pd.DataFrame:
    """Return the statistics of durations by name; the names beyond HTA's cut are one, ``others``.

    Args:
        names: of all codes.
        codes: the name of each duration.
        us: the durations.
        duration_ratio: which quantile of the running total the last name may reach.
        num_kernels: how many names may stay; up to so many, all do.
        kept: patterns of names that stay in any case.
    """
    durations = pd.Series(us).groupby(codes)
    table = durations.agg(list(_STATISTICS))
    table["name"] = pd.array([names[code] for code in table.index], dtype="str")
    table = table.sort_values(["sum", "name"], ascending=[False, True])
    if len(table) > num_kernels:
        running = table["sum"].cumsum()
        cut = (running > running.quantile(duration_ratio)) | (np.arange(len(table)) >= num_kernels)
        cut &= ~table["name"].map(lambda name: any(pattern in name for pattern in kept)).to_numpy(np.bool_)
        rest = pd.Series(us[np.isin(codes, table.index[cut])]).agg(list(_STATISTICS))
        others = pd.DataFrame([{"name": _OTHERS, **rest}]) if cut.any() else table[:0]
        table = pd.concat((table[~cut], others))
    return table.fillna({"std": 0.0})


def _together(parts: list[pd.DataFrame], order: list[str]) -> pd.DataFrame:
    columns = ["name", *_STATISTICS, *(column for column in ("kernel_type", "rank") if column in order)]
    table = pd.concat([each for each in parts if len(each)] or [pd.DataFrame(columns=columns)], ignore_index=True)
    texts = [column for column in ("name", "kernel_type") if column in columns]
    kinds = dict.fromkeys(_STATISTICS, "float64") | {"rank": "int64"} | dict.fromkeys(texts, "str")
    return table[columns].astype(kinds).sort_values(order, ignore_index=True).rename(columns=_RENAMED)


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
        _say(f"the trace of rank {rank} contains no annotation on a device")
        return None
    acts = job.graph.activities
    mine = acts.of_rank(rank)
    work = np.isin(events.index, acts.event[mine][acts.on_device[mine]])
    numbers = np.array([*(job.symbols.sym_index[name] for name in trace.names), -1], np.int64)
    over = np.full(len(events), -1, np.int64)
    for lane in np.unique(events.lane[marks]):
        here = events.lane == lane
        rows, around = np.flatnonzero(work & here), np.flatnonzero(marks & here)
        found = narrowest(events.start[rows], events.end[rows], events.start[around], events.end[around])
        over[rows] = numbers[np.append(events.name[around], -1)[found]]
    # device work has no arguments that are left in the file
    frame = frame_of(job, rank, from_file=False, only=work).reset_index(drop=True)
    frame["end"] = frame["ts"] + frame["dur"]
    frame["user_annotation"] = pd.Series(over, events.index).reindex(frame["index"]).to_numpy()
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
    """Return what percentage of each rank's communication on the device runs beside computation; NaN without any."""
    table = overlap(job.graph)
    share = (100 * (table["hidden_us"] / table["communication_us"].where(table["communication_us"] > 0))).round(2)
    on_device = table["rank"].isin(_with_device(job))
    return pd.DataFrame({"rank": table["rank"], "comp_comm_overlap_pctg": share.where(on_device)})


def _with_device(job: HtaJob) -> list[int]:
    acts = job.graph.activities
    return np.unique(acts.rank[acts.on_device]).tolist()


def _say(what: str) -> None:
    warnings.warn(what, stacklevel=4)
