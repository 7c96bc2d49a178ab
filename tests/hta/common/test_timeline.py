"""Timelines: where each bar begins, ends and lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from htagraph.core.errors import SelectionError
from htagraph.hta.common import timeline as timelines
from htagraph.hta.common.timeline import EventType, PlotFormat, Timeline, TimelinePlotSetting
from htagraph.hta.common.trace import Trace
from htagraph.hta.common.trace_call_graph import CallGraph
from htagraph.hta.common.trace_filter import CPUOperatorFilter, GPUKernelFilter
from htagraph.hta.common.trace_symbol_table import TraceSymbolTable
from htagraph.hta.shapes import figures
from tests.reach import DATA, SHARED

HTA = SHARED / "hta"
FILE = TimelinePlotSetting(plot_format=PlotFormat.File)


def frame(**columns: Any) -> pd.DataFrame:
    made: dict[str, Any] = {
        "name": ["a", "b", "c"],
        "ts": [100, 2000, 5000],
        "dur": [10, 3000, 1],
        "stream": [7, -1, 9],
    }
    return pd.DataFrame(made | columns)


def test_short_events_end_later_and_times_count_from_the_first() -> None:
    events = timelines.prepare_timeline_events(frame(), TimelinePlotSetting(short_events_display_duration=50))
    by_name = events.set_index("name")
    assert by_name["calibrated_start_global"].to_dict() == {"a": 0, "b": 1900, "c": 4900}
    assert by_name["calibrated_end_global"].to_dict() == {"a": 50, "b": 4900, "c": 4950}
    exact = timelines.prepare_timeline_events(frame(), TimelinePlotSetting(amplify_short_events=False))
    assert (exact["calibrated_end_global"] - exact["calibrated_start_global"]).tolist() == exact["dur"].tolist()


@pytest.mark.parametrize(
    ("columns", "lines"),
    [
        ({}, ["gpu stream 007", "cpu events", "gpu stream 009"]),
        ({"depth": [2, 1, 2]}, ["gpu stream 007", "cpu level 001", "gpu stream 009"]),
        ({"stream": -1}, ["cpu events"] * 3),
        ({"stream": -1, "depth": [0, 1, 12]}, ["cpu level 000", "cpu level 001", "cpu level 012"]),
        ({"stream": [7, 7, 9], "rank": [0, 1, 1]},
         ["rank 000 gpu stream 007", "rank 001 gpu stream 007", "rank 001 gpu stream 009"]),
        ({"stream": [0, -1, 9]}, ["gpu annotate", "cpu events", "gpu stream 009"]),
    ],
)  # fmt: skip
def test_lines_are_htas(columns: dict[str, Any], lines: list[str]) -> None:
    events = timelines.prepare_timeline_events(frame(**columns), TimelinePlotSetting())
    assert events.sort_values("ts")["task"].tolist() == lines


def test_a_setting_is_left_as_it_is() -> None:
    """HTA changes its default setting, so that a figure depends on the one before (D22)."""
    setting = TimelinePlotSetting(event_type=EventType.GPUEvents)
    Timeline(frame(stream=-1), setting=setting)
    assert setting == TimelinePlotSetting()


def test_what_is_absent_is_named() -> None:
    with pytest.warns(UserWarning, match="no column dur"):
        assert timelines.prepare_timeline_events(frame().drop(columns="dur")).empty
    with pytest.raises(SelectionError, match="prepare_timeline_events"):
        timelines.plot_events_timeline("x", frame())
    with pytest.raises(ValueError, match="make a CallGraph"):
        timelines.align_module_with_kernels(frame(), ["a"])


def test_an_empty_timeline_is_drawn_empty() -> None:
    assert timelines.prepare_timeline_events(pd.DataFrame()).empty
    empty = Timeline(frame().iloc[:0], setting=TimelinePlotSetting(plot_format=PlotFormat.HTML))
    assert "nothing" in str(empty.plot("nothing"))


def test_a_figure_has_a_bar_for_each_event(tmp_path: Path) -> None:
    line = Timeline(frame(), setting=FILE)
    figure = timelines.bars("title", line.timeline_events, line.setting, ["stream"])
    drawn = {(bar.name, base, length) for bar in figure.data for base, length in zip(bar.base, bar.x, strict=True)}
    assert drawn == {("a", 0, 10), ("b", 1900, 3000), ("c", 4900, 1)}, "longer ones would cover their neighbours"
    assert line.plot("title", str(tmp_path / "out.html")) is None
    assert (tmp_path / "out.html").is_file()


def test_a_timeline_of_prepared_events_keeps_them() -> None:
    events = Timeline(frame(), setting=FILE).timeline_events
    assert Timeline(events, setting=FILE).timeline_events is events


ALIGNED = {
    "index": [0, 1, 2], "num_kernels": [2, 0, 1], "first_kernel_start": [150, -1, 5000], "kernel_span": [40, 0, 1],
    "stream": [-1, -1, 7],
}  # fmt: skip


def test_modules_have_the_times_of_their_kernels() -> None:
    events = timelines.align_module_with_kernels(frame(**ALIGNED), ["a|b"])
    assert events[["name", "ts", "dur", "stream"]].to_numpy().tolist() == [["c", 5000, 1, 7], ["a", 150, 40, 0]]
    every = timelines.align_module_with_kernels(frame(**ALIGNED), ["a"], include_original_cpu_events=True)
    assert every["name"].tolist() == ["a", "b", "c", "a"]


@pytest.mark.skipif(not HTA.is_dir(), reason="the shared traces are not here")
@pytest.mark.filterwarnings("ignore:.*says no rank:UserWarning")
def test_bars_of_a_real_trace_are_htas() -> None:
    """HTA's sums of both columns: `Timeline(t.get_trace(0), t.symbol_table, filter_func=...).timeline_events`."""
    trace = Trace({0: str(HTA / "trace_diff" / "test" / "test.json.gz")})
    trace.parse_traces()
    trace.decode_symbol_ids()
    CallGraph(trace, ranks=[0])
    expected = {
        GPUKernelFilter(): (15632, 5849687190, 5865677731),
        CPUOperatorFilter(): (52691, 18489920624, 18545713657),
    }
    for choice, (count, starts, ends) in expected.items():
        events = Timeline(trace.get_trace(0), trace.symbol_table, filter_func=choice, setting=FILE).timeline_events
        assert len(events) == count
        assert events["calibrated_start_global"].sum() == pytest.approx(starts, rel=1e-7)
        assert events["calibrated_end_global"].sum() == pytest.approx(ends, rel=1e-7)


SYMBOLS = TraceSymbolTable()
SYMBOLS.add_symbols(["void gemm<int>(int)", "kernel", "nccl"])


def kernels() -> pd.DataFrame:
    return pd.DataFrame({
        "name": [0, 2, 0, 0], "cat": 1, "rank": [0, 0, 1, 0], "stream": [7, 20, 7, -1], "iteration": [5, 5, 6, 5],
        "ts": [10, 20, 30, 40], "dur": [5, 5000, 5, 5],
    })  # fmt: skip


def test_bars_are_as_long_as_their_events_but_for_short_ones() -> None:
    events = timelines.prepare_timeline_gpu_events(kernels(), SYMBOLS, duration_threshold=100)
    lasts = (events["calibrated_end_global"] - events["calibrated_start_global"]).dt.total_seconds() * 1_000_000
    assert lasts.round(3).tolist() == [100, 5000, 100]
    assert events["task"].tolist() == ["rank 0 stream 7", "rank 0 stream 20", "rank 1 stream 7"]
    assert events["label"].tolist() == ["gemm", "nccl", "gemm"]


@pytest.mark.parametrize(
    ("chosen", "rows"), [({"ranks": [1]}, [2]), ({"iterations": [5]}, [0, 1]), ({"streams": [20]}, [1])]
)
def test_ranks_iterations_and_streams_are_chosen(chosen: dict[str, list[int]], rows: list[int]) -> None:
    assert timelines.prepare_timeline_gpu_events(kernels(), SYMBOLS, **chosen).index.tolist() == rows  # type: ignore[arg-type]


def test_what_kernels_lack_is_named() -> None:
    with pytest.raises(ValueError, match="rank"):
        timelines.prepare_timeline_gpu_events(kernels().drop(columns="rank"), SYMBOLS)
    with pytest.raises(ValueError, match="prepare_timeline_gpu_events"):
        timelines.plot_timeline("x", kernels())


def test_a_trace_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[int] = []
    monkeypatch.setattr(figures, "show", lambda figure: shown.append(sum(len(bar.x) for bar in figure.data)))
    trace = Trace(trace_dir=str(DATA / "demo"))
    trace.parse_traces(max_ranks=2)
    timelines.plot_timeline_gpu_kernels_from_trace("kernels", trace, ranks=[1], streams=[7])
    of_rank = trace.get_trace(1)
    assert shown == [(of_rank["stream"].eq(7) & of_rank["iteration"].ne(-1)).sum()]
