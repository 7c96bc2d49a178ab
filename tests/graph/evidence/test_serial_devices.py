"""Whether a device that executes one thing at a time bounds a job, whatever the number of its streams.

The jobs are made by hand: a host enqueues requests on several streams at once, and the device executes their kernels in
turn. So the job without a part of the work is known.
"""

from __future__ import annotations

import numpy as np
import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core.kinds import EdgeKind
from htagraph.findings.results import Results
from htagraph.output.reports.ranks import plan_report
from htagraph.output.summary import summarize
from tests.strategies import Json, kernel, launch, load, op

KERNELS = (("merge", 7_000), ("remote", 1_500), ("pe_exe", 4_000))
STREAMS = 5
REQUESTS = 15
PAUSE_US = 30
WAKES_US = 7
"""µs from the end of a kernel until another stream's wait for it is over."""


def events_of(merge_us: int, *, is_serial: bool = True) -> list[Json]:
    """Return the events of a job whose device executes requests in turn, or each stream by itself."""
    events: list[Json] = []
    ends = dict.fromkeys(range(STREAMS), 0)
    last, number = 1_000, 1
    for request in range(REQUESTS):
        stream = request % STREAMS
        for name, lasts in KERNELS:
            events.append(op(f"aten::{name}", 9 + 20 * number, 12))
            events.append(launch(10 + 20 * number, 10, number))
            is_first = name == KERNELS[0][0]
            begin = (last if is_serial else max(ends[stream], 1_000)) + PAUSE_US
            since = ends[stream] + 1 if ends[stream] else 900
            if is_first and is_serial and request and last > since:
                events.append(kernel("event_wait", since, last + WAKES_US - since, 0, stream))
            lasts = merge_us if is_first else lasts
            events.append(kernel(name, begin, lasts, number, stream))
            ends[stream] = last = begin + lasts
            number += 1
    return events


def lasts_us(graph: DependencyGraph) -> float:
    """Return how long a job takes, µs."""
    return float(graph.time.max() - graph.time.min()) / 1000


def test_half_the_time_of_its_largest_kernel_is_gained_as_the_job_with_such_kernels_shows() -> None:
    graph = load(events_of(7_000))
    truth = lasts_us(load(events_of(3_500)))
    predicted = hg.what_if(graph).scale(factor=0.5, name="merge").run().makespan_ns / 1000
    assert lasts_us(graph) > 1.3 * truth
    assert predicted == pytest.approx(truth, rel=0.01)


def test_the_device_bounds_the_job_and_the_head_names_its_largest_kernel() -> None:
    graph = load(events_of(7_000))
    results = Results(graph)
    assert results.bound.cause == "computation"
    assert results.bound.causes["computation"] > 95
    head = summarize(graph).head
    assert head.why[0].startswith("Bound by computation: ")
    assert "merge" in head.first
    assert "event_wait" not in "".join(line.text for line in head.lines)
    sentences = plan_report(graph, []).sentences
    assert "With new code (half the time of kernel merge)" in sentences[0]


def test_a_wait_of_a_stream_is_over_when_the_work_ends_that_it_waits_for() -> None:
    graph = load(events_of(7_000))
    name = graph.activities.name
    is_wait = np.array([each == "event_wait" for each in graph.names])[name]
    edges = graph.edges
    is_order = (edges.kind == EdgeKind.EVENT_WAIT) & is_wait[edges.target >> 1] & (edges.target % 2 == 1)
    assert int(is_order.sum()) == int(is_wait.sum())
    assert not is_wait[edges.source[is_order] >> 1].any()


def test_streams_that_run_side_by_side_do_not_wait_for_each_other() -> None:
    wait = kernel("event_wait", 900, 100, 0, 1)
    graph = load([*events_of(7_000, is_serial=False), wait])
    truth = lasts_us(load([*events_of(3_500, is_serial=False), wait]))
    predicted = hg.what_if(graph).scale(factor=0.5, name="merge").run().makespan_ns / 1000
    assert predicted == pytest.approx(truth, rel=0.01)
