"""What ``htagraph phases`` says."""

from __future__ import annotations

import pandas as pd

from htagraph.output.wording.phases import sentences

TABLE = pd.DataFrame({
    "rank": [0, 0], "phase": ["prefill", "decode"], "count": [1, 9], "tokens": [512, 9], "wall_us": [2000.0, 9000.0],
    "busy_us": [1900.0, 900.0], "kernels": [10, 90],
})  # fmt: skip


def test_the_phase_with_most_wall_time_and_the_rates_are_named() -> None:
    first, rates = sentences(TABLE, ["x"], None)
    assert first == (
        "decode takes the most wall time: 9.00 ms over all ranks in 9 regions; its kernels run 10 % of that."
    )
    assert rates.startswith(
        "Tokens per second of a rank's wall time: decode 1,000, prefill 256,000. Without a profiler"
    )
    _, alone = sentences(TABLE.assign(kernels=0), ["x"], None)
    assert alone == "Tokens per second of a rank's wall time: decode 1,000, prefill 256,000."


def test_a_phase_that_launches_nothing_is_looked_for_on_the_host() -> None:
    said = sentences(TABLE.assign(tokens=-1, kernels=0, busy_us=0.0), ["x"], None)
    assert said[1].endswith("htagraph critical-path x")
