"""Whether recordings that lack something, and only these, make the verdict uncertain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.core.errors import Issue
from htagraph.findings.changes import changes_of
from htagraph.findings.damaged import DAMAGED
from htagraph.findings.results import Results
from htagraph.findings.verdict import sentences
from htagraph.graph.measures.waits import damaged_ranks
from tests.strategies import Json, kernel, load, op, runtime, write


@pytest.mark.parametrize(
    ("what", "detail", "said"),
    [
        ("truncated", "the file ends early; events up to its end were read", True),
        ("gzip_truncated", "the compressed file ends early", True),
        ("truncated", "the file ends after its events, before the closing brace; all events were read", False),
        ("no_window_end", "no event", False),
    ],
)
def test_a_file_that_is_cut_short_makes_the_verdict_uncertain(what: str, detail: str, *, said: bool) -> None:
    """Without the kernels behind the cut, what waits for them is 'bound by host code'."""
    graph = replace(load([op("aten::mm", 0, 90)]), issues=(Issue("rank-2.json", what, detail, 1, 2),))
    text = sentences(DAMAGED.when(Results(graph)))
    words = "Not all that rank 2 (cut short) did was recorded, and the time of the rest looks like the host's"
    assert [line.startswith(words) for line in text] == [True] * said


def test_a_file_that_ends_early_is_recorded_again_first() -> None:
    issue = Issue("rank-0.json", "truncated", "the file ends early; events up to its end were read", 1, 0)
    graph = replace(load([op("aten::mm", 0, 90), op("aten::add", 100, 90)]), issues=(issue,))
    first = changes_of(Results(graph)).first
    assert first is not None
    assert first.finding == "damaged"


def _rank(launches: int, kernels: int) -> list[Json]:
    calls = [runtime("cudaLaunchKernel", 10 * each, 2, each + 1) for each in range(launches)]
    return [*calls, *(kernel("gemm", 10 * each + 3, 5, each + 1) for each in range(kernels))]


def test_launches_without_work_on_one_rank_alone_are_missing_work() -> None:
    assert damaged_ranks(load({0: _rank(10, 10), 1: _rank(10, 5)})) == {1: ("work", 0.5)}
    assert damaged_ranks(load({0: _rank(10, 5), 1: _rank(10, 5)})) == {}  # as where launches are captured


def test_dropped_events_are_missing_work() -> None:
    graph = load([op("aten::mm", 9 * each, 5) for each in range(9)])
    issue = Issue("rank-0.json", "time_corrupt", "", 1, 0)
    assert damaged_ranks(replace(graph, issues=(issue,))) == {0: ("lost", 0.1)}


def test_copies_of_one_file_are_said_once(tmp_path: Path) -> None:
    files = [write([op("aten::mm", 0, 90)], tmp_path / f"rank-{rank}.json") for rank in (0, 1)]
    graph = hg.load(dict(enumerate(files)))
    (said,) = sentences(DAMAGED.when(Results(graph)))
    assert said.startswith("Ranks 0, 1 have the same file (2 copies), so how they differ is not known.")
