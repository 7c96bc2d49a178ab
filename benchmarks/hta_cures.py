"""Cures for HTA's defects: run HTA without one of them, to see whether it explains a difference.

A cure is named after the defect of HTA.md that it repairs. It is an edit of the trace that HTA reads (events keep
their positions, which are HTA's ids), or a patch of HTA in its own process; nothing of it is our code, but for D10,
where HTA is told our classification of the kernels' names.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

Event: TypeAlias = dict[str, Any]
Frame: TypeAlias = Any
Value: TypeAlias = Any
Theirs: TypeAlias = Any
"""An object of HTA's, which has no types."""

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset", "mtia_ccp_events")
RUNTIME = ("cuda_runtime", "cuda_driver", "Runtime", "mtia_runtime")
KNOWN_LAUNCH = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync", "runFunction")
NO_STREAM = 1_000_000
"""The number that a cured stream 0 gets."""


def switch_off_drawing() -> None:
    """Let figures be made but not shown: HTA opens a browser."""
    plotly = import_module("plotly.basedatatypes")
    plotly.BaseFigure.show = lambda *_arguments, **_options: None


# edits of the trace


def only_device_work_has_streams(events: list[Event]) -> None:
    """D5: HTA takes whatever has a stream for device work: synchronizations, operators with an argument `stream`."""
    for event in events:
        if event.get("cat") == "cuda_sync":
            event.update(args={}, name="a cuda_sync event", cat="user_annotation")
        elif event.get("cat") not in DEVICE and "stream" in (event.get("args") or {}):
            event["args"] = {key: value for key, value in event["args"].items() if key != "stream"}


def launches_have_known_names(events: list[Event]) -> None:
    """D8: HTA knows a few launches by name; every other runtime call that launched something gets one of these."""
    launched = {(event.get("args") or {}).get("correlation") for event in events if event.get("cat") in DEVICE} - {None}
    for event in events:
        mine = (event.get("args") or {}).get("correlation")
        known = str(event.get("name")).startswith(KNOWN_LAUNCH)
        if event.get("cat") in RUNTIME and mine in launched and not known:
            event["name"] = "cudaLaunchKernel"


def no_stream_is_zero(events: list[Event]) -> None:
    """D9: HTA gives no iteration to what runs on stream 0, such as everything of AMD's."""
    for event in events:
        if event.get("cat") in DEVICE and str((event.get("args") or {}).get("stream")) == "0":
            event["args"]["stream"] = NO_STREAM


def times_are_whole_ns(events: list[Event]) -> None:
    """D2: HTA rounds fractions of µs away; with times in whole ns it does not. `scaled` undoes that in results."""
    for event in events:
        for key in ("ts", "dur"):
            if key in event:
                event[key] = round(Decimal(event[key]) * 1000)


def launches_come_before_work(events: list[Event]) -> None:
    """D24: where clocks let work start before its launch, HTA's queues hold less than nothing."""
    first: dict[object, float] = {}
    for event in events:
        if event.get("cat") in DEVICE:
            mine = (event.get("args") or {}).get("correlation")
            first[mine] = min(event["ts"], first.get(mine, event["ts"]))
    for event in events:
        if event.get("cat") in RUNTIME and "ts" in event:
            event["ts"] = min(event["ts"], first.get((event.get("args") or {}).get("correlation"), event["ts"]))


EDITS: Mapping[str, Callable[[list[Event]], None]] = {
    "D2": times_are_whole_ns,
    "D5": only_device_work_has_streams,
    "D8": launches_have_known_names,
    "D9": no_stream_is_zero,
    "D24": launches_come_before_work,
}


def copy_cured(source: Path, target: Path, cures: Sequence[str]) -> None:
    """Link a trace, or write a copy whose events are edited by the cures."""
    edits = [EDITS[cure] for cure in cures if cure in EDITS]
    if not edits:
        target.symlink_to(source)
        return
    data = source.read_bytes()
    root = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data, parse_float=Decimal)
    for edit in edits:
        edit(root["traceEvents"] if isinstance(root, dict) else root)
    text = json.dumps(root, default=float).encode()
    target.write_bytes(gzip.compress(text, 1) if target.suffix == ".gz" else text)


_TIMES = re.compile(
    r"(ts|dur|end|idle_time|sum|max|min|mean|std|stddev|25%|50%|75%|launch_delay|avg_\w+_delay|weight|critical_weight)"
    r"|.*\(us\)|(?!relative).*duration(_at_max_queue_length)?"
)
"""Columns and keys that are times where they are strings; a series' `describe` has columns of two levels."""


def scaled(value: Value) -> Value:
    """Return a result of a trace in ns with its times in µs."""
    if isinstance(value, dict):
        return {k: v / 1000 if _is_time(k, v) else scaled(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(scaled(each) for each in value)
    if hasattr(value, "columns"):
        return value.assign(**{name: value[name] / 1000 for name in value.columns if _is_time(name, 0)})
    return value


def _is_time(name: object, value: Value) -> bool:
    return isinstance(name, str) and isinstance(value, int | float) and bool(_TIMES.fullmatch(name))


# patches of HTA


def waits_are_in_ns() -> None:
    """D2: the thresholds that HTA compares times with."""
    analysis = import_module("hta.trace_analysis").TraceAnalysis
    original = analysis.get_idle_time_breakdown
    analysis.get_idle_time_breakdown = lambda *a, **k: original(*a, **{"consecutive_kernel_delay": 30_000, **k})
    path: Theirs = import_module("hta.analyzers.critical_path_analysis")
    path.KERNEL_KERNEL_DELAY_THRESHOLD_US = 1_500_000


def ties_are_stable_and_gaps_positive() -> None:
    """D19: HTA sorts ties as they come, and counts the overlap of a stream's kernels as negative idle time."""
    pandas = import_module("pandas")
    original = pandas.DataFrame.sort_values
    pandas.DataFrame.sort_values = lambda *a, **k: original(*a, **{**k, "kind": "stable"})
    shift = pandas.Series.shift

    def latest(series: Frame, *arguments: object, **options: object) -> Frame:
        return shift(series.cummax() if series.name == "end_ts" else series, *arguments, **options)

    pandas.Series.shift = latest
    analysis = import_module("hta.analyzers.breakdown_analysis").BreakdownAnalysis
    inner = analysis._analyze_idle_time_for_stream
    subtract = pandas.Series.__sub__

    def no_less_than_zero(one: Frame, other: Frame) -> Frame:
        found = subtract(one, other)
        return found.clip(lower=0) if getattr(other, "name", "") == "prev_end_ts" else found

    def analyze(*arguments: object, **options: object) -> Frame:
        pandas.Series.__sub__ = no_less_than_zero
        try:
            return inner(*arguments, **options)
        finally:
            pandas.Series.__sub__ = subtract

    analysis._analyze_idle_time_for_stream = analyze


def event_0_launched_nothing() -> None:
    """D13: HTA takes event 0 for the launch of each kernel without one, and may find that it came late.

    Event 0 is a launch only where it has the kernel's correlation.
    """
    analysis = import_module("hta.analyzers.breakdown_analysis").BreakdownAnalysis
    inner = analysis._analyze_idle_time_for_stream

    def analyze(stream: int, kernels: Frame, *arguments: object, **options: object) -> Frame:
        launches = kernels.loc[kernels["index_runtime"] == 0, "correlation"]
        if launches.nunique() > 1:  # one launch has one correlation
            kernels = kernels.assign(ts_runtime=kernels["ts_runtime"].mask(kernels["index_runtime"] == 0))
        return inner(stream, kernels, *arguments, **options)

    analysis._analyze_idle_time_for_stream = analyze


def empty_kernels_overlap() -> None:
    """D1: pandas 3.1 says that an empty interval overlaps nothing, so that kernels of 0 µs have no annotation."""
    analysis = import_module("hta.analyzers.breakdown_analysis").BreakdownAnalysis

    def associate(_class: Theirs, kernels: Frame, annotations: Frame) -> None:
        for row in annotations.itertuples():
            here = (kernels["pid"] == row.pid) & (kernels["tid"] == row.tid) & (kernels["ts"] < row.end)
            here &= (kernels["end"] > row.ts) | (kernels["ts"] == row.ts)
            kernels.loc[here.to_numpy(), "user_annotation"] = row.name

    analysis._associate_gpu_kernels_with_user_annotations = classmethod(associate)


def statistics_are_over_kernels() -> None:
    """D4: beyond `num_kernels` names, HTA's mean, max, min and std are over the sums per name."""
    analysis = import_module("hta.analyzers.breakdown_analysis").BreakdownAnalysis

    def aggregate(
        _class: Theirs,
        events: Frame,
        num_kernels: int = 10,
        duration_ratio: float = 0.8,
        allowlist_names: Theirs = None,
    ) -> Frame:
        columns = ["sum", "max", "min", "mean", "std"]
        table = events.groupby("name")["dur"].agg(columns).reset_index()
        table = table.sort_values("sum", ascending=False, ignore_index=True).fillna({"std": 0})
        if len(table) <= num_kernels:
            return table
        total = table["sum"].cumsum()
        other = (total > total.quantile(duration_ratio)) | (table.index >= num_kernels)
        other &= ~table["name"].isin(allowlist_names or [])
        names = set(table.loc[other, "name"])
        renamed = events.assign(name=events["name"].where(~events["name"].isin(names), "others"))
        return renamed.groupby("name")["dur"].agg(columns).reset_index().fillna({"std": 0})

    analysis._aggr_gpu_kernel_time = classmethod(aggregate)


def every_stream_is_blocked() -> None:
    """D6: HTA keeps one stream per rank of those that were blocked on a full queue."""
    counters = import_module("hta.analyzers.trace_counters").TraceCounters
    original = counters.get_time_spent_blocked_on_full_queue
    pandas = import_module("pandas")

    def blocked(trace: Theirs, series: Mapping[int, Frame], most: int) -> Frame:
        parts = [
            original(trace, {rank: frame[frame["stream"] == stream]}, most)
            for rank, frame in series.items()
            for stream in frame["stream"].unique()
        ]
        parts = [part for part in parts if len(part)] or [original(trace, {}, most)]
        return pandas.concat(parts, ignore_index=True)

    counters.get_time_spent_blocked_on_full_queue = staticmethod(blocked)


def ranks_are_apart() -> None:
    """D7: HTA adds the rows of the ranks before to each rank's."""
    analysis = import_module("hta.analyzers.cuda_kernel_analysis").CudaKernelAnalysis
    original = analysis.get_aten_op_kernels_and_delay

    def delays(trace: Theirs, ranks: Sequence[int] | None = None, sort_by: Theirs = None) -> dict[int, Frame]:
        return {rank: original(trace, [rank], sort_by)[rank] for rank in ranks or [0]}

    analysis.get_aten_op_kernels_and_delay = delays


def kernels_are_of_their_category(types: Mapping[str, str]) -> None:
    """D10: HTA asks the name alone what a kernel is, and some names mislead it."""
    for name in ("breakdown_analysis", "trace_counters", "communication_analysis"):
        module: Theirs = import_module(f"hta.analyzers.{name}")
        original = module.get_kernel_type
        module.get_kernel_type = lambda kernel, original=original: types.get(kernel) or original(kernel)


PATCHES: Mapping[str, Callable[[], None]] = {
    "D1": empty_kernels_overlap,
    "D2": waits_are_in_ns,
    "D4": statistics_are_over_kernels,
    "D6": every_stream_is_blocked,
    "D7": ranks_are_apart,
    "D13": event_0_launched_nothing,
    "D19": ties_are_stable_and_gaps_positive,
}


def patch(cures: Sequence[str], types: Mapping[str, str]) -> None:
    """Patch HTA in this process."""
    if "D10" in cures:
        kernels_are_of_their_category(types)
    for cure in cures:
        PATCHES.get(cure, lambda: None)()
