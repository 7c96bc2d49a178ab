"""Where results go, and in which form; on a terminal's stderr, a bar while files are read, then what is done."""

from __future__ import annotations

import logging
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from htagraph.core.errors import HtagraphError, shown
from htagraph.output import whole_files
from htagraph.output.whole_files import FIGURES, write_figure, write_whole

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure
    from rich.progress import Progress as Bar

    from htagraph.graph.load import Progress
    from htagraph.output.report import Report
    from htagraph.output.summary import Summary
    from htagraph.output.validation import Validation

__all__ = [
    "Folder", "Format", "analysing", "emit", "ended", "ending", "form_of", "in_folder", "is_figure", "need_perfetto",
    "of_known_form", "of_known_form_or_figure", "phase", "progress", "refuse_input", "refuse_table", "show",
    "show_messages", "table_asked", "target", "wants_color", "width_of", "write",
]  # fmt: skip

_MIN_WIDTH = 40
"""Columns of a terminal; chosen: tables are unreadable below. Doubled, narrow terminals wrap the lines of tables."""
_FILE_WIDTH = 140
"""Columns of a file or a pipe, which has no width of its own; chosen. Doubled, kernel names are rarely shortened."""


class Format(str, Enum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MD = "md"
    PARQUET = "parquet"


table_asked: ContextVar[str | None] = ContextVar("table_asked", default=None)
"""The table of the result that ``--table`` names; None for the only table."""
_OF_TABLES = (Format.CSV, Format.PARQUET)
"""Forms of tables; all other forms hold a whole result."""
_SHARED_TABLES = frozenset({"inputs", "issues", "conclusions"})
"""Tables of all commands: what was read, repaired and concluded."""
_SUFFIXES = {
    ".json": Format.JSON, ".csv": Format.CSV, ".md": Format.MD, ".txt": Format.TABLE, ".parquet": Format.PARQUET,
}  # fmt: skip
"""Formats by what a file's name ends with."""


class Folder(type(Path())):  # type: ignore[misc] # the class of paths of this system
    """A path that was given with a slash at its end: a folder, be it there or not."""


def target(text: str) -> Path:
    """Return the path that ``--output`` gave."""
    if not text:
        msg = "the name of the file is empty"
        raise typer.BadParameter(msg, param_hint="--output")
    return Folder(text) if text.endswith(("/", os.sep)) else Path(text)


def form_of(form: Format | None, output: Path | None, others: Sequence[str] = ()) -> Format:
    """Return how to write: as asked for, else as the file's name ends; a folder gets CSV, a name without end a table.

    Example:
        >>> form_of(None, Path("a.json")).value, form_of(Format.MD, Path("a.json")).value, form_of(None, None).value
        ('json', 'md', 'table')
    """
    if form is not None:
        return _writable(form, output)
    if output is None:
        return Format.TABLE
    if _is_folder(output):
        return Format.CSV
    suffix = output.suffix.lower()
    if suffix and suffix not in _SUFFIXES and not (output.exists() and not output.is_file()):
        known = ", ".join([*_SUFFIXES, *others])
        other = "; this command has no figure" if is_figure(form, output) else ""
        msg = f"{output}: no format is known by {suffix}: choose from {known}, or give --format{other}"
        raise typer.BadParameter(msg, param_hint="--output")
    return _SUFFIXES.get(suffix, Format.TABLE)


def is_figure(form: Format | None, output: Path | None) -> bool:
    """Return whether a file is to get the figure of a result: by how its name ends, if no format is asked for.

    Example:
        >>> is_figure(None, Path("a.svg")), is_figure(Format.JSON, Path("a.svg")), is_figure(None, Path("a.json"))
        (True, False, False)
    """
    return form is None and output is not None and not _is_folder(output) and output.suffix.lower() in FIGURES


def _writable(form: Format, output: Path | None) -> Format:
    """Return the form that was asked for, if it can be written there."""
    if form is Format.PARQUET and output is None:
        msg = "parquet is no text: give -o DIR/ for a file per table"
        raise typer.BadParameter(msg, param_hint="--format")
    if form not in (Format.CSV, Format.PARQUET) and output is not None and _is_folder(output):
        msg = f"{output}/ is a folder: one file per table is written as csv or parquet only"
        raise typer.BadParameter(msg, param_hint="--output")
    return form


def _is_folder(output: Path) -> bool:
    return isinstance(output, Folder) or output.is_dir()


def refuse_table(name: str | None, form: Format | None, output: Path | None) -> None:
    """Refuse ``--table`` where a whole result is written."""
    if name is not None and (is_figure(form, output) or form_of(form, output) not in _OF_TABLES):
        msg = "it chooses the table of a CSV or parquet file: add -f csv"
        raise typer.BadParameter(msg, param_hint="--table")


def show(report: Report, form: Format | None, output: Path | None, paths: Sequence[str]) -> None:
    """Write a report on what lies at some paths; the arguments are those of `write`."""
    from htagraph.output.render import render_report

    write(report, partial(render_report, report), form, output, paths)


def write(
    result: Report | Summary | Validation, render: Callable[..., str], form: Format | None, output: Path | None,
    paths: Sequence[str],
) -> None:  # fmt: skip
    """Write a result."""
    if output is not None and is_figure(form, output):
        with phase("drawing"):
            refuse_input(output, paths, "--output")
            plot: Callable[[], Figure] | None = getattr(result, "plot", None)
            if plot is None:
                msg = f"{output}: this result has no figure; choose a format from {', '.join(_SUFFIXES)}"
                raise typer.BadParameter(msg, param_hint="--output")
            write_figure(plot(), output)
        typer.echo(f"{output}: {output.stat().st_size / 1e6:.2f} MB, the figure.", err=True)
        return
    chosen = form_of(form, output)
    with phase("writing"):
        # a device or a pipe, such as /dev/stdout, gets text, as stdout does
        is_pipe = output is not None and output.exists() and not output.is_file() and not output.is_dir()
        if output is not None and chosen in _OF_TABLES and not (chosen is Format.CSV and is_pipe):
            _write_tables(result, "csv" if chosen is Format.CSV else "parquet", output, paths)
            return
        if chosen is Format.CSV:
            from htagraph.output.render import csv_text

            text = csv_text(_one_table(result, "CSV"))
        else:
            text = render(chosen.value, width=width_of(output), color=wants_color(output))
    emit(text, output, paths)


def _write_tables(
    result: Report | Summary | Validation, form: Literal["csv", "parquet"], output: Path, paths: Sequence[str]
) -> None:
    """Write a file per table into a folder, or the one table of a command to a file."""
    from htagraph.output.export.parquet import table_bytes, write_tables
    from htagraph.output.render import frames_of

    if _is_folder(output) or not output.suffix:
        frames = frames_of(result)
        if table_asked.get() is not None:
            frames = {str(table_asked.get()): _one_table(result, "a file")}
        for name in frames:
            refuse_input(output / f"{name}.{form}", paths, "--output")
        files = write_tables(frames, output, form)
        typer.echo(f"{len(files)} tables in {output}{os.sep}", err=True)
        return
    table = _one_table(result, str(output))
    refuse_input(output, paths, "--output")
    _refuse_mistakable(output, form, paths)
    write_whole(output, table_bytes(table, form))


def _one_table(result: Report | Summary | Validation, where: str) -> pd.DataFrame:
    """Return the table that ``--table`` names, or else the only one that the command makes itself.

    Args:
        result: what the command gives.
        where: the place that takes one table.

    Raises:
        BadParameter: the command has no table of that name, or several and none was named.
    """
    from htagraph.output.render import frames_of

    frames = frames_of(result)
    name = table_asked.get()
    if name is not None:
        if name in frames:
            return frames[name]
        msg = f"{shown(name)} is no table of this command: choose from {', '.join(frames)}"
        raise typer.BadParameter(msg, param_hint="--table")
    made = list(result.tables) or [each for each in frames if each not in _SHARED_TABLES]
    if len(made) == 1:
        return frames[made[0]]
    names = ", ".join([*made, *(name for name in frames if name not in made)])
    example = f"--table {made[0]}" if made else "--table"
    msg = f"{where} is one table, and this command has several: give {example}, or another of {names}, or -o DIR/"
    raise typer.BadParameter(msg, param_hint="--format")


def emit(text: str, output: Path | None, paths: Sequence[str]) -> None:
    """Write results to the file, or to stdout; never to one of the files that they are the results of."""
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    refuse_input(output, paths, "--output")
    _refuse_mistakable(output, text, paths)
    write_whole(output, text.encode("utf-8", "replace"))  # as on stdout


def refuse_input(target: Path | None, paths: Sequence[str], option: str) -> None:
    """Refuse to write to a file that the paths mean, be it read or not: what was recorded is not recorded again."""
    if target is None or not target.exists():
        return
    from htagraph.trace.discover import find_files

    if any(isinstance(file, Path) and target.samefile(file) for file in find_files(paths, skip=lambda *_: None)):
        msg = f"{option} {target}: is one of the files to read, and would be lost; write to another file"
        raise HtagraphError(msg)


def _refuse_mistakable(output: Path, text: str, paths: Sequence[str]) -> None:
    """Refuse to write what is no JSON where the next command would take it for a trace."""
    from htagraph.trace.discover import SUFFIXES, find_files

    if text.startswith("{") or not output.name.endswith(SUFFIXES):
        return
    folder = output.parent.resolve()
    files = [file for file in find_files(paths, skip=lambda *_: None) if isinstance(file, Path)]
    if any(file.parent.resolve() == folder for file in files):
        msg = f"--output {output}: would be taken for a trace, beside the traces; add --format json, or name it .txt"
        raise HtagraphError(msg)


def wants_color(output: Path | None) -> bool:
    """Return whether results go to a terminal that wants color."""
    return output is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ


def width_of(output: Path | None) -> int:
    """Return the terminal's width, or COLUMNS, or what a file may well have."""
    if output is None and (sys.stdout.isatty() or "COLUMNS" in os.environ):
        return max(shutil.get_terminal_size((120, 40)).columns, _MIN_WIDTH)
    return _FILE_WIDTH


def in_folder(file: Path | None) -> Path | None:
    """Return the file, whose folder is there."""
    if file is None:
        return None
    if not file.parent.is_dir():
        msg = f"{file}: No such file or directory: make its folder first"
        raise HtagraphError(msg)
    if isinstance(file, Folder) and file.exists() and not file.is_dir():
        msg = f"{file}/: is a file, not a folder: leave the slash away to write it anew, or name another folder"
        raise HtagraphError(msg)
    return file


def ending(name: str, what: str) -> Callable[[Path | None], Path | None]:
    """Return what checks a file's folder and the ending of its name, one of those of a kind of files."""

    def checked(file: Path | None) -> Path | None:
        if file is not None:
            whole_files.check_ending(file, getattr(whole_files, name), what)
        return in_folder(file)

    return checked


def of_known_form(context: typer.Context, file: Path | None) -> Path | None:
    """Return the file for a result: its folder is there, and its name says a format unless ``--format`` does."""
    form_of(context.params.get("form"), file)
    return in_folder(file)


def of_known_form_or_figure(context: typer.Context, file: Path | None) -> Path | None:
    """Return the file for a result or its figure."""
    form = context.params.get("form")
    if not is_figure(form, file):
        form_of(form, file, FIGURES)
    return in_folder(file)


def need_perfetto(perfetto: Path | None, *, counters: bool) -> None:
    """Refuse counters without a file to draw them into."""
    if counters and perfetto is None:
        msg = "counters are drawn into a file: give --perfetto too"
        raise typer.BadParameter(msg, param_hint="--counters")


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
