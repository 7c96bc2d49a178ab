"""Work that may have taken turns: where a recording shows it, contradicts it, or has too little of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.turns import _is_regular, turns_of_cores, turns_of_interpreters
from tests.laws.test_cores import file_with_cores

MS = 1_000_000


def beside(
    kind: str, starts_ms: list[int], lengths_ms: list[int], beside_ms: tuple[int, ...] = (36, 38, 42, 44)
) -> DependencyGraph:
    """Return two threads: one with work that begins at some moments, one with work every 100 ms."""
    rows = [("work", "one", start * MS, length * MS) for start, length in zip(starts_ms, lengths_ms, strict=True)]
    rows += [("beside", "two", 100 * number * MS, length * MS) for number, length in enumerate(beside_ms)]
    table = pd.DataFrame(rows, columns=["name", "lane", "start_ns", "duration_ns"])
    table["kind"] = kind
    order = [(row, row + 1) for row in range(len(rows) - 1) if rows[row][1] == rows[row + 1][1]]
    return DependencyGraph.from_frames(table, pd.DataFrame(order, columns=["source", "target"]))


@pytest.mark.parametrize("name", ["demo", "gloo_ddp"])
def test_no_demo_is_short_of_anything(name: str) -> None:
    graph = hg.load(f"data/{name}")
    assert turns_of_cores(graph) is None
    assert turns_of_interpreters(graph) is None


def test_python_on_two_threads_at_once_may_take_turns() -> None:
    turns = turns_of_interpreters(beside("annotation", [0, 100, 200, 300], [36, 38, 42, 44]))
    assert turns is not None
    assert set(turns.demand[turns.demand > 0]) == {18.0 * MS, 19.0 * MS, 21.0 * MS, 22.0 * MS}


def test_operators_leave_the_interpreter() -> None:
    assert turns_of_interpreters(beside("op", [0, 100, 200, 300], [36, 38, 42, 44])) is None


def test_python_that_lasts_equally_long_alone_takes_no_turns() -> None:
    assert turns_of_interpreters(beside("annotation", [0, 150, 200, 350], [36, 38, 42, 44])) is None


def test_python_that_is_slower_beside_other_python_takes_turns() -> None:
    graph = beside("annotation", [0, 150, 200, 350], [40, 20, 40, 20], (40, 20, 40, 20))
    assert turns_of_interpreters(graph) is not None


def test_work_as_regular_as_a_clock_takes_no_turns() -> None:
    assert turns_of_interpreters(beside("annotation", [0, 100, 200, 300], [40] * 4, (40,) * 4)) is None


def test_one_odd_time_leaves_regular_work_regular() -> None:
    recorded = np.array([18, 18, 18, 18, 551]) * MS
    assert _is_regular(recorded, np.zeros(5, np.int64))


def test_work_of_one_length_for_each_caller_is_regular() -> None:
    """One operator takes 40 and 30 ms for two callers: sites that are mixed would look irregular."""
    rows = [
        ("outer" if number % 2 else "other", lane, 100 * number * MS, (30 + number % 2 * 10) * MS + 2000)
        for lane in ("one", "two")
        for number in range(6)
    ]
    rows += [("work", lane, start + 1000, length - 2000) for _, lane, start, length in rows]
    table = pd.DataFrame(rows, columns=["name", "lane", "start_ns", "duration_ns"])
    table["kind"] = "annotation"
    table["parent"] = [-1] * 12 + list(range(12))
    order = [(row, row + 1) for row in range(11) if rows[row][1] == rows[row + 1][1]]
    graph = DependencyGraph.from_frames(table, pd.DataFrame(order, columns=["source", "target"]))
    assert turns_of_interpreters(graph) is None


def test_threads_one_after_the_other_take_no_turns() -> None:
    assert turns_of_interpreters(beside("annotation", [50, 150, 250, 350], [36, 38, 42, 44])) is None


@pytest.mark.parametrize(("cores", "is_short"), [(1, True), (2, False)])
def test_operators_share_cores_that_are_too_few(cores: int, is_short: bool) -> None:  # noqa: FBT001
    graph = beside("op", [0, 100, 200, 300], [36, 38, 42, 44])
    assert turns_of_cores(graph) is None
    known = graph.replace(traces={0: file_with_cores(cores)})
    assert (turns_of_cores(known) is not None) == is_short
