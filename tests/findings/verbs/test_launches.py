"""Whether launch calls are counted once and slow ones are named."""

from __future__ import annotations

import htagraph as hg
from htagraph.findings.verbs.launches import sentences
from tests.strategies import COMPUTE, kernel, launch, load


def lines(graph: hg.DependencyGraph) -> list[str]:
    return sentences(hg.launch_stats(graph), hg.graph_launches(graph), ["x"])


def test_calls_longer_than_their_kernels_are_told() -> None:
    short, long = ([launch(0, 8, 1), kernel(COMPUTE, 10, us, 1)] for us in (2, 50))
    assert lines(load(long)) == ["1 call launched 1 kernel or copy in 8.0 µs of host time."]
    assert lines(load(short))[1].startswith("100 % of the calls took longer than what they launched.")


def test_calls_as_long_as_their_kernels_leave_a_share_open_where_times_are_whole() -> None:
    events = [launch(0, 8, 1), kernel(COMPUTE, 10, 2, 1), launch(100, 8, 2), kernel(COMPUTE, 110, 8, 2)]
    assert lines(load(events))[1].startswith("50 % (up to 100 %: times are in whole µs) of the calls took longer")
    finer = [launch(0, 8, 1), kernel(COMPUTE, 10, 2.5, 1), launch(100, 8, 2), kernel(COMPUTE, 110, 8, 2)]
    assert lines(load(finer))[1].startswith("50 % of the calls took longer")


def test_a_job_without_launches_says_what_to_record() -> None:
    assert "record with CUDA activities" in lines(load([]))[0]


def test_a_long_call_whose_work_began_meanwhile_was_held_by_no_full_queue() -> None:
    """A first launch loads code for seconds, and a blocking copy waits for itself: neither is a queue's length."""
    events = [launch(0, 900, 1), kernel(COMPUTE, 880, 50, 1)]
    assert lines(load(events))[1].endswith("It returned after the work had begun, so that no full queue held it.")
    both = [*events, launch(1000, 200, 2), kernel(COMPUTE, 1300, 300, 2)]
    said = next(line for line in lines(load(both)) if "excessively" in line)
    assert "1 of them returned after the work had begun, so that no full queue held it." in said
    assert said.endswith("To see whether a queue was full for the rest: htagraph counters x")
