"""Whether the main cause of idle time is named."""

from __future__ import annotations

import pandas as pd

from htagraph.output.wording.idle import sentences


def streams(**idle_us: float) -> pd.DataFrame:
    return pd.DataFrame(
        {"rank": 0, "device": 0, "stream": 7, "cause": list(idle_us), "idle_us": list(idle_us.values())}
    )


def test_the_cause_with_most_time_is_named_with_its_share() -> None:
    first, second = sentences(streams(host_wait=75.0, other=25.0), ["x"], lambda: 0.3)
    assert "idle for 100.0 µs between its first and last work; 75 % of it is host_wait" in first
    assert second.startswith("With an infinitely fast host the job would be 30 % shorter.")
    assert second.endswith(": htagraph what-if x --infinite-host")
    assert sentences(streams(host_wait=1.0, other=25.0), ["x"], lambda: 0.3)[1].endswith(": htagraph collectives x")


def test_a_faster_host_is_advised_only_where_it_gains() -> None:
    advice = sentences(streams(host_wait=75.0), ["x"], lambda: 0.001)[1]
    assert "--infinite-host" not in advice
    assert advice.endswith(": htagraph critical-path x")


def test_no_idle_time_is_said_so() -> None:
    assert sentences(streams(other=0.0), [], lambda: 0.3) == [
        "No stream is idle between its first and its last kernel or copy."
    ]
