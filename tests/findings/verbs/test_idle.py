"""Whether idle says what devices waited for, which call or code took the time, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from htagraph.findings.verbs.idle import idle_sentences

ROW: dict[str, object] = {
    "rank": 2,
    "device": 0,
    "waited_for": "host",
    "what": "cudaMalloc",
    "inside": "",
    "before": "",
    "count": 12,
}


def waits(*rows: Mapping[str, object]) -> pd.DataFrame:
    return pd.DataFrame([ROW | {"total_us": 250_000.0, "share_percent": 40.0} | dict(row) for row in rows])


def devices(**share_percent: float) -> pd.DataFrame:
    return pd.DataFrame({"rank": [int(rank[1:]) for rank in share_percent], "share_percent": [*share_percent.values()]})


def said(table: pd.DataFrame, shares: pd.DataFrame) -> list[str]:
    return idle_sentences(table, shares, ["x"], lambda cause: [f"Do {cause}."])


def test_the_answer_names_the_device_the_cause_the_call_and_its_time() -> None:
    table = waits({}, {"what": "aten::mm", "total_us": 50_000.0, "share_percent": 8.0}, {"rank": 0, "total_us": 9.0})
    answer, shares, then = said(table, devices(r2=48.0, r0=1.0))
    assert answer == (
        "Rank 2's device waits 300.0 ms (48 % of the time from its first to last work) for its host, most of it in "
        "cudaMalloc (12 times, 250.0 ms)."
    )
    assert shares == "Devices are idle between their first and last work: rank 2: 48 %, rank 0: 1 %."
    assert then == "Do host."


def test_devices_that_wait_alike_are_summed() -> None:
    answer = said(waits({}, {"rank": 0}), devices(r2=40.0, r0=40.0))[0]
    assert answer == (
        "Devices wait 500.0 ms (40 % of the time from their first to last work, summed over 2 devices) for their "
        "hosts, in cudaMalloc (24 times)."
    )


def test_a_place_is_named_for_no_more_than_the_time_that_was_spent_there() -> None:
    one = said(waits({"inside": "aten::bmm"}), devices(r2=40.0))[0]
    assert one.endswith("for its host, in cudaMalloc inside aten::bmm (12 times).")
    rest = {"inside": "aten::cat", "total_us": 50_000.0}
    two = said(waits({"inside": "aten::bmm"}, rest), devices(r2=40.0))[0]
    assert two.endswith("for its host, most of it in cudaMalloc inside aten::bmm (12 times, 250.0 ms).")
    even = said(waits({"inside": "aten::bmm"}, {"inside": "aten::cat"}), devices(r2=40.0))[0]
    assert even.endswith("for its host, in cudaMalloc (24 times).")


def test_code_without_events_is_named_by_what_comes_next() -> None:
    bare = {"what": "", "before": "aten::mm"}
    assert said(waits(bare), devices(r2=40.0))[0].endswith(
        "for its host, in code that no event covers, before aten::mm (12 times)."
    )
    late = said(waits(bare | {"waited_for": "rank 3"}), devices(r2=40.0))
    assert late[0].endswith("for rank 3, before aten::mm (12 times).")
    assert late[-1].endswith(": htagraph collectives x")


def test_the_causes_are_parts_of_one_whole() -> None:
    table = waits({}, {"waited_for": "device", "what": "", "total_us": 750_000.0, "share_percent": 60.0})
    answer, parts, _ = said(table, devices(r2=100.0))
    assert answer.startswith(
        "The device waits 750.0 ms (60 % of the time from its first to last work) for its next kernel, which was "
    )
    assert parts == "Of all waiting, 75 % for the devices' own delays between kernels and 25 % for their hosts."


def test_devices_that_hardly_wait_have_no_cause() -> None:
    assert said(waits({}), devices(r2=0.4)) == [
        "Devices hardly wait between their first and last work: rank 2: under 1 %."
    ]
    assert said(waits({}).head(0), devices(r2=0.0))[0].startswith("No device is idle")
    assert said(waits({}).head(0), devices())[0].startswith("Nothing ran on a device")


def test_ranks_that_are_idle_most_come_first() -> None:
    shares = devices(r0=4.0, r1=1.0, r2=4.0, r3=95.0)
    assert said(waits({}), shares)[1].endswith("rank 3: 95 %, ranks 0 and 2: 4 %, rank 1: 1 %.")


def test_a_job_without_devices_has_a_command_to_go_on() -> None:
    nothing = waits({}).head(0)
    (one,) = idle_sentences(nothing, devices(), ["x"], lambda _: [], ranks=[0])
    assert one.endswith(": htagraph critical-path x")
    (several,) = idle_sentences(nothing, devices(), ["x"], lambda _: [], ranks=[0, 1])
    assert several.endswith(": htagraph stragglers x")
