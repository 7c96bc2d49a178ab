"""HTA's older timeline of kernels."""

from __future__ import annotations

import pandas as pd
import pytest

from htagraph.hta.analyzers import timeline
from htagraph.hta.common.trace import Trace
from htagraph.hta.common.trace_symbol_table import TraceSymbolTable
from tests.reach import DATA

SYMBOLS = TraceSymbolTable()
SYMBOLS.add_symbols(["void gemm<int>(int)", "kernel", "nccl"])


def frame() -> pd.DataFrame:
    return pd.DataFrame({
        "name": [0, 2, 0, 0], "cat": 1, "rank": [0, 0, 1, 0], "stream": [7, 20, 7, -1], "iteration": [5, 5, 6, 5],
        "ts": [10, 20, 30, 40], "dur": [5, 5000, 5, 5],
    })  # fmt: skip


def test_bars_are_as_long_as_their_events_but_for_short_ones() -> None:
    events = timeline.prepare_timeline_gpu_events(frame(), SYMBOLS, duration_threshold=100)
    lasts = (events["calibrated_end_global"] - events["calibrated_start_global"]).dt.total_seconds() * 1_000_000
    assert lasts.round(3).tolist() == [100, 5000, 100]
    assert events["task"].tolist() == ["rank 0 stream 7", "rank 0 stream 20", "rank 1 stream 7"]
    assert events["label"].tolist() == ["gemm", "nccl", "gemm"]


@pytest.mark.parametrize(
    ("chosen", "rows"), [({"ranks": [1]}, [2]), ({"iterations": [5]}, [0, 1]), ({"streams": [20]}, [1])]
)
def test_ranks_iterations_and_streams_are_chosen(chosen: dict[str, list[int]], rows: list[int]) -> None:
    assert timeline.prepare_timeline_gpu_events(frame(), SYMBOLS, **chosen).index.tolist() == rows  # type: ignore[arg-type]


def test_what_is_absent_is_named() -> None:
    with pytest.raises(ValueError, match="rank"):
        timeline.prepare_timeline_gpu_events(frame().drop(columns="rank"), SYMBOLS)
    with pytest.raises(ValueError, match="prepare_timeline_gpu_events"):
        timeline.plot_timeline("x", frame())


def test_a_trace_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[int] = []
    monkeypatch.setattr(timeline, "show", lambda figure: shown.append(sum(len(bar.x) for bar in figure.data)))
    trace = Trace(trace_dir=str(DATA / "demo"))
    trace.parse_traces(max_ranks=2)
    timeline.plot_timeline_gpu_kernels_from_trace("kernels", trace, ranks=[1], streams=[7])
    of_rank = trace.get_trace(1)
    assert shown == [(of_rank["stream"].eq(7) & of_rank["iteration"].ne(-1)).sum()]
