"""``htagraph validate``: what is wrong, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.reach import REPOSITORY

DEMO = str(REPOSITORY / "data" / "demo")


def test_what_can_be_read_is_usable(run: Any) -> None:
    ran = run("validate", DEMO)
    assert (ran.code, ran.err) == (0, "")
    assert "Nothing had to be repaired or dropped." in ran.out


def test_an_unusable_file_is_listed_and_sets_the_exit_code(tmp_path: Path, run: Any) -> None:
    (tmp_path / "rank-0.json").write_bytes((Path(DEMO).parent / "demo" / "rank-0.json.gz").read_bytes()[:100])
    (tmp_path / "rank-1.json.gz").write_bytes((Path(DEMO) / "rank-1.json.gz").read_bytes())
    ran = run("validate", tmp_path, "-f", "json")
    assert ran.code == 1
    assert json.loads(ran.out)["usable"] is False


def test_arguments_are_checked_where_asked_for(run: Any) -> None:
    assert "arguments" not in json.loads(run("validate", DEMO, "-f", "json").out)
