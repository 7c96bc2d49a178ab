from __future__ import annotations

import pandas as pd
import pytest

import htagraph as hg
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, annotation, kernel, launch, load, op


def test_a_kernel_belongs_to_the_operator_and_the_annotation_around_its_launch() -> None:
    events = [annotation("forward", 0, 20), op("aten::mm", 1, 9), launch(2, 1, 1), kernel(COMPUTE, 5, 7, 1)]
    table = hg.kernel_owners(load([*events, launch(30, 1, 2), kernel(COMPUTE, 40, 3, 2)]))
    assert table[["module", "operator", "kind", "count", "device_us"]].to_numpy().tolist() == [
        ["forward", "aten::mm", "computation", 1, 7.0], ["", "", "computation", 1, 3.0],
    ]  # fmt: skip
    assert table["share_percent"].tolist() == [70.0, 30.0]


@pytest.mark.parametrize("by", ["rank", "job"])
def test_it_sums_to_the_breakdowns_by_module_operator_and_kernel(by: str) -> None:
    graph = graph_of(DATA / "demo")
    table = hg.kernel_owners(graph, by=by)  # type: ignore[arg-type]
    keys = ["rank"] if by == "rank" else []
    for key, other, value in (
        ("module", hg.module_breakdown, "device_us"), ("operator", hg.operator_breakdown, "device_us"),
        ("name", hg.kernel_breakdown, "total_us"),
    ):  # fmt: skip
        mine = table.groupby([*keys, key])["device_us"].sum()
        whole: pd.Series[float] = other(graph).groupby([*keys, "name"])[value].sum()
        whole = whole[whole > 0]
        assert mine.to_dict() == pytest.approx(whole.to_dict())
    assert table.groupby(keys)["share_percent"].sum().tolist() == pytest.approx([100.0] * 4) if keys else True


def test_a_job_without_device_work_has_no_rows_but_its_columns() -> None:
    table = hg.kernel_owners(graph_of(DATA / "gloo_ddp"), by="job")
    assert (len(table), list(table)[:3]) == (0, ["module", "operator", "kind"])
