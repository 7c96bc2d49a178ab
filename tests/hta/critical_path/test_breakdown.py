"""What the edges of a critical path are bound by."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph.hta.critical_path.analysis import (
    critical_path_analysis,
)
from htagraph.hta.shapes.job import open_job
from tests.hta.critical_path.made import (
    ALEXNET,
    MEASURE,
    SIMPLE_ADD,
    analysed,
    shared,
)
from tests.strategies import step, write


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
    job = open_job({0: str(write([step(7, 0, 10)], tmp_path / "a.json"))})
    with pytest.warns(UserWarning, match="nothing with a dependency"):
        found = critical_path_analysis(job, 0, "ProfilerStep", 0)
    assert found is not None
    graph, success = found
    assert (success, len(graph.summary())) == (False, 0)
