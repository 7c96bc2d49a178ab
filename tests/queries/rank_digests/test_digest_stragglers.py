from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import htagraph as hg
from htagraph.queries.own_steps import OwnSteps
from htagraph.queries.peers import _per_step_counts, rank_roles
from htagraph.queries.rank_digests.digest import WorkSums, work_sums
from htagraph.queries.rank_digests.digest_stragglers import work_among
from htagraph.queries.rank_speed import ALL_NAMES, slow_among, speed_of, work_of
from htagraph.simulate import Job, SlowRank, simulate
from tests.digests import digests_of, job_of
from tests.reach import DATASETS, graph_of, label

SAME = ("waits_us", "late_count", "own_step_us", "step_excess_us", "step_error_us", "slow", "slow_steps")


@pytest.mark.parametrize("folder", DATASETS, ids=label)
def test_the_straggler_and_its_figures_are_those_of_the_whole_graph(folder: Path) -> None:
    own, whole = job_of(folder).stragglers(), hg.stragglers(graph_of(folder))
    assert own.straggler == whole.straggler
    assert own.total_wait_us == whole.total_wait_us
    assert own.steps == whole.steps
    for column in SAME:
        one, other = own.to_frame()[column].to_numpy(), whole.to_frame()[column].to_numpy()
        assert np.array_equal(one, other, equal_nan=one.dtype.kind == "f"), column


def test_a_slow_rank_is_named_with_what_is_slow(tmp_path: Path) -> None:
    simulate(Job(ranks=4, steps=4, slow_ranks=(SlowRank(rank=1, factor=1.2),))).write(tmp_path)
    files = sorted(tmp_path.glob("rank-*.json.gz"))
    found = hg.joined_job([hg.digest(hg.load({rank: file})) for rank, file in enumerate(files)]).stragglers()
    assert found.straggler == 1
    table = found.to_frame().set_index("rank")
    assert table.loc[1, "cause"] == "kernels"
    assert table["share_percent"].to_dict()[1] > 90
    assert repr(found).startswith("RankStragglers(rank 1, ")


def test_charges_add_up_to_the_waiting() -> None:
    for folder in DATASETS:
        found = job_of(folder).stragglers()
        assert found.to_frame()["blamed_us"].sum() <= found.total_wait_us + 1e-6


def test_one_rank_has_no_straggler() -> None:
    found = hg.joined_job([hg.digest(hg.load(DATASETS[0], ranks=[2]))]).stragglers()
    assert found.straggler is None
    assert found.total_wait_us == 0


def sums(*rows: tuple[int, int, int, int, int], program: dict[int, int] | None = None) -> WorkSums:
    names = program or {1: 10}
    table = np.array(rows or np.zeros((0, 5)), np.int64).reshape(-1, 5)
    return WorkSums(np.array(list(names)), np.array(list(names.values())), 1, *table.T)


@pytest.mark.parametrize("device", [True, False])
def test_the_speed_of_stages_is_that_of_single_activities(device: bool) -> None:  # noqa: FBT001 - a case
    graph = graph_of(DATASETS[0])
    steps = np.array(graph.steps)
    sums = [each.sums for each in digests_of(DATASETS[0])]
    own = speed_of(work_among(sums, np.arange(4), device), 4, steps)
    assert np.allclose(own, speed_of(work_of(graph, np.arange(4), device), 4, steps), equal_nan=True)


def test_roles_are_those_of_the_whole_graph() -> None:
    for folder in DATASETS:
        graph, every = graph_of(folder), [each.sums for each in digests_of(folder)]
        own = rank_roles(graph, lambda place, every=every: every[place][:3])  # type: ignore[misc]
        assert own[0].tolist() == rank_roles(graph)[0].tolist()


def test_counts_are_those_in_a_step() -> None:
    one, other = sums(program={5: 4, 7: 2}), sums(program={7: 6, 9: 1})
    assert _per_step_counts([one[:3], other[:3]]).tolist() == [[4, 2, 0], [0, 6, 1]]


def test_calls_beyond_those_of_every_other_rank_are_its_own() -> None:
    busy = sums((1, 8, 3, 4, 400), (1, 9, 3, 1, 70), (1, ALL_NAMES, 3, 5, 470))
    usual = sums((1, 8, 3, 3, 300), (1, ALL_NAMES, 3, 3, 300))
    steps = OwnSteps(np.array([3]), *(np.full((3, 1), np.nan) for _ in range(3)))
    work = partial(work_among, [usual, busy, usual])
    alone = slow_among(steps, (np.zeros(3, np.int64), np.arange(3)), work).alone()
    assert alone.tolist() == [[0], [100 + 70], [0]]


def test_sums_of_the_demo_are_those_of_digests() -> None:
    assert len(work_sums(graph_of(DATASETS[0])).name) > 0
