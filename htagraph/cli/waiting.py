"""What is shown on a terminal's stderr while a command works: a bar while files are read, then what it does."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from htagraph.graph.load import Progress

__all__ = ["analysing", "ended", "phase", "progress", "show_messages"]

_SHOWN_AFTER_S = 2.0
"""Seconds after which a phase is shown. Chosen: what is over before needs no explanation. Doubled, a command is silent
for four seconds."""

_open: list[_Shown] = []
"""The phase that runs until the next one or the end of the command."""


class _Shown:
    """A phase on the terminal, drawn by a thread of its own once it has lasted."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._begun = time.monotonic()
        self._lock = threading.Lock()
        self._bar: Bar | None = None
        self._over = False
        self._timer = threading.Timer(_SHOWN_AFTER_S, self._show)
        self._timer.daemon = True
        self._timer.start()

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        with self._lock:
            if self._over:
                return
            columns = (SpinnerColumn(), TextColumn(self._what), TimeElapsedColumn())
            console = Console(stderr=True)  # drawn seldom: that takes time from the command's own thread
            self._bar = Progress(*columns, console=console, transient=True, refresh_per_second=4)
            self._bar.add_task(self._what, total=None)
            self._bar.tasks[0].start_time = self._begun
            self._bar.start()

    def end(self) -> None:
        """Take it from the terminal, or let it never come."""
        self._timer.cancel()
        with self._lock:
            self._over = True
            if self._bar is not None:
                self._bar.stop()


def analysing() -> None:
    """Say that results are made, until `ended` or the next `phase`."""
    ended()
    if _is_terminal():
        _open.append(_Shown("analysing"))


def ended() -> None:
    """Say no longer that results are made."""
    while _open:
        _open.pop().end()


@contextmanager
def phase(what: str) -> Iterator[None]:
    """Show a word and the time on stderr while the block runs, from two seconds on, if stderr is a terminal."""
    ended()
    shown = _Shown(what) if _is_terminal() else None
    try:
        yield
    finally:
        if shown:
            shown.end()


@contextmanager
def progress(what: str) -> Iterator[Progress | None]:
    """Show a bar on stderr while files are read, then that a graph is built, if stderr is a terminal."""
    if not _is_terminal():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    # no refresh thread: each piece that is read refreshes it
    bar = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
    building: list[_Shown] = []
    task = bar.add_task(what, total=1.0)

    def advance(share: float) -> None:
        if share < 1:
            bar.update(task, completed=share, refresh=True)
        elif not building:
            bar.stop()
            building.append(_Shown("building the graph"))

    bar.start()
    try:
        yield advance
    finally:
        bar.stop()
        for shown in building:
            shown.end()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


class _OnStderr(logging.Handler):
    """Writes to stderr as it is when the message comes."""

    def emit(self, record: logging.LogRecord) -> None:
        word = "warning: " if record.levelno >= logging.WARNING else ""
        typer.echo(f"htagraph: {word}{record.getMessage()}", err=True)


def show_messages() -> None:
    """Show what is logged from now on."""
    logger = logging.getLogger("htagraph")
    if not any(isinstance(each, _OnStderr) for each in logger.handlers):
        logger.addHandler(_OnStderr())
        logger.setLevel(logging.INFO)
