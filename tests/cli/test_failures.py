"""Errors for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from htagraph.cli.failures import error_envelope, wants_json


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["x", "--format", "json"], True), (["x", "-f", "json"], True), (["x", "--format=json"], True),
        (["x", "-fjson"], True), (["x", "-f", "csv"], False), (["x", "--", "-f", "json"], False), ([], False),
    ],
)  # fmt: skip
def test_json_is_asked_for_by_the_option(words: list[str], expected: bool) -> None:  # noqa: FBT001 - a parameter
    assert wants_json(words) is expected


def test_a_file_is_one_that_was_named_or_is_there(tmp_path: Path) -> None:
    named = error_envelope("a.json: is damaged; record it again", ["summary", "a.json"], 1)
    assert named["command"] == "summary"
    assert named["error"] == {
        "message": "a.json: is damaged; record it again", "file": "a.json", "hint": "record it again", "exit_code": 1,
    }  # fmt: skip
    assert error_envelope("rank 9: is absent", ["summary", "job"], 1)["error"]["file"] is None
    assert error_envelope("x" * 9000 + ": y", [], 1)["error"]["file"] is None
    assert error_envelope(f"{tmp_path}: is empty", [], 1)["error"]["file"] == str(tmp_path)


def test_bad_input_is_an_envelope_on_stdout_and_one_line_on_stderr(run: Any, tmp_path: Path) -> None:
    ran = run("summary", tmp_path / "none.json", "--format", "json")
    error = json.loads(ran.out)["error"]
    assert (ran.code, error["exit_code"], error["file"]) == (1, 1, str(tmp_path / "none.json"))
    assert ran.err.count("\n") == 1
    assert run("summary", tmp_path / "none.json").out == ""


def test_wrong_usage_is_an_envelope_too(run: Any) -> None:
    ran = run("summary", "x", "--nope", "-f", "json")
    assert (ran.code, json.loads(ran.out)["error"]["exit_code"]) == (2, 2)
    assert "--nope" in json.loads(ran.out)["error"]["message"]
