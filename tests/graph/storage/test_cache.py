from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.graph.storage import cache, saved
from htagraph.graph.storage.cache import (
    FileState,
    cache_folder,
    cached_graphs,
    clear,
    file_states,
    is_unchanged,
    limit_bytes,
    make_room,
)
from htagraph.graph.storage.saved import read_graph
from tests.graph.storage.same import difference
from tests.reach import DATA
from tests.strategies import op, write


@pytest.fixture(name="place")
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a cache that takes jobs of any size."""
    monkeypatch.delenv("HTAGRAPH_NO_CACHE")
    monkeypatch.setattr(cache, "_WORTH_BYTES", 0)
    return tmp_path / "cache"


@pytest.fixture(name="made")
def _made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by a word whenever a graph is loaded and not opened."""
    words: list[str] = []
    real: Any = hg.load.__globals__["build"]

    def noted(*args: Any) -> DependencyGraph:
        words.append("made")
        return real(*args)

    monkeypatch.setitem(hg.load.__globals__, "build", noted)
    return words


@pytest.fixture(name="job")
def _job(tmp_path: Path) -> Path:
    """Return a folder with the traces of two ranks."""
    (tmp_path / "job").mkdir()
    for rank in range(2):
        shutil.copy2(DATA / "demo" / f"rank-{rank}.json.gz", tmp_path / "job")
    return tmp_path / "job"


def stored(place: Path) -> list[Path]:
    return sorted((place / "graphs").glob("*")) if place.exists() else []


def test_of_ranks_that_nobody_asks_for_only_the_header_is_read(
    job: Path, place: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    digested: set[str] = set()
    monkeypatch.setattr(cache, "bytes_digest", lambda path: digested.add(path.name) or path.name)  # type: ignore[func-returns-value]
    for path in job.iterdir():
        os.utime(path, ns=(0, 0))
    first, again = (hg.load(job, ranks=[1], cache=place) for _ in range(2))
    assert digested == {"rank-1.json.gz"}
    assert made == ["made"]
    assert difference(first, again) == ""
    shutil.copy(DATA / "demo" / "rank-2.json.gz", job)
    assert hg.load(job, ranks=[1], cache=place).ranks == (1,)
    assert made == ["made", "made"]  # with the others, the job may be another


def test_the_second_time_an_equal_graph_is_opened(job: Path, place: Path, made: list[str]) -> None:
    first, second = (hg.load(job, cache=place) for _ in range(2))
    assert made == ["made"]
    assert difference(first, second) == ""
    assert difference(hg.load(job), second) == ""
    assert second.event(3) == first.event(3)


def test_what_is_kept_is_for_its_user_only(job: Path, place: Path) -> None:
    hg.load(job, cache=place)
    assert {path.stat().st_mode & 0o077 for path in place.rglob("*")} == {0}


def test_nothing_is_kept_unless_asked_for(job: Path, place: Path, made: list[str]) -> None:
    for _ in range(2):
        hg.load(job)
    assert made == ["made", "made"]
    assert not place.exists()


@pytest.mark.parametrize(
    "options", [{"ranks": [0]}, {"ranks": [1]}, {"steps": [6]}, {"ranks": [0], "steps": [6]}], ids=str
)
def test_other_ranks_and_steps_are_other_graphs(options: Any, job: Path, place: Path, made: list[str]) -> None:
    hg.load(job, cache=place)
    graph = hg.load(job, cache=place, **options)
    assert difference(hg.load(job, **options), graph) == ""
    assert difference(graph, hg.load(job, cache=place, **options)) == ""
    assert len(made) == 3


def test_files_under_ranks_of_the_caller_are_another_graph(job: Path, place: Path) -> None:
    one, other = job / "rank-0.json.gz", job / "rank-1.json.gz"
    graphs = [hg.load(each, cache=place) for each in ({0: one, 1: other}, {1: one, 0: other}) * 2]
    assert graphs[0].traces[0].path == graphs[2].traces[0].path == one
    assert graphs[1].traces[0].path == graphs[3].traces[0].path == other


def test_a_touched_file_is_the_same_and_its_events_can_be_read(job: Path, place: Path, made: list[str]) -> None:
    hg.load(job, cache=place)
    os.utime(job / "rank-0.json.gz", ns=(10**18, 10**18))
    graph = hg.load(job, cache=place)
    assert made == ["made"]
    assert graph.traces[0].fingerprint == ((job / "rank-0.json.gz").stat().st_size, 10**18)
    assert difference(hg.load(job), graph) == ""
    graph.event(3)


def test_a_changed_file_is_loaded_even_if_its_size_and_time_stayed(
    tmp_path: Path, place: Path, made: list[str]
) -> None:
    path = write([op("one", 1, 1)], tmp_path / "rank-0.json")
    hg.load(path, cache=place)
    stat, text = path.stat(), path.read_text()
    path.write_text(text.replace('"one"', '"two"'))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert "two" in hg.load(path, cache=place).names
    assert len(made) == 2


def test_a_file_that_changes_while_it_is_read_is_not_kept(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write([op("one", 1, 1)], tmp_path / "rank-0.json")
    real: Any = hg.load.__globals__["build"]

    def meanwhile(*args: Any) -> DependencyGraph:
        write([op("another", 1, 1)], path)
        return real(*args)

    monkeypatch.setitem(hg.load.__globals__, "build", meanwhile)
    hg.load(path, cache=place)
    assert stored(place) == []


def test_a_file_that_is_added_or_gone_makes_another_graph(job: Path, place: Path) -> None:
    hg.load(job, cache=place)
    shutil.copy2(DATA / "demo" / "rank-2.json.gz", job)
    assert hg.load(job, cache=place).ranks == (0, 1, 2)
    (job / "rank-0.json.gz").unlink()
    assert hg.load(job, cache=place).ranks == (1, 2)


def test_another_program_or_schema_makes_its_own(
    job: Path, place: Path, made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hg.load(job, cache=place)
    monkeypatch.setattr(cache, "_program", lambda: ["changed"])
    hg.load(job, cache=place)
    monkeypatch.setitem(saved.SCHEMA, "Events", [*saved.SCHEMA["Events"]][::-1])
    hg.load(job, cache=place)
    assert len(made) == 3


def test_a_changed_source_is_another_program() -> None:
    release, sources = cache._program()
    assert release
    assert [each for each in sources if each[0] == "graph/rules/thread.py"]
    assert [each for each in sources if each[0] == "trace/kineto/decode.py"]


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other"])
def test_a_damaged_graph_is_made_anew(damage: str, job: Path, place: Path, made: list[str]) -> None:
    graph = hg.load(job, cache=place)
    (path,) = stored(place)
    data = path.read_bytes()
    middle = len(data) // 2
    damaged = {
        "cut": data[:-5], "flip": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :], "empty": b"",
        "other": b"{}" * 100,
    }  # fmt: skip
    path.write_bytes(damaged[damage])
    assert difference(graph, hg.load(job, cache=place)) == ""
    hg.load(job, cache=place)
    assert len(made) == 2
    assert path.read_bytes() == data


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"files": {"a": [1]}}', b'{"files": 3}', b"\xff"])
def test_a_damaged_state_of_files_is_noted_anew(content: bytes, job: Path, place: Path, made: list[str]) -> None:
    hg.load(job, cache=place)
    (record,) = (place / "jobs").iterdir()
    record.write_bytes(content)
    hg.load(job, cache=place)
    assert made == ["made"]
    assert json.loads(record.read_bytes())["files"]


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(job: Path, place: Path, made: list[str]) -> None:
    place.write_text("a file")
    for _ in range(2):
        assert hg.load(job, cache=place).ranks == (0, 1)
    assert len(made) == 2


def test_a_graph_beyond_the_limit_is_not_kept(job: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTAGRAPH_CACHE_GB", "1e-6")
    hg.load(job, cache=place)
    assert stored(place) == []


def test_the_graph_that_was_opened_last_stays_longest(
    tmp_path: Path, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [write([op(name, 1, 1)], tmp_path / f"{name}.json") for name in ("a", "b", "c")]
    for age, path in zip((3000, 2000), paths, strict=False):
        before = set(stored(place))
        hg.load(path, cache=place)
        (new,) = set(stored(place)) - before
        os.utime(new, (new.stat().st_mtime - age,) * 2)
    oldest, other = sorted(stored(place), key=lambda path: path.stat().st_mtime)
    hg.load(paths[0], cache=place)  # now it is the other that was not used for longest
    monkeypatch.setattr(cache, "limit_bytes", lambda: int(2.5 * oldest.stat().st_size))
    hg.load(paths[2], cache=place)
    assert oldest in stored(place)
    assert other not in stored(place)


def test_small_jobs_are_loaded_because_that_is_quick(job: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_WORTH_BYTES", 1 << 40)
    hg.load(job, cache=place)
    assert not place.exists()


def test_what_is_not_keyed_is_not_kept(job: Path, place: Path) -> None:
    hg.load(job, cache=place, naming=hg.DEFAULT_NAMING.extend(communication="mine"))
    hg.load(job, cache=place, on_error="skip")
    assert not place.exists()


def test_errors_are_those_of_loading(tmp_path: Path, place: Path) -> None:
    (tmp_path / "bad.json").write_text("oops")
    for path in ("absent.json", "bad.json"):
        with pytest.raises(hg.TraceError, match=path):
            hg.load(tmp_path / path, cache=place)
    with pytest.raises(hg.RankError, match="rank 7"):
        hg.load(DATA / "demo", ranks=[7], cache=place)
    assert stored(place) == []


def test_the_environment_turns_it_off(job: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTAGRAPH_NO_CACHE", "1")
    hg.load(job, cache=place)
    assert not place.exists()


def test_without_a_folder_it_is_the_users_own(job: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(place))
    hg.load(job, cache=True)
    assert len(stored(place / "htagraph")) == 1


def _load(job: Path, place: Path) -> None:
    assert hg.load(job, cache=place).ranks == (0, 1)


def test_processes_may_fill_it_at_once(job: Path, place: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_load, args=(job, place)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    (path,) = stored(place)
    assert difference(hg.load(job), read_graph(path)) == ""


def test_one_byte_of_a_gzipped_file_makes_another_graph(tmp_path: Path, place: Path, made: list[str]) -> None:
    path = tmp_path / "rank-0.json.gz"
    text = write([op("one", 1, 1)], tmp_path / "text").read_bytes()
    path.write_bytes(gzip.compress(text))
    hg.load(path, cache=place)
    path.write_bytes(gzip.compress(text.replace(b'"one"', b'"two"')))
    assert "two" in hg.load(path, cache=place).names
    assert len(made) == 2


HOUR_NS = 3600 * 10**9


def settled(path: Path, known: dict[str, FileState] | None = None) -> FileState:
    """Return the state of a file as an hour after it was written."""
    (state,) = file_states([path], known or {})
    return replace(state, found_ns=state.found_ns + HOUR_NS)


@pytest.fixture(name="read")
def _read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by the name of each file that is read."""
    names: list[str] = []
    real = cache.bytes_digest

    def noted(path: Path) -> str:
        names.append(path.name)
        return real(path)

    monkeypatch.setattr(cache, "bytes_digest", noted)
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
