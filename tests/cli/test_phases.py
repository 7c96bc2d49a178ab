"""``htagraph phases``."""

from __future__ import annotations

import json
from typing import Any

import htagraph as hg
from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


def test_the_table_is_that_of_the_function(run: Any) -> None:
    ran = run("phases", DEMO, "--annotation", "ProfilerStep*", "-f", "json")
    table = hg.phases(hg.load(DEMO), annotation="ProfilerStep*")
    rows = json.loads(ran.out)["results"]["phases"]
    assert [(row["rank"], row["phase"], row["wall_us"]) for row in rows] == [
        (row.rank, row.phase, row.wall_us) for row in table.itertuples()
    ]
    assert rows[0]["tokens_per_s"] is None


def test_without_any_it_says_what_records_them(run: Any) -> None:
    said = " ".join(run("phases", DEMO, "--annotation", "nothing*").out.split())
    assert "nothing is called 'nothing*'" in said
    assert "record_function" in said
