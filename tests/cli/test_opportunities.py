"""``htagraph opportunities``: gains are those of the same what-if."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from htagraph.whatif.options import criteria
from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


def results(run: Any, *arguments: str) -> dict[str, Any]:
    ran = run(*arguments, "--format", "json")
    assert (ran.code, ran.err) == (0, "")
    tables: dict[str, Any] = json.loads(ran.out)["results"]
    return tables


def test_an_opportunity_is_what_the_same_change_gives(run: Any) -> None:
    rows = [row for row in results(run, "opportunities", DEMO, "--top", "4")["opportunities"] if row["target"]]
    for row in rows:
        (prediction,) = results(run, "what-if", DEMO, "--scale", f"{row['target']}:0")["prediction"]
        assert prediction["saved_us"] == pytest.approx(row["gain_us"], abs=0.01)
        assert criteria(row["target"])


def test_nothing_worth_the_work_is_said_so(tmp_path: Path, run: Any) -> None:
    path = tmp_path / "rank-0.json"
    path.write_text('{"traceEvents": []}')
    assert "No single improvement would gain 2 %" in results(run, "opportunities", str(path))["conclusions"][0]
