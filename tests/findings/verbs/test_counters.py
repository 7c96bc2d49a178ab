"""Whether full and empty queues are told apart."""

from __future__ import annotations

import pandas as pd

from htagraph.findings.verbs.counters import sentences

COPIES = pd.DataFrame(
    {"copy": ["HtoD"], "rank": [1], "copied_gb": [2.0], "busy_us": [1e6], "mean_over_time_gb_s": [2.0]}
)


def queues(full_us: float, mean: float) -> pd.DataFrame:
    row = {"rank": [0], "stream": [7], "full_us": [full_us], "max": [9], "mean_over_time": [mean]}
    return pd.DataFrame(row)


def test_a_full_queue_has_its_length_and_time() -> None:
    first, second = sentences(queues(2000, 5), COPIES, 1024, [])
    assert first.startswith("Rank 0, stream 7: the queue held 1,024 kernels and copies or more for 2.00 ms.")
    assert "2.00 GB in 1.00 s, 2 GB/s" in second


def test_an_empty_queue_suggests_what_it_costs() -> None:
    first, second = sentences(queues(0, 0.5), COPIES.iloc[:0], 1024, ["x"])
    assert first == "No queue held 1,024 kernels and copies: the longest held 9."
    assert second.endswith(": htagraph opportunities x")
