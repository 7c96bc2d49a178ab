"""``htagraph schema``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from htagraph.output.schema import json_schema


def test_it_prints_the_schema_of_a_command_or_of_all(run: Any, tmp_path: Path) -> None:
    assert json.loads(run("schema", "idle").out) == json_schema("idle")
    assert run("schema", "-o", tmp_path / "all.json").code == 0
    whole = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    assert whole["title"] == "htagraph --format json"


def test_an_unknown_command_is_wrong_usage_with_the_nearest(run: Any) -> None:
    ran = run("schema", "sumary")
    assert (ran.code, ran.out) == (2, "")
    assert "summary" in ran.err
