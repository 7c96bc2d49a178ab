"""Whether launches and counters say what launching costs, and that a queue was full only where one was."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

import htagraph as hg
from htagraph.findings.steady_gain import SteadyGain
from htagraph.findings.verbs.queues import LaunchCosts, counters_sentences, launches_sentences
from htagraph.queries.launch_queues import QueueUse
from tests.strategies import COMPUTE, kernel, launch, load


def lines(graph: hg.DependencyGraph) -> list[str]:
    stats = hg.launch_stats(graph)
    waits = stats["launch_us"] >= 1000  # for its work
    return launches_sentences(stats, hg.graph_launches(graph), waits, [])


def test_calls_are_counted_and_one_that_takes_most_of_their_time_is_told() -> None:
    one = load([launch(0, 8, 1), kernel(COMPUTE, 10, 50, 1)])
    assert lines(one) == ["1 call launched 1 kernel or copy in 8.0 µs of host time."]
    much = load([launch(0, 8, 1), kernel(COMPUTE, 10, 50, 1), launch(70, 900, 2), kernel("k", 990, 9, 2)])
    assert lines(much) == [
        "2 calls launched 2 kernels and copies in 908.0 µs of host time, 900.0 µs of it in one call."
    ]


def test_the_share_of_the_critical_path_says_whether_launching_matters() -> None:
    one = load([launch(0, 8, 1), kernel(COMPUTE, 10, 50, 1)])
    stats = hg.launch_stats(one)
    (said,) = launches_sentences(stats, hg.graph_launches(one), stats["launch_us"] >= 1000, [], costs=LaunchCosts(16.7))
    assert said.endswith("in 8.0 µs of host time; launching is 17 % of the critical path.")


def test_a_job_without_launches_says_what_to_record() -> None:
    assert "record with CUDA activities" in lines(load([]))[0]


def test_calls_that_wait_for_their_work_are_no_cost_of_launching() -> None:
    blocks = [launch(70, 1000, 2), kernel("k", 75, 900, 2)]
    first, last = lines(load([launch(0, 8, 1), kernel(COMPUTE, 10, 50, 1), *blocks]))
    assert first == "2 calls launched 2 kernels and copies in 8.0 µs of host time, not counting 1 call that waited."
    assert last.startswith("1 call of cudaLaunchKernel returned only when the work was over, which is no cost")
    full = load([launch(0, 8, 1), kernel(COMPUTE, 10, 50, 1), launch(70, 1000, 2), kernel("k", 5000, 9, 2)])
    assert "waited for earlier work of the device, which is no cost" in lines(full)[-1]


def test_the_calls_of_the_allocator_are_named_where_they_matter() -> None:
    one = load([launch(0, 8, 1), kernel(COMPUTE, 10, 50, 1)])
    stats = hg.launch_stats(one)
    waits = stats["launch_us"] >= 1000
    calls = pd.Series({"cudaMalloc": 900.0, "cudaFree": 100.0})
    said = launches_sentences(
        stats, hg.graph_launches(one), waits, ["x"], costs=LaunchCosts(5.0, SteadyGain(1.0), calls, 3)
    )
    assert said[1].startswith("Beside launching, 3 calls of cudaMalloc and cudaFree took 1.00 ms.")
    assert said[2].startswith("Shorter launch calls would hardly make the job shorter.")
    worth = launches_sentences(stats, hg.graph_launches(one), waits, ["x"], costs=LaunchCosts(5.0, SteadyGain(12.0)))
    assert "the job would be at most 12 % shorter; CUDA graphs" in worth[-1]
    assert worth[-1].endswith(": htagraph what-if x --no-launch-overhead")


def test_only_a_call_at_a_full_queue_waited_for_room() -> None:
    job = load([launch(0, 8, 1), kernel(COMPUTE, 10, 50, 1), launch(70, 1000, 2), kernel("k", 5000, 9, 2)])
    stats = hg.launch_stats(job)
    waits = stats["launch_us"] >= 1000
    full = LaunchCosts(at_full_queue=stats.loc[waits, "launch"].tolist())
    said = launches_sentences(stats, hg.graph_launches(job), waits, [], costs=full)
    assert "1 call of cudaLaunchKernel waited for room in a full queue" in said[-1]


NEVER = QueueUse(rank=2, stream=7, most=171, full_us=0.0, blocked=0, blocked_us=0.0)


def test_a_queue_is_full_only_where_calls_waited_for_room() -> None:
    first, then = counters_sentences(NEVER, 1024, 0.5, ["x"])
    assert (
        first == "Queues never filled (at most 171 of 1,024 launches, rank 2, stream 7), so no launch waited for room."
    )
    assert then.endswith("To see what bounds the job: htagraph critical-path x")
    long = replace(NEVER, most=1840, full_us=35_900.0)
    assert counters_sentences(long, 1024, 0.5, ["x"])[0] == (
        "The longest queue, rank 2, stream 7, held 1,840 launches, and 1,024 or more for 35.9 ms, but launch calls "
        "stayed short: no limit was reached."
    )
    full = replace(long, blocked=3, blocked_us=900.0)
    assert counters_sentences(full, 1024, 0.5, ["x"])[0].startswith("3 launch calls waited for room in a full queue")


def test_devices_that_wait_for_their_hosts_send_to_idle() -> None:
    assert counters_sentences(NEVER, 1024, 34.2, ["x"])[1] == (
        "Queues ran empty: devices wait 34 % of their time for their hosts: htagraph idle x"
    )
    assert counters_sentences(NEVER, 1024, float("nan"), ["x"])[1] == "To see when devices are idle: htagraph idle x"
    assert "no queues to count" in counters_sentences(replace(NEVER, most=0), 1024, 0.0, [])[0]
