from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

import htagraph as hg
from tests import oracles
from tests.strategies import COMPUTE, LAUNCH, Json, kernel, launch, load, runtime, step, traces


def test_a_launch_stands_beside_the_work_it_enqueued() -> None:
    events = [step(3, 0, 90), launch(10, 20, 5), kernel(COMPUTE, 45, 8, 5)]
    (row,) = hg.launch_stats(load(events)).to_dict("records")
    assert row == {
        "rank": 0, "correlation": 5, "launch": 1, "work": 2, "launch_name": LAUNCH, "work_name": COMPUTE,
        "work_kind": "computation", "stream": 7, "step": 3, "launch_us": 20.0, "work_us": 8.0, "delay_us": 15.0,
        "short": True, "excessive_runtime": False, "excessive_delay": False,
    }  # fmt: skip


def test_a_graph_launch_has_a_row_for_each_kernel() -> None:
    events = [runtime("cudaGraphLaunch", 0, 3, 1), *(kernel(COMPUTE, 5 + 5 * i, 4, 1) for i in range(3))]
    assert hg.launch_stats(load(events))["delay_us"].tolist() == [2, 7, 12]


def test_a_call_is_compared_with_all_the_work_it_enqueued() -> None:
    events = [runtime("cudaGraphLaunch", 0, 9, 1), *(kernel(COMPUTE, 10 + 5 * i, 4, 1) for i in range(3))]
    assert hg.launch_stats(load(events))["short"].tolist() == [False, False, False]
    assert hg.launch_stats(load(events[:3]))["short"].tolist() == [True, True]


@pytest.mark.parametrize(
    ("cutoffs", "flags"), [((50, 100), [False, False]), ((19, 14), [True, True]), ((20, 15), [False, False])]
)
def test_what_counts_as_excessive_can_be_chosen(cutoffs: tuple[int, int], flags: list[bool]) -> None:
    graph = load([launch(10, 20, 5), kernel(COMPUTE, 45, 8, 5)])
    table = hg.launch_stats(graph, runtime_cutoff_us=cutoffs[0], launch_delay_cutoff_us=cutoffs[1])
    assert table[["excessive_runtime", "excessive_delay"]].iloc[0].tolist() == flags


def test_work_that_starts_before_its_launch_has_no_delay() -> None:
    assert hg.launch_stats(load([launch(10, 3, 1), kernel(COMPUTE, 8, 4, 1)]))["delay_us"].tolist() == [0]


@pytest.mark.slow
@given(traces())
@settings(max_examples=20)
def test_the_rows_are_those_of_a_join_by_correlation(events: list[Json]) -> None:
    table = hg.launch_stats(load(events))
    ours = Counter(table[["correlation", "launch_us", "work_us", "delay_us"]].itertuples(index=False, name=None))
    assert ours == oracles.join(events)
