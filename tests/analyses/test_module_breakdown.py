from __future__ import annotations

from typing import Any

import pytest

import htagraph as hg
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, Json, annotation, arrow, complete, kernel, launch, load, op, step


def frame(name: str, start: float, duration: float) -> Json:
    return complete("python_function", f"nn.Module: {name}", start, duration)


def by_name(events: list[Json]) -> dict[str, dict[Any, Any]]:
    return {str(row["name"]): row for row in hg.module_breakdown(load(events)).to_dict("records")}


NET = [
    step(1, 0, 100), frame("Net", 1, 60), frame("Linear", 2, 20), op("aten::linear", 4, 16), launch(6, 2, 1),
    frame("ReLU", 25, 10), op("aten::relu", 26, 5), launch(27, 2, 2), op("aten::add", 40, 10), launch(41, 2, 3),
    op("aten::zero_", 80, 10), launch(81, 2, 4),
    kernel(COMPUTE, 10, 5, 1), kernel("relu", 30, 6, 2), kernel("add", 45, 7, 3), kernel("zero", 85, 8, 4),
]  # fmt: skip


def test_device_time_belongs_to_the_innermost_module_and_in_total_to_all_around_it() -> None:
    rows = by_name(NET)
    device = {name: (row["device_us"], row["device_total_us"], row["count"]) for name, row in rows.items()}
    assert device == {
        "nn.Module: Net": (7, 18, 1), "nn.Module: Linear": (5, 5, 1), "nn.Module: ReLU": (6, 6, 1), "": (8, 8, 0),
    }  # fmt: skip
    assert [rows[name]["kind"] for name in ("nn.Module: Net", "")] == ["module", ""]
    assert [row["host_us"] for row in rows.values() if row["count"]] == [60, 10, 20]
    assert sum(row["share_percent"] for row in rows.values()) == pytest.approx(100)
    asleep = complete("python_function", "threading.py(324): wait", 0, 100, 77)
    assert by_name([*NET, asleep]) == rows


def test_backward_belongs_to_the_module_of_its_forward() -> None:
    forward, backward = op("aten::linear", 4, 16), op("LinearBackward0", 50, 10)
    events = [
        frame("Linear", 2, 20), forward, launch(6, 2, 1), backward, launch(52, 2, 2), *arrow(1, forward, backward),
        kernel(COMPUTE, 10, 5, 1), kernel(COMPUTE, 60, 9, 2),
    ]  # fmt: skip
    assert by_name(events)["nn.Module: Linear"]["device_us"] == 14


def test_a_module_inside_one_of_its_own_name_is_not_counted_twice() -> None:
    events = [frame("Seq", 0, 50), frame("Seq", 5, 20), op("aten::mm", 6, 5), launch(7, 1, 1), kernel("k", 20, 5, 1)]
    row = by_name(events)["nn.Module: Seq"]
    assert (row["count"], row["host_us"], row["device_us"], row["device_total_us"]) == (2, 50, 5, 5)


def test_without_frames_annotations_stand_for_modules() -> None:
    events = [annotation("forward", 0, 50), op("aten::mm", 6, 5), launch(7, 1, 1), kernel("k", 20, 5, 1)]
    row = by_name(events)["forward"]
    assert (row["kind"], row["count"], row["device_us"]) == ("annotation", 1, 5)


def test_by_job_and_by_class_the_device_time_is_the_same() -> None:
    graph = graph_of(DATA / "demo")
    total = hg.module_breakdown(graph)["device_us"].sum()
    for by in ("job", "class"):
        table = hg.module_breakdown(graph, by=by)
        assert table["device_us"].sum() == pytest.approx(total)
        assert table["share_percent"].sum() == pytest.approx(100)
        assert not table.duplicated(["kind", "name"]).any()
