"""What HTA's own tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph.hta.utils.test_utils import data_provider, get_test_data_dir


def test_a_test_runs_once_for_each_value() -> None:
    seen: list[tuple[int, int]] = []

    class Some:
        @data_provider(lambda: [{"a": 1, "b": 2}, (3, 4)])
        def check(self, a: int, b: int) -> None:
            seen.append((a, b))

    Some().check()
    assert seen == [(1, 2), (3, 4)]


def test_absent_test_data_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tests" / "data" / "here").mkdir(parents=True)
    monkeypatch.setenv("TEST_DATA_PREFIX_PATH", str(tmp_path))
    assert get_test_data_dir("here") == str(tmp_path / "tests" / "data" / "here")
    with pytest.raises(FileNotFoundError, match="TEST_DATA_PREFIX_PATH"):
        get_test_data_dir("absent")
