"""Whether launch calls are counted once and slow ones are named."""

from __future__ import annotations

import htagraph as hg
from htagraph.output.wording.launches import sentences
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
