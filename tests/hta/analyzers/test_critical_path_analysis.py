"""The critical path by HTA's own path: the same as by `TraceAnalysis`."""

from __future__ import annotations

from pathlib import Path

from htagraph.hta.analyzers.critical_path_analysis import CPEdgeType, CPGraph, CriticalPathAnalysis
from htagraph.hta.trace_analysis import TraceAnalysis
from tests.reach import DATA


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
