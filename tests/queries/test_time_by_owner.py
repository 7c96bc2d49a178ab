from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given, settings

from htagraph.queries.attribution import module_of, operator_of
from htagraph.queries.busy_time import self_time
from htagraph.queries.durations import statistics, timed_work
from htagraph.queries.stream_idle import stream_pauses
from htagraph.queries.time_by_owner import kind_words, time_by_owner
from tests.strategies import COMPUTE, Job, jobs, kernel, load, op


@given(jobs())
@settings(deadline=None, max_examples=40)
def test_all_time_has_one_owner_or_none(job: Job) -> None:
    graph = load(job)
    acts = graph.activities
    nobody = np.zeros(len(acts), np.bool_)
    for owner_of in (operator_of, module_of):
        table = time_by_owner(graph, owner_of, nobody, acts.name.astype(np.int64))
        assert round(1000 * table["device_us"].sum()) == acts.duration[acts.on_device].sum()
        assert round(1000 * table["host_self_us"].sum()) == self_time(graph)[~acts.on_device].sum()
        assert table["device_count"].sum() == acts.on_device.sum()
        assert (table["device_total_us"] >= table["device_us"] - 1e-9).all()


def test_the_kind_of_no_owner_has_no_word() -> None:
    assert kind_words(load([op("a", 0, 5)]), np.array([0, -1])).tolist() == ["op", ""]


def test_timed_work_is_the_devices_or_of_ranks_without_one_the_operators() -> None:
    graph = load({0: [op("a", 0, 50), kernel(COMPUTE, 0, 5)], 1: [op("a", 0, 50), op("b", 10, 20)]})
    rows, ns = timed_work(graph)
    assert [graph.names[graph.activities.name[row]] for row in rows] == [COMPUTE, "a", "b"]
    assert ns.tolist() == [5000, 30000, 20000]


def test_statistics_of_one_duration_have_no_spread() -> None:
    table = statistics(pd.DataFrame({"key": ["a", "b", "a"], "ns": [1000, 2000, 3000]}), ["key"])
    assert table.to_numpy().tolist()[1] == ["b", 1, 2, 2, 2, 2, 0]
    assert table["total_us"].tolist() == [4, 2]


def test_pauses_of_streams_come_by_device_and_stream() -> None:
    graph = load([kernel(COMPUTE, 10 * i, 5, stream=stream) for i in range(2) for stream in (20, 7)])
    assert stream_pauses(graph)[["stream", "pause_ns"]].to_numpy().tolist() == [[7, 5000], [20, 5000]]
