"""Whether interruptions are told by rank, step, thread, name and time."""

from __future__ import annotations

import pytest

import htagraph as hg
from tests.queries.test_interruptions import MANY, NAMES, PAUSE, USUAL, host_job
from tests.strategies import load


def test_each_row_says_where_and_when_it_was() -> None:
    table = hg.interruptions(load(host_job(MANY)))
    assert len(table) == len(MANY)
    assert set(zip(table["rank"], table["step"], table["name"], strict=True)) == {
        (rank, number, f"aten::op{call % NAMES}") for rank, number, call in MANY
    }
    first = table.iloc[0]
    # seventeen calls came before it, and its launch took its first 7 µs
    assert first["start_us"] == pytest.approx(17 * (USUAL + PAUSE) + 7)
    assert first["interrupted_us"] == pytest.approx(9_000 + USUAL - 7)
    assert first["usual_us"] == pytest.approx(USUAL - 7)
    assert (table["before"] == "").all()


def test_code_that_no_event_covers_is_told_by_what_came_next() -> None:
    table = hg.interruptions(load(host_job(MANY, late={(1, 0, 50): 6_000})))
    (gap,) = table[table["name"] == ""].to_dict("records")
    assert (gap["rank"], gap["before"]) == (1, f"aten::op{50 % NAMES}")
    assert gap["interrupted_us"] == pytest.approx(6_000 + PAUSE)
