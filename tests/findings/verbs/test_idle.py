"""Whether the main cause of idle time is named."""

from __future__ import annotations

import pandas as pd

from htagraph.findings.verbs.idle import sentences

DEVICES = pd.DataFrame({"rank": [0], "cause": ["host_wait"], "idle_us": [60.0]})


def streams(**idle_us: float) -> pd.DataFrame:
    return pd.DataFrame(
        {"rank": 0, "device": 0, "stream": 7, "cause": list(idle_us), "idle_us": list(idle_us.values())}
    )


def test_the_cause_with_most_time_is_named_with_its_share() -> None:
    first, second = sentences(streams(host_wait=75.0, other=25.0), DEVICES, ["x"], lambda: 0.3)
    assert "idle for 100.0 µs between its first and last work; 75 % of it is host_wait" in first
    assert second.startswith("With an infinitely fast host the job would be 30 % shorter.")
    assert second.endswith(": htagraph what-if x --infinite-host")
    assert sentences(streams(host_wait=1.0, other=25.0), DEVICES, ["x"], lambda: 0.3)[1].endswith("critical-path x")


def test_ranks_that_wait_for_each_other_need_two_of_them() -> None:
    two = pd.concat([streams(other=25.0), streams(other=25.0).assign(rank=1)], ignore_index=True)
    assert sentences(two, DEVICES, ["x"], lambda: 0.3)[1].endswith(": htagraph collectives x")


def test_streams_in_turn_leave_the_device_idle_for_less() -> None:
    """Three streams of one kernel each are not idle between their first and last work; the device is."""
    several = pd.concat([streams(host_wait=20.0), streams(host_wait=0.05).assign(stream=8)], ignore_index=True)
    (first, second) = sentences(several, DEVICES, ["x"], lambda: 0.998)
    assert first.startswith("2 streams are idle for 20.1 µs (summed over streams)")
    assert first.endswith("No stream of a rank runs anything for 60.0 µs between its first and last work.")
    assert "the job would be over 99 % shorter" in second


def test_a_faster_host_is_advised_only_where_it_gains() -> None:
    advice = sentences(streams(host_wait=75.0), DEVICES, ["x"], lambda: 0.001)[1]
    assert "--infinite-host" not in advice
    assert advice.endswith(": htagraph critical-path x")


def test_no_idle_time_is_said_so() -> None:
    assert sentences(streams(other=0.0), DEVICES, [], lambda: 0.3) == [
        "No stream is idle between its first and its last kernel or copy."
    ]
