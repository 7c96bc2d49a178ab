"""Timelines: events as bars over time, one line per stream, thread level or rank; last, HTA's older ones of kernels."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from htagraph.core.errors import SelectionError
from htagraph.core.naming import short_name
from htagraph.hta.shapes import figures
from htagraph.hta.utils.utils import names_of, require

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from htagraph.hta.common.trace import Trace
    from htagraph.hta.common.trace_symbol_table import TraceSymbolTable

__all__ = [
    "AnnotationStreamID", "CPUStreamID", "DefaultHoverColumns", "DefaultTimelinePlotSetting", "EventType", "PlotFormat",
    "Timeline", "TimelinePlotSetting", "align_module_with_kernels", "auto_detect_setting", "bars", "gpu_kernels_figure",
    "plot_events_timeline", "plot_timeline", "plot_timeline_gpu_kernels", "plot_timeline_gpu_kernels_from_trace",
    "prepare_timeline_events", "prepare_timeline_gpu_events",
]  # fmt: skip

Choice: TypeAlias = Callable[[pd.DataFrame, "TraceSymbolTable | None"], pd.DataFrame]

AnnotationStreamID = 0
"""The stream that `align_module_with_kernels` gives to the bars of modules."""
CPUStreamID = -1
"""What stands in ``stream`` for host events."""
DefaultHoverColumns = ["trace", "rank", "iteration", "stream", "cat", "index"]
"""What a bar shows under the mouse, of what the frame has."""

_REQUIRED = ("name", "ts", "dur")
_LABELS = ("stream", "rank", "trace", "depth", "tid")
_ALIGNED = {"index", "stream", "ts", "dur", "name", "first_kernel_start", "kernel_span", "num_kernels"}
_FEW_LINES, _TALL = 20, 80
"""Below this number of lines each one is 80 pixels high, as in HTA, so that a figure of few lines can be read."""

EventType = Enum("EventType", ["GPUEvents", "CPUEvents", "AllEvents"], start=0)
"""Whose events a timeline shows."""


class PlotFormat(Enum):
    """What becomes of a figure."""

    HTML = "html"
    """It is returned as HTML and not shown."""
    Inline = "inline"
    """It is shown."""
    File = "file"
    """It is only written to the file that is named."""


@dataclass
class TimelinePlotSetting:
    """How a timeline is drawn."""

    auto_detect: bool = True
    """Set the four fields behind this one by what the events are."""
    event_type: EventType = EventType.GPUEvents
    multi_ranks: bool = False
    multi_traces: bool = False
    multi_streams: bool = True
    x_start_column: str = "calibrated_start_global"
    x_end_column: str = "calibrated_end_global"
    task_column: str = "task"
    color_column: str = "name"
    task_height: int = 30
    """Pixels per line; HTA's value."""
    amplify_short_events: bool = True
    """Let events end no earlier than the next field after their start, and outline their bars, so that each is seen."""
    short_events_display_duration: int = 1000
    """µs; HTA's value. Bars are drawn at the events' own length, else they would cover their neighbours, as in HTA."""
    use_global_time: bool = False
    """Show dates instead of µs since the first event."""
    plot_format: PlotFormat = PlotFormat.Inline
    compress_threads: bool = True
    """Draw the threads of the host in the same lines."""


DefaultTimelinePlotSetting = TimelinePlotSetting()


class Timeline:
    """Events of a frame, made ready to be drawn.

    `timeline_events` has the events: columns of the frame that are shown, ``ts`` in µs since the first event,
    ``calibrated_start_global`` and ``calibrated_end_global`` (where the bar begins and ends), ``task`` (its line).

    Args:
        timeline_events: a frame, or `timeline_events` of another timeline.
        symbol_table: what the numbers in ``name`` and ``cat`` stand for.
        filter_func: which events to show, such as ``GPUKernelFilter()``; all if not given.
        setting: how to draw them; it is left as it is.
        hover_columns: what a bar shows under the mouse.

    Example:
        >>> from htagraph.hta.common.trace import Trace
        >>> from htagraph.hta.common.trace_filter import GPUKernelFilter
        >>> trace = Trace(trace_dir="data/demo")
        >>> trace.parse_traces(max_ranks=1)
        >>> timeline = Timeline(trace.get_trace(0), trace.symbol_table, filter_func=GPUKernelFilter())
        >>> sorted(timeline.timeline_events["task"].unique())[-2:]
        ['gpu stream 007', 'gpu stream 020']
    """

    def __init__(
        self,
        timeline_events: pd.DataFrame,
        symbol_table: TraceSymbolTable | None = None,
        filter_func: Choice | None = None,
        setting: TimelinePlotSetting = DefaultTimelinePlotSetting,
        hover_columns: Sequence[str] | None = None,
    ) -> None:
        self.timeline_events = timeline_events
        self.symbol_table = symbol_table
        self.setting = replace(setting)
        self.hover_columns = list(hover_columns or DefaultHoverColumns)
        self.prepare(filter_func)

    @staticmethod
    def is_timeline_events(df: pd.DataFrame, setting: TimelinePlotSetting) -> bool:
        """Return True if a frame has the columns that make bars."""
        return {setting.task_column, setting.x_start_column, setting.x_end_column} <= set(df.columns)

    def prepare(self, filter_func: Choice | None = None) -> None:
        """Choose the events and make their bars, unless that was done."""
        if self.is_timeline_events(self.timeline_events, self.setting):
            return
        events = self.timeline_events
        if filter_func is not None:
            events = filter_func(events, self.symbol_table)
        self.timeline_events = prepare_timeline_events(events, self.setting, self.symbol_table, self.hover_columns)

    def plot(self, title: str, save_path: str | None = None) -> str | None:
        """Draw the timeline.

        Args:
            title: what stands above it.
            save_path: a file to write it to: HTML if its name ends so, else an image.

        Returns:
            The figure as HTML where the setting asks for that, else None.
        """
        return plot_events_timeline(title, self.timeline_events, self.setting, self.hover_columns, save_path)


def auto_detect_setting(events: pd.DataFrame, setting: TimelinePlotSetting) -> None:
    """Set in a setting whether events are the host's or the device's, and of several ranks, traces and streams."""
    several = {column: column in events and events[column].nunique() > 1 for column in ("rank", "trace", "stream")}
    setting.multi_ranks, setting.multi_traces, setting.multi_streams = several.values()
    streams = set(events["stream"].unique().tolist()) if "stream" in events else {CPUStreamID}
    if CPUStreamID not in streams:
        setting.event_type = EventType.GPUEvents
    else:
        setting.event_type = EventType.AllEvents if len(streams) > 1 else EventType.CPUEvents


def prepare_timeline_events(
    df: pd.DataFrame,
    setting: TimelinePlotSetting = DefaultTimelinePlotSetting,
    symbol_table: TraceSymbolTable | None = None,
    hover_columns: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return the bars of a timeline, as `Timeline.timeline_events` has them.

    Without events, or with a warning where a column is absent, they are an empty frame.

    Args:
        df: events, with ``name``, ``ts`` and ``dur`` (µs).
        setting: how the bars are drawn; with `auto_detect`, four fields of the setting are set by the events.
        symbol_table: what the numbers in ``name`` and ``cat`` stand for.
        hover_columns: which other columns to keep.
    """
    try:
        require(df, _REQUIRED, f"; it has {', '.join(map(str, df.columns))}")
    except SelectionError as error:
        if len(df):
            warnings.warn(f"{error}; nothing is drawn", stacklevel=2)
        df = pd.DataFrame(columns=list(_REQUIRED))
    wanted = {*_REQUIRED, *_LABELS, *(hover_columns or DefaultHoverColumns)}
    events = df[[column for column in df.columns if column in wanted]].copy()
    if events.empty:
        return events.assign(**{
            name: pd.Series(dtype=object)
            for name in (setting.x_start_column, setting.x_end_column, setting.task_column)
        })  # fmt: skip
    if setting.auto_detect:
        auto_detect_setting(df, setting)
    _decode(events, symbol_table)
    origin = events["ts"].min()
    events["ts"] -= origin
    shown = events["dur"].clip(lower=setting.short_events_display_duration if setting.amplify_short_events else None)
    start, end = events["ts"], events["ts"] + shown
    if setting.use_global_time:
        start, end = (pd.to_datetime(moment + origin, unit="us") for moment in (start, end))
    events[setting.x_start_column], events[setting.x_end_column] = start, end
    events[setting.task_column] = _lines(events, setting)
    several = (("trace", setting.multi_traces), ("rank", setting.multi_ranks))
    lanes = ("tid", "depth") if setting.event_type is EventType.CPUEvents else ("stream",)
    columns = (*(name for name, is_several in several if is_several), *lanes, "ts")
    by = [name for name in columns if name in events]
    return events.sort_values(by, kind="stable")


def _decode(events: pd.DataFrame, symbol_table: TraceSymbolTable | None) -> None:
    """Put names to be read into ``name``, and texts into ``cat``."""
    symbols = symbol_table.sym_table if symbol_table is not None else []
    for column, reader in (("name", _readable), ("cat", str)):
        if column in events:
            values = events[column]
            texts = {
                value: reader(symbols[value] if symbols and isinstance(value, int) else str(value))
                for value in values.unique().tolist()
            }
            events[column] = values.map(texts).astype("str")


def _readable(name: str) -> str:
    """Return a name for the legend, of up to 45 letters as in HTA."""
    short = short_name(name)
    return short if len(short) < 45 else short[:42] + "..."


def _lines(events: pd.DataFrame, setting: TimelinePlotSetting) -> pd.Series:
    """Return in which line each event is drawn."""
    parts = []
    if setting.multi_traces:
        parts.append("trace " + events["trace"].astype(str).str.pad(5, side="right"))
    if setting.multi_ranks:
        parts.append("rank " + _digits(events["rank"]))
    of_host = pd.Series("cpu events", index=events.index, dtype="str")
    if "depth" in events:
        of_host = "cpu level " + _digits(events["depth"])
    if setting.event_type is EventType.CPUEvents:
        if "tid" in events and not setting.compress_threads:
            parts.append("tid " + events["tid"].astype(str))
        parts.append(of_host)
    elif "stream" not in events:
        parts.append(pd.Series("gpu events", index=events.index, dtype="str"))
    else:
        on_host = events["stream"].eq(CPUStreamID)
        of_device = ("gpu stream " + _digits(events["stream"])).mask(on_host, of_host)
        annotates = events["stream"].eq(AnnotationStreamID) & bool(on_host.any())
        parts.append(of_device.mask(annotates, "gpu annotate"))
    lines = parts[0]
    for part in parts[1:]:
        lines = lines + " " + part
    return lines


def _digits(column: pd.Series) -> pd.Series:
    return column.astype(str).str.zfill(3)


def plot_events_timeline(
    title: str,
    events: pd.DataFrame,
    setting: TimelinePlotSetting = DefaultTimelinePlotSetting,
    hover_columns: Sequence[str] | None = None,
    output_image_path: str | None = None,
) -> str | None:
    """Draw a timeline.

    Args:
        title: what stands above it.
        events: what `prepare_timeline_events` returned.
        setting: how it is drawn.
        hover_columns: what a bar shows under the mouse.
        output_image_path: a file to write it to: HTML if its name ends so, else an image.

    Returns:
        The figure as HTML where the setting asks for that, else None.

    Raises:
        SelectionError: a column is absent.
    """
    needed = (setting.x_start_column, setting.x_end_column, setting.task_column, setting.color_column)
    require(events, needed, ": pass what prepare_timeline_events returned")
    figure = bars(title, events, setting, hover_columns or DefaultHoverColumns)
    if output_image_path:
        figures.write(figure, output_image_path)
    if setting.plot_format is PlotFormat.HTML:
        return str(figure.to_html(include_plotlyjs="cdn"))
    if setting.plot_format is PlotFormat.Inline:
        figures.show(figure)
    return None


def bars(title: str, events: pd.DataFrame, setting: TimelinePlotSetting, hover: Sequence[str]) -> Figure:
    """Return the figure of a timeline: one bar per event, one colour per value of the colour column.

    Args:
        title: what stands above it.
        events: what `prepare_timeline_events` returned.
        setting: how it is drawn.
        hover: what a bar shows under the mouse, of what the frame has.
    """
    start, end = setting.x_start_column, setting.x_end_column
    shown = [column for column in ("dur", *hover) if column in events]
    text = "<br>".join(f"{column}: %{{customdata[{i}]}}" for i, column in enumerate(shown))
    lines = sorted(events[setting.task_column].unique())
    traces = []
    for name, of_name in events.groupby(setting.color_column, sort=False):
        lasts = of_name["dur"] if "dur" in of_name else of_name[end] - of_name[start]
        if setting.use_global_time:  # on an axis of dates the length of a bar is in ms
            lasts = lasts.dt.total_seconds() * 1000 if lasts.dtype.kind == "m" else lasts / 1000
        traces.append({
            "type": "bar", "name": str(name), "base": of_name[start], "x": lasts, "y": of_name[setting.task_column],
            "marker": {"line": {"width": int(setting.amplify_short_events)}},
            "orientation": "h", "customdata": np.stack([of_name[column].astype(str) for column in shown], axis=-1),
            "hovertemplate": f"<b>{name}</b><br>{text}<extra></extra>",
        })  # fmt: skip
    height = max(setting.task_height, _TALL) if len(lines) < _FEW_LINES else setting.task_height
    axis = {"type": "date"} if setting.use_global_time else {"title": "µs since the first event"}
    return figures.figure(
        traces, title, barmode="overlay", height=100 + height * len(lines),
        xaxis={"showgrid": True, "rangeslider_visible": True, **axis},
        yaxis={"categoryorder": "array", "categoryarray": lines[::-1]}, paper_bgcolor="rgba(0,0,0,0)",
    )  # fmt: skip


def align_module_with_kernels(
    events_df: pd.DataFrame,
    module_list: Sequence[str],
    sym_table: TraceSymbolTable | None = None,
    include_original_cpu_events: bool = False,
) -> pd.DataFrame:
    """Return device events, and for each module an event from the start of its first kernel to the end of its last.

    Args:
        events_df: a frame with the columns that `CallGraph` adds.
        module_list: regular expressions; a host event whose name begins with what one of them matches is a module.
        sym_table: what the numbers in ``name`` stand for; not needed where ``name`` or ``s_name`` holds texts.
        include_original_cpu_events: keep the host events too.

    Returns:
        Rows of the frame; modules have stream 0 and the times of their device work. Modules without device work are
        left out.

    Raises:
        ValueError: a column is absent, or names are numbers and no table was given.
    """
    require(events_df, sorted(_ALIGNED), ": make a CallGraph of its trace first", ValueError)
    names = names_of(events_df, sym_table, error=ValueError)
    patterns = [re.compile(pattern) for pattern in module_list]
    matching = {name for name in names.unique() if any(pattern.match(name) for pattern in patterns)}
    host = events_df["stream"].eq(CPUStreamID)
    modules = events_df[host & events_df["num_kernels"].ge(1) & names.isin(matching)].copy()
    for column, source in (("ts", "first_kernel_start"), ("dur", "kernel_span")):
        modules[column] = modules[source].astype(events_df[column].dtype)
    modules["stream"] = AnnotationStreamID
    kept = events_df["stream"].ne(AnnotationStreamID) if include_original_cpu_events else events_df["stream"].gt(0)
    return pd.concat([events_df[kept], modules], ignore_index=True)


_REQUIRED_OF_KERNELS = ("iteration", "name", "cat", "rank", "stream", "ts", "dur")
_BARS = ("calibrated_start_global", "calibrated_end_global", "task", "label")
_HOVER = ("rank", "stream", "iteration", "s_cat", "s_name")
_SETTING = TimelinePlotSetting(color_column="label", use_global_time=True)


def prepare_timeline_gpu_events(
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
    ranks: Sequence[int] | None = None,
    iterations: Sequence[int] | None = None,
    streams: Sequence[int] | None = None,
    duration_threshold: int = 1000,
) -> pd.DataFrame:
    """Return the bars of device events.

    Args:
        df: frames of one or several ranks, with a column ``rank``.
        symbol_table: what the numbers in ``name`` and ``cat`` stand for.
        ranks: which ranks; all if not given.
        iterations: which profiler steps; all events if not given.
        streams: which streams; all if not given.
        duration_threshold: µs that a bar is long at least; with twice as many, short kernels cover their neighbours.

    Returns:
        The chosen rows, by rank, stream and time, with ``s_name``, ``s_cat``, ``label`` (what gives the colour),
        ``task`` (the line), ``calibrated_start_global`` and ``calibrated_end_global`` (datetime64, from ``ts``).

    Raises:
        ValueError: a column is absent.
    """
    require(df, _REQUIRED_OF_KERNELS, f"; it has {', '.join(map(str, df.columns))}", ValueError)
    keep = pd.Series(True, index=df.index)
    for column, wanted in (("rank", ranks), ("iteration", iterations), ("stream", streams)):
        keep &= df[column].ne(-1) if wanted is None else df[column].isin(wanted)
    events = df[keep].copy()
    for column, shown in (("name", short_name), ("cat", str)):
        words = {number: shown(symbol_table.sym_table[number]) for number in events[column].unique().tolist()}
        events[f"s_{column}"] = events[column].map(words)
    start = events["ts"].astype("float64")
    events["calibrated_start_global"] = pd.to_datetime(start, unit="us")
    events["calibrated_end_global"] = pd.to_datetime(start + events["dur"].clip(lower=duration_threshold), unit="us")
    events["label"] = events["s_name"]
    events["task"] = "rank " + events["rank"].astype(str) + " stream " + events["stream"].astype(str)
    return events.sort_values(["rank", "stream", "ts"], kind="stable")


def gpu_kernels_figure(title: str, df: pd.DataFrame, symbol_table: TraceSymbolTable) -> Figure:
    """Return device events as bars over time; it takes the arguments of `plot_timeline_gpu_kernels`."""
    return bars(title, prepare_timeline_gpu_events(df, symbol_table), _SETTING, _HOVER)


def plot_timeline(title: str, events: pd.DataFrame, ranks: Sequence[int] | None = None) -> None:
    """Show bars over time.

    Args:
        title: what stands above them.
        events: what `prepare_timeline_gpu_events` returned.
        ranks: whose; all if not given.

    Raises:
        ValueError: a column is absent.
    """
    require(events, _BARS, ": pass what prepare_timeline_gpu_events returned", ValueError)
    shown = events if ranks is None or "rank" not in events else events[events["rank"].isin(ranks)]
    figures.show(bars(title, shown, _SETTING, _HOVER))


def plot_timeline_gpu_kernels(
    title: str,
    df: pd.DataFrame,
    symbol_table: TraceSymbolTable,
    ranks: Sequence[int] | None = None,
    iterations: Sequence[int] | None = None,
    streams: Sequence[int] | None = None,
    duration_threshold: int = 1000,
) -> None:
    """Show device events over time; it takes a title and the arguments of `prepare_timeline_gpu_events`."""
    plot_timeline(title, prepare_timeline_gpu_events(df, symbol_table, ranks, iterations, streams, duration_threshold))


def plot_timeline_gpu_kernels_from_trace(
    title: str,
    trace_data: Trace,
    ranks: Sequence[int] | None = None,
    iterations: Sequence[int] | None = None,
    streams: Sequence[int] | None = None,
    duration_threshold: int = 1000,
) -> None:
    """Show device events of a trace over time; arguments as `plot_timeline_gpu_kernels`, with a trace for the frame."""
    chosen = [rank for rank in trace_data.get_ranks() if ranks is None or rank in ranks]
    frame = pd.concat([trace_data.get_trace(rank).assign(rank=rank) for rank in chosen], ignore_index=True)
    plot_timeline_gpu_kernels(title, frame, trace_data.symbol_table, ranks, iterations, streams, duration_threshold)
