"""What the commands share: options, and reading what they chose."""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from htagraph.cli.waiting import analysing, ended, progress
from htagraph.cli.writing import (
    Format,
    emit,
    form_of,
    refuse_input,
    show,
    wants_color,
    width_of,
    write,
)  # fmt: skip
from htagraph.core.errors import printable
from htagraph.whatif.options import duration_ns, numbers

if TYPE_CHECKING:
    from htagraph.cluster.job import DistributedJob
    from htagraph.core.errors import Issue
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = [
    "Form", "Format", "Paths", "Ranks", "Scheduler", "Steps", "Top", "chosen", "emit", "form_of", "given", "progress",
    "read", "read_on", "refuse_input", "show", "wants_color", "width_of", "window", "with_reading", "write",
]  # fmt: skip

_HARMLESS = (
    "launch_missing",
    "negative_launch_latency",
    "no_window_end",
    "no_base_time",
    "python_not_read",
    "window_cuts",
)  # true of most healthy traces, or asked for
_MAX_REPEATED_PATHS = 4
"""Paths that a suggested command repeats; chosen: more make it unreadable. Doubled, it may fill several lines."""
_PLAIN = re.compile(r"\d+(\.\d*)?")
_MAX_ALIKE = 8
"""Warnings of one kind that are said; the results list all. Chosen: those of a host with eight devices. Doubled, jobs
of many ranks fill a screen with them."""


Paths = Annotated[list[str], typer.Argument(help="A folder, a file, a glob, or several of these.", show_default=False)]
Form = Annotated[
    Format | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        show_default=False,
        help="table, json, csv, md or parquet; by default as -o ends, or tables to read.",
        is_eager=True,  # before -o, whose names it explains
    ),
]
Ranks = Annotated[str | None, typer.Option("--ranks", metavar="RANKS", help="Only these ranks, such as 0,3-7.")]
Steps = Annotated[
    str | None, typer.Option("--steps", metavar="STEPS", help="Only these ProfilerStep numbers, such as 4 or 4-6.")
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="WORKERS",
        help="Let workers read the ranks: tcp://… of a Dask scheduler, processes, or ray.",
    ),
]
Top = Annotated[int, typer.Option("--top", metavar="ROWS", min=1, help="Rows shown of each ranked table.")]


Time = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="FROM..TO",
        help="Only what begins in this window since the job's first activity, such as 1.5s..2s or 800ms.. (else µs).",
    ),
]
Python = Annotated[
    bool | None,
    typer.Option(
        "--python/--no-python",
        help="Keep or leave out calls of Python functions. By default they are kept, up to 4 million of a rank.",
        show_default=False,
    ),
]
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="Read the files even if an earlier command did, and keep nothing.")
]

_SHARED: Mapping[str, Any] = {"time": Time, "python": Python, "no_cache": NoCache}


@dataclass(frozen=True)
class _Reading:
    """How this command reads traces, besides which ranks and steps."""

    time: str | None = None
    python: bool | None = None
    no_cache: bool = False


_reading: ContextVar[_Reading] = ContextVar("reading", default=_Reading())  # noqa: B039 - it is frozen


def with_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes ``--time``, ``--python`` and ``--no-cache`` besides its own options."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())

    @wraps(command)
    def extended(**given: Any) -> None:  # noqa: ANN401 - the options' values
        before = _reading.set(_Reading(**{name: given.pop(name) for name in _SHARED}))
        try:
            command(**given)
        finally:
            ended()
            _reading.reset(before)

    shared = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=getattr(_Reading(), name), annotation=annotation
        )
        for name, annotation in _SHARED.items()
    ]
    extended.__signature__ = inspect.Signature([*own, *shared])  # type: ignore[attr-defined] # what typer reads
    extended.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *shared)}
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
    reading = _reading.get()
    words = list(paths) if len(paths) <= _MAX_REPEATED_PATHS else ["PATHS"]
    for option, text in (("--ranks", ranks), ("--steps", steps)):
        words += [option, text] if text is not None else []
    words += ["--time", reading.time] if reading.time is not None else []
    words += ["--python" if reading.python else "--no-python"] if reading.python is not None else []
    return words


def window(text: str | None) -> tuple[float | None, float | None] | None:
    """Return the window that ``--time`` gave in µs, with None for an end that is open; None for all time.

    Example:
        >>> window("1.5ms..2000"), window("..1s")
        ((1500.0, 2000.0), (None, 1000000.0))
    """
    if text is None:
        return None
    ends = [each.strip() for each in text.split("..")]
    try:
        begin, end = (None if not each else _microseconds(each) for each in ends)
    except ValueError:
        begin = end = math.inf
    if (begin is not None and end is not None and not begin < end) or not any(ends):
        msg = f"{text!r} is not a window FROM..TO such as 1.5s..2s, 800ms.. or ..250000 (µs)"
        raise typer.BadParameter(msg, param_hint="--time")
    return begin, end


def _microseconds(text: str) -> float:
    return float(text) if _PLAIN.fullmatch(text) else duration_ns(text) / 1000


def read(paths: list[str], ranks: str | None, steps: str | None) -> DependencyGraph:
    """Return the graph of what the options chose; a bar and warnings go to stderr."""
    chosen_ranks, chosen_steps, reading = chosen(ranks, "--ranks"), chosen(steps, "--steps"), _reading.get()
    time = window(reading.time)
    with progress("reading") as advance:
        from htagraph.graph.load import load

        graph = load(
            paths, chosen_ranks, chosen_steps, advance, time=time, python=reading.python, cache=not reading.no_cache
        )
    _warn(graph.issues)
    analysing()
    return graph


def read_on(scheduler: str, paths: list[str], ranks: str | None, steps: str | None) -> DistributedJob:
    """Return the job of what the options chose, read by workers; a bar, warnings and missing ranks go to stderr."""
    from htagraph.cluster.engines import engine_of

    try:
        engine = engine_of(scheduler)
    except TypeError:
        msg = f"{scheduler!r} is none; give tcp://… of a Dask scheduler, processes (of this machine), or ray"
        raise typer.BadParameter(msg, param_hint="--scheduler") from None
    chosen_ranks, chosen_steps, reading = chosen(ranks, "--ranks"), chosen(steps, "--steps"), _reading.get()
    if reading.time is not None:
        msg = "it counts from the first activity of all ranks, which no worker knows: choose --steps instead"
        raise typer.BadParameter(msg, param_hint="--time")
    with progress("reading") as advance:
        from htagraph.graph.load import load

        job = load(
            paths, chosen_ranks, chosen_steps, advance,
            python=reading.python, cache=not reading.no_cache, engine=engine,
        )  # fmt: skip
    _warn(job.issues)
    analysing()
    return job


def _warn(issues: Sequence[Issue]) -> None:
    """Say on stderr what was damaged; the results list it in full."""
    said = Counter[str]()
    for issue in issues:
        said[issue.what] += issue.what not in _HARMLESS
        if 0 < said[issue.what] <= _MAX_ALIKE and issue.what not in _HARMLESS:
            where = f"{issue.file}: " if issue.file else ""
            how_many = f" ({issue.count:,} in all)" if issue.count > 1 else ""
            typer.echo(printable(f"htagraph: warning: {where}{issue.detail}{how_many}"), err=True)
    for what, count in said.items():
        if count > _MAX_ALIKE:
            more = f"{count - _MAX_ALIKE:,} more warnings of this kind ({what}); --format json lists them all"
            typer.echo(f"htagraph: warning: {more}", err=True)
