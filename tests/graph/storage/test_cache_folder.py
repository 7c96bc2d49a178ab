from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from htagraph.graph.storage.cache_folder import cache_folder, cached_graphs, clear, limit_bytes, make_room

NOW = time.time()


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """Return a cache with three graphs of 100 bytes, `c` used last, and what processes left behind."""
    for name, age_s in (("a", 300), ("b", 200), ("c", 100)):
        written(tmp_path / "graphs" / f"{name}.htagraph", b"x" * 100, age_s)
    written(
        tmp_path / "jobs" / "1.json", json.dumps({"graph": "b", "job": "/traces", "files": {"x": [], "y": []}}).encode()
    )
    written(tmp_path / "jobs" / "2.json", b"[damaged")
    written(tmp_path / "graphs" / ".old.part", b"", 7200)
    written(tmp_path / "graphs" / ".new.part", b"", 60)
    written(tmp_path / "notes.txt", b"somebody else's")
    return tmp_path


def written(path: Path, content: bytes, age_s: float = 0) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (NOW - age_s, NOW - age_s))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_the_graph_used_last_comes_first_with_its_job(folder: Path) -> None:
    graphs = cached_graphs(folder)
    assert [graph.path.stem for graph in graphs] == ["c", "b", "a"]
    assert [(graph.job, graph.files) for graph in graphs] == [("", 0), ("/traces", 2), ("", 0)]
    assert {graph.size for graph in graphs} == {100}


@pytest.mark.parametrize(("limit", "left"), [(300, "abc"), (299, "bc"), (100, "c"), (99, "")])
def test_the_graphs_used_longest_ago_leave_first(
    limit: int, left: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTAGRAPH_CACHE_GB", str(limit / 1e9))
    make_room(folder)
    assert sorted(graph.path.stem for graph in cached_graphs(folder)) == list(left)


def test_what_a_process_left_behind_goes_what_another_writes_stays(folder: Path) -> None:
    make_room(folder)
    assert ".old.part" not in names(folder)
    assert ".new.part" in names(folder)


def test_states_of_jobs_that_were_long_not_read_go(folder: Path) -> None:
    written(folder / "jobs" / "3.json", b"{}", 91 * 86_400)
    make_room(folder)
    assert "3.json" not in names(folder)
    assert "1.json" in names(folder)


def test_clearing_removes_what_is_the_caches_own_and_says_how_much(folder: Path) -> None:
    assert clear(folder) == (3, 300)
    assert names(folder) == ["notes.txt"]
    assert clear(folder) == (0, 0)


def test_a_cache_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert cached_graphs(tmp_path / "absent") == []
    assert clear(tmp_path / "absent") == (0, 0)
    make_room(tmp_path / "absent")


@pytest.mark.parametrize(
    ("text", "limit"), [("2", 2e9), ("0", 0), ("-1", 0), ("much", 10e9), ("inf", 10e9), ("nan", 10e9)]
)
def test_the_limit_is_a_number_of_gigabytes(text: str, limit: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTAGRAPH_CACHE_GB", text)
    assert limit_bytes() == limit


def test_the_folder_is_the_given_one_or_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTAGRAPH_NO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder(tmp_path / "mine") == tmp_path / "mine"
    assert cache_folder() == tmp_path / "htagraph"


def test_there_is_no_folder_if_the_environment_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTAGRAPH_NO_CACHE", "1")
    assert cache_folder() is None
    assert cache_folder(tmp_path) is None


def test_there_is_none_for_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTAGRAPH_NO_CACHE")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert cache_folder() is None


def test_the_folder_of_another_user_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTAGRAPH_NO_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "htagraph").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    assert cache_folder() is None
