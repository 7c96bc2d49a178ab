"""Collectives in line with the computation, against the same job made with those waits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings

import htagraph as hg
from htagraph.queries.weights import initial
from htagraph.whatif.changes.no_overlap import no_overlap
from htagraph.whatif.rewire import launch_order
from tests.strategies import COMMUNICATE, COMPUTE, kernel, launch, load, op
from tests.whatif.changes.gloo import STEP_US, job
from tests.whatif.changes.made import Piece, in_groups, jobs, made, moments


def _in_line(pieces: list[Piece], group: str | None) -> list[Piece]:
    """Return the pieces where each waits by hand for what no overlap makes it wait for."""
    out = []
    for i, piece in enumerate(pieces):
        mine = [j for j in range(i) if pieces[j].rank == piece.rank]
        if in_groups(piece, group):
            more = [j for j in mine if pieces[j].collective < 0]
        elif piece.collective < 0:
            more = [j for j in mine if in_groups(pieces[j], group)]
        else:
            more = []
        out.append(replace(piece, waits=tuple(sorted({*piece.waits, *more}))))
    return out


@pytest.mark.slow
@pytest.mark.parametrize("group", [None, "odd"])
@given(jobs())
@settings(max_examples=20)
def test_no_overlap_is_the_job_whose_collectives_wait_for_all_computation_before(
    group: str | None, pieces: list[Piece]
) -> None:
    assume(any(in_groups(piece, group) for piece in pieces))
    graph = made(pieces)
    got = moments(no_overlap(initial(graph), group=group))
    assert got == made(_in_line(pieces, group)).time.tolist()
    assert max(got) >= int(graph.time.max())


def test_collectives_that_no_thread_is_known_to_have_asked_for_stay() -> None:
    graph = load({0: [op("gloo:all_reduce", 0, 10), op("aten::mm", 20, 5)]})
    outcome = hg.what_if(graph).no_overlap().run()
    assert outcome.saved_ns == 0
    assert "not known" in outcome.notes[0]


def test_work_from_before_the_recording_comes_before_all_that_was_launched_in_it() -> None:
    events = [
        kernel(COMPUTE, 0, 50),  # enqueued before the recording began, as was the first collective
        kernel(COMMUNICATE, 10, 30, stream=20),
        launch(12, 2, 1), launch(16, 2, 2), launch(20, 2, 3),
        kernel(COMMUNICATE, 45, 30, stream=20, correlation=1),
        kernel(COMPUTE, 60, 10, correlation=2), kernel(COMPUTE, 71, 5, correlation=3),
    ]  # fmt: skip
    graph = load(events)
    order = launch_order(graph, np.flatnonzero(graph.activities.on_device))
    assert (graph.time[2 * order] - graph.origin_ns).tolist() == [0, 10_000, 45_000, 60_000, 71_000]
    time = moments(no_overlap(initial(graph)))
    starts = [time[2 * each] - graph.origin_ns for each in order.tolist()]
    ends = [time[2 * each + 1] - graph.origin_ns for each in order.tolist()]
    assert all(start >= end for start, end in zip(starts[1:], ends, strict=False))


def test_a_thread_waits_for_what_it_asks_of_host_threads() -> None:
    graph = job()
    lengths = hg.what_if(graph).no_overlap().run().step_times()["predicted_start_us"].diff().tolist()[1:3]
    assert lengths == pytest.approx([STEP_US] * 2, abs=1)  # its end was waited for anyway, with nothing in between
