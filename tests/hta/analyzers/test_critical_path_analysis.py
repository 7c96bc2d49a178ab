"""HTA's critical path: its graph, its path, what bounds it, and both ways to ask for it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from htagraph.core.errors import RankError
from htagraph.hta.analyzers.critical_path_analysis import (
    CPEdgeType,
    CPGraph,
    CriticalPathAnalysis,
    _LazyTable,
    critical_path_analysis,
    restore_cpgraph,
)
from htagraph.hta.shapes.path_files import is_zero_weight_launch_edge
from htagraph.hta.trace_analysis import TraceAnalysis
from tests.hta.critical_paths import ALEXNET, HTA, MEASURE, SIMPLE_ADD, ZERO_LAUNCHES, analysed, job_of, nodes, shared
from tests.hta.shapes.test_job import TWO_STEPS
from tests.hta.shapes.test_job import write as write_two
from tests.reach import DATA, JOBS, label
from tests.strategies import step, write

STREAMS = HTA / "critical_path" / "cuda_event_sync_multi_stream.json.gz"


def test_both_ways_give_one_path(tmp_path: Path) -> None:
    analysis = TraceAnalysis(trace_dir=str(DATA / "demo"))
    first = analysis.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=1)
    second = CriticalPathAnalysis.critical_path_analysis(analysis.t, 0, "ProfilerStep", 1)
    assert first is not None
    assert second is not None
    assert isinstance(second[0], CPGraph)
    assert second[0].critical_path_edges_set == first[0].critical_path_edges_set
    assert {edge.type for edge in second[0].critical_path_edges} <= set(CPEdgeType)
    files = [
        analysis.overlay_critical_path_analysis(0, first[0], str(tmp_path / "a")),
        CriticalPathAnalysis.overlay_critical_path_analysis(analysis.t, 0, second[0], str(tmp_path / "b")),
    ]
    assert len({Path(file).name for file in files}) == 1


def test_it_is_filled_once_when_it_is_used_and_then_a_dictionary() -> None:
    calls: list[int] = []

    def fill() -> None:
        calls.append(1)
        table.update({1: "a", 2: "b"})

    table: _LazyTable = _LazyTable(fill)
    assert not calls
    assert 1 in table
    table[3] = "c"
    del table[1]
    held: dict[Any, Any] = {2: "b", 3: "c"}
    assert (dict(table), len(table), len(calls)) == (held, 2, 1)


@shared
@pytest.mark.parametrize(("path", "annotation", "instance", "count", "summary"), [
    (SIMPLE_ADD, MEASURE, 1, 315, None),
    (ALEXNET, MEASURE, 1, 149, None),
    (STREAMS, "", None, 59,
     {"": 0, "cpu_bound": 87.011885, "gpu_compute_bound": 10.526316, "gpu_kernel_kernel_overhead": 1.273345,
      "gpu_kernel_launch_overhead": 1.188455}),
])  # fmt: skip
def test_paths_that_are_htas(
    path: Path, annotation: str, instance: int | None, count: int, summary: dict[str, float] | None,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    graph = analysed(path, annotation, instance)
    assert len(graph.critical_path_nodes) == count == len(graph.critical_path_edges_set) + 1
    shares = graph.summary()
    assert shares.sum() == pytest.approx(100)
    assert "bound" in capsys.readouterr().out
    if summary is not None:
        assert shares.to_dict() == pytest.approx(summary, abs=1e-6)


@pytest.mark.slow
@shared
def test_a_path_spans_its_step_though_backward_runs_on_a_thread_of_its_own() -> None:
    """HTA's path of this step has 10 429 nodes and weighs 39 243 µs; all its nodes are on ours (D11)."""
    graph = analysed(HTA / "trace_diff" / "control" / "control.json.gz", "ProfilerStep", 0, rank=3)
    first, last = graph.node_list[graph.critical_path_nodes[0]], graph.node_list[graph.critical_path_nodes[-1]]
    assert len(graph.critical_path_nodes) == 15_365
    assert last.ts - first.ts == 75_654
    waited = graph.waited_for()
    assert waited.makespan_ns == 75_654_000
    ours = set(graph.parts.nodes.vertex[graph.critical_path_nodes].tolist())
    assert len(ours & set(waited.vertices.tolist())) == 15_361


@pytest.mark.slow
@pytest.mark.parametrize("path", JOBS, ids=label)
def test_it_fails_on_no_trace(path: Path) -> None:
    job = job_of(path)
    for rank in job.t.get_ranks()[-1:]:
        found = critical_path_analysis(job, rank, "")
        if found is None:
            continue
        graph, ok = found
        assert ok
        table = graph.get_critical_path_breakdown()
        assert table is not None
        assert (graph.parts.edges.weight >= 0).all()
        assert table["s_name"].notna().sum() == table["event_idx"].notna().sum()
        assert len(table) == len(graph.critical_path_nodes) - 1
        waited = graph.waited_for()
        assert waited.segments.length.sum() == waited.makespan_ns


@shared
def test_a_window_that_is_not_there_is_none_and_says_why() -> None:
    job = job_of(SIMPLE_ADD)
    with pytest.warns(UserWarning, match="no event whose name contains 'nobody'"):
        assert critical_path_analysis(job, 0, "nobody", 0) is None
    for instance in (2, (2, 5), -1):
        with pytest.warns(UserWarning, match=r"has 2 events .* no instance"):
            assert critical_path_analysis(job, 0, MEASURE, instance) is None
    with pytest.raises(TypeError, match="instance_id"):
        critical_path_analysis(job, 0, MEASURE, "first")  # type: ignore[arg-type]
    with pytest.raises(RankError, match="rank 7"):
        critical_path_analysis(job, 7, MEASURE, 0)


@shared
def test_a_range_of_instances_includes_its_last() -> None:
    first, second = analysed(SIMPLE_ADD, MEASURE, 0), analysed(SIMPLE_ADD, MEASURE, 1)
    both = analysed(SIMPLE_ADD, MEASURE, (0, 1))
    assert both.parts.window == (
        min(first.parts.window[0], second.parts.window[0]),
        max(first.parts.window[1], second.parts.window[1]),
    )
    assert analysed(SIMPLE_ADD, MEASURE).parts.window == first.parts.window


@shared
def test_nodes_are_numbered_as_htas(graph: CPGraph) -> None:
    assert [nodes(graph, event) for event in (286, 287, 1005)] == [(57, 62), (58, 61), (59, 60)]
    assert [graph._get_node_name(event) for event in (286, 1005)] == ["aten::relu_", "cudaLaunchKernel"]
    assert graph.get_nodes_for_event(-999) == (None, None)
    assert graph.node_list[57].idx == 57


EVENT_SYNC = HTA / "critical_path" / "cuda_event_sync.json.gz"


@shared
@pytest.mark.parametrize(("path", "annotation", "instance"), [
    (SIMPLE_ADD, MEASURE, 1), (ALEXNET, MEASURE, 1), (EVENT_SYNC, "ProfilerStep", 0), (STREAMS, "", None),
])  # fmt: skip
def test_only_stretches_and_pauses_belong_to_events_and_synchronizations_weigh_nothing(
    path: Path, annotation: str, instance: int | None
) -> None:
    owned, graph = (CPEdgeType.OPERATOR_KERNEL, CPEdgeType.KERNEL_KERNEL_DELAY), analysed(path, annotation, instance)
    syncs = []
    for _, _, data in graph.edges(data=True):
        edge = data["object"]
        assert (graph.get_event_attribution_for_edge(edge) is not None) == (edge.type in owned)
        assert data["weight"] == edge.weight >= 0
        syncs += [edge.weight] * (edge.type == CPEdgeType.SYNC_DEPENDENCY)
    assert syncs
    assert not any(syncs)


@shared
@pytest.mark.parametrize("name", ["ns_resolution/*", "small/mi250*"])
def test_the_second_step_of_other_makers_traces_has_a_path(name: str) -> None:
    (path,) = HTA.glob(f"{name}.json.gz")
    assert analysed(path, "ProfilerStep", 1 if len(job_of(path).get_profiler_steps()) > 1 else 0).critical_path_nodes


@shared
def test_it_is_networkxs_path() -> None:
    """Once the tables of networkx are there, it finds the path, and finds the same."""
    for path, annotation, instance in ((SIMPLE_ADD, "", None), (ALEXNET, MEASURE, 0)):
        graph = analysed(path, annotation, instance)
        before = graph.critical_path_nodes
        assert not graph.is_filled
        assert len(graph.edges) == len(graph.parts.edges)
        assert graph.critical_path()
        assert graph.is_filled
        assert graph.critical_path_nodes == before
        assert len(graph.critical_path_edges_set) == len(before) - 1


@shared
def test_a_changed_graph_has_another_path(graph: CPGraph, tmp_path: Path) -> None:
    before = graph.critical_path_nodes
    for edge in graph.get_edges_attributed_to_event(1005):
        graph.edges[edge.begin, edge.end]["weight"] += 10_000_000
    assert graph.critical_path()
    restored = restore_cpgraph(graph.save(str(tmp_path / "changed")), None, 0)
    assert restored.critical_path()
    assert restored.critical_path_nodes == graph.critical_path_nodes
    assert {59, 60} <= set(graph.critical_path_nodes)
    assert len(before) == 315


@shared
def test_negative_weights_are_taken_as_0_unless_the_flag_is_strict(
    graph: CPGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.edges[57, 58]["weight"] = -15
    monkeypatch.setenv("CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS", "1")
    assert not graph.critical_path()
    monkeypatch.setenv("CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS", "0")
    with pytest.warns(UserWarning, match="below 0"):
        assert graph.critical_path()
    assert graph.edges[57, 58]["weight"] == 0


def test_a_graph_of_networkx_says_that_it_has_no_events() -> None:
    graph = CPGraph([(0, 1)])
    assert graph.has_edge(0, 1)
    with pytest.raises(ValueError, match="no events"):
        _ = graph.node_list


@shared
def test_tables_are_filled_by_whatever_looks_first() -> None:
    looks: list[Callable[[CPGraph], int]] = [
        lambda graph: len(graph.nodes), len, lambda graph: graph.number_of_edges(), lambda graph: len(graph.pred[62]),
        lambda graph: len(list(nx.topological_sort(graph))), lambda graph: len(graph.copy().nodes),
        lambda graph: len(nx.DiGraph(graph)),
    ]  # fmt: skip
    whole = analysed(SIMPLE_ADD, MEASURE, 1)
    edges = set(whole.edges)
    for look in looks:
        graph = analysed(SIMPLE_ADD, MEASURE, 1)
        assert not graph.is_filled
        assert look(graph)
        assert graph.is_filled
        assert set(graph.edges) == edges
        assert {(u, v) for v, into in graph.pred.items() for u in into} == edges


@shared
def test_a_copy_is_filled_apart() -> None:
    graph = analysed(SIMPLE_ADD, MEASURE, 1)
    twin = copy.deepcopy(graph)
    twin.remove_node(62)
    assert not graph.is_filled
    assert 62 in graph.nodes


@shared
def test_a_breakdown_has_a_row_for_each_edge() -> None:
    graph = analysed(ALEXNET, MEASURE, 1)
    table = graph.get_critical_path_breakdown()
    assert table is not None
    assert table.columns.tolist() == [
        "event_idx", "duration", "type", "s_name", "cat", "pid", "tid", "stream", "index", "bound_by",
    ]  # fmt: skip
    assert len(table) == len(graph.critical_path_edges_set)
    assert table["bound_by"].notna().all()
    assert len(graph.summary()) == 5
    assert (table["event_idx"].isna() == ~table["type"].isin(["critical_path_operator",
            "critical_path_kernel_kernel_delay"])).all()  # fmt: skip


@shared
def test_data_loading_is_told_from_other_work() -> None:
    graph = analysed(SIMPLE_ADD, MEASURE, 1, data_load_events=["aten::relu_"])
    assert "data_loading" in graph.summary()


def test_a_window_with_nothing_in_it_has_an_empty_summary(tmp_path: Path) -> None:
    job = TraceAnalysis({0: str(write([step(7, 0, 10)], tmp_path / "a.json"))})
    with pytest.warns(UserWarning, match="nothing with a dependency"):
        found = critical_path_analysis(job, 0, "ProfilerStep", 0)
    assert found is not None
    graph, success = found
    assert (success, len(graph.summary())) == (False, 0)


@shared
def test_flags_are_asked_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """HTA reads them once (L5)."""
    count = {}
    for value in ("0", "1"):
        monkeypatch.setenv(ZERO_LAUNCHES, value)
        count[value] = sum(
            is_zero_weight_launch_edge(data["object"])
            for _, _, data in analysed(SIMPLE_ADD, MEASURE, 1).edges(data=True)
        )
    assert count["0"] == 0 < count["1"]


def test_the_words_are_htas() -> None:
    assert [kind.value for kind in CPEdgeType] == [
        "critical_path_operator", "critical_path_dependency", "critical_path_kernel_launch_delay",
        "critical_path_kernel_kernel_delay", "critical_path_sync_dependency",
    ]  # fmt: skip


@shared
def test_the_launch_before_a_record_and_behind_a_wait_is_the_next_on_its_stream() -> None:
    """Against a search row by row; behind a wait, only launches of its thread count."""
    graph, frame = analysed(STREAMS), job_of(STREAMS).job.frame(0)
    work = frame[frame["stream"].ge(0) & frame["index_correlation"].gt(0) & frame["wait_on_stream"].lt(0)]
    records, waits = graph._get_cuda_event_record_df(), graph._get_cuda_stream_wait_event_df()
    assert records is not None
    assert waits is not None
    assert len(records)
    assert len(waits)
    rows: Any = [*records.itertuples(), *waits.itertuples()]
    for row in rows:
        launches = frame.loc[work[work["stream"].eq(row.stream)]["index_correlation"]].sort_values("ts", kind="stable")
        if hasattr(row, "index_previous_launch"):
            before = launches[launches["ts"].le(row.ts)]["index"].tolist()
            assert row.index_previous_launch == (before[-1] if before else -1)
        else:
            behind = launches[launches["ts"].ge(row.ts) & launches["tid"].eq(row.tid)]["index"].tolist()
            assert row.index_next_launch == (behind[0] if behind else -1)


def test_a_trace_without_waits_has_no_table(tmp_path: Path) -> None:
    found = critical_path_analysis(TraceAnalysis({0: write_two(tmp_path / "a.json", TWO_STEPS)}), 0, "")
    assert found is not None
    assert found[0]._get_cuda_event_record_df() is None
    assert found[0]._get_cuda_stream_wait_event_df() is None
