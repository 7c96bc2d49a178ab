from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from htagraph.graph.storage import digests
from htagraph.graph.storage.digests import FileState, file_states, is_unchanged

HOUR_NS = 3600 * 10**9


def settled(path: Path, known: dict[str, FileState] | None = None) -> FileState:
    """Return the state of a file as an hour after it was written."""
    (state,) = file_states([path], known or {})
    return replace(state, found_ns=state.found_ns + HOUR_NS)


@pytest.fixture(name="read")
def _read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by the name of each file that is read."""
    names: list[str] = []
    real = digests._digest

    def noted(path: Path) -> str:
        names.append(path.name)
        return real(path)

    monkeypatch.setattr(digests, "_digest", noted)
    return names


def test_equal_bytes_have_one_digest(tmp_path: Path) -> None:
    contents = {"a": b"x" * 3_000_000, "b": b"x" * 3_000_000, "c": b"x" * 2_999_999 + b"y", "d": b""}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    a, b, c, d = (state.digest for state in file_states([tmp_path / name for name in contents], {}))
    assert a == b
    assert len({a, c, d}) == 3


def test_a_file_as_it_was_is_not_read_again(tmp_path: Path, read: list[str]) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"content")
    before = settled(path)
    assert file_states([path], {str(path): before}) == [before]
    assert read == ["a"]


@pytest.mark.parametrize("keeps_its_time", [False, True])
def test_a_changed_file_is_read_again_even_if_its_time_was_set_back(
    keeps_its_time: bool,  # noqa: FBT001 - a case
    tmp_path: Path,
) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"content")
    before, stat = settled(path), path.stat()
    path.write_bytes(b"CONTENT")
    if keeps_its_time:
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert not is_unchanged(path, before)
    assert settled(path, {str(path): before}).digest != before.digest


def test_a_touched_file_has_its_digest_still(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"content")
    before = settled(path)
    os.utime(path, ns=(0, 0))
    after = settled(path, {str(path): before})
    assert after.digest == before.digest
    assert after.modified_ns == 0


def test_a_file_that_was_just_written_is_read_again(tmp_path: Path, read: list[str]) -> None:
    """It may change once more within the resolution of its times."""
    path = tmp_path / "a"
    path.write_bytes(b"content")
    (fresh,) = file_states([path], {})
    assert not fresh.is_settled
    file_states([path], {str(path): fresh})
    assert read == ["a", "a"]


def test_a_file_that_is_gone_is_an_error_and_not_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"content")
    state = settled(path)
    path.unlink()
    assert not is_unchanged(path, state)
    with pytest.raises(FileNotFoundError):
        file_states([path], {})
