from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import htagraph as hg
from htagraph import RankError, SelectionError
from htagraph.core.errors import Issue
from htagraph.core.kinds import COMMUNICATION
from htagraph.graph.tolerances import LIMITS
from htagraph.queries.rank_digests.joined import _of_files, joined_graph, missing_ranks, skeleton_of
from htagraph.queries.time_classes import END, LAST
from tests.digests import digests_of, digests_of_events, moved
from tests.host_jobs import host_job, transfer
from tests.reach import DATASETS, SHARED, graph_of, label
from tests.strategies import Job, jobs, load, op

FOLDERS = [
    *DATASETS, *(SHARED / name for name in ("gloo4_cpu", "torchrec_v100_leading_missing") if (SHARED / name).is_dir())
]  # fmt: skip
"""Jobs of several ranks that were recorded."""


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS, ids=label)
def test_collectives_clocks_waits_and_steps_are_those_of_the_whole_graph(folder: Path) -> None:
    whole, graph = graph_of(folder), joined_graph(digests_of(folder)).graph
    graph.check()
    assert graph.clocks == whole.clocks
    assert graph.matches is not None
    assert whole.matches is not None
    for name in ("op", "group", "key"):
        assert getattr(graph.matches, name) == getattr(whole.matches, name)
    one, other = graph.waits, whole.waits
    for name in ("collective", "rank", "arrival", "beside", "wait", "pure", "excess", "bytes", "size"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert np.array_equal(graph.activities.rank[one.late], whole.activities.rank[other.late])
    assert hg.replay(graph).max_error_ns == 0
    pd.testing.assert_frame_equal(hg.step_times(graph), hg.step_times(whole))


@pytest.mark.slow
@given(jobs(min_size=2))
@settings(max_examples=25)
def test_digests_of_any_job_are_joined_to_the_times_of_its_graph(job: Job) -> None:
    whole, graph = load(job), joined_graph(digests_of_events(job)).graph
    graph.check()
    assert hg.replay(graph).max_error_ns == 0
    assert graph.clocks == whole.clocks
    rows, own = (np.flatnonzero(np.isin(each.activities.kind, COMMUNICATION)) for each in (whole, graph))
    assert np.array_equal(np.sort(whole.time[2 * rows]), np.sort(graph.time[2 * own]))
    assert np.array_equal(np.sort(whole.time[2 * rows + 1]), np.sort(graph.time[2 * own + 1]))


def test_digests_come_in_any_order() -> None:
    one, other = (joined_graph(each).graph for each in (digests_of(DATASETS[0]), digests_of(DATASETS[0])[::-1]))
    assert np.array_equal(one.time, other.time)
    assert np.array_equal(one.edges.lag, other.edges.lag)


def test_two_digests_of_one_rank_are_refused() -> None:
    first = digests_of(DATASETS[0])[0]
    with pytest.raises(RankError, match="rank 0 has two digests"):
        joined_graph([first, first])


def test_no_digests_and_digests_of_different_classes_are_refused() -> None:
    with pytest.raises(SelectionError, match="no digests"):
        joined_graph([])
    with pytest.raises(SelectionError, match="different classes"):
        joined_graph([digests_of(DATASETS[0])[0], digests_of(DATASETS[0], "computation")[1]])


def test_a_single_digest_is_a_job() -> None:
    graph = joined_graph(digests_of(DATASETS[0])[:1]).graph
    assert graph.ranks == (0,)
    assert hg.replay(graph).max_error_ns == 0


def test_sends_and_receives_of_hosts_are_matched_as_in_the_whole_graph() -> None:
    """Rank 0 sends on while it works; rank 1 receives, and waits longer each time."""
    ranks = {
        0: [each for at in range(4) for each in (*transfer("send", 1, 100 * at + 1, 100 * at + 40),
                                                 op("aten::mm", 100 * at + 5, 20))],
        1: [each for at in range(4) for each in transfer("recv", 0, 100 * at + 3 - at, 100 * at + 44)],
    }  # fmt: skip
    whole = host_job(ranks)
    graph = joined_graph([hg.digest(hg.load({rank: trace.path})) for rank, trace in whole.traces.items()]).graph
    assert graph.matches is not None
    assert whole.matches is not None
    assert graph.matches.group == whole.matches.group
    assert graph.matches.count == 4
    one, other = graph.waits, whole.waits
    assert one.beside.any()
    for name in ("arrival", "beside", "wait", "pure", "excess"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    assert hg.replay(graph).max_error_ns == 0


def test_matching_and_clocks_take_work_in_proportion_to_the_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted are the numbers that go through sorting, medians and masks, which all steps of both consist of.

    What hosts are compared by in pairs is bounded by a number, which is made small here.
    """
    monkeypatch.setattr("htagraph.graph.clock_fits.LIMITS", replace(LIMITS, pairs_of_times=500))
    seen = [0]

    def counting(of: Any) -> Any:
        def counted(values: Any, *args: Any, **options: Any) -> Any:
            seen[0] += np.asarray(values).size
            return of(values, *args, **options)

        return counted

    counts = {}
    for ranks in (32, 128):
        digests = moved(digests_of(DATASETS[0], "computation"), ranks)
        seen[0] = 0
        with monkeypatch.context() as patch:
            for name in ("sort", "partition", "unique", "median", "quantile", "isfinite"):
                patch.setattr(np, name, counting(getattr(np, name)))
            graph = joined_graph(digests).graph
        assert graph.matches is not None
        assert (np.bincount(graph.matches.collective) == ranks).all()
        assert graph.ranks == tuple(range(ranks))
        counts[ranks] = seen[0]
    assert counts[128] < 4 * 1.2 * counts[32], counts


def test_guesses_inside_ranks_are_one_issue() -> None:
    of_file = Issue("a.json", "truncated", "cut", 1, 3)
    guesses = [Issue("", "edges_uncertain", "what-ifs are also run without them", count) for count in (2, 5)]
    kept, folded = _of_files([guesses[0], of_file, guesses[1]])
    assert kept == of_file
    assert (folded.what, folded.count) == ("edges_uncertain", 7)
    assert "also run without" not in folded.detail  # which what-ifs of a joined job are not


@pytest.mark.parametrize("folder", DATASETS, ids=label)
def test_the_skeleton_has_every_moment_of_the_graph_as_recorded(folder: Path) -> None:
    digests = digests_of(folder)
    joined = joined_graph(digests)
    skeleton = skeleton_of(joined, digests[0].criteria, digests[0].classes.limits)
    graph = joined.graph
    known = skeleton.vertex >= 0
    assert np.array_equal(np.sort(skeleton.vertex[known]), np.arange(graph.vertex_count))
    assert (skeleton.times()[known] == graph.time[skeleton.vertex[known]]).all()
    assert (skeleton.source < skeleton.target).all()
    end, last = skeleton.times()[skeleton.positions(np.array([END, LAST]))]
    assert end == graph.time[1::2][graph.awake].max()
    assert last == graph.time.max()


def test_transfers_are_time_of_the_class_of_communication() -> None:
    digests = digests_of(DATASETS[0])
    skeleton = skeleton_of(joined_graph(digests), digests[0].criteria, digests[0].classes.limits)
    number = skeleton.classes.names.index("communication")
    columns = [1 + at for at, part in enumerate(skeleton.classes.parts) if number in part]
    assert skeleton.weight[:, columns].sum() > 0


def test_a_whole_job_lacks_no_rank() -> None:
    assert missing_ranks(graph_of(DATASETS[0])) == ()


def test_a_job_without_any_word_about_its_size_lacks_no_rank(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": [op("aten::mm", 0, 5)]}))
    assert missing_ranks(hg.load({4: tmp_path / "a.json"})) == ()


def test_members_of_process_groups_are_ranks(tmp_path: Path) -> None:
    info = {"rank": 1, "pg_config": [{"pg_name": "0", "pg_size": 3, "ranks": [1, 5, 9]}]}
    (tmp_path / "a.json").write_text(json.dumps({"distributedInfo": info, "traceEvents": [op("aten::mm", 0, 5)]}))
    assert missing_ranks(hg.load(tmp_path / "a.json")) == (5, 9)


def test_a_damaged_number_of_ranks_takes_no_memory(tmp_path: Path) -> None:
    info = {"rank": 0, "world_size": 10**15}
    (tmp_path / "a.json").write_text(json.dumps({"distributedInfo": info, "traceEvents": [op("aten::mm", 0, 5)]}))
    assert len(missing_ranks(hg.load(tmp_path / "a.json"))) < 1 << 21
