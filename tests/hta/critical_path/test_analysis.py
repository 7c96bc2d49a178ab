"""The critical path in HTA's shape: windows, HTA's lengths, and that it fails on no trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph.core.errors import RankError
from htagraph.hta.critical_path.analysis import (
    critical_path_analysis,
)
from tests.hta.critical_path.made import (
    ALEXNET,
    HTA,
    MEASURE,
    SIMPLE_ADD,
    analysed,
    job_of,
    shared,
)
from tests.reach import JOBS, label


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
