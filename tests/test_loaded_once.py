"""Commands in tests read a job of the repository once, and every other job as often as they ask for it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from htagraph.graph.tolerances import LIMITS
from tests.loaded_once import loading_once
from tests.reach import DATA

JOB = str(DATA / "gloo_ddp")
USUAL = {"time": None, "python": None, "cache": True}


class Loader:
    """A loader that counts what it loads."""

    def __init__(self) -> None:
        self.count = 0
        self.load = loading_once(self._load)

    def _load(self, *_: Any, **__: Any) -> int:
        self.count += 1
        return self.count


@pytest.fixture(name="loader")
def _loader(monkeypatch: pytest.MonkeyPatch) -> Loader:
    monkeypatch.setattr("tests.loaded_once._kept", {})
    return Loader()


def test_the_same_question_is_loaded_once(loader: Loader) -> None:
    assert [loader.load([JOB], None, None, None, **USUAL) for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("differs", [{"time": (0.0, 1.0)}, {"python": True}, {"on_error": "skip"}])
def test_other_options_are_loaded_anew(differs: dict[str, Any], loader: Loader) -> None:
    loader.load([JOB], None, None, None, **USUAL)
    assert loader.load([JOB], None, None, None, **USUAL | differs) == 2


@pytest.mark.parametrize("chosen", [([0], None, None), (None, [1], None)])
def test_other_ranks_and_steps_are_loaded_anew(chosen: tuple[Any, ...], loader: Loader) -> None:
    loader.load([JOB], None, None, None, **USUAL)
    assert loader.load([JOB], *chosen, **USUAL) == 2


def test_paths_given_in_another_way_are_loaded_anew(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    """A graph names its files as they were given."""
    loader.load([JOB], None, None, None, **USUAL)
    monkeypatch.chdir(DATA)
    assert loader.load(["gloo_ddp"], None, None, None, **USUAL) == 2


def test_other_limits_are_loaded_anew(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    loader.load([JOB], None, None, None, **USUAL)
    monkeypatch.setitem(vars(LIMITS), "few", LIMITS.few + 1)
    assert loader.load([JOB], None, None, None, **USUAL) == 2


@pytest.mark.parametrize("differs", [{"engine": 2}, {"captures": [JOB]}])
def test_workers_and_captures_are_never_kept(differs: dict[str, Any], loader: Loader) -> None:
    assert [loader.load([JOB], None, None, None, **USUAL | differs) for _ in range(2)] == [1, 2]


def test_shown_progress_is_never_kept(loader: Loader) -> None:
    assert [loader.load([JOB], None, None, print, **USUAL) for _ in range(2)] == [1, 2]


def test_the_users_cache_is_asked_each_time(loader: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTAGRAPH_NO_CACHE")
    assert [loader.load([JOB], None, None, None, **USUAL) for _ in range(2)] == [1, 2]


def test_files_that_may_change_are_read_each_time(loader: Loader, tmp_path: Path) -> None:
    shutil.copytree(JOB, tmp_path / "job")
    for paths in ([str(tmp_path / "job")], [JOB, str(tmp_path / "job")], ["s3://bucket/job"], ["\0"], ["x" * 5000], []):
        before = loader.count
        assert [loader.load(paths, None, None, None, **USUAL) for _ in range(2)] == [before + 1, before + 2]
