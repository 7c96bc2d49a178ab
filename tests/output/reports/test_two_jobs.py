"""Two jobs, name by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import htagraph as hg
from tests.reach import REPOSITORY
from tests.strategies import COMPUTE, kernel, op, write

DEMO = str(REPOSITORY / "data" / "demo")


def test_the_table_is_that_of_the_function(run: Any, tmp_path: Path) -> None:
    before = write([op("a", 0, 10), kernel(COMPUTE, 2, 5)], tmp_path / "before.json")
    after = write([op("a", 0, 14), op("b", 20, 1)], tmp_path / "after.json")
    ran = run("diff", before, after, "--names", "--by", "name", "-f", "json")
    rows = json.loads(ran.out)["results"]["names"]
    table = hg.compare(hg.load(before), hg.load(after))
    assert [(row["name"], row["change_us"], row["change"]) for row in rows] == [
        (row.name, row.change_us, row.change) for row in table[["name", "change_us", "change"]].itertuples(index=False)
    ]
    said = json.loads(ran.out)["results"]["conclusions"]
    assert said[0].startswith(
        "The jobs ran on different devices (devices without a name before, none (host only) after)"
    )
    assert said[1].startswith(
        "3 names occur per rank and step: 1 only in the job after, 1 only in the job before and 1 as often"
    )
    only = run("diff", before, after, "--names", "--device", "device", "-f", "json")
    assert [row["name"] for row in json.loads(only.out)["results"]["names"]] == [COMPUTE]


def test_a_job_is_like_itself(run: Any) -> None:
    out = run("diff", DEMO, DEMO, "--names").out
    assert "Names that differ" not in out
    assert "as often as before" in " ".join(out.split())
