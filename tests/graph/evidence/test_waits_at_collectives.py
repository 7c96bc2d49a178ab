from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from htagraph import ActivityKind, Provenance
from htagraph.graph.evidence.job import Job
from htagraph.graph.rules.event_wait import event_wait, event_waits
from tests.strategies import kernel, launch
from tests.waiting import MADE, by_hand, hidden, named, simulated, verdict


def without_calls(job: Job) -> Job:
    """Return the job as if the profiler had not recorded calls that record or await events."""
    acts = job.activities
    events = np.isin(acts.kind, [ActivityKind.RECORD, ActivityKind.WAIT])
    kind = np.where(events, ActivityKind.RUNTIME, acts.kind).astype(np.int8)
    return hidden(replace(job, activities=replace(acts, kind=kind)))


def test_collectives_await_what_was_enqueued_before_them_and_what_starts_right_behind_awaits_them() -> None:
    events = [launch(0, 1, 1), launch(5, 1, 2), launch(10, 1, 3), launch(15, 1, 4)]
    events += [kernel("a", 10, 30, 1), kernel("ncclAllReduce", 41, 100, 2, stream=20)]
    events += [kernel("beside", 41, 20, 3), kernel("b", 142, 9, 4)]
    job = by_hand(events)
    edges, counts = event_waits(job)
    assert named(job, edges) == [("a", "ncclAllReduce"), ("ncclAllReduce", "b")]
    assert set(edges.provenance.tolist()) == {Provenance.INFERRED}
    assert edges.confidence.max() < 80
    assert counts["inferred without calls"] == 2


def test_work_that_had_another_reason_to_start_awaits_no_collective() -> None:
    events = [launch(0, 1, 1), launch(5, 1, 2), launch(137, 1, 3)]
    events += [kernel("a", 10, 30, 1), kernel("ncclAllReduce", 41, 100, 2, stream=20), kernel("b", 142, 9, 3)]
    job = by_hand(events)
    assert named(job, event_wait(job)) == [("a", "ncclAllReduce")], "b was only just launched"


@pytest.mark.parametrize("name", MADE)
def test_waits_without_calls_are_true_and_those_that_bind_are_found(name: str) -> None:
    job, truth = simulated(MADE[name])
    found = event_wait(without_calls(job))
    result = verdict(job, found, truth["event_wait"])
    assert result.wrong <= 0.02 * result.truth
    acts = job.activities
    binding = {(u, v) for u, v in truth["event_wait"] if acts.start[v] - acts.end[u] < 2_000}
    assert verdict(job, found, binding).lost <= 0.02 * len(binding)
