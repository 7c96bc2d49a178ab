from __future__ import annotations

import importlib
import logging
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from numba.core import caching, types
from numba.core import config as numba_config

from htagraph.core import compiled, kept_code
from tests.reach import REPOSITORY
from tests.strategies import COMPUTE, kernel, launch, step, write

config: Any = numba_config
Said = Callable[[], list[str]]


@pytest.fixture(name="said")
def _said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Said:
    """Return a function that returns what was logged since, as in a process that has said nothing."""
    compiled.njit()  # which listens from then on
    monkeypatch.setattr(compiled, "_said", {"listening"})
    monkeypatch.setattr(logging.getLogger("htagraph"), "filters", [])
    caplog.set_level(logging.INFO, "htagraph")
    return lambda: [record.getMessage() for record in caplog.records]


@pytest.fixture(name="nowhere")
def _nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let numba find no place of its own, as where neither the package nor a home can be written."""
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [caching.UserProvidedCacheLocator])


@pytest.fixture(name="kept", autouse=True)
def _kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep what the tests compile in a folder of their own."""
    before, config.CACHE_DIR = config.CACHE_DIR, str(tmp_path / "kept")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path / "kept"
    config.CACHE_DIR = before


def made(*, cache: bool = True) -> Any:
    """Return a new function, which is compiled when it is called."""

    @compiled.njit(cache=cache, nogil=True)
    def triple(number: int) -> int:
        return 3 * number

    return triple


def test_a_function_is_kept_where_numba_keeps_it(kept: Path, said: Said) -> None:
    assert made()(2) == 6
    assert sum(path.suffix == ".nbc" for path in kept.rglob("*")) == 1
    again = made()
    assert again(2) == 6
    assert sum(again.stats.cache_hits.values()) == 1
    assert said() == []  # it is not a function of the package


@pytest.mark.usefixtures("nowhere")
def test_without_a_place_it_is_kept_in_a_temporary_folder_of_the_user(tmp_path: Path, said: Said) -> None:
    config.CACHE_DIR = ""
    assert made()(2) == 6
    assert config.CACHE_DIR == ""  # functions of others are kept where they were
    (folder,) = tmp_path.glob("htagraph-*")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.suffix for path in folder.rglob("*.nb?")] == [".nbc"]
    assert sum(made().stats.cache_hits.values()) == 0
    again = made()
    again(2)
    assert sum(again.stats.cache_hits.values()) == 1
    assert len(said()) == 1
    assert str(folder) in said()[0]


@pytest.mark.usefixtures("nowhere")
@pytest.mark.parametrize("odd", ["others write", "a file", "a link", "absent"])
def test_without_a_safe_temporary_folder_nothing_is_kept(
    odd: str, tmp_path: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept is pickled: who can write there can run code."""
    config.CACHE_DIR = ""
    folder = tmp_path / f"htagraph-{os.getuid()}"
    if odd == "others write":
        folder.mkdir()
        folder.chmod(0o777)
    elif odd == "a file":
        folder.write_text("")
    elif odd == "a link":
        (tmp_path / "there").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "there")
    else:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    assert made()(2) == 6
    assert not list(tmp_path.rglob("*.nb?"))
    assert ["compiles again" in line for line in said()] == [True]


@pytest.mark.parametrize("known", ["home", ""])
def test_no_folder_named_tilde_is_made_for_a_user_without_a_home(
    known: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.CACHE_DIR = ""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home") if known else "")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as for a user id that has no entry
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [
        caching.UserProvidedCacheLocator, caching.UserWideCacheLocator,
    ])  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert made()(2) == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home" if known else f"htagraph-{os.getuid()}"]


def test_a_function_is_compiled_anew_when_one_it_calls_in_another_module_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    called = "from htagraph.core.compiled import njit\n\n@njit()\ndef inner(x):\n    return x + {}\n"
    calls = called.replace("inner", "outer").replace("njit()", "njit(cache=True)").format("inner(x)")
    (tmp_path / "calls.py").write_text("from called import inner\n" + calls)
    for more in (1, 1, 20):
        (tmp_path / "called.py").write_text(called.format(more))
        os.utime(tmp_path / "called.py", (more, more))
        for name in ("called", "calls"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()
        outer = importlib.import_module("calls").outer
        assert outer(5) == 10 + more
    assert sum(outer.stats.cache_hits.values()) == 0


def test_code_that_is_not_to_be_kept_is_not(kept: Path) -> None:
    assert made(cache=False)(2) == 6
    assert not kept.exists()


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x80\x04N."])
def test_damaged_files_are_written_anew(content: bytes, kept: Path) -> None:
    made()(2)
    (path,) = kept.rglob("*.nbc")
    path.write_bytes(content)
    assert made()(2) == 6
    again = made()
    assert again(2) == 6
    assert sum(again.stats.cache_hits.values()) == 1


@pytest.mark.parametrize("stops", ["write_bytes", "replace"])
def test_a_full_disk_costs_only_time_and_is_said_once(
    stops: str, kept: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    owner: Any = os if stops == "replace" else Path
    monkeypatch.setattr(owner, stops, full)
    for _ in range(2):
        assert made()(2) == 6
    (line,) = said()
    assert "No space left on device" in line
    assert str(kept) in line
    assert not [path for path in kept.rglob("*") if path.is_file()]


@pytest.mark.parametrize("less", ["gone", "of another form"])
def test_without_numbas_insides_kept_code_is_loaded_all_the_same(less: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made()(2)
    inside: Any = caching.Cache
    load = inside._load_overload
    monkeypatch.setattr(inside, "load_overload", lambda self, types, target: load(self, types, target))
    if less == "gone":
        monkeypatch.delattr(inside, "_load_overload")
    else:
        monkeypatch.setattr(inside, "_load_overload", lambda self: None)
    again = made()
    assert again(2) == 6
    assert sum(again.stats.cache_hits.values()) == 1


def test_code_is_not_kept_by_a_numba_that_does_not_say_when_it_was_written(
    kept: Path, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Renamed(caching.FunctionCache):
        _cache_file = property(lambda self: None, lambda self, value: None)

    monkeypatch.setattr("numba.core.dispatcher.FunctionCache", Renamed)
    function = made()
    assert function(2) == 6
    assert not list(kept.rglob("*.nb?"))
    assert ["compiles again" in line for line in said()] == [True]


def test_code_for_other_types_is_never_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code of another signature under a name is refused, even if its file says that it is right."""
    made()(2)
    monkeypatch.setattr(kept_code, "_key_text", lambda key: "")  # all types have one name
    made()(2)
    again = made()
    assert again(2.5) == 7.5
    assert list(again.stats.cache_misses) == [(types.float64,)]


def test_compiling_is_said_once_and_only_if_it_happens(said: Said) -> None:
    for name in ("one", "other"):
        space: dict[str, Any] = {"__name__": "htagraph.core.traverse"}
        exec(f"def {name}(number): return number + 1", space)
        function = compiled.njit(cache=False)(space[name])
        function(1)
        function(2)
    assert said() == ["compiling what this needs, which takes a few seconds and is kept"]


def _call(number: float) -> None:
    assert made()(number) == 3 * number


def test_kept_code_is_run_without_what_compiles(kept: Path) -> None:
    code = (
        "import sys, numpy; from htagraph.core import traverse; "
        "print(traverse.levels(*map(numpy.array, ([0, 1], [0, 0, 1], [0]))).tolist(), 'numba.np.linalg' in sys.modules)"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(kept), "PYTHONPATH": str(REPOSITORY)}
    ran = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert ran == ["[0, 1] True\n", "[0, 1] False\n"]


def test_processes_may_compile_at_once(kept: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_call, args=(number,)) for number in (1, 2.5, 3, 4.5)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert not [path for path in kept.rglob("*") if ".tmp." in path.name]


@pytest.mark.slow
def test_the_package_runs_where_nothing_but_the_temporary_folder_can_be_written(tmp_path: Path) -> None:
    job = write([step(1, 0, 9), launch(1, 1, 1), kernel(COMPUTE, 3, 5, 1)], tmp_path / "rank-0.json")
    shutil.copytree(REPOSITORY / "htagraph", tmp_path / "lib/htagraph", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [path.parent for path in (tmp_path / "lib").rglob("__init__.py")]:
        (folder / "__pycache__").write_text("")  # not a folder, which stops root too
    unwritable = str(tmp_path / "lib/htagraph/__init__.py/home")
    environment = {"PATH": os.environ["PATH"], "HOME": unwritable, "XDG_CACHE_HOME": unwritable}
    environment |= {"PYTHONPATH": str(tmp_path / "lib"), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "htagraph", "critical-path", str(job)]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "Critical path" in done.stdout
    assert [line.split()[1] for line in done.stderr.splitlines()] == ["warning:", "compiling"], done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"htagraph-{os.getuid()}", "lib", "rank-0.json"]
    assert list((tmp_path / f"htagraph-{os.getuid()}").rglob("*.nbc"))
