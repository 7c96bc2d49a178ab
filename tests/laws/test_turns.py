"""Turns: jobs whose threads share cores or an interpreter have the times of an independent scheduler."""

from __future__ import annotations

from collections import deque

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.evidence.turns import turns_of_cores, turns_of_interpreters
from htagraph.whatif.interval_cause import IntervalCause
from htagraph.whatif.turns import moments_in_turns
from tests.laws.test_cores import file_with_cores

SLICE_NS = 20_000
STEPS = 5
HEAD_NS = 2_000_000
LATER_NS = 1_500_000
"""How much more all branches do in each step, ns: work that is as regular as a clock takes no turns."""
NEAR = 0.02
"""How far a prediction may be from slices of this length, relative."""


def sliced(demand: list[int], places: int) -> list[int]:
    """Return when each of several threads that begin at once is done, ns: so many run at a time, for a slice each."""
    queue = deque(range(len(demand)))
    left = list(demand)
    done = [0] * len(demand)
    now = 0
    while queue:
        running = [queue.popleft() for _ in range(min(places, len(queue)))]
        lasts = min([SLICE_NS, *(left[number] for number in running)])
        now += lasts
        for number in running:
            left[number] -= lasts
            if left[number] > 0:
                queue.append(number)
            else:
                done[number] = now
    return done


def run(branches: list[list[int]], places: int) -> list[tuple[str, str, int, int]]:
    """Return (name, thread, start, duration) of a job, ns: a thread runs, then waits for threads that it starts."""
    rows = []
    now = 0
    for step in branches:
        rows.append(("head", "main", now, HEAD_NS))
        start = now + HEAD_NS
        done = sliced(step, places)
        rows += [(f"branch {number}", f"thread {number}", start, end) for number, end in enumerate(done)]
        now = start + max(done)
    return rows


def recorded(branches: list[list[int]], places: int, kind: str) -> DependencyGraph:
    """Return the graph of a recording of such a job, which does not say who took turns."""
    width = len(branches[0])
    table = pd.DataFrame(run(branches, places), columns=["name", "lane", "start_ns", "duration_ns"])
    table["kind"] = kind
    rows = np.arange(len(table))
    step = rows - rows % (width + 1)
    is_branch = rows > step
    into = np.stack((step[is_branch], rows[is_branch]))
    behind = np.stack((rows[is_branch], step[is_branch] + width + 1))
    behind = behind[:, behind[1] < len(table)]
    along = np.stack((rows[: -width - 1], rows[width + 1 :]))
    edges = pd.DataFrame(np.concatenate((into, behind, along), axis=1).T, columns=["source", "target"])
    return DependencyGraph.from_frames(table, edges)


def on_cores(branches: list[list[int]], cores: int) -> DependencyGraph:
    """Return the recording of a job of operators whose file says how many cores there are."""
    return recorded(branches, cores, "op").replace(traces={0: file_with_cores(cores)})


def in_python(branches: list[list[int]]) -> DependencyGraph:
    """Return the recording of a job of Python on threads of one process."""
    return recorded(branches, 1, "annotation")


def span(branches: list[list[int]], places: int) -> int:
    """Return how long such a job takes, ns."""
    return max(start + lasts for _, _, start, lasts in run(branches, places))


def scaled(branches: list[list[int]], which: int, factor: float) -> list[list[int]]:
    """Return the branches with one of them changed."""
    return [[round(time * factor) if i == which else time for i, time in enumerate(step)] for step in branches]


@st.composite
def jobs(draw: st.DrawFn) -> list[list[int]]:
    """Draw how long the branches of each step take alone, ns."""
    width = draw(st.integers(3, 5))
    usual = draw(st.lists(st.integers(3_000_000, 9_000_000), min_size=width, max_size=width))
    late = draw(st.lists(st.integers(0, 200_000), min_size=width * STEPS, max_size=width * STEPS))
    noise = np.array(late).reshape(STEPS, width)
    later = LATER_NS * np.arange(STEPS)[:, None]
    lengths: list[list[int]] = (np.array(usual) + later + noise).tolist()
    return lengths


@given(jobs(), st.integers(0, 2), st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]), st.integers(1, 2))
def test_work_that_shares_cores_is_predicted(branches: list[list[int]], which: int, factor: float, cores: int) -> None:
    graph = on_cores(branches, cores)
    turns = turns_of_cores(graph)
    assert turns is not None
    scenario = hg.what_if(graph).scale(factor=factor, name=f"branch {which}")
    true = span(scaled(branches, which, factor), cores)
    assert moments_in_turns(scenario.state)[IntervalCause.SHARED_CORES].max() == pytest.approx(true, rel=NEAR)
    outcome = scenario.run()
    shown = graph.time.max() / true
    assert outcome.low * (1 - NEAR) <= shown <= outcome.high * (1 + NEAR)


@given(jobs(), st.integers(0, 2), st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]))
def test_python_that_shares_an_interpreter_is_predicted(branches: list[list[int]], which: int, factor: float) -> None:
    graph = in_python(branches)
    turns = turns_of_interpreters(graph)
    assert turns is not None
    scenario = hg.what_if(graph).scale(factor=factor, name=f"branch {which}")
    true = span(scaled(branches, which, factor), 1)
    assert moments_in_turns(scenario.state)[IntervalCause.SHARED_INTERPRETER].max() == pytest.approx(true, rel=NEAR)


@given(jobs(), st.integers(0, 2))
def test_without_a_change_no_moment_changes(branches: list[list[int]], which: int) -> None:
    for graph in (on_cores(branches, 2), in_python(branches)):
        scenario = hg.what_if(graph).scale(factor=1.0, name=f"branch {which}")
        in_turns = moments_in_turns(scenario.state)
        assert in_turns
        for time in in_turns.values():
            np.testing.assert_array_equal(time, graph.time)


@given(jobs(), st.integers(0, 2))
def test_a_job_with_enough_cores_has_the_interval_of_one_whose_cores_are_not_known(
    branches: list[list[int]], more: int
) -> None:
    cores = len(branches[0]) + 1 + more
    known = on_cores(branches, cores)
    assert turns_of_cores(known) is None
    unknown = recorded(branches, cores, "op")
    outcomes = [hg.what_if(graph).scale(factor=0.5, name="branch 1").run() for graph in (known, unknown)]
    assert len({(outcome.low, outcome.high) for outcome in outcomes}) == 1


def test_the_prediction_alone_is_wrong_where_work_takes_turns() -> None:
    usual = np.array([4_000_000, 8_000_000, 8_000_000])
    branches = [(usual + LATER_NS * step).tolist() for step in range(STEPS)]
    outcome = hg.what_if(on_cores(branches, 1)).scale(factor=0, name="branch 0").run()
    true = span(scaled(branches, 0, 0), 1)
    assert outcome.makespan_ns > 1.1 * true
    assert outcome.interval_cause is IntervalCause.SHARED_CORES
