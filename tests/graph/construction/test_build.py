"""The order of construction: rules, then what times contradict, circles, latencies, waits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from htagraph.core.kinds import UNCERTAIN
from htagraph.core.naming import DEFAULT_NAMING
from htagraph.graph.activities import Edges
from htagraph.graph.construction.activities import prepare
from htagraph.graph.construction.build import build, join
from htagraph.graph.rules import RULES
from htagraph.trace.discover import rank_files
from htagraph.trace.readers import read_trace
from tests.graph.construction.test_activities import part
from tests.reach import DATA, graph_of
from tests.strategies import COMPUTE, OTHER, Job, jobs, kernel, launch, load, op


def test_building_the_parts_of_a_folder_is_loading_it() -> None:
    files = rank_files(DATA / "demo")
    parts = [prepare(read_trace(file.path, file.rank_in, None), DEFAULT_NAMING) for file in files]
    one, other = build(parts), graph_of(DATA / "demo")
    for column in Edges.__dataclass_fields__:
        assert getattr(one.edges, column).tolist() == getattr(other.edges, column).tolist()
    assert one.clocks == other.clocks
    reversed_parts = build(parts[::-1])
    assert reversed_parts.edges.lag.tolist() == one.edges.lag.tolist(), "the order of the parts does not matter"


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_every_built_graph_keeps_its_invariants(job: Job) -> None:
    graph = load(job)
    graph.check()
    assert (graph.gap >= 0).all()
    assert (np.diff(graph.edges.source) >= 0).all()


@pytest.mark.slow
def test_every_edge_was_made_by_a_rule() -> None:
    files = rank_files(DATA / "gloo_ddp")
    parts = [prepare(read_trace(file.path, file.rank_in, None), DEFAULT_NAMING) for file in files]
    graph = graph_of(DATA / "gloo_ddp")
    job = join(parts, DEFAULT_NAMING)
    by_rules = Edges.concatenate([rule(job) for rule in RULES if rule.__name__ not in ("collective", "p2p")])
    made = set(zip(by_rules.source.tolist(), by_rules.target.tolist(), by_rules.kind.tolist(), strict=True))
    edges = graph.edges
    within = (edges.source // 2 < len(job.activities)) & (edges.target // 2 < len(job.activities))
    rows = zip(edges.source[within].tolist(), edges.target[within].tolist(), edges.kind[within].tolist(), strict=True)
    kinds = set(by_rules.kind.tolist())
    assert {row for row in rows if row[2] in kinds} <= made


def test_uncertain_dependencies_are_one_issue_of_the_job() -> None:
    graph = load([op("main", 0, 100), *(op("other", 10 + 20 * i, 5, OTHER) for i in range(4)), op("last", 30, 5, 77)])
    (issue,) = (each for each in graph.issues if each.what == "edges_uncertain")
    doubtful = graph.edges.kind[graph.edges.confidence < UNCERTAIN]
    assert issue.count == len(doubtful) > 0
    assert f"({len(doubtful)} thread)" in issue.detail
    assert not graph_of(DATA / "demo").issues


def test_ranks_are_joined_under_one_numbering(tmp_path: Path) -> None:
    one = [op("a", 0, 9), op("b", 1, 2), launch(4, 1, 7), kernel(COMPUTE, 6, 5, 7)]
    other = [op("b", 0, 9), op("new", 1, 2), launch(4, 1, 7), kernel(COMPUTE, 6, 5, 7)]
    job = join([part(other, tmp_path, 1), part(one, tmp_path, 0)])
    acts = job.activities
    assert acts.rank.tolist() == [0] * 4 + [1] * 4, "by rank, whatever their order"
    assert len(set(job.names)) == len(job.names)
    for first in (0, 4):
        work = first + int(np.flatnonzero(acts.on_device[first : first + 4])[0])
        assert job.names[acts.name[acts.cause[work]]] == "cudaLaunchKernel"
        assert first <= acts.cause[work] < first + 4
        assert [job.lanes[lane].rank for lane in acts.lane[first : first + 4]] == [first // 4] * 4
    assert sorted(job.boundaries.tolist()) == [v for v in range(16) if not acts.on_device[v // 2]]
