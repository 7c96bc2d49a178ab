"""What a terminal shows while a command works."""

from __future__ import annotations

import io
import logging
import sys
import time
from typing import Any

import pytest

from htagraph.cli import waiting
from htagraph.cli.waiting import show_messages
from tests.reach import REPOSITORY


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_shown_where_stderr_is_no_terminal(run: Any) -> None:
    assert run("idle", REPOSITORY / "data" / "demo").err == ""


def test_a_phase_is_shown_once_it_has_lasted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_SHOWN_AFTER_S", 0.01)
    monkeypatch.setenv("TERM", "xterm")
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with waiting.phase("writing"):
        until = time.monotonic() + 10
        while "writing" not in screen.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    assert "writing" in screen.getvalue()


def test_a_short_phase_is_silent_and_a_new_one_ends_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    waiting.analysing()
    with waiting.phase("writing"):
        assert waiting._open == []
    waiting.ended()
    assert screen.getvalue() == ""


def test_after_reading_a_terminal_is_told_that_the_graph_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "_SHOWN_AFTER_S", 0.01)
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with waiting.progress("reading") as advance:
        assert advance is not None
        advance(0.5)
        advance(1.0)
        advance(1.0)
        until = time.monotonic() + 10
        while "building" not in screen.getvalue() and time.monotonic() < until:
            time.sleep(0.01)
    assert "building the graph" in screen.getvalue()


logger = logging.getLogger("htagraph.tests")


def test_what_is_logged_is_a_line_on_stderr(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("htagraph"), "filters", [])
    show_messages()
    show_messages()  # which shows nothing twice
    logger.info("compiling %s", "once")
    logger.warning("no place")
    logger.debug("details")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "htagraph: compiling once\nhtagraph: warning: no place\n"
