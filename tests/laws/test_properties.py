"""Laws that hold for every job, whatever was recorded."""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import cache
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core import traverse
from htagraph.graph.activities import Activities, Edges
from tests.oracles import table_of
from tests.reach import JOBS, REPOSITORY, graph_of, label
from tests.strategies import Frames, Json, examples, frames, jobs, load, traces

Analysis: TypeAlias = Callable[[DependencyGraph], Any]
FILES = (REPOSITORY / "htagraph" / "analyses").glob("[!_]*.py")
NAMES = [*sorted(path.stem for path in FILES), "memory.timeline", "memory.peaks", "memory.at_peak"]
ANALYSES: list[Analysis] = [attrgetter(name)(hg) for name in NAMES]
NUMBERED = ("launch", "work", "activity", "parent", "before", "after", "example", "range", "first", "last")
"""Columns that, as integers, hold activity numbers, which count events in the order of the file."""
BY_NUMBER = ("slack", "collectives", "call_tree", "annotated_kernels", "operator_breakdown")
"""Analyses whose rows lie in the order of those numbers, or whose ties lie in the order in which files name things."""

every_analysis = pytest.mark.parametrize("analysis", ANALYSES, ids=NAMES)
every_job = pytest.mark.parametrize("path", JOBS, ids=label)


def assert_sound(graph: DependencyGraph) -> None:
    """Assert that lags, gaps and the moments before which nothing lies give every moment again."""
    graph.check()
    assert graph.gap.min(initial=0) >= 0
    edges = graph.edges
    times = traverse.schedule(
        graph.topological_order, graph.in_offsets, graph.in_edges, edges.source, edges.lag, graph.gap, graph.time
    )
    assert np.array_equal(times, graph.time)


def without_ties(events: list[Json]) -> list[Json]:
    """Return the complete events, shifted by a few ns each so that no two begin or end together."""
    whole = [event for event in events if event["ph"] == "X"]
    return [event | {"ts": event["ts"] + i / 1000} for i, event in enumerate(whole, 1)]


def result(analysis: Analysis, graph: DependencyGraph) -> pd.DataFrame:
    """Return an analysis' table without numbers of activities, and in an order that does not depend on them."""
    table = table_of(analysis(graph))
    table = table.drop(columns=[each for each in NUMBERED if each in table and table[each].dtype.kind == "i"])
    by_number = getattr(analysis, "__name__", "") in BY_NUMBER
    return table.sort_values(list(table.columns), ignore_index=True) if by_number else table


def assert_same_graph(one: DependencyGraph, other: DependencyGraph) -> None:
    """Assert that two graphs have the same activities, clocks and edges, however names and activities are numbered."""
    corrections = [
        [replace(clock, reference_ns=clock.reference_ns if clock.drift_ppm else 0) for clock in graph.clocks]
        for graph in (one, other)
    ]  # around which moment a clock drifts means nothing where it does not
    assert corrections[0] == corrections[1]
    (acts, edges), (other_acts, other_edges) = described(one), described(other)
    assert acts == other_acts
    assert edges == other_edges


def described(graph: DependencyGraph) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """Return a graph's activities and edges as sorted tuples, without any number that depends on an order."""
    acts, edges = graph.activities, graph.edges
    names, lanes = [*graph.names, ""], [repr(lane) for lane in graph.lanes] + [""]
    own = list(
        zip(
            acts.rank.tolist(), [lanes[lane] for lane in acts.lane], acts.start.tolist(), acts.duration.tolist(),
            [names[name] for name in acts.name], acts.kind.tolist(), acts.step.tolist(), strict=True,
        )
    )  # fmt: skip
    above = [*own, ()]  # an index of -1 is none
    whole = [(*own[i], above[acts.parent[i]], above[acts.cause[i]]) for i in range(len(acts))]
    ends = [[(*own[vertex >> 1], vertex & 1) for vertex in side.tolist()] for side in (edges.source, edges.target)]
    rest = zip(edges.lag.tolist(), edges.kind.tolist(), edges.provenance.tolist(), edges.confidence.tolist(),
               [above[i] for i in edges.activity.tolist()], strict=True)  # fmt: skip
    return sorted(whole, key=repr), sorted(zip(*ends, rest, strict=True), key=repr)


def columns_of(part: Activities | Edges) -> dict[str, np.ndarray[Any, Any]]:
    return {name: value for name, value in vars(part).items() if isinstance(value, np.ndarray)}


@pytest.mark.slow
@given(jobs())
@settings(max_examples=60)
def test_every_generated_trace_gives_a_sound_graph(job: dict[int, list[Json]]) -> None:
    assert_sound(load(job))


@given(frames())
@settings(max_examples=100)
def test_a_dag_of_frames_is_sound_and_replays_exactly(made: Frames) -> None:
    assert_sound(made.graph)


@every_job
def test_every_trace_in_reach_is_sound_and_replays_exactly(path: Any) -> None:
    assert_sound(graph_of(path))


@pytest.mark.slow
@given(jobs(min_size=2), st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_a_graph_does_not_depend_on_the_order_of_files(job: dict[int, list[Json]], chance: random.Random) -> None:
    ranks = list(job)
    chance.shuffle(ranks)
    assert_same_graph(load(job), load({rank: job[rank] for rank in ranks}))


@pytest.mark.slow
@given(traces(), st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_a_graph_does_not_depend_on_the_order_of_events(events: list[Json], chance: random.Random) -> None:
    events = without_ties(events)
    assert_same_graph(load(events), load(chance.sample(events, len(events))))


Pair: TypeAlias = tuple[DependencyGraph, DependencyGraph]


@cache
def with_files_reversed(count: int = 6) -> list[Pair]:
    """Return the graphs of jobs of several ranks: as drawn, and with the files in the opposite order."""
    return [(load(job), load(dict(reversed(job.items())))) for job in examples(jobs(min_size=2), count)]


@cache
def with_events_shuffled(count: int = 6) -> list[Pair]:
    """Return the graphs of traces without ties: as drawn, and with their events in another order."""
    chance = random.Random(1)
    drawn = [without_ties(events) for events in examples(traces(), count)]
    return [(load(events), load(chance.sample(events, len(events)))) for events in drawn]


@pytest.mark.slow
@every_analysis
def test_results_do_not_depend_on_the_order_of_files(analysis: Analysis) -> None:
    for graph, reversed_files in with_files_reversed():
        pd.testing.assert_frame_equal(result(analysis, graph), result(analysis, reversed_files))


@pytest.mark.slow
@every_analysis
def test_results_do_not_depend_on_the_order_of_events(analysis: Analysis) -> None:
    if analysis is hg.slack:
        pytest.xfail("which of two equally busy threads is the main one depends on which the file names first")
    for graph, shuffled in with_events_shuffled():
        pd.testing.assert_frame_equal(result(analysis, graph), result(analysis, shuffled))


@cache
def drawn_jobs() -> list[dict[int, list[Json]]]:
    return examples(jobs(), 12)


def job_of_seed(seed: int) -> dict[int, list[Json]]:
    """Return one of the drawn jobs; there may be fewer than there are seeds."""
    return drawn_jobs()[(2 * seed + 1) % len(drawn_jobs())]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_results_do_not_depend_on_what_was_asked_before(seed: int) -> None:
    graph = load(job_of_seed(seed))
    unasked = [deepcopy(graph) for _ in ANALYSES]
    order = random.Random(seed).sample(range(len(ANALYSES)), len(ANALYSES))
    asked_in_turn = {i: table_of(ANALYSES[i](graph)) for i in order}
    for i, analysis in enumerate(ANALYSES):
        pd.testing.assert_frame_equal(table_of(analysis(unasked[i])), asked_in_turn[i])


@pytest.mark.slow
@every_analysis
def test_an_analysis_leaves_the_graph_as_it_was(analysis: Analysis) -> None:
    for drawn, _ in with_files_reversed():
        graph = deepcopy(drawn)  # whose arrays can be written
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
@settings(max_examples=20)
def test_the_parts_of_a_window_sum_to_it_exactly(job: dict[int, list[Json]]) -> None:
    table = hg.temporal_breakdown(load(job))
    parts = ["computation", "exposed_communication", "exposed_memory", "other", "idle"]
    whole_ns = (table[[f"{part}_us" for part in parts]] * 1000).round().astype("int64").sum(axis=1)
    assert whole_ns.tolist() == (table["window_us"] * 1000).round().astype("int64").tolist()
    assert (table[[f"{part}_us" for part in parts]] >= 0).all(axis=None)
