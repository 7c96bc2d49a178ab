from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import RankDigest, SelectionError
from htagraph.queries.peers import _per_step_counts, rank_roles
from htagraph.queries.rank_digests.digest import DIGEST_CLASSES, WorkSums, work_sums
from htagraph.queries.rank_digests.job_skeleton import with_classes_of_ranks, work_among
from htagraph.queries.rank_speed import ALL_NAMES, OwnSteps, slow_among, speed_of, work_of
from htagraph.queries.weights import ChangeError
from htagraph.simulate import Job as Training
from htagraph.simulate import SlowRank, simulate
from tests.digests import digests_of, digests_of_events, job_of
from tests.reach import DATASETS, graph_of, label
from tests.strategies import Job, jobs

FACTORS = {"computation": 0.5, "host": 2.0, "communication": 0.3}


def classes_of(folder: Path, **more: object) -> dict[str, dict[str, object]]:
    """Return the usual classes of which a job has any time."""
    found: dict[str, dict[str, object]] = {}
    for name, criteria in DIGEST_CLASSES.items():
        try:
            hg.what_if(graph_of(folder)).scale(factor=1, **criteria, **more)
        except SelectionError:
            continue
        found[name] = {**criteria, **more}
    return found


@pytest.mark.parametrize("folder", DATASETS, ids=label)
def test_steps_makespan_and_waits_are_those_of_the_whole_graph(folder: Path) -> None:
    job, whole = job_of(folder), graph_of(folder)
    pd.testing.assert_frame_equal(job.step_times(), hg.step_times(whole))
    assert job.makespan_ns() == hg.what_if(whole).run().baseline_ns
    assert job.ranks == whole.ranks
    waits, others = job.waits(), hg.contract(whole).waits()
    assert waits["wait_us"].tolist() == others["wait_us"].tolist()
    assert waits["late_rank"].tolist() == [
        int(whole.activities.rank[late]) if late >= 0 else -1 for late in others["late"].tolist()
    ]


@pytest.mark.parametrize("folder", DATASETS, ids=label)
@pytest.mark.parametrize("ranks", [None, [1]], ids=["all", "one"])
def test_a_what_if_is_that_of_the_whole_graph(folder: Path, ranks: list[int] | None) -> None:
    classes = classes_of(folder, **({} if ranks is None else {"rank": ranks}))
    factors = {name: FACTORS[name] for name in classes}
    expected = hg.contract(graph_of(folder), classes)
    job = job_of(folder).what_if(factors, ranks)
    error = (job.step_times()["end_us"] - expected.step_times(factors)["end_us"]).abs().max()
    assert error < 0.01  # lags of calls that never waited are medians over all ranks of a job
    assert abs(job.makespan_ns() - expected.makespan_ns(factors)) < 10


def test_factors_multiply_and_can_be_taken_back() -> None:
    job = job_of(DATASETS[0])
    half = job.what_if({"computation": 0.5}).what_if({"host": 0.5}, [2])
    assert half.makespan_ns() < job.what_if({"computation": 0.5}).makespan_ns() <= job.makespan_ns()
    back = half.what_if({"computation": 2.0}).what_if({"host": 2.0}, [2])
    assert (back.time == job.time).all()
    assert job.what_if({"host": 1.0, "computation": 1.0}, [0, 1]).makespan_ns() == job.makespan_ns()


@pytest.mark.slow
@given(jobs(min_size=2), st.sampled_from([0.0, 0.5, 1.0, 3.0]))
@settings(max_examples=20)
def test_a_slower_rank_never_makes_a_job_shorter(job: Job, factor: float) -> None:
    joined = hg.joined_job(digests_of_events(job))
    assert (joined.time == joined.graph.time).all()
    classes = [name for name in joined.classes if joined._has_time(name)]
    if classes:
        changed = joined.what_if(dict.fromkeys(classes, factor), [joined.ranks[0]])
        assert (changed.makespan_ns() - joined.makespan_ns()) * (factor - 1) >= 0


def test_unknown_classes_ranks_and_impossible_factors_are_refused() -> None:
    job = job_of(DATASETS[0])
    with pytest.raises(SelectionError, match="no class 'kernels'"):
        job.what_if({"kernels": 0.5})
    with pytest.raises(SelectionError, match="no rank 9"):
        job.what_if({"host": 0.5}, [9])
    with pytest.raises(ChangeError, match="host=-1"):
        job.what_if({"host": -1})
    with pytest.raises(SelectionError, match="nothing in this job is of class 'memory'"):
        hg.joined_job(digests_of(DATASETS[1], "memory")).what_if({"memory": 0.5})


@pytest.mark.parametrize("folder", DATASETS, ids=label)
def test_the_critical_path_tiles_the_makespan(folder: Path) -> None:
    for job in (job_of(folder), job_of(folder).what_if({"host": 0.5})):
        path = job.critical_path()
        begins, ends = path["start_us"] * 1000, (path["start_us"] + path["duration_us"]) * 1000
        assert np.allclose(begins[1:], ends[:-1], atol=0.5)
        assert round(float(path["duration_us"].sum() * 1000)) == job.makespan_ns()
        assert set(path["class"]) <= {*job.classes, "other"}


def test_the_critical_path_of_the_demo_is_computation_of_the_straggler() -> None:
    path = job_of(DATASETS[0]).critical_path()
    assert path.groupby("rank")["duration_us"].sum().idxmax() == 2
    assert path.groupby("class")["duration_us"].sum().idxmax() == "computation"


@pytest.mark.slow
@pytest.mark.parametrize("folder", DATASETS, ids=label)
def test_slack_is_that_of_the_whole_graph(folder: Path) -> None:
    kinds = ["communication", "host_communication"]
    own, whole = job_of(folder).slack(), hg.slack(graph_of(folder))
    own, whole = (table[table["kind"].isin(kinds)].sort_values(["rank", "start_us"]) for table in (own, whole))
    assert np.abs(own["slack_us"].to_numpy() - whole["slack_us"].to_numpy()).max() < 0.01


def test_a_job_lacks_the_ranks_whose_digests_are_missing() -> None:
    job = hg.joined_job(RankDigest.from_bytes(each.to_bytes()) for each in digests_of(DATASETS[0])[1:])
    assert job.missing == (0,)
    assert job.ranks == (1, 2, 3)
    assert "1 missing" in repr(job)
    assert (job.time == job.graph.time).all()


def test_issues_and_clocks_are_those_of_the_whole_graph() -> None:
    job, whole = job_of(DATASETS[0]), graph_of(DATASETS[0])
    assert job.clocks == whole.clocks
    assert {issue.what for issue in job.issues} == {issue.what for issue in whole.issues}


@pytest.mark.parametrize(
    ("given", "what"), [(3, "int"), (["rank-0.json"], "str"), ([None], "NoneType"), ("data", "str")]
)
def test_what_holds_no_digests_is_no_job(given: object, what: str) -> None:
    with pytest.raises(TypeError, match=rf"joined_job takes digests, .*\({what}\)"):
        hg.joined_job(given)  # type: ignore[arg-type]


def test_time_keeps_its_classes_and_gets_new_ones() -> None:
    skeleton = job_of(DATASETS[0]).skeleton
    half = np.arange(len(skeleton.source)) % 2 == 0
    split, names = with_classes_of_ranks(skeleton, half, ("host", "computation"))
    assert (split.weight.sum(axis=1) == skeleton.weight.sum(axis=1)).all()
    assert (split.times() == skeleton.times()).all()
    assert (split.times({"host": 0.5}) == skeleton.times({"host": 0.5})).all()
    every, _ = with_classes_of_ranks(skeleton, np.ones(len(half), np.bool_), ("host",))
    new = every.classes.names[-1]
    assert (every.times({new: 0.5}) == skeleton.times({"host": 0.5})).all()
    assert set(names) == {"host", "computation"}


def test_no_edges_have_no_time_of_their_own() -> None:
    skeleton = job_of(DATASETS[0]).skeleton
    split, names = with_classes_of_ranks(skeleton, np.zeros(len(skeleton.source), np.bool_), ("host",))
    assert (split.times({names["host"]: 0.0}) == skeleton.times()).all()


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
    simulate(Training(ranks=4, steps=4, slow_ranks=(SlowRank(rank=1, factor=1.2),))).write(tmp_path)
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
