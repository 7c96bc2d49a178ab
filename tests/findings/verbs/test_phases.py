"""What ``htagraph phases`` says."""

from __future__ import annotations

import pandas as pd

from htagraph.findings.verbs.phases import sentences

TABLE = pd.DataFrame({
    "rank": [0, 0], "phase": ["prefill", "decode"], "count": [1, 9], "tokens": [512, 9], "wall_us": [2000.0, 9000.0],
    "host_us": [300.0, 8800.0], "busy_us": [1900.0, 900.0], "kernels": [10, 90],
})  # fmt: skip


def test_the_phase_with_most_wall_time_and_the_rates_are_named() -> None:
    first, rates = sentences(TABLE, ["x"], None)
    assert first == ("decode takes the most wall time: 9.00 ms in 9 regions; its kernels run 10 % of that.")
    assert rates.startswith(
        "Tokens per second of a rank's wall time: decode 1,000, prefill 256,000. Without a profiler"
    )
    _, alone = sentences(TABLE.assign(kernels=0), ["x"], None)
    assert alone == "Tokens per second of a rank's wall time: decode 1,000, prefill 256,000."


def test_a_phase_that_launches_nothing_is_looked_for_on_the_host() -> None:
    said = sentences(TABLE.assign(tokens=-1, kernels=0, busy_us=0.0), ["x"], None)
    assert said[1].endswith("htagraph critical-path x")


def test_a_phase_whose_work_waits_in_a_queue_is_not_what_to_shorten() -> None:
    """An optimizer's kernels, enqueued ahead, wait for the backward pass: its wall time is mostly that."""
    said = sentences(TABLE.assign(tokens=-1, host_us=500.0, busy_us=400.0), ["x"], None)
    assert said[0].endswith("its kernels run 4 % of that, its host 500.0 µs; else its work waits on the device.")
    assert said[1] == "To see what the device does meanwhile: htagraph critical-path x"


def test_a_job_that_launches_nothing_anywhere_has_no_share_of_kernels() -> None:
    said = sentences(TABLE.assign(rank=[0, 1], tokens=-1, kernels=0, busy_us=0.0), ["x"], None)
    assert said[0] == "decode takes the most wall time: 9.00 ms over 2 ranks in 9 regions."
    assert said[1].startswith("To see what the host does meanwhile")
