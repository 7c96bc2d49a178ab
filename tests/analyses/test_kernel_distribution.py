from __future__ import annotations

import statistics
from collections import defaultdict

import pytest
from hypothesis import given, settings

import htagraph as hg
from tests import oracles
from tests.strategies import COMPUTE, Json, jobs, kernel, load, op


def test_a_slow_rank_stands_out() -> None:
    took = {0: [10, 10], 1: [10, 10], 2: [14, 16]}
    job = {rank: [kernel(COMPUTE, 20 * i, each) for i, each in enumerate(all_)] for rank, all_ in took.items()}
    table = hg.kernel_distribution(load(job))
    assert table["rank"].tolist() == [0, 1, 2]
    assert table["mean_us"].tolist() == [10, 10, 15]
    assert table["relative"].tolist() == [1, 1, 1.5]
    assert table["spread"].tolist() == [1.5] * 3
    assert table["slowest_rank"].tolist() == [2] * 3
    assert table["excess_us"].tolist() == [0, 0, 10]


def test_the_kernels_with_most_time_over_all_ranks_come_first() -> None:
    job = {0: [kernel("a", 0, 5), kernel("b", 10, 8)], 1: [kernel("a", 0, 5)]}
    table = hg.kernel_distribution(load(job))
    assert table[["name", "rank"]].to_numpy().tolist() == [["a", 0], ["a", 1], ["b", 0]]


def test_a_rank_without_device_work_has_its_operators_by_self_time() -> None:
    table = hg.kernel_distribution(load([op("outer", 0, 30), op("inner", 10, 5)]))
    assert table[["kind", "name", "total_us"]].to_numpy().tolist() == [["op", "outer", 25.0], ["op", "inner", 5.0]]


@pytest.mark.slow
@given(jobs())
@settings(max_examples=20)
def test_the_figures_are_those_of_the_durations_in_the_files(job: dict[int, list[Json]]) -> None:
    took: dict[tuple[str, int], list[int]] = defaultdict(list)
    for rank, events in job.items():
        for event in events:
            if event.get("cat") in oracles.DEVICE:
                took[event["name"], rank].append(event["dur"])
    table = hg.kernel_distribution(load(job))
    table = table[table["kind"].isin(["computation", "communication", "memory"])]
    assert len(table) == len(took)
    for row in table.to_dict("records"):
        each = took[row["name"], row["rank"]]
        means = {rank: statistics.mean(us) for (name, rank), us in took.items() if name == row["name"]}
        middle = statistics.median(means.values())
        assert (row["count"], row["total_us"]) == (len(each), pytest.approx(sum(each)))
        assert row["excess_us"] == pytest.approx(sum(each) - len(each) * middle, abs=1e-6)
        assert means[row["slowest_rank"]] == pytest.approx(max(means.values()))
        if min(means.values()):
            assert row["relative"] == pytest.approx(statistics.mean(each) / middle)
            assert row["spread"] == pytest.approx(max(means.values()) / min(means.values()))
