from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from htagraph.graph.storage import cache
from tests.reach import DATA

DEMO = DATA / "demo"


@pytest.fixture(name="place", autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the user's cache, which takes jobs of any size."""
    monkeypatch.delenv("HTAGRAPH_NO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cache, "_WORTH_BYTES", 0)
    return tmp_path / "htagraph"


def graphs(place: Path) -> int:
    return len(list(place.glob("graphs/*.htagraph")))


@pytest.mark.parametrize(
    "command",
    [["summary"], ["critical-path", "--step", "6"], ["kernels", "--ranks", "0"], ["what-if", "--network", "0.5"]],
    ids=lambda command: command[0],
)
def test_the_second_answer_is_the_first_and_that_without_a_cache(command: list[str], place: Path, run: Any) -> None:
    verb, *options = command
    without = run(verb, DEMO, *options, "-f", "json", "--no-cache")
    assert graphs(place) == 0
    first, second = (run(verb, DEMO, *options, "-f", "json") for _ in range(2))
    assert graphs(place) == 1
    assert first == second == without
    assert (first.code, first.err) == (0, "")


def test_verbs_share_what_they_loaded(place: Path, run: Any) -> None:
    for verb in ("idle", "kernels", "overlap", "collectives"):
        run(verb, DEMO)
    assert graphs(place) == 1


def test_the_environment_turns_it_off(place: Path, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTAGRAPH_NO_CACHE", "1")
    assert run("idle", DEMO).code == 0
    assert not place.exists()
    assert "There is no cache" in run("cache", "info").out
    assert "There is no cache" in run("cache", "clear").out


def test_info_lists_jobs_and_clear_removes_them(place: Path, run: Any) -> None:
    run("idle", DEMO)
    told = json.loads(run("cache", "info", "-f", "json").out)
    assert (told["schema_version"], told["command"], told["inputs"]) == (1, "cache info", [])
    (row,) = told["results"]["cache"]
    assert (row["job"], row["files"]) == (str(DEMO), 4)
    assert told["results"]["total_bytes"] == row["bytes"] > 0
    assert told["results"]["folder"] == str(place)
    gone = json.loads(run("cache", "clear", "-f", "json").out)["results"]
    assert (gone["removed_graphs"], gone["removed_bytes"]) == (1, row["bytes"])
    assert graphs(place) == 0
    assert json.loads(run("cache", "info", "-f", "json").out)["results"]["cache"] == []


@pytest.mark.parametrize("form", ["table", "json", "csv", "md"])
@pytest.mark.parametrize("verb", ["info", "clear"])
def test_every_format_is_written(verb: str, form: str, run: Any, tmp_path: Path) -> None:
    run("idle", DEMO)
    ran = run("cache", verb, "-f", form)
    assert (ran.code, ran.err) == (0, "")
    assert "1 graph" in ran.out
    assert run("cache", verb, "-f", form, "-o", tmp_path / "out").out == ""
    written = [path for path in [tmp_path / "out", *tmp_path.glob("out/*")] if path.is_file()]
    assert any("graph" in path.read_text() for path in written)


def test_help_says_what_there_is(run: Any) -> None:
    assert {"info", "clear"} <= set(run("cache", "--help").out.split())
    assert "--no-cache" in run("idle", "--help").out
