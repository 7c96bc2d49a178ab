"""What the commands share: options, reading with a progress bar, and writing results."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from htagraph.core.errors import printable
from htagraph.output.whole_files import write_whole
from htagraph.whatif.change_options import numbers

if TYPE_CHECKING:
    from htagraph.cluster.job import DistributedJob
    from htagraph.core.issues import Issue
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.graph.load import Progress
    from htagraph.output.report import Report

__all__ = [
    "Form", "Format", "Output", "Paths", "Ranks", "Scheduler", "Steps", "Top", "chosen", "emit", "given", "progress",
    "read", "read_on", "refuse_input", "show", "wants_color", "width_of", "with_cache",
]  # fmt: skip

_HARMLESS = (
    "launch_missing",
    "negative_launch_latency",
    "no_window_end",
    "no_base_time",
)  # true of most healthy traces
_MAX_REPEATED_PATHS = 4
"""Paths that a suggested command repeats; chosen: more make it unreadable. Doubled, it may fill several lines."""
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


Paths = Annotated[list[str], typer.Argument(help="A folder, a file, a glob, or several of these.", show_default=False)]
Form = Annotated[Format, typer.Option("--format", "-f", help="How to write the results.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file instead of stdout.")]
Ranks = Annotated[str | None, typer.Option("--ranks", help="Only these ranks, such as 0,3-7.")]
Steps = Annotated[str | None, typer.Option("--steps", help="Only these ProfilerStep numbers, such as 4 or 4-6.")]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", help="Let workers read the ranks: tcp://… of a Dask scheduler, processes, or ray."),
]
Top = Annotated[int, typer.Option("--top", min=1, help="Rows shown of each ranked table.")]


_caches: ContextVar[bool] = ContextVar("caches", default=True)
"""Whether this command opens what an earlier one loaded."""


def with_cache(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes ``--no-cache`` besides its own options."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())

    @wraps(command)
    def extended(**given: Any) -> None:  # noqa: ANN401 - the options' values
        before = _caches.set(not given.pop("no_cache"))
        try:
            command(**given)
        finally:
            _caches.reset(before)

    option = typer.Option("--no-cache", help="Read the files even if an earlier command did, and keep nothing.")
    last = inspect.Parameter(
        "no_cache", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, option]
    )
    extended.__signature__ = inspect.Signature([*own, last])  # type: ignore[attr-defined] # what typer reads
    extended.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, last)}
    return extended


def chosen(text: str | None, option: str) -> list[int] | None:
    """Return the numbers that ``--ranks`` or ``--steps`` gave, None for all."""
    if text is None:
        return None
    try:
        return numbers(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def given(paths: list[str], ranks: str | None = None, steps: str | None = None) -> list[str]:
    """Return the words that make another command read the same; many files are not repeated."""
    words = list(paths) if len(paths) <= _MAX_REPEATED_PATHS else ["PATHS"]
    for option, text in (("--ranks", ranks), ("--steps", steps)):
        words += [option, text] if text is not None else []
    return words


def read(paths: list[str], ranks: str | None, steps: str | None) -> DependencyGraph:
    """Return the graph of what the options chose; a bar and warnings go to stderr."""
    chosen_ranks, chosen_steps = chosen(ranks, "--ranks"), chosen(steps, "--steps")
    with progress("reading") as advance:
        from htagraph.graph.load import load

        graph = load(paths, ranks=chosen_ranks, steps=chosen_steps, progress=advance, cache=_caches.get())
    _warn(graph.issues)
    return graph


def read_on(scheduler: str, paths: list[str], ranks: str | None, steps: str | None) -> DistributedJob:
    """Return the job of what the options chose, read by workers; a bar, warnings and missing ranks go to stderr."""
    from htagraph.cluster.engines.choose import engine_of

    try:
        engine = engine_of(scheduler)
    except TypeError as error:
        raise typer.BadParameter(str(error), param_hint="--scheduler") from None
    chosen_ranks, chosen_steps = chosen(ranks, "--ranks"), chosen(steps, "--steps")
    with progress("reading") as advance:
        from htagraph.graph.load import load

        job = load(paths, chosen_ranks, chosen_steps, advance, cache=_caches.get(), engine=engine)
    _warn(job.issues)
    return job


def show(report: Report, form: Format, output: Path | None, paths: Sequence[str]) -> None:
    """Write a report on what lies at some paths."""
    from htagraph.output.render import render_report

    emit(render_report(report, form.value, width=width_of(output), color=wants_color(output)), output, paths)


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
    """Refuse to write to a file that the paths mean, be it read or not: what was recorded is not recorded again.

    Raises:
        HtagraphError: it is one of them.
    """
    if target is None or not target.exists():
        return
    from htagraph.core.errors import HtagraphError
    from htagraph.trace.reading.discover import find_files

    if any(isinstance(file, Path) and target.samefile(file) for file in find_files(paths, skip=lambda *_: None)):
        msg = f"{option} {target}: is one of the files to read, and would be lost; write to another file"
        raise HtagraphError(msg)


def _refuse_mistakable(output: Path, text: str, paths: Sequence[str]) -> None:
    """Refuse to write what is no JSON where the next command would take it for a trace."""
    from htagraph.core.errors import HtagraphError
    from htagraph.trace.reading.discover import SUFFIXES, find_files

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


@contextmanager
def progress(what: str) -> Iterator[Progress | None]:
    """Show a bar on stderr while the block runs, if stderr is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    # no refresh thread: each piece that is read refreshes it
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(what, total=1.0)

        def advance(share: float) -> None:
            bar.update(task, completed=share, refresh=True)

        yield advance


def _warn(issues: Sequence[Issue]) -> None:
    """Say on stderr what was damaged; the results list it in full."""
    for issue in issues:
        if issue.what not in _HARMLESS:
            where = f"{issue.file}: " if issue.file else ""
            typer.echo(printable(f"htagraph: warning: {where}{issue.detail} ({issue.count})"), err=True)
