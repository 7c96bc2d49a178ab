"""Whether each command about device time names what takes the most, and what to run next."""

from __future__ import annotations

import pandas as pd

import htagraph as hg
from htagraph.findings.verbs.device_time import (
    counters_sentences,
    launches_sentences,
    nothing_repeats,
    other_occurrences,
    pattern_text,
    patterns_sentences,
    phases_sentences,
    roofline_sentences,
    top_entry,
)
from tests.strategies import COMPUTE, kernel, launch, load

TABLE = pd.DataFrame({"name": ["", "gemm"], "total_us": [70.0, 30.0], "share_percent": [70.0, 30.0]})


def test_what_has_a_name_comes_before_what_has_none() -> None:
    (line,) = top_entry(TABLE, "annotation", [])
    assert line.startswith("gemm takes the most device time (not counting work outside all annotations): 30.0 µs")
    assert top_entry(TABLE.iloc[:0], "name", []) == ["No device work was recorded."]
    for kind, half in (
        ("op", "op=gemm"),
        ("computation", "kind=computation,name=*gemm*"),
    ):  # an operator may wait for what it asks for
        only = TABLE.iloc[1:].assign(kind=kind)
        _, command = top_entry(only, "name", [], {half: 9.0}.__getitem__)
        assert command.endswith(f"'{half}:0.5'" if "*" in half else f"{half}:0.5")
        assert "half of that would hardly" in top_entry(only, "name", [], lambda _: 0.0)[0]


def lines(graph: hg.DependencyGraph) -> list[str]:
    stats = hg.launch_stats(graph)
    waits = stats["launch_us"] >= 1000  # for its work
    return launches_sentences(stats, hg.graph_launches(graph), waits)


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
    (said,) = launches_sentences(stats, hg.graph_launches(one), stats["launch_us"] >= 1000, path_percent=16.7)
    assert said.endswith("in 8.0 µs of host time; launching is 17 % of the critical path.")


def test_a_job_without_launches_says_what_to_record() -> None:
    assert "record with CUDA activities" in lines(load([]))[0]


def test_calls_that_wait_for_their_work_are_no_cost_of_launching() -> None:
    blocks = [launch(70, 1000, 2), kernel("k", 75, 900, 2)]
    first, last = lines(load([launch(0, 8, 1), kernel(COMPUTE, 10, 50, 1), *blocks]))
    assert first == "2 calls launched 2 kernels and copies in 8.0 µs of host time, not counting 1 call that waited."
    assert last.startswith("1 call of cudaLaunchKernel returned only when the work was over, which is no cost")
    full = load([launch(0, 8, 1), kernel(COMPUTE, 10, 50, 1), launch(70, 1000, 2), kernel("k", 5000, 9, 2)])
    assert "waited for earlier work of the device, as where a queue is full, which is no cost" in lines(full)[-1]


def queues(full_us: float, mean: float) -> pd.DataFrame:
    return pd.DataFrame({"rank": [0], "stream": [7], "full_us": [full_us], "max": [9], "mean_over_time": [mean]})


def test_a_full_queue_has_its_length_and_time() -> None:
    (full,) = counters_sentences(queues(2000, 5), 1024)
    assert full.startswith("Rank 0, stream 7: the queue held 1,024 kernels and copies or more for 2.00 ms.")
    assert counters_sentences(queues(0, 5), 10) == [
        "The longest queue, rank 0, stream 7, held at most 9 kernels and copies, 5.00 on average. No call was seen to "
        "wait for room in a queue."
    ]
    (blocked,) = counters_sentences(queues(2000, 5), 8, blocked=3)
    assert "The device did not wait for the host then." in blocked
    assert blocked.endswith("3 launch calls waited for earlier work of the device.")


TABLE_PHASES = pd.DataFrame({
    "rank": [0, 0], "phase": ["prefill", "decode"], "count": [1, 9], "tokens": [512, 9], "wall_us": [2000.0, 9000.0],
    "host_us": [300.0, 8800.0], "busy_us": [1900.0, 900.0], "kernels": [10, 90],
})  # fmt: skip


def test_the_phase_with_most_wall_time_and_the_rates_are_named() -> None:
    first, rates = phases_sentences(TABLE_PHASES, ["x"], None)
    assert first == ("decode takes the most wall time: 9.00 ms in 9 regions; its kernels run 10 % of that.")
    assert rates == "Tokens per second of a rank's wall time, as recorded: decode 1,000, prefill 256,000."


def test_a_phase_that_launches_nothing_is_looked_for_on_the_host() -> None:
    said = phases_sentences(TABLE_PHASES.assign(tokens=-1, kernels=0, busy_us=0.0), ["x"], None)
    assert said[1].endswith("htagraph critical-path x")


def test_a_phase_whose_work_waits_in_a_queue_is_not_what_to_shorten() -> None:
    """An optimizer's kernels, enqueued ahead, wait for the backward pass: its wall time is mostly that."""
    table = TABLE_PHASES.assign(tokens=-1, host_us=500.0, busy_us=[1900.0, 400.0])
    assert phases_sentences(table, ["x"], None)[0].startswith("prefill takes the most wall time of its own: 2.00 ms")
    (said,) = phases_sentences(table.assign(busy_us=400.0), ["x"], None)
    assert said.startswith("No phase takes the time: launched work waits")


def test_a_phase_of_a_small_part_of_the_recording_is_no_place_to_look() -> None:
    (said,) = phases_sentences(TABLE_PHASES, ["x"], None, 300_000.0)
    assert said.startswith("No phase takes much of the time: the longest is decode (3 % of the recording). Put ")


def test_a_job_that_launches_nothing_anywhere_has_no_share_of_kernels() -> None:
    said = phases_sentences(TABLE_PHASES.assign(rank=[0, 1], tokens=-1, kernels=0, busy_us=0.0), ["x"], None)
    assert said[0] == "decode takes the most wall time: 9.00 ms on rank 1 alone in 9 regions."
    assert said[1].startswith("To see what the host does meanwhile")


def test_long_patterns_are_cut_and_say_by_how_much() -> None:
    assert pattern_text("|".join(["op", *"abc"])) == "op: a → b → c"
    assert pattern_text("|".join(["op", *("kl" * 10)])).endswith("→ … 8 more")
    assert pattern_text("|".join(["op", *("k" * 20), "l"])) == "op: 20 × k → l"


def test_the_pattern_that_takes_most_time_is_named_with_its_share() -> None:
    rows = {"count": [2, 5, 4], "kernels": [3, 4, 4], "rank": [0, 0, 1], "kernel_us": [10.0, 50.0, 40.0]}
    patterns = pd.DataFrame(rows | {"pattern": ["op|a|b|c", "op|a|b|c|d", "op|a|b|c|d"], "operator": "op"})
    answer, others = patterns_sentences(patterns, "o*", 180.0)
    assert answer == "op launched the same 4 kernels 9 times over 2 ranks: 90.0 µs (50 % of device time)."
    assert others == "Of 'o*', 2 other occurrences launched 1 other sequence."
    assert other_occurrences(0, [], "op") == []
    assert "--min-length 1" in other_occurrences(2, [], "op")[0]
    assert nothing_repeats([], "op", 3, ["a", "b"])[0].endswith(
        "but a and b did: htagraph patterns --operator a --min-length 3"
    )


def table(roof_percent: float) -> pd.DataFrame:
    row = {
        "rank": 0,
        "operator": "aten::mm",
        "shapes": "",
        "count": 1,
        "time_us": 100.0,
        "flop": 1e9,
        "bound": "memory",
    }
    peaks = {"at_most": False, "peak_tflop_s": 1.0, "peak_gb_s": 2.0}
    return pd.DataFrame([row | peaks | {"roof_percent": roof_percent, "share_percent": 90.0}])


def test_time_below_the_roof_is_that_beyond_what_it_reaches() -> None:
    lines = roofline_sentences(table(25.0), [], (True, False))
    assert lines[2].startswith("The roof: at most 1 TFLOP/s (given with --peak-tflops) and 2 GB/s (the vendor's")
    assert lines[0].endswith("it reaches 25 % of what memory allows; at the roof it would take 75.0 µs less.")


def test_unknown_peaks_and_shapes_say_what_to_give() -> None:
    assert "give --peak-tflops and --peak-gbs" in roofline_sentences(table(float("nan")), [], (False, False))[2]
    assert "record_shapes=True" in roofline_sentences(table(1.0).iloc[:0], [], (False, False))[0]


def test_times_of_the_host_are_no_times_of_a_device() -> None:
    """Without device work the times are those of calls, which return before a device has computed."""
    nothing = table(float("nan")).assign(share_percent=float("nan"))
    assert roofline_sentences(nothing, [], (False, False))[0].endswith(
        "in 100.0 µs of host time, as no device work was recorded."
    )
    assert roofline_sentences(nothing.assign(time_us=0.0), [], (False, False))[0].endswith(
        "in a time that was not recorded."
    )
    assert "reaches under 1 % of what memory allows" in roofline_sentences(table(0.2), [], (True, True))[0]
