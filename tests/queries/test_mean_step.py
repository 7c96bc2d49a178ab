"""Whether the mean step is the time from first start to last end, over the steps, wherever it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from htagraph.queries.mean_step import mean_step_ns
from tests.reach import DATASETS, graph_of
from tests.strategies import load, op, step


def test_it_is_from_the_first_start_on_any_rank_to_the_last_end() -> None:
    job = {0: [step(1, 0, 40), step(2, 40, 50)], 1: [step(1, 10, 40), step(2, 60, 50)]}
    graph = load(job)
    assert mean_step_ns(graph, graph.time) == 110_000 / 2


def test_without_steps_it_is_the_whole() -> None:
    graph = load([op("a", 5, 10), op("b", 20, 10)])
    assert mean_step_ns(graph, graph.time) == 25_000


@pytest.mark.parametrize("path", DATASETS, ids=lambda path: path.name)
def test_summaries_and_predictions_give_the_same(path: Path) -> None:
    graph = graph_of(path)
    assert hg.summarize(graph).mean_step_us == hg.what_if(graph).run().baseline_mean_step_ns / 1000
