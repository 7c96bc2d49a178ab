"""Whether the largest share of the time in collectives decides what to run next."""

from __future__ import annotations

import pandas as pd

from htagraph.output.wording.collectives import sentences

LATE = pd.DataFrame({"last_rank": [3], "collectives": [1], "waited_us": [70.0]})


def parts(wait: float, transfer: float, *, matched: bool = True) -> pd.DataFrame:
    row = {"duration_us": [100.0], "wait_us": [wait], "transfer_us": [transfer], "excess_us": [100 - wait - transfer]}
    return pd.DataFrame(row | {"matched": [matched]})


def test_waiting_names_the_last_rank_and_transfers_name_the_network() -> None:
    assert sentences(parts(70, 30), LATE, ["x"])[1].endswith("To see why: htagraph stragglers x")
    assert sentences(parts(10, 80), LATE, ["x"])[1].endswith("htagraph what-if x --network 0.5")
    assert len(sentences(parts(20, 40), LATE, ["x"])) == 1


def test_unmatched_parts_and_jobs_without_collectives_are_named() -> None:
    assert "could not be matched" in sentences(parts(0, 0, matched=False), LATE, [])[-1]
    assert "do not communicate" in sentences(parts(0, 0).iloc[:0], LATE, [])[0]


def test_transfers_that_may_be_waiting_for_ranks_without_a_recording_do_not_blame_the_network() -> None:
    table = parts(10, 80).assign(absent=[2], collective=[0])
    text = sentences(table, LATE, ["x"])
    assert "up to 2 ranks of the group were not recorded" in text[-1]
    assert not any("--network" in sentence for sentence in text)
    assert sentences(table.assign(absent=[0]), LATE, ["x"]) == sentences(parts(10, 80), LATE, ["x"])
