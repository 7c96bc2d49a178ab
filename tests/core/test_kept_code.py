"""Compiled code is run only for the sources and types that it was compiled from and for, whatever happened to files."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import random
import sys
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import config as numba_config

from htagraph.core.compiled import njit
from htagraph.core.kept_code import KeptCode, source_digest
from tests.patience import PATIENCE_S

config: Any = numba_config
KEY = ("types", "processor")
FORK = multiprocessing.get_context("fork")
INNER = """
from htagraph.core.compiled import njit
LIMIT = {limit}
@njit()
def inner(x):
    return x + {more}
"""
OUTER = """
from htagraph.core.compiled import njit
import sources_inner
from sources_inner import LIMIT, inner
@njit(cache=True)
def outer(x):
    return {times} * inner(x) + LIMIT + sources_inner.LIMIT
"""


@pytest.fixture(name="kept", autouse=True)
def _kept(tmp_path: Path) -> Iterator[Path]:
    before, config.CACHE_DIR = config.CACHE_DIR, str(tmp_path / "kept")
    (tmp_path / "kept").mkdir()
    yield tmp_path / "kept"
    config.CACHE_DIR = before


@pytest.fixture(name="sources", autouse=True)
def _sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder for two modules, one of which has compiled functions from the other; nothing keeps bytecode."""
    folder = tmp_path / "sources"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return folder


def written(folder: Path, *, more: int = 1, limit: int = 0, times: int = 1) -> int:
    """Write both modules, always of one size and time, and return what `outer(5)` is."""
    texts = {"sources_inner": INNER.format(more=f"{more:4}", limit=f"{limit:4}")}
    texts["sources_outer"] = OUTER.format(times=f"{times:4}")
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
        os.utime(folder / f"{name}.py", (1, 1))
    return times * (5 + more) + 2 * limit


def imported() -> Any:
    """Return `outer` as a new process has it."""
    for name in ("sources_outer", "sources_inner"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return importlib.import_module("sources_outer").outer


def in_process(answer: Path, stop_at: int = 0) -> int:
    """Return the exit code of a new process, which is killed before its n-th change of kept files."""

    def run() -> None:
        changes = 0

        def stop(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal changes
            is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
            if (event in {"os.rename", "os.remove"} or is_write) and ".py3" in str(arguments[0]):
                changes += 1
                if changes == stop_at:
                    os._exit(9)

        if stop_at:
            sys.addaudithook(stop)
        answer.write_text(str(imported()(5)))

    answer.unlink(missing_ok=True)
    process = FORK.Process(target=run)
    process.start()
    process.join()
    return process.exitcode or 0


@pytest.mark.slow
def test_a_process_killed_at_any_write_leaves_no_code_that_a_later_one_runs_for_other_sources(
    sources: Path, tmp_path: Path, kept: Path
) -> None:
    answer = tmp_path / "answer"
    killed = 0
    for stop_at in range(1, 12):
        expected = written(sources, more=2 * stop_at)
        assert in_process(answer) == 0
        assert int(answer.read_text()) == expected
        written(sources, more=2 * stop_at + 1)
        ended = in_process(answer, stop_at)
        assert ended in (0, 9)
        killed += ended == 9
        for more in (2 * stop_at + 1, 2 * stop_at, 2 * stop_at + 1):
            expected = written(sources, more=more)
            assert in_process(answer) == 0
            assert int(answer.read_text()) == expected, f"killed at change {stop_at}"
        if not ended:
            break
    assert killed >= 3  # a file is opened, named, and the one of before removed
    assert sum(path.suffix == ".nbc" for path in kept.rglob("*")) == 1


@pytest.mark.parametrize("change", [{"more": 20}, {"times": 3}, {"limit": 7}])
def test_code_is_compiled_anew_for_any_change_that_reaches_it_even_one_of_the_same_size_and_time(
    change: dict[str, int], sources: Path
) -> None:
    assert imported_after(sources)(5) == 6
    again = imported_after(sources)
    assert again(5) == 6
    assert sum(again.stats.cache_hits.values()) == 1
    expected = written(sources, **change)
    changed = imported()
    assert changed(5) == expected
    assert not changed.stats.cache_hits


def imported_after(sources: Path) -> Any:
    written(sources)
    return imported()


def test_what_was_compiled_before_a_file_changed_is_kept_as_that(sources: Path) -> None:
    """A package that is updated while a process runs it: the process compiles what it has in memory."""
    old = imported_after(sources)
    expected = written(sources, more=9)
    assert old(5) == 6
    assert imported()(5) == expected


def test_code_with_bounds_checks_is_not_code_without(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imported_after(sources)(5)
    monkeypatch.setattr(config, "BOUNDSCHECK", 1)
    checked = imported()
    checked(5)
    assert not checked.stats.cache_hits


def test_fields_of_named_tuples_are_part_of_the_code() -> None:
    def length(fields: list[str]) -> tuple[int, Any]:
        make: Any = namedtuple
        made = make("Pair", fields)
        first: Any = njit(cache=True)(length_of_first)
        return first(made(np.zeros(2), np.zeros(5))), first.stats

    assert length(["first", "second"])[0] == 2
    swapped, stats = length(["second", "first"])
    assert swapped == 5
    assert not stats.cache_hits


def length_of_first(pair: Any) -> int:
    return len(pair.first)


def store(folder: Path, digest: str = "sources") -> KeptCode:
    return KeptCode(str(folder), "function-1.py311", lambda: digest)


def test_what_is_saved_is_loaded_for_the_same_sources_and_key_alone(kept: Path) -> None:
    store(kept).save(KEY, {"code": 1})
    assert store(kept).load(KEY) == {"code": 1}
    assert store(kept).load(("other", "processor")) is None
    assert store(kept, "changed").load(KEY) is None


def test_code_of_older_sources_is_removed_and_that_for_other_types_is_not(kept: Path) -> None:
    (kept / "function-1.py311.nbi").write_bytes(b"an index of numba")
    (kept / "function-1.py311.1.nbc").write_bytes(b"code of numba")
    (kept / "function-10.py311.1.nbc").write_bytes(b"of another function")
    store(kept, "old").save(KEY, 1)
    store(kept, "new").save(KEY, 2)
    store(kept, "new").save(("other types", "processor"), 3)
    assert store(kept, "new").load(KEY) == 2
    assert store(kept, "old").load(KEY) is None
    assert len(list(kept.iterdir())) == 3
    store(kept).flush()
    assert [path.name for path in kept.iterdir()] == ["function-10.py311.1.nbc"]


def test_no_damage_to_a_file_is_read(kept: Path) -> None:
    draw = random.Random(0)
    store(kept).save(KEY, list(range(100)))
    (path,) = kept.iterdir()
    whole = path.read_bytes()
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged[: draw.choice((len(whole), draw.randrange(len(whole))))])
        assert store(kept).load(KEY) is None
    path.write_bytes(whole)
    assert store(kept).load(KEY) == list(range(100))


def test_the_file_of_other_types_under_a_name_is_not_read(kept: Path) -> None:
    store(kept).save(KEY, 1)
    store(kept).save(("other types", "processor"), 2)
    first, second = kept.iterdir()
    first.write_bytes(second.read_bytes())
    read = {store(kept).load(KEY), store(kept).load(("other types", "processor"))}
    assert read in ({None, 1}, {None, 2})


def test_the_digest_of_a_function_is_the_same_in_every_process() -> None:
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=tell, args=(queue,))
    process.start()
    assert queue.get(timeout=PATIENCE_S) == digest_of_the_scan()
    process.join()


def tell(queue: Any) -> None:
    importlib.import_module("htagraph.trace.kineto.scan.scanner")  # other modules first
    queue.put(digest_of_the_scan())


def digest_of_the_scan() -> str:
    scan: Any = importlib.import_module("htagraph.trace.kineto.scan.events").scan_events
    return source_digest(scan.py_func)


def test_a_digest_covers_functions_of_other_folders() -> None:
    fill: Any = importlib.import_module("htagraph.output.export.recorded_events")._fill
    blank: Any = importlib.import_module("htagraph.trace.kineto.scan.grammar").blank
    before = source_digest(fill.py_func)
    function = blank.py_func
    code = function.__code__
    try:
        function.__code__ = code.replace(co_consts=(*code.co_consts, "changed"))
        assert source_digest(fill.py_func) != before
    finally:
        function.__code__ = code
    assert source_digest(fill.py_func) == before
