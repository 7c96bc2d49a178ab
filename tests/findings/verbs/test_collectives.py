"""Whether the largest share of the time in collectives decides what to run next."""

from __future__ import annotations

import pandas as pd

from htagraph.findings.verbs.collectives import sentences

LATE = pd.DataFrame({"last_rank": [3], "collectives": [1], "waited_us": [70.0]})


def parts(wait: float, transfer: float, *, matched: bool = True) -> pd.DataFrame:
    row = {"duration_us": [100.0], "wait_us": [wait], "transfer_us": [transfer], "excess_us": [100 - wait - transfer]}
    row |= {"beside_us": [0.0], "wait_or_transfer_us": [0.0], "collective": [0], "absent": [0]}
    row |= {"rank": [0], "bytes": [1e6]}
    return pd.DataFrame(row | {"matched": [matched]})


def test_waiting_names_the_last_rank_and_transfers_name_the_network() -> None:
    assert sentences(parts(70, 30), LATE, ["x"])[1].endswith("To see why: htagraph stragglers x")
    assert sentences(parts(10, 80), LATE, ["x"])[1].endswith("htagraph what-if x --network 0.5")
    assert len(sentences(parts(20, 40), LATE, ["x"])) == 1


def test_unmatched_parts_and_jobs_without_collectives_are_named() -> None:
    assert "could not be matched" in sentences(parts(0, 0, matched=False), LATE, [])[-1]
    assert "do not communicate" in sentences(parts(0, 0).iloc[:0], LATE, [])[0]


def test_what_may_be_waiting_for_ranks_without_a_recording_does_not_blame_the_network() -> None:
    table = parts(10, 0).assign(absent=[2], excess_us=[0.0], wait_or_transfer_us=[90.0])
    text = sentences(table, LATE, ["x"])
    assert "10 % waiting for the last rank to arrive, and 90 % waiting or transferring" in text[0]
    assert "members were not recorded (up to 2 ranks)" in text[-1]
    assert not any("--network" in sentence for sentence in text)


def test_time_beside_other_work_is_no_time_in_collectives() -> None:
    text = sentences(parts(30, 20).assign(duration_us=[500.0], beside_us=[400.0]), LATE, ["x"])
    assert text[0].startswith("Rank 0 spends 100.0 µs in collectives: 30 % waiting")
    assert "lasted 400.0 µs more" in text[-1]


def test_waiting_that_is_not_known_is_no_share() -> None:
    alone = parts(0, 0, matched=False).assign(excess_us=0.0, wait_or_transfer_us=100.0)
    assert sentences(alone, LATE, [])[0] == (
        "Rank 0 spends 100.0 µs in collectives: 100 % waiting or transferring, which cannot be told apart."
    )


def test_the_fastest_transfer_is_no_measure_without_sizes_or_where_it_took_no_time() -> None:
    two = pd.concat([parts(0.1, 50), parts(0, 50).assign(rank=1)])
    assert sentences(two, LATE, [])[0].endswith("and 50 % beyond the fastest transfer of the same kind.")
    assert sentences(two, LATE, [])[0].startswith("All ranks together spend 200.0 µs in collectives: under 1 % waiting")
    assert "Sizes were not recorded" in sentences(parts(0, 50).assign(bytes=float("nan")), LATE, [])[0]
    assert "how much of the rest a transfer needs is not known" in sentences(parts(60, 0.5), LATE, [])[0]
