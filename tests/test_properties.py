"""Laws that hold for every job, whatever was recorded."""

from __future__ import annotations

import random
from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import DependencyGraph, analyses
from htagraph.core import traverse
from htagraph.graph.activities import Activities, Edges
from tests.reach import JOBS, graph_of, label
from tests.strategies import Frames, Json, frames, jobs, load, traces

Analysis: TypeAlias = Callable[[DependencyGraph], Any]
NAMES = [*analyses.__all__, "memory.timeline", "memory.peaks", "memory.at_peak"]
ANALYSES: list[Analysis] = [attrgetter(name)(analyses) for name in NAMES]
NUMBERED = ("launch", "work", "activity", "parent", "before", "after", "example", "range", "first", "last")
"""Columns that, as integers, hold activity numbers, which count events in the order of the file."""
BY_NUMBER = ("slack", "collectives", "call_tree", "annotated_kernels")
"""Analyses whose rows lie in the order of those numbers."""

every_analysis = pytest.mark.parametrize("analysis", ANALYSES, ids=NAMES)
every_job = pytest.mark.parametrize("path", JOBS, ids=label)


def replayed(graph: DependencyGraph) -> list[int]:
    """Return the moments that follow from lags, gaps and the moments before which nothing lies."""
    edges = graph.edges
    times = traverse.schedule(
        graph.topological_order, graph.in_offsets, graph.in_edges, edges.source, edges.lag, graph.gap, graph.time
    )
    return [int(time) for time in times]


def without_ties(events: list[Json]) -> list[Json]:
    """Return the complete events, shifted by a few ns each so that no two begin or end together."""
    whole = [event for event in events if event["ph"] == "X"]
    return [event | {"ts": event["ts"] + i / 1000} for i, event in enumerate(whole, 1)]


def results(graph: DependencyGraph) -> list[pd.DataFrame]:
    tables = {analysis.__name__: table_of(analysis(graph)) for analysis in ANALYSES}
    plain = {name: table.drop(columns=_numbered(table)) for name, table in tables.items()}
    return [
        table.sort_values(list(table.columns), ignore_index=True) if name in BY_NUMBER else table
        for name, table in plain.items()
    ]


def _numbered(table: pd.DataFrame) -> list[str]:
    return [column for column in NUMBERED if column in table and table[column].dtype.kind == "i"]


def table_of(result: Any) -> pd.DataFrame:
    """Return an analysis' result as a table, of what-if that of nothing changed."""
    if isinstance(result, hg.Scenario):
        return result.run().step_times()
    return result if isinstance(result, pd.DataFrame) else result.to_frame()


def assert_same(ours: list[pd.DataFrame], theirs: list[pd.DataFrame]) -> None:
    for one, other in zip(ours, theirs, strict=True):
        pd.testing.assert_frame_equal(one, other)


def columns_of(part: Activities | Edges) -> dict[str, np.ndarray[Any, Any]]:
    return {name: value for name, value in vars(part).items() if isinstance(value, np.ndarray)}


@given(jobs())
@settings(deadline=None, max_examples=150)
def test_every_generated_trace_gives_a_sound_graph(job: dict[int, list[Json]]) -> None:
    graph = load(job)
    graph.check()
    assert graph.gap.min(initial=0) >= 0
    assert replayed(graph) == graph.time.tolist()


@given(frames())
@settings(deadline=None, max_examples=100)
def test_a_dag_of_frames_is_sound_and_replays_exactly(made: Frames) -> None:
    graph = made.graph
    graph.check()
    assert graph.gap.min(initial=0) >= 0
    assert replayed(graph) == graph.time.tolist()


@every_job
def test_every_trace_in_reach_is_sound_and_replays_exactly(path: Any) -> None:
    graph = graph_of(path)
    graph.check()
    assert graph.gap.min(initial=0) >= 0
    assert replayed(graph) == graph.time.tolist()


@given(jobs(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_results_do_not_depend_on_the_order_of_files(job: dict[int, list[Json]], chance: random.Random) -> None:
    ranks = list(job)
    chance.shuffle(ranks)
    assert_same(results(load(job)), results(load({rank: job[rank] for rank in ranks})))


@given(traces(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_results_do_not_depend_on_the_order_of_events(events: list[Json], chance: random.Random) -> None:
    events = without_ties(events)
    shuffled = events.copy()
    chance.shuffle(shuffled)
    assert_same(results(load(events)), results(load(shuffled)))


@given(jobs(), st.permutations(range(len(ANALYSES))))
@settings(deadline=None, max_examples=30)
def test_results_do_not_depend_on_what_was_asked_before(job: dict[int, list[Json]], order: list[int]) -> None:
    asked_once = [table_of(ANALYSES[i](load(job))) for i in range(len(ANALYSES))]
    graph = load(job)
    asked_in_turn = {i: table_of(ANALYSES[i](graph)) for i in order}
    assert_same(asked_once, [asked_in_turn[i] for i in range(len(ANALYSES))])


@every_analysis
@given(job=jobs())
@settings(deadline=None, max_examples=10)
def test_an_analysis_leaves_the_graph_as_it_was(analysis: Analysis, job: dict[int, list[Json]]) -> None:
    graph = load(job)
    columns = [*columns_of(graph.activities).items(), *columns_of(graph.edges).items()]
    before = [value.copy() for _, value in columns]
    analysis(graph)
    for (name, value), old in zip(columns, before, strict=True):
        assert np.array_equal(value, old), name


def test_no_array_of_a_graph_can_be_written() -> None:
    graph = load([{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2,
                   "args": {"Sequence number": 3}}])  # fmt: skip
    arrays = columns_of(graph.activities) | columns_of(graph.edges)
    arrays |= {f"args {name}": column.values for name, column in graph.activities.args.items()}
    arrays |= {f"rows of {name}": column.rows for name, column in graph.activities.args.items()}
    for name in ("time", "gap", "out_offsets", "in_offsets", "in_edges", "topological_order"):
        arrays[name] = getattr(graph, name)
    arrays["on_device"] = graph.activities.on_device
    writable = [name for name, array in arrays.items() if array.flags.writeable]
    assert not writable


@given(jobs())
@settings(deadline=None, max_examples=60)
def test_the_parts_of_a_window_sum_to_it_exactly(job: dict[int, list[Json]]) -> None:
    table = hg.temporal_breakdown(load(job))
    parts = ["computation", "exposed_communication", "exposed_memory", "other", "idle"]
    whole_ns = (table[[f"{part}_us" for part in parts]] * 1000).round().astype("int64").sum(axis=1)
    assert whole_ns.tolist() == (table["window_us"] * 1000).round().astype("int64").tolist()
    assert (table[[f"{part}_us" for part in parts]] >= 0).all(axis=None)
