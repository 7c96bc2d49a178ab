"""Every attack gets its answer within a limit of processor time, in letters that no terminal and no browser obeys."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.fuzz.attacks import ATTACKS, Attack

_CPU_S = 10
"""Seconds of processor time for one attack. Chosen: the longest takes two. Doubled, slow answers are found later."""
_WALL_S = 120
"""Seconds until an answer that waits for somebody is ended. Chosen: busy machines take a dozen."""


class Late(BaseException):
    """An answer took too long. No Exception, so that nothing takes it for damage."""


def _late(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise Late


@contextmanager
def limited() -> Iterator[None]:
    """End what takes too long."""
    before = [(number, signal.signal(number, _late)) for number in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, _CPU_S)
    signal.alarm(_WALL_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        for number, handler in before:
            signal.signal(number, handler)


def words_of(attack: Attack, folder: Path) -> list[str]:
    return [word.replace("{}", str(folder)) for word in attack.words.split()]


def letters_that_act(text: str) -> set[str]:
    """Return the letters of a text that a terminal obeys or that change the order of others."""
    return {letter for letter in text if not letter.isprintable() and letter not in "\n\t"}


@pytest.fixture(scope="module", autouse=True)
def _compiled_code() -> None:
    """Load what is compiled: the time of an attack is its own."""
    import htagraph.output.export.perfetto  # noqa: F401


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_answered(name: str, run: Any, tmp_path: Path) -> None:
    attack = ATTACKS[name]
    folder = tmp_path / "job"
    (folder / "out").mkdir(parents=True)
    attack.make(folder)
    made = {path for path in tmp_path.rglob("*") if not path.is_dir()}
    with limited():
        ran = run(*words_of(attack, folder))
    assert ran.code == attack.code, ran.err
    assert re.search(attack.says, ran.out + ran.err)
    assert "Traceback" not in ran.err
    assert not letters_that_act(ran.out + ran.err)
    for path in {path for path in tmp_path.rglob("*") if not path.is_dir()} - made:
        assert path.parent == folder / "out", f"{path} is not where it was asked for"
        _refuse_letters_that_act(path)


def _refuse_letters_that_act(path: Path) -> None:
    """Fail if what was written runs as a script, or acts where a person opens it."""
    text = path.read_bytes().decode()  # of whole characters
    if path.suffix == ".json":
        assert json.loads(text)["traceEvents"]
        return
    assert not letters_that_act(text)
    if path.suffix == ".html":
        assert len(re.findall(r"<script\b", text)) == len(re.findall(r"</script\b", text))


def test_a_system_that_refuses_threads(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attack = ATTACKS["2,000 threads"]
    attack.make(tmp_path)

    def refuse(self: threading.Thread) -> None:
        del self
        msg = "can't start new thread"  # as CPython says it
        raise RuntimeError(msg)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with limited():
        ran = run("report", tmp_path, "-o", tmp_path / "page.html")
    assert ran.code == 0, ran.err
    assert "Traceback" not in ran.err


def test_a_command_that_is_ended_while_it_writes_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    ATTACKS["a full disk"].make(tmp_path)
    code = f"""if True:
        import atexit, os, signal, sys
        atexit.register(lambda: os.kill(os.getpid(), signal.SIGTERM))
        real = os.replace
        def replaced(*given, **more):
            os.kill(os.getpid(), signal.SIGTERM)
            return real(*given, **more)
        os.replace = replaced
        sys.argv = ['htagraph', 'validate', {str(tmp_path)!r}, '-o', {str(tmp_path / "out.txt")!r}]
        from htagraph.cli.main import main
        main()
    """
    left = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert left.returncode in (-signal.SIGTERM, 128 + signal.SIGTERM)
    assert b"Traceback" not in left.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["rank-0.json"]
