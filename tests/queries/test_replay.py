from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph.queries.replay import predict, without_unexplained
from tests.reach import JOBS, graph_of, label
from tests.strategies import Frames, Job, frames, jobs, load


@pytest.mark.parametrize("path", JOBS, ids=label)
def test_every_trace_is_replayed_to_the_nanosecond(path: Path) -> None:
    replay = hg.replay(graph_of(path))
    assert replay.max_error_ns == 0
    assert (replay.to_frame()["error_ns"] == 0).all()


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_every_generated_job_is_replayed_to_the_nanosecond(job: Job) -> None:
    assert hg.replay(load(job)).max_error_ns == 0


@pytest.mark.slow
@given(frames())
@settings(max_examples=80)
def test_every_dag_is_replayed_to_the_nanosecond(dag: Frames) -> None:
    assert hg.replay(dag.graph).max_error_ns == 0


def test_an_error_is_seen() -> None:
    graph = graph_of(JOBS[0])
    wrong = graph.gap.copy()
    wrong[np.argmax(wrong)] -= 7
    assert np.abs(predict(graph, gap=wrong) - graph.time).max() == 7


def test_gap_shares_name_every_gap_and_its_weight() -> None:
    graph = graph_of(JOBS[0])
    table = hg.replay(graph).gap_shares()
    assert table["total_us"].sum() * 1000 == pytest.approx(int(graph.gap.sum()))
    assert (table["critical_us"] <= table["total_us"] + 1e-9).all()
    assert table.set_index("gap").loc["host_untraced", "explained"]


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_without_unexplained_gaps_nothing_comes_later(job: Job) -> None:
    graph = load(job)
    gap = without_unexplained(graph, graph.gap)
    assert bool((gap <= graph.gap).all())
    assert bool((predict(graph, gap=gap) <= graph.time).all())
    assert hg.replay(graph).explained_ns <= hg.replay(graph).makespan_ns


def test_an_empty_job_has_a_replay() -> None:
    replay = hg.replay(load({0: []}))
    assert (replay.max_error_ns, replay.makespan_ns, replay.explained_ns, len(replay.gap_shares())) == (0, 0, 0, 0)
