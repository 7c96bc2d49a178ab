from __future__ import annotations

import numpy as np

from htagraph.graph.construction.device_rows import names_of_work
from tests.strategies import Json, complete, kernel, launch, load, op


def legacy(*rows: tuple[str, float, float]) -> list[Json]:
    """Return rows of a device without launches, and their operators, as the profiler before Kineto wrote them."""
    operators = [op(name, start / 100, lasts / 100) for name, start, lasts in rows]
    return [*operators, *(complete("kernel", name, start, lasts, 0) for name, start, lasts in rows)]


def test_rows_within_one_another_are_one_piece_of_work() -> None:
    convolution = [("conv2d", 0, 1000.0), ("convolution", 1, 998), ("_convolution", 2, 996), ("cudnn", 3, 994)]
    graph = load(legacy(*convolution, ("contiguous", 4, 3), ("zeros", 1100, 90), ("fill_", 1101, 20)))
    work = [graph.names[name] for name in graph.activities.name[graph.activities.on_device]]
    assert work == ["cudnn", "zeros"], "the innermost that is not filled by another, and small ones inside are a part"
    assert [issue.count for issue in graph.issues if issue.what == "device_rows_nested"] == [5]


def test_kernels_with_launches_that_lie_within_one_another_run_side_by_side() -> None:
    graph = load([launch(0, 1, 1), launch(2, 1, 2), kernel("long", 10, 100, 1), kernel("short", 20, 10, 2)])
    assert int(graph.activities.on_device.sum()) == 2


NO = np.zeros(24, np.bool_)


def nested(start: np.ndarray, end: np.ndarray, row: np.ndarray | int = 0, *, operators: bool = False) -> list[bool]:
    count = len(start)
    rows = np.broadcast_to(np.asarray(row), count)
    return names_of_work(rows, start, end, NO[:count], NO[:count] | operators).tolist()


def test_a_row_whose_events_cross_holds_work_side_by_side() -> None:
    start = np.arange(0, 100, 10)
    assert not any(nested(start, start + 15, operators=True))


def test_few_events_within_one_another_are_work_side_by_side_unless_they_are_operators() -> None:
    start = np.array([0, 5])
    end = np.array([30, 10])
    assert nested(start, end) == [False, False]
    assert nested(start, end, operators=True) == [False, True]


def test_many_events_within_one_another_and_none_across_are_no_chance() -> None:
    start = np.arange(12)
    assert nested(start, 1000 - start) == [True] * 11 + [False]


def test_rows_of_other_streams_are_apart() -> None:
    assert nested(np.array([0, 0, 1]), np.array([10, 10, 9]), np.array([0, 1, 1]), operators=True) == [
        False, True, False,
    ]  # fmt: skip


def test_no_event_is_no_name() -> None:
    nothing = np.zeros(0, np.int64)
    assert nested(nothing, nothing) == []
