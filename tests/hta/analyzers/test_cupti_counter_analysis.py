"""CUPTI's counters by HTA's own path."""

from __future__ import annotations

import pytest

from htagraph.hta.analyzers.cupti_counter_analysis import CUDA_SASS_INSTRUCTION_COUNTER_FLOPS, CuptiCounterAnalysis
from htagraph.hta.trace_analysis import TraceAnalysis
from tests.reach import DATA, SHARED

COUNTERS = sorted((SHARED / "hta").rglob("benchmark_result_*_trace.json.gz"))


def test_a_trace_without_counters_gives_none_and_says_so() -> None:
    with pytest.warns(UserWarning, match="cuda_profiler_range"):
        assert CuptiCounterAnalysis.get_counter_data_with_operators(TraceAnalysis(trace_dir=str(DATA / "demo")).t) == []


@pytest.mark.skipif(not COUNTERS, reason="the shared traces are not here")
def test_both_ways_give_one_table() -> None:
    analysis = TraceAnalysis(trace_files={0: str(COUNTERS[0])})
    (table,) = CuptiCounterAnalysis.get_counter_data_with_operators(analysis.t, [0])
    assert table.equals(analysis.get_cupti_counter_data_with_operators([0])[0])
    assert set(CUDA_SASS_INSTRUCTION_COUNTER_FLOPS) & set(table.columns)
