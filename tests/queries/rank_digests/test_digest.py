from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph import SelectionError
from htagraph.core.kinds import COMMUNICATION, ActivityKind
from htagraph.queries.rank_digests.digest import DIGEST_CLASSES
from tests.digests import digests_of
from tests.reach import DATASETS, JOBS, graph_of, label
from tests.strategies import launch, load, op, step


def test_a_digest_is_of_one_rank() -> None:
    with pytest.raises(SelectionError, match="this graph has 4"):
        hg.digest(graph_of(DATASETS[0]))


def test_what_is_no_graph_has_no_digest() -> None:
    with pytest.raises(TypeError, match=r"htagraph\.digest takes the graph of one rank: .*not 'rank-0\.json' \(str\)"):
        hg.digest("rank-0.json")  # type: ignore[arg-type]


@pytest.mark.parametrize("path", [path for path in JOBS if path.is_file()], ids=label)
def test_a_digest_of_any_rank_is_some_kilobytes(path: Path) -> None:
    digest = hg.digest(graph_of(path))
    assert digest.rank == 0
    assert len(digest.to_bytes()) < 100_000
    assert len(digest.source) <= 0.5 * len(graph_of(path).edges) + 60


@pytest.mark.parametrize("folder", DATASETS, ids=label)
def test_a_digest_keeps_all_communication_and_all_steps_as_recorded(folder: Path) -> None:
    whole = graph_of(folder)
    for digest in digests_of(folder):
        acts, kept = whole.activities, digest.part.activities
        kinds = (*COMMUNICATION, ActivityKind.STEP, ActivityKind.BOUNDARY)
        rows = np.flatnonzero(np.isin(acts.kind, kinds) & (acts.rank == digest.rank))
        same = np.flatnonzero(np.isin(kept.kind, kinds) & ~np.isin(kept.event, [0]))
        points = {(int(kept.kind[row]), int(kept.start[row]), int(kept.duration[row])) for row in same.tolist()}
        assert {(int(acts.kind[row]), int(acts.start[row]), int(acts.duration[row])) for row in rows.tolist()} <= points


def test_edges_of_a_digest_lead_from_linked_activities_to_linked_ones() -> None:
    for digest in digests_of(DATASETS[0]):
        assert digest.linked[digest.source >> 1].all()
        assert digest.linked[digest.target >> 1].all()
        assert digest.linked[digest.owner].all()


def test_without_classes_a_digest_is_smaller() -> None:
    alone = hg.load(DATASETS[0], ranks=[1])
    assert len(hg.digest(alone, {}).to_bytes()) < len(hg.digest(alone).to_bytes())


def test_a_class_that_a_rank_has_nothing_of_is_a_class_all_the_same() -> None:
    digest = hg.digest(load([op("aten::mm", 0, 9)]))
    assert digest.classes.names == tuple(DIGEST_CLASSES)
    assert hg.joined_job([digest]).what_if({"host": 0.0}).makespan_ns() == 0


def test_a_class_of_an_unknown_kind_or_criterion_is_refused() -> None:
    graph = load([op("aten::mm", 0, 9)])
    assert hg.digest(graph, {"mine": {"name": "nccl*"}}).classes.parts == ()
    for criteria in ({"knid": "host"}, {"kind": "hots"}):
        with pytest.raises(SelectionError, match="choose from"):
            hg.digest(graph, {"mine": criteria})


def test_a_rank_with_nothing_but_a_step_has_a_digest() -> None:
    digest = hg.digest(load([step(3, 5, 40), op("aten::add", 10, 9), launch(12, 2, 1)]))
    job = hg.joined_job([digest])
    assert job.step_times()[["rank", "step", "duration_us"]].values.tolist() == [[0, 3, 40.0]]
    assert job.makespan_ns() == 40_000
