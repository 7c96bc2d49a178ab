"""Which durations breakdowns count, and their statistics."""

from __future__ import annotations

import itertools
import statistics as oracle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.kinds import ActivityKind
from htagraph.graph.activities import Activities
from htagraph.graph.measures.own_time import timed_work
from htagraph.queries.attribution import module_of, operator_of
from htagraph.queries.breakdowns import kind_words, statistics, time_by_owner
from tests.strategies import COMPUTE, Job, jobs, kernel, load, op


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_all_time_has_one_owner_or_none(job: Job) -> None:
    graph = load(job)
    acts = graph.activities
    nobody = np.zeros(len(acts), np.bool_)
    for owner_of in (operator_of, module_of):
        table = time_by_owner(graph, owner_of, nobody, acts.name.astype(np.int64))
        assert round(1000 * table["device_us"].sum()) == acts.duration[acts.on_device].sum()
        assert round(1000 * table["host_self_us"].sum()) == graph.own_time[~acts.on_device].sum()
        assert table["device_count"].sum() == acts.on_device.sum()
        assert (table["device_total_us"] >= table["device_us"] - 1e-9).all()


def test_the_kind_of_no_owner_has_no_word() -> None:
    assert kind_words(load([op("a", 0, 5)]), np.array([0, -1])).tolist() == ["op", ""]


def test_a_rank_with_device_work_counts_by_it_and_another_by_its_operators() -> None:
    graph = load({0: [op("a", 0, 50), kernel(COMPUTE, 0, 5)], 1: [op("a", 0, 50), op("b", 10, 20)]})
    rows, ns = timed_work(graph)
    assert [graph.names[graph.activities.name[row]] for row in rows] == [COMPUTE, "a", "b"]
    assert ns.tolist() == [5000, 30000, 20000]


@given(jobs(tidy=True) | jobs(tidy=True, device=False))
@settings(max_examples=40)
def test_device_work_counts_in_full_and_operators_of_other_ranks_by_self_time(job: Job) -> None:
    graph = load(job)
    acts = graph.activities
    on_device = {int(rank) for rank in acts.rank[acts.on_device]}
    rows, ns = timed_work(graph)
    took = dict(zip(rows.tolist(), ns.tolist(), strict=True))
    inside = [0] * len(acts)
    for row in range(len(acts)):
        if _is_work(acts, row) and _around(acts, row) >= 0:
            inside[_around(acts, row)] += int(acts.duration[row])
    for row in range(len(acts)):
        if acts.on_device[row]:
            assert took.pop(row) == acts.duration[row]
        elif acts.kind[row] in (ActivityKind.OP, ActivityKind.HOST_COMMUNICATION) and acts.rank[row] not in on_device:
            assert took.pop(row) == acts.duration[row] - inside[row]
    assert not took


def _is_work(acts: Activities, row: int) -> bool:
    return ActivityKind(acts.kind[row]).is_work


def _around(acts: Activities, row: int) -> int:
    """Return the innermost work around an activity; annotations only name a time, which is that of what is around."""
    at = int(acts.parent[row])
    while at >= 0 and not _is_work(acts, at):
        at = int(acts.parent[at])
    return at


_durations = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 1), st.integers(0, 10**9)), max_size=20)


@pytest.mark.slow
@given(_durations)
def test_statistics_are_those_of_each_groups_list(rows: list[tuple[str, int, int]]) -> None:
    table = statistics(pd.DataFrame(rows, columns=["name", "rank", "ns"]), ["name", "rank"])
    assert table.dtypes.astype(str).tolist()[2:] == ["int64", *["float64"] * 5]
    groups = list(dict.fromkeys(row[:2] for row in rows))
    assert list(table[["name", "rank"]].itertuples(index=False, name=None)) == groups  # by first appearance
    for group, got in zip(groups, table.iloc[:, 2:].to_numpy().tolist(), strict=True):
        us = [row[2] / 1000 for row in rows if row[:2] == group]
        spread = oracle.stdev(us) if len(us) > 1 else 0.0
        wanted = [len(us), sum(us), oracle.mean(us), min(us), max(us), spread]
        assert got == pytest.approx(wanted, rel=1e-9, abs=1e-6)


def test_no_durations_have_no_rows() -> None:
    table = statistics(pd.DataFrame({"name": [], "ns": np.zeros(0, np.int64)}), ["name"])
    assert table.columns.tolist() == ["name", "count", "total_us", "mean_us", "min_us", "max_us", "std_us"]
    assert table.empty


def test_owners_are_asked_for_once_however_deep_they_lie() -> None:
    graph, asked = load([op(f"a{each}", each, 200 - 2 * each) for each in range(90)]), itertools.count()
    table = time_by_owner(
        graph, lambda *rows: (next(asked), operator_of(*rows))[1], np.ones(90, np.bool_), graph.activities.name
    )
    assert len(table) == 90
    assert next(asked) <= 3
