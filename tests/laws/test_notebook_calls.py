"""HTA's example notebooks with `htagraph.` before `hta`: every import, call (with its keywords) and attribute read.

One test per notebook. Each runs on the repository's own traces, and where the data that the notebook is about is among
the shared traces, on those.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from plotly import io as plotly_io

from htagraph import hta
from htagraph.hta.analyzers.critical_path_analysis import CPGraph, restore_cpgraph
from htagraph.hta.common import trace
from htagraph.hta.common.timeline import PlotFormat, Timeline, align_module_with_kernels, plot_timeline_gpu_kernels
from htagraph.hta.common.trace import Trace, TraceSymbolTable
from htagraph.hta.common.trace_call_graph import CallGraph
from htagraph.hta.common.trace_filter import (
    CompositeFilter,
    Filter,
    GPUKernelFilter,
    IterationIndexFilter,
    NameFilter,
    TimeRangeFilter,
)
from htagraph.hta.configs.config import HtaConfig, logger
from htagraph.hta.configs.parser_config import ParserConfig
from htagraph.hta.shapes.counters import CUDA_SASS_INSTRUCTION_COUNTER_FLOPS
from htagraph.hta.trace_analysis import TimeSeriesTypes, TraceAnalysis
from htagraph.hta.trace_diff import DeviceType, LabeledTrace, TraceDiff
from htagraph.hta.utils.utils import flatten_column_names, shorten_name
from tests.reach import DATA, SHARED

DEMO = str(DATA / "demo")
HTA = SHARED / "hta"
shared = pytest.mark.skipif(not HTA.is_dir(), reason="the shared traces are not here")


@pytest.fixture(autouse=True)
def figures_go_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plotly_io.renderers, "default", "json")
    monkeypatch.setattr("plotly.graph_objects.Figure.show", lambda figure, *args, **kwargs: figure.to_dict())


def folder(tmp_path: Path, *files: Path) -> str:
    """Return a folder with links to some files: what a notebook names as trace_dir."""
    place = tmp_path / "traces"
    place.mkdir(exist_ok=True)
    for file in files:
        (place / file.name).symlink_to(file)
    return str(place)


@pytest.mark.filterwarnings("ignore:.*says no rank:UserWarning")
@pytest.mark.parametrize("place", [DEMO, pytest.param(str(HTA / "critical_path" / "alexnet.json.gz"), marks=shared)])
def test_critical_path_analysis(place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = place == DEMO
    analyzer = TraceAnalysis(trace_dir=place if own else folder(tmp_path, Path(place)))
    annotation, instance_id = (
        ("ProfilerStep", 1) if own else ("[param|pytorch.model.alex_net|0|0|0|measure|forward]", 1)
    )
    found = analyzer.critical_path_analysis(rank=0, annotation=annotation, instance_id=instance_id)
    assert found is not None
    cp_graph, success = found
    assert success
    assert isinstance(cp_graph, CPGraph)
    summary = cp_graph.summary()
    assert summary.sum() == pytest.approx(100)
    overlaid = analyzer.overlay_critical_path_analysis(0, cp_graph, output_dir=str(tmp_path / "overlaid"))
    assert Path(overlaid).is_file()
    zip_file = cp_graph.save(out_dir=str(tmp_path / "saved"))
    rest_graph = restore_cpgraph(zip_filename=zip_file, t_full=analyzer.t, rank=0)
    assert rest_graph.critical_path()
    assert rest_graph.summary().to_dict() == summary.to_dict()
    assert rest_graph.critical_path_edges_set == cp_graph.critical_path_edges_set
    assert len(rest_graph.nodes) == len(cp_graph.nodes) > 0
    assert "boundedness" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:.*has no cuda_profiler_range events:UserWarning")
@pytest.mark.filterwarnings("ignore:.*says no rank:UserWarning")
def test_cupti_flops_analysis(tmp_path: Path) -> None:
    analyzer = TraceAnalysis(trace_dir=DEMO)
    assert analyzer.get_cupti_counter_data_with_operators(ranks=[0]) == []
    weights = dict(CUDA_SASS_INSTRUCTION_COUNTER_FLOPS.items())
    assert list(CUDA_SASS_INSTRUCTION_COUNTER_FLOPS.keys()) == list(weights)
    with_counters = sorted(HTA.rglob("benchmark_result_*_trace.json.gz"))
    for file in with_counters:
        gpu_kernels = TraceAnalysis(trace_dir=folder(tmp_path, file)).get_cupti_counter_data_with_operators(ranks=[0])[
            0
        ]
        gpu_kernels["CUDA_FLOPS"] = 0
        for counter, flops in CUDA_SASS_INSTRUCTION_COUNTER_FLOPS.items():
            if counter in gpu_kernels:
                gpu_kernels["CUDA_FLOPS"] += gpu_kernels[counter] * flops
        assert len(gpu_kernels.head())
        assert gpu_kernels["CUDA_FLOPS"].max() > 0
        assert gpu_kernels.loc[:, ["name", "op_stack", "top_level_op"]].notna().all(axis=None)


def test_customize_trace_parser() -> None:
    assert HtaConfig.get_test_data_path("vision_transformer").endswith("vision_transformer")

    def check_trace(trace_dir: str) -> list[str]:
        t = Trace(trace_dir=trace_dir)
        t.parse_traces(use_multiprocessing=False)
        return list(t.get_trace(next(iter(t.traces))).columns)

    before = ParserConfig.get_default_cfg()
    shapes = [spec.name for spec in ParserConfig.ARGS_INPUT_SHAPE]
    try:
        ParserConfig.set_default_cfg(ParserConfig(ParserConfig.get_minimum_args()))
        assert not set(shapes) & set(check_trace(DEMO))
        cfg = ParserConfig.get_default_cfg()
        cfg.add_args(ParserConfig.ARGS_INPUT_SHAPE)
        ParserConfig.set_default_cfg(cfg)
        assert set(shapes) <= set(check_trace(DEMO))
    finally:
        ParserConfig.set_default_cfg(before)


@shared
@pytest.mark.filterwarnings("ignore:.*says no rank:UserWarning")
def test_execution_trace_demo(tmp_path: Path) -> None:
    place = HTA / "execution_trace"
    analyzer = TraceAnalysis(trace_dir=folder(tmp_path, place / "benchmark_simple_add_trace.json.gz"))
    et = trace.load_execution_trace(str(place / "benchmark_simple_add_et.json.gz"))
    trace.correlate_execution_trace(analyzer.t, 0, et)
    trace_df = analyzer.t.get_trace(0)
    for column in ("cat", "name"):
        analyzer.t.symbol_table.add_symbols_to_trace_df(trace_df, col=column)
    for column in ("op_schema", "input_shapes", "input_types", "output_shapes", "output_types", "et_node_name"):
        trace.add_et_column(trace_df, et, column)
    assert len(trace_df.head()) == 5
    linked = trace_df[trace_df["et_node"].notna()]
    assert len(linked) == 36
    assert linked["et_node_name"].tolist() == linked["name"].tolist()
    assert analyzer.get_temporal_breakdown(visualize=False).shape[0] == 1, "analyses do not read the caller's frame"


def test_identify_stragglers() -> None:
    assert hta.__file__
    assert issubclass(Trace, object)
    analyzer = TraceAnalysis(trace_dir=DEMO)
    steps = analyzer.get_profiler_steps()
    ranks = analyzer.get_potential_stragglers(profiler_steps=steps, num_candidates=2, visualize=True)
    assert len(ranks) == 2


def test_kernel_breakdown_demo() -> None:
    analyzer = TraceAnalysis(trace_dir=DEMO)
    types, kernels = analyzer.get_gpu_kernel_breakdown(
        num_kernels=5, include_memory_kernels=True, image_renderer="notebook"
    )
    assert types["percentage"].sum() == pytest.approx(100, abs=0.5)
    assert len(kernels)


def test_plot_timeline() -> None:
    logger.setLevel("WARNING")
    trace_data = Trace(trace_dir=DEMO)
    trace_data.load_traces()
    symbol_table = trace_data.symbol_table
    s_map = pd.Series(symbol_table.get_sym_id_map())
    assert s_map[s_map.index.str.startswith("ProfilerStep")].size
    frames = {rank: trace_data.get_trace(rank) for rank in trace_data.get_all_traces()}
    df = pd.concat(frames, axis=0, names=["rank", "idx"]).reset_index()
    step = trace_data.get_iterations()[0]
    plot_timeline_gpu_kernels(
        "kernels", df, symbol_table, ranks=[0, 1], iterations=[step], streams=[7, 20], duration_threshold=1000
    )


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # the notebook uses it, pandas 3.1 warns
def test_symbol_table_demo() -> None:
    demo_trace = Trace(trace_dir=DEMO)
    demo_trace.parse_traces(max_ranks=2, use_multiprocessing=True)
    assert list(demo_trace.traces) == [0, 1]
    sym_id_map, sym_table = demo_trace.symbol_table.get_sym_id_map(), demo_trace.symbol_table.get_sym_table()
    assert all(sym_table[number] == symbol for symbol, number in sym_id_map.items())
    trace_df = demo_trace.get_trace(0)
    df_cpu_ops = trace_df[trace_df["cat"].eq(sym_id_map["cpu_op"])]
    gb: Any = df_cpu_ops.groupby(by="name")["dur"].agg(["sum", "count"])
    gb = gb.sort_values(by=["sum"], ascending=False)
    gb.reset_index(inplace=True)
    gb["name"] = gb["name"].map(lambda number: sym_table[number])
    top_k = gb.set_index("name", drop=True).head(10)
    assert top_k.loc[:, "sum"].is_monotonic_decreasing


def test_timeline_demo(tmp_path: Path) -> None:
    assert Path(hta.__file__ or "").is_file()
    t = Trace(trace_dir=DEMO)
    t.parse_traces()
    t.decode_symbol_ids()
    CallGraph(t, ranks=[0])
    df = t.get_trace(0)
    timeline = Timeline(df, t.symbol_table, filter_func=GPUKernelFilter())
    timeline.plot("kernels")

    class MyKernelFilter(Filter):
        def __init__(self, name_pattern: str, iteration_index: int) -> None:
            self.name_pattern = name_pattern
            self.iteration_index = iteration_index

        def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
            kernels = GPUKernelFilter()(df, symbol_table)
            return NameFilter(self.name_pattern)(IterationIndexFilter(self.iteration_index)(kernels), symbol_table)

    chosen = Timeline(df, t.symbol_table, filter_func=MyKernelFilter(".*nccl.*", iteration_index=0))
    assert 0 < len(chosen.timeline_events) < len(timeline.timeline_events)
    chosen.setting.plot_format = PlotFormat.File
    chosen.plot("collectives", save_path=str(tmp_path / "timeline.html"))
    assert (tmp_path / "timeline.html").stat().st_size
    aligned = align_module_with_kernels(df, module_list=["aten::mm", "ProfilerStep"], sym_table=t.symbol_table)
    bars = Timeline(aligned, t.symbol_table)
    assert "gpu stream 000" in set(bars.timeline_events["task"])
    bars.setting.plot_format = PlotFormat.HTML
    assert str(bars.plot("modules")).endswith("</html>")


def test_trace_analysis_demo(tmp_path: Path) -> None:
    files = {rank: str(tmp_path / f"rank-{rank}.json.gz") for rank in range(4)}
    for rank, file in files.items():
        Path(file).write_bytes((DATA / "demo" / f"rank-{rank}.json.gz").read_bytes())
    analyzer = TraceAnalysis(trace_dir=str(tmp_path))
    assert len(analyzer.get_temporal_breakdown(visualize=True)) == 4
    kernel_types, _ = analyzer.get_gpu_kernel_breakdown(
        visualize=True, duration_ratio=0.8, num_kernels=5, include_memory_kernels=True
    )
    assert len(kernel_types)
    annotated = analyzer.get_gpu_kernels_with_user_annotations(rank=0, expand_names=True, shorten_names=True)
    assert annotated is None or len(annotated)
    assert len(analyzer.get_comm_comp_overlap(visualize=True)) == 4
    idle, stats = analyzer.get_idle_time_breakdown(
        ranks=[0], show_idle_interval_stats=True, visualize=True, visualize_pctg=True
    )
    assert len(idle)
    assert stats is not None
    analyzer.generate_trace_with_counters(time_series=TimeSeriesTypes.QUEUE_LENGTH, ranks=[0])
    assert (tmp_path / "rank-0_with_counters.json.gz").is_file()
    assert analyzer.get_queue_length_summary(ranks=[0]) is not None
    series = analyzer.get_queue_length_time_series(ranks=[0])
    blocked = analyzer.get_time_spent_blocked_on_full_queue(series, max_queue_length=2)
    assert list(blocked.columns)[:2] == ["rank", "stream"]
    assert len(analyzer.get_cuda_kernel_launch_stats(visualize=True)[0])
    patterns = analyzer.get_frequent_cuda_kernel_sequences(
        operator_name="aten::mm", output_dir=str(tmp_path), min_pattern_len=1, rank=0, top_k=3, visualize=True
    )
    assert len(patterns)


@pytest.mark.filterwarnings("ignore:.*says no rank:UserWarning")
@pytest.mark.parametrize("place", [DEMO, pytest.param(str(HTA / "trace_diff"), marks=shared)])
def test_trace_diff_demo(place: str) -> None:
    of_shared = place != DEMO
    control_t = LabeledTrace(label="Control", trace_dir=str(Path(place) / "control") if of_shared else place)
    test_t = LabeledTrace(label="Test", trace_dir=str(Path(place) / "test") if of_shared else place)
    assert [name for name, _ in TraceDiff.__dict__.items() if not name.startswith("_")]
    chosen = (control_t.ranks()[0], test_t.ranks()[0], control_t.iterations()[0], test_t.iterations()[0])
    df = TraceDiff.compare_traces(control_t, test_t, *chosen, DeviceType.ALL)
    ops = TraceDiff.ops_diff(control_t, test_t, *chosen, device_type=DeviceType.CPU)
    assert set(ops.keys()) == {"added", "deleted", "increased", "decreased", "unchanged"}
    TraceDiff.visualize_counts_diff(df)
    df_comp = TraceDiff.compare_traces(control_t, test_t, *chosen, DeviceType.GPU)
    df_comp = df_comp.sort_values(by="diff_duration", ascending=False)
    TraceDiff.visualize_duration_diff(df_comp.loc[df_comp.index[:5]])
    assert df_comp["diff_counts"].any() == of_shared
    table = df_comp.groupby("counts_change_categories").agg({"diff_duration": ["sum", "max"]})
    flatten_column_names(table)
    assert table.columns.tolist() == ["diff_duration_sum", "diff_duration_max"]
    assert all(shorten_name(name) for name in df_comp.index)


def test_trace_diff_demo_takes_seven_arguments_by_position() -> None:
    job = LabeledTrace(label="a", trace_dir=DEMO)
    other = LabeledTrace(label="b", trace_dir=DEMO)
    step = job.iterations()[0]
    ops = TraceDiff.ops_diff(job, other, 0, 1, step, step, DeviceType.GPU)
    assert ops["unchanged"]


def test_trace_filter_demo() -> None:
    assert hta.__file__
    t = Trace(trace_dir=DEMO)
    t.parse_traces()
    t.decode_symbol_ids()
    df = t.get_trace(0)
    name_filter = NameFilter("aten::mm", symbol_table=t.symbol_table)
    selected_df = name_filter(df, t.symbol_table)
    assert len(selected_df.head())
    assert set(selected_df["s_name"]) == {"aten::mm"}
    middle = int(df["ts"].median())
    time_filter = TimeRangeFilter((int(df["ts"].min()), middle))
    assert (time_filter(df)["ts"] <= middle).all()
    nccl_kernels_in_first_iteration_filter = CompositeFilter(
        [IterationIndexFilter(0), NameFilter(".*nccl.*"), GPUKernelFilter()]
    )
    kernels = nccl_kernels_in_first_iteration_filter(df)
    assert kernels["stream"].ge(0).all()
    assert kernels["iteration"].nunique() == 1
