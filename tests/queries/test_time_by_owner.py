from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from htagraph.queries.attribution import module_of, operator_of
from htagraph.queries.time_by_owner import kind_words, time_by_owner
from tests.strategies import Job, jobs, load, op


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
