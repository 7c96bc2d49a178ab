"""The command line: results on stdout, everything else on stderr, exit code 0, 1 (bad input) or 2 (usage)."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.errors import HtagraphError

if TYPE_CHECKING:
    from htagraph.issues import Issue
    from htagraph.loading import Progress

__all__ = ["app", "main"]

_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
_MOST_NUMBERS = 1_000_000
_HARMLESS = (
    "launch_missing",
    "negative_launch_latency",
    "no_window_end",
    "no_base_time",
)  # true of most healthy traces

app = typer.Typer(
    name="htagraph",
    help="Why is this PyTorch job slow? Answers from the Kineto traces of all its ranks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Paths = Annotated[list[str], typer.Argument(help="A folder, a file, a glob, or several of these.", show_default=False)]


class Format(str, Enum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MD = "md"


Form = Annotated[Format, typer.Option("--format", "-f", help="How to write the results.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file instead of stdout.")]
Ranks = Annotated[str | None, typer.Option("--ranks", help="Only these ranks, such as 0,3-7.")]
Steps = Annotated[str | None, typer.Option("--steps", help="Only these ProfilerStep numbers, such as 4 or 4-6.")]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,  # noqa: FBT002 - typer
) -> None:
    if version:
        from importlib.metadata import version as version_of

        typer.echo(f"htagraph {version_of('htagraph')}")
        raise typer.Exit


@app.command()
def summary(
    paths: Paths,
    ranks: Ranks = None,
    steps: Steps = None,
    top: Annotated[int, typer.Option(min=1, help="Kernels named per kind.")] = 5,
    form: Form = Format.TABLE,
    output: Output = None,
) -> None:
    """Where did the time go, and what bounds this job?"""
    chosen_ranks, chosen_steps = _numbers(ranks, "--ranks"), _numbers(steps, "--steps")
    with _progress("reading") as progress:
        from htagraph.loading import load
        from htagraph.summary import summarize

        graph = load(paths, ranks=chosen_ranks, steps=chosen_steps, progress=progress)
    from htagraph.render import render_summary

    _warn(graph.issues)
    result = summarize(graph, top=top)
    _emit(render_summary(result, form.value, width=_width(output), color=_color(output)), output)


@app.command()
def validate(paths: Paths, form: Form = Format.TABLE, output: Output = None) -> None:
    """What is wrong with these traces, and what can they answer? Exit code 1 if a file cannot be used."""
    with _progress("reading") as progress:
        from htagraph.validation import validate as validated

        report = validated(paths, progress=progress)
    from htagraph.render import render_validation

    _emit(render_validation(report, form.value, width=_width(output), color=_color(output)), output)
    if not report.usable:
        raise typer.Exit(1)


@app.command()
def simulate(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to; made if absent.")],
    ranks: Annotated[int | None, typer.Option(min=1, help="Processes, one GPU each.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps.")] = None,
    regime: Annotated[str, typer.Option(help="gpu_bound, host_bound, communication_bound, straggler, …")] = "balanced",
    events: Annotated[int | None, typer.Option(min=1000, help="Instead: traces of about this many events.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A Job field, such as kernel_us=300.")] = None,
) -> None:
    """Write the traces of a simulated training job, and the truth about it in DIR/truth."""
    from pydantic import ValidationError

    from htagraph.simulate import REGIMES, Job, scale_job, write_stream
    from htagraph.simulate import simulate as simulated

    if regime not in REGIMES:
        msg = f"{regime!r}; choose from {', '.join(REGIMES)}"
        raise typer.BadParameter(msg, param_hint="--regime")
    given = {name: value for name, value in (("ranks", ranks), ("steps", steps)) if value is not None}
    try:
        base = scale_job(events, ranks=ranks or 1) if events else REGIMES[regime]()
        job = Job.model_validate(base.model_dump() | given | _settings(settings or []))
    except ValidationError as error:
        first = error.errors()[0]
        msg = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise typer.BadParameter(msg, param_hint="--set") from error
    if events:
        typer.echo(f"{write_stream(job, output)} events in {output}", err=True)
        return
    files = simulated(job).write(output)
    typer.echo(f"{len(files)} traces in {output}, the truth in {output / 'truth'}", err=True)


def _settings(pairs: list[str]) -> dict[str, str]:
    """Return ``name=value`` options as a dict; pydantic reads the values."""
    for pair in pairs:
        if "=" not in pair:
            msg = f"{pair!r} is not of the form name=value"
            raise typer.BadParameter(msg, param_hint="--set")
    return dict((pair.split("=", 1)[0], pair.split("=", 1)[1]) for pair in pairs)


def main() -> None:
    """Run the command line; errors of the user's input become one line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without µ and • still gets its answer
            stream.reconfigure(errors="replace")
    if sys.stdout is None:  # closed by the caller: there is nowhere to answer to
        sys.exit(1)
    try:
        app()
    except HtagraphError as error:
        _complain(str(error))
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _complain(f"{error.filename or ''}: {error.strerror or error}".lstrip(": "))


def _complain(message: str) -> None:
    typer.echo(f"htagraph: error: {message}", err=True)
    sys.exit(1)


def _numbers(text: str | None, option: str) -> list[int] | None:
    """Return ``0,3-7`` as a list of numbers."""
    if text is None:
        return None
    numbers: list[int] = []
    for part in text.split(","):
        ends = _RANGE.fullmatch(part.strip())
        first = int(ends[1]) if ends else 0
        last = int(ends[2] or ends[1]) if ends else -1
        if not first <= last <= first + _MOST_NUMBERS:
            msg = f"{text!r} is not a list of numbers such as 0,3-7"
            raise typer.BadParameter(msg, param_hint=option)
        numbers += range(first, last + 1)
    return numbers


@contextmanager
def _progress(what: str) -> Iterator[Progress | None]:
    """Show a bar on stderr while the block runs, if stderr is a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    # no refresh thread: reading may fork
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task = bar.add_task(what, total=1.0)

        def advance(share: float) -> None:
            bar.update(task, completed=share, refresh=True)

        yield advance


def _warn(issues: Sequence[Issue]) -> None:
    """Say on stderr what was damaged; the results list it in full."""
    for issue in issues:
        if issue.what not in _HARMLESS:
            typer.echo(f"htagraph: warning: {issue.file}: {issue.detail} ({issue.count})", err=True)


def _emit(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        output.write_text(text, encoding="utf-8")


def _color(output: Path | None) -> bool:
    return output is None and sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _width(output: Path | None) -> int:
    """Return the terminal's width, or COLUMNS, or what a file may well have."""
    if output is None and (sys.stdout.isatty() or "COLUMNS" in os.environ):
        return max(shutil.get_terminal_size((120, 40)).columns, 40)
    return 140
