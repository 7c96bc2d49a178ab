from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from htagraph.findings.device_idle import idle_times
from htagraph.findings.results import Results
from htagraph.graph.measures.earlier_work import begins_of_devices, ends_of_earlier_work
from tests.graph.construction.test_earlier_work import TINY, queue
from tests.strategies import annotation, load

JOB = [*queue(9000), *TINY, annotation("decode toks=32", 0, 415)]


def test_a_window_begins_with_the_first_work_that_waited() -> None:
    graph = load(JOB)
    (vertex,) = ends_of_earlier_work(graph).values()
    assert graph.time[vertex] - graph.origin_ns == 9_000_000
    work = np.flatnonzero(graph.activities.on_device)
    assert set(begins_of_devices(graph, work).tolist()) == {int(graph.activities.start[vertex >> 1])}


def test_all_that_counts_busy_time_begins_there() -> None:
    graph = load(JOB)
    (time,) = hg.temporal_breakdown(graph).to_dict("records")
    assert time["window_us"] == pytest.approx(40 * 51 - 1)
    assert time["computation_percent"] == pytest.approx(100 * 50 / 51, abs=0.1)
    idle = hg.idle_breakdown(graph, by="rank")["idle_us"].sum()
    assert idle == pytest.approx(time["idle_us"])
    table = idle_times(Results(graph))
    assert table["idle_us"].sum() < 0.05 * table["window_us"].iloc[0]


def test_tokens_per_second_leave_earlier_work_out() -> None:
    (phase,) = hg.phases(load(JOB)).to_dict("records")
    assert phase["wall_us"] == pytest.approx(40 * 51 - 1)
    assert phase["tokens_per_s"] == pytest.approx(32 / 2039e-6, rel=1e-3)
    (without,) = hg.phases(load([*queue(20), annotation("decode toks=32", 0, 415)])).to_dict("records")
    assert without["wall_us"] == pytest.approx(2059), "a queue of its own is the region's time"
