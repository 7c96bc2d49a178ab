"""Whether phases names the phase that takes the time, the region that took longest, and where to look."""

from __future__ import annotations

import pandas as pd

from htagraph.findings.verbs.phases import LongRegion, RecordedPhases, phases_sentences

TABLE_PHASES = pd.DataFrame({
    "rank": [0, 0], "phase": ["prefill", "decode"], "count": [1, 9], "tokens": [512, 9], "wall_us": [2000.0, 9000.0],
    "host_us": [300.0, 8800.0], "busy_us": [1900.0, 900.0], "kernels": [10, 90],
})  # fmt: skip


def test_the_phase_with_most_wall_time_and_the_rates_are_named() -> None:
    first, rates, then = phases_sentences(TABLE_PHASES, ["x"], None)
    assert then.endswith("htagraph idle x")
    assert first == ("decode takes the most wall time: 9.00 ms in 9 regions; its kernels run 10 % of that.")
    assert rates == "Tokens per second of a rank's wall time, as recorded: decode 1,000, prefill 256,000."


def test_a_phase_that_launches_nothing_is_looked_for_on_the_host() -> None:
    said = phases_sentences(TABLE_PHASES.assign(tokens=-1, kernels=0, busy_us=0.0), ["x"], None)
    assert said[1].endswith("htagraph critical-path x")


def test_a_phase_whose_work_waits_in_a_queue_is_not_what_to_shorten() -> None:
    """An optimizer's kernels, enqueued ahead, wait for the backward pass: its wall time is mostly that."""
    table = TABLE_PHASES.assign(tokens=-1, host_us=500.0, busy_us=[1900.0, 400.0])
    assert phases_sentences(table, ["x"], None)[0].startswith("prefill takes the most wall time of its own: 2.00 ms")
    said, then = phases_sentences(table.assign(busy_us=400.0), ["x"], None)
    assert said == (
        "prefill takes the longest on the host: 500.0 µs in 1 region, 500.0 µs each; its kernels run 20 % of its wall "
        "time, and mostly wait behind other work."
    )
    assert then.endswith("htagraph kernels x")


def test_a_phase_of_a_small_part_of_the_recording_is_no_place_to_look() -> None:
    (said,) = phases_sentences(TABLE_PHASES, ["x"], None, RecordedPhases(300_000.0))
    assert said.startswith("No phase takes much of the time: the longest is decode (3 % of the recording). Put ")


def test_a_job_that_launches_nothing_anywhere_has_no_share_of_kernels() -> None:
    said = phases_sentences(TABLE_PHASES.assign(rank=[0, 1], tokens=-1, kernels=0, busy_us=0.0), ["x"], None)
    assert said[0] == "decode takes the most wall time: 9.00 ms on rank 1 alone in 9 regions."
    assert said[1].startswith("To see what the host does meanwhile")


def test_the_region_that_took_longest_is_named_with_its_reason() -> None:
    region = LongRegion(rank=3, step=4, wall_us=253_300.0, usual_us=124_400.0, call="cudaFree", call_us=112_900.0)
    said = phases_sentences(TABLE_PHASES, ["x"], None, long_region=region)
    assert said[1] == "It took longest in step 4 of rank 3: 253.3 ms instead of 124.4 ms, 112.9 ms of it in cudaFree."


def test_no_share_of_kernels_is_told_where_launches_are_missing() -> None:
    said = phases_sentences(TABLE_PHASES, ["x"], None, RecordedPhases(are_launches_known=False))
    assert said[0] == "decode takes the most wall time: 9.00 ms in 9 regions."


def test_a_phase_is_looked_into_where_its_time_goes() -> None:
    table = TABLE_PHASES.assign(tokens=-1)
    assert phases_sentences(table, ["x"], None)[-1].endswith("htagraph idle x")
    busy = table.assign(busy_us=[1900.0, 8000.0])
    assert phases_sentences(busy, ["x"], None)[-1].endswith("htagraph kernels x --by operator")
