"""HTA's filters on its frames; that graphs choose the same is tested with `DependencyGraph.select`."""

from __future__ import annotations

import pandas as pd
import pytest

from htagraph.hta.common import trace_filter as filters
from htagraph.hta.common.trace_symbol_table import TraceSymbolTable

NAMES = ["aten::mm", "cudaLaunchKernel", "gemm", "Memcpy DtoH (Device -> Pinned)", "Event Sync"]


def table() -> TraceSymbolTable:
    symbols = TraceSymbolTable()
    symbols.add_symbols(NAMES)
    return symbols


def frame() -> pd.DataFrame:
    return pd.DataFrame({
        "name": range(5), "ts": [0, 1, 5, 9, 20], "dur": [3, 1, 4, 0, 2], "stream": [-1, -1, 7, 7, -1],
        "correlation": [-1, 4, 4, 5, 6], "iteration": [-1, 550, 550, 551, 551], "rank": [0, 0, 1, 1, 2],
    })  # fmt: skip


@pytest.mark.parametrize(
    ("choose", "rows"),
    [
        (filters.IterationFilter(550), [1, 2]),
        (filters.IterationFilter([551, 9]), [3, 4]),
        (filters.IterationIndexFilter([1, 7]), [3, 4]),
        (filters.FirstIterationFilter(), [1, 2]),
        (filters.RankFilter([0, 2]), [0, 1, 4]),
        (filters.TimeRangeFilter((1, 9)), [1, 2, 3]),
        (filters.NameFilter(r"aten::|.*emm"), [0, 2]),
        (filters.QueryFilter("dur == 3"), [0]),
        (filters.ZeroDurationFilter, [0, 1, 2, 4]),
        (filters.GPUKernelFilter(), [2, 3, 4]),
        (filters.CPUOperatorFilter(), [0, 1]),
        (filters.MemCopyEventFilter("Memcpy DtoH"), [3]),
        (filters.CompositeFilter([filters.IterationFilter(550), filters.GPUKernelFilter()]), [2]),
    ],
)
def test_each_filter_keeps_its_rows(choose: filters.Filter, rows: list[int]) -> None:
    assert choose(frame(), table()).index.tolist() == rows


def test_without_a_symbol_table_waits_are_the_hosts() -> None:
    assert filters.GPUKernelFilter()(frame()).index.tolist() == [2, 3]
    assert filters.CPUOperatorFilter()(frame()).index.tolist() == [0, 1, 4]


def test_names_as_texts_need_no_symbol_table() -> None:
    decoded = frame().assign(s_name=NAMES)
    assert filters.NameFilter("gemm")(decoded).index.tolist() == [2]
    with pytest.warns(UserWarning, match="NameFilter: names are numbers in this frame: pass its symbol table"):
        assert len(filters.NameFilter("gemm")(frame())) == len(frame())


@pytest.mark.parametrize(
    ("choose", "column"),
    [
        (filters.IterationFilter(1), "iteration"),
        (filters.FirstIterationFilter(), "iteration"),
        (filters.RankFilter(0), "rank"),
        (filters.TimeRangeFilter((0, 1)), "dur"),
        (filters.GPUKernelFilter(), "stream"),
        (filters.CPUOperatorFilter(), "stream"),
    ],
)
def test_a_frame_without_the_column_is_returned_whole_with_a_warning(choose: filters.Filter, column: str) -> None:
    bare = pd.DataFrame({"ts": [1]})
    with pytest.warns(UserWarning, match=f"{column}.*every row is kept"):
        assert choose(bare) is bare


def test_wrong_types_are_refused_when_a_filter_is_made() -> None:
    for choose, field in ((filters.IterationFilter, "Iterations"), (filters.IterationIndexFilter, "iteration_index"),
                          (filters.RankFilter, "ranks")):  # fmt: skip
        assert vars(choose(3)).popitem()[1] == [3]
        for wrong in ("a", 1.5, None, ["a"]):
            with pytest.raises(TypeError, match=f"{field} must be an integer or a list of integers"):
                choose(wrong)
    for times in ([1, 2], (1, 2, 3), ("a", "b"), 1.5):
        with pytest.raises(ValueError, match="tuple of two"):
            filters.TimeRangeFilter(times)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="after its end"):
        filters.TimeRangeFilter((5, 1))
    with pytest.raises(TypeError, match="instances of Filter"):
        filters.CompositeFilter([object()])  # type: ignore[list-item]


def test_names_are_asked_for_only_where_they_count() -> None:
    assert filters.GPUKernelFilter()(frame().drop(columns="name")).index.tolist() == [2, 3]
