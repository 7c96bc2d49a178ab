"""Files are read once each, by threads where that pays, and one that fails ends the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from htagraph.trace import readers as module
from htagraph.trace.discover import RankedFile
from htagraph.trace.readers import Recorder, in_parallel
from tests.patience import PATIENCE_S


@pytest.fixture
def files(tmp_path: Path) -> list[RankedFile]:
    """Return five files of 0 to 400 bytes."""
    made = []
    for rank in range(5):
        path = tmp_path / f"{rank}.json"
        path.write_bytes(bytes(100 * rank))
        made.append(RankedFile(path, rank, "only file", ""))
    return made


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let any job count as large, on a machine of three processors."""
    monkeypatch.setattr(module, "_LARGE_BYTES", 0)
    monkeypatch.setattr(module, "processors", lambda: 3)


def rank_of(file: RankedFile, *, progress: Callable[[int], None] = lambda _: None, compiled: bool = True) -> int:
    size = file.path.stat().st_size
    for at in (0, size // 2, size):
        progress(at)
    assert isinstance(compiled, bool)
    return int(Path(file.path).stem)


def read_in_reverse(count: int) -> Callable[..., int]:
    """Return a reader of files that are done in the opposite order, however many threads have begun."""
    later = [threading.Event() for _ in range(count + 1)]
    later[count].set()

    def read(file: RankedFile, *, progress: Callable[[int], None], compiled: bool) -> int:
        rank = rank_of(file, progress=progress, compiled=compiled)
        assert later[rank + 1].wait(PATIENCE_S)
        later[rank].set()
        return rank

    return read


@pytest.mark.usefixtures("threads")
def test_each_file_comes_with_its_own_result_whichever_is_done_first(files: list[RankedFile]) -> None:
    assert sorted((Path(file.path).stem, rank) for file, rank in in_parallel(files, rank_of)) == [
        (str(rank), rank) for rank in range(5)
    ]
    some = files[:3]
    assert dict(in_parallel(some, read_in_reverse(3))) == {file: rank for rank, file in enumerate(some)}


@pytest.mark.usefixtures("threads")
def test_there_is_a_thread_per_processor_at_most(files: list[RankedFile]) -> None:
    together, names, caller = threading.Barrier(3), set(), threading.get_ident()

    def read(file: RankedFile, **_: object) -> int:
        assert threading.get_ident() != caller
        names.add(threading.current_thread().name)
        if rank_of(file) < 3:  # the first three wait for one another
            together.wait(PATIENCE_S)
        return rank_of(file)

    assert len(dict(in_parallel(files, read))) == 5
    assert len(names) == 3
    assert all(name.startswith("htagraph-read") for name in names)


@pytest.mark.parametrize("processors", [1, 3])
def test_small_jobs_and_single_files_are_read_by_the_caller_in_order(
    files: list[RankedFile], processors: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "processors", lambda: processors)
    seen: list[tuple[int, bool]] = []

    def read(file: RankedFile, *, progress: Callable[[int], None], compiled: bool) -> int:
        seen.append((threading.get_ident(), compiled))
        return rank_of(file, progress=progress, compiled=compiled)

    assert [rank for _, rank in in_parallel(files, read)] == list(range(5))
    monkeypatch.setattr(module, "_LARGE_BYTES", 0)
    assert [rank for _, rank in in_parallel(files[:1], read)] == [0]
    assert seen == 5 * [(threading.get_ident(), False)] + [(threading.get_ident(), True)]


@pytest.mark.parametrize(("suffix", "large"), [(".json", False), (".json.gz", True)])
def test_what_is_compressed_counts_as_what_it_holds(suffix: str, large: bool, tmp_path: Path) -> None:  # noqa: FBT001
    path = tmp_path / f"0{suffix}"
    with path.open("wb") as file:
        file.truncate(2 << 20)  # takes no place on the disk
    seen = []
    list(
        in_parallel([RankedFile(path, 0, "only file", "")], lambda _file, *, progress, compiled: seen.append(compiled))
    )
    assert seen == [large]


@pytest.mark.parametrize("large_bytes", [0, 1 << 30])
@pytest.mark.usefixtures("threads")
def test_progress_never_falls_and_ends_at_one(
    files: list[RankedFile], large_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LARGE_BYTES", large_bytes)
    shares: list[float] = []
    list(in_parallel(files, rank_of, shares.append))
    assert shares == sorted(shares)
    assert len(shares) == 5 * 4  # three pieces each, and the end of each
    assert (shares[0], shares[-1]) == (0, 1)


@pytest.mark.parametrize("leaves", ["raises", "is closed"])
@pytest.mark.usefixtures("threads")
def test_the_other_files_are_given_up_when_one_fails_or_the_caller_leaves(files: list[RankedFile], leaves: str) -> None:
    begun = threading.Barrier(3)
    read: list[int] = []

    def endless(file: RankedFile, *, progress: Callable[[int], None], compiled: bool) -> int:
        rank = rank_of(file, compiled=compiled)
        read.append(rank)
        if rank < 3:
            begun.wait(PATIENCE_S)
        if rank == 0 and leaves == "raises":
            msg = "file 0 is damaged"
            raise ValueError(msg)
        until = time.monotonic() + PATIENCE_S
        while rank and time.monotonic() < until:
            progress(1)
        return rank

    results: Iterator[tuple[RankedFile, int]] = in_parallel(files, endless)
    if leaves == "raises":
        with pytest.raises(ValueError, match="file 0 is damaged"):
            next(results)
    else:
        assert next(results) == (files[0], 0)
        results.close()  # type: ignore[attr-defined] # a generator
    assert not [each for each in threading.enumerate() if each.name.startswith("htagraph-read")]
    assert max(read) <= 3  # at most one file took the place that became free


def test_a_recorder_names_the_settings_of_its_format_and_of_pytorch_only_where_the_job_runs_it() -> None:
    without = Recorder("nsys", has_pytorch=False)
    assert Recorder("nsys").setting("modules") == "PyTorch's profiler and with_stack=True"
    assert without.setting("regions") == "nvtxRangePush and nvtxRangePop"
    assert (without.setting("modules"), without.to_see("modules", "x")) == ("", "")
    assert [each.of_pytorch("a", "b") for each in (Recorder(), without)] == ["a", "b"]
