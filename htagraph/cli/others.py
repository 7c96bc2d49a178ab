"""Verbs that read no graph: what traces lack, execution traces, simulated jobs, schemas of JSON, and the cache."""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path

import typer

from htagraph.cli.options import as_command, given, read
from htagraph.cli.verbs import FORMER, Verb
from htagraph.cli.writing import Format, emit, progress, show, target, write
from htagraph.core.errors import HtagraphError, nearest_words

__all__ = ["cache", "demo", "execution_trace", "mcp", "schema", "simulate", "validate"]

cache = typer.Typer(
    name="cache", help="Jobs that were loaded before: what the cache keeps of them, and where.", no_args_is_help=True
)


def validate(
    paths: list[str], *, arguments: bool = False, captures: list[str] | None = None, form: Format | None = None,
    output: Path | None = None,
) -> None:  # fmt: skip
    """What is wrong with these traces, and what can they answer? Exit code 1 if a file is unusable.

    Always reads the files, never what is cached of them.
    """
    with progress("reading") as advance:
        from htagraph.output.validation import validate as validated

        report = validated(paths, arguments=arguments, progress=advance, captures=captures or None)
    from htagraph.output.render import render_validation

    write(report, partial(render_validation, report, inputs=given(paths)), form, output, paths)
    if not report.usable:
        raise typer.Exit(1)


def execution_trace(
    file: Path, paths: list[str] | None = None, *, rank: int | None = None, top: int = 15, form: Format | None = None,
    output: Path | None = None,
) -> None:  # fmt: skip
    """What an execution trace (Chakra) holds: operators by name with schemas, and which activities are its nodes."""
    from htagraph.output.reports.files import execution_trace_report
    from htagraph.trace.profiler_files.files import read_execution_trace

    nodes = read_execution_trace(file)
    graph = read(paths, None, None) if paths else None
    shown = execution_trace_report(file, nodes, graph, rank=rank, top=top)
    show(shown, form, output, [str(file), *(paths or [])])


def mcp(paths: list[str] | None = None, *, no_cache: bool = False) -> None:
    """Serve these folders to an agent over standard input and output (Model Context Protocol), read-only.

    Example of a client's settings: {"mcpServers": {"htagraph": {"command": "htagraph", "args": ["mcp", "/data/runs"]}}}
    """
    try:
        import mcp.server.mcpserver  # noqa: F401 - asks whether it is there, and new enough
    except ImportError:
        msg = "the server needs a package more: pip install 'htagraph[mcp]'"
        raise HtagraphError(msg) from None
    from htagraph.cli.service.folders import Folders
    from htagraph.cli.service.mcp_server import mcp_server

    mcp_server(Folders.of(paths or ["."]), cache=not no_cache).run("stdio")


def schema(command: str | None = None, output: str | None = None) -> None:
    """Print the JSON Schema (2020-12) of what a command prints with --format json; without a command, of all.

    Also of `event`, `select` and `jobs`, which serve and mcp answer.
    """
    from htagraph.output.schema import COMMANDS, json_schema

    if command is not None and command in FORMER:
        command = FORMER[command][0]
    if command is not None and command not in COMMANDS:
        msg = f"{command!r} prints no JSON: choose from {', '.join(COMMANDS)}{nearest_words(command, COMMANDS)}"
        raise typer.BadParameter(msg, param_hint="COMMAND")
    emit(json.dumps(json_schema(command), indent=2) + "\n", None if output is None else target(output), [])


def demo(output: Path | None = None) -> None:
    """Write the traces of a small simulated job, one slow rank of four, and show its summary.

    Example: htagraph demo -o demo
    """
    from htagraph.cli.jobs import summary
    from htagraph.simulate import demo_job, simulate

    if output is not None and output.exists() and (not output.is_dir() or any(output.iterdir())):
        msg = f"--output {output}: is not an empty folder, and what is in it would count as part of the job"
        raise HtagraphError(msg)
    folder = output or Path(tempfile.mkdtemp(prefix="htagraph-demo-"))
    files = simulate(demo_job()).write(folder)
    typer.echo(f"{len(files)} traces of a simulated job, one file per rank, in {folder}", err=True)
    summary([str(folder)])


def simulate(
    output: Path, ranks: int | None = None, steps: int | None = None, regime: str = "balanced",
    events: int | None = None, settings: list[str] | None = None,
) -> None:  # fmt: skip
    """Write the traces of a simulated training job, and the true answers about it in DIR/truth."""
    from pydantic import ValidationError

    from htagraph.simulate import REGIMES, Job, scale_job, write_stream
    from htagraph.simulate import simulate as simulated

    if regime not in REGIMES:
        msg = f"there is no regime {regime!r}: choose from {', '.join(REGIMES)}{nearest_words(regime, REGIMES)}"
        raise typer.BadParameter(msg, param_hint="--regime")
    given = {name: value for name, value in (("ranks", ranks), ("steps", steps)) if value is not None}
    try:
        base = scale_job(events, ranks=ranks or 1) if events else REGIMES[regime]()
        job = Job.model_validate(base.model_dump() | given | _settings(settings or []))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        nearest = nearest_words(field, Job.model_fields) if first["type"] == "extra_forbidden" else ""
        words = first["msg"].removeprefix("Value error, ")
        msg = f"{field}: {words}{nearest}" if field else words
        raise typer.BadParameter(msg, param_hint="--set") from error
    if events and job.backend != "kineto":
        msg = f"--events writes step by step, as {Job.model_fields['backend'].default} does: leave it out"
        raise typer.BadParameter(msg, param_hint="--set backend")
    try:
        if events:
            typer.echo(f"{write_stream(job, output)} events in {output}", err=True)
            return
        files = simulated(job).write(output)
    except OverflowError as error:
        msg = "the job takes longer than the clock of a recording counts: give smaller times, or larger rates"
        raise typer.BadParameter(msg, param_hint="--set") from error
    typer.echo(f"{len(files)} traces in {output}, the truth in {output / 'truth'}", err=True)


def _settings(pairs: list[str]) -> dict[str, object]:
    """Return ``name=value`` options as a dict; pydantic reads the values, after JSON where a value is a list."""
    settings: dict[str, object] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            msg = f"{pair!r} is not of the form name=value"
            raise typer.BadParameter(msg, param_hint="--set")
        settings[name] = _list(name, text) if text.startswith("[") else text
    return settings


def _list(name: str, text: str) -> object:
    """Return the list that JSON text stands for.

    Args:
        name: the field of the list.
        text: the JSON.

    Raises:
        BadParameter: the text is no JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"{name}: {text!r} is no list in JSON, such as [0, 900]"
        raise typer.BadParameter(msg, param_hint="--set") from error


def info(form: Format | None = None, output: Path | None = None) -> None:
    """Where the cache is, how full, and which jobs it holds."""
    from htagraph.output.reports.files import cache_report

    show(cache_report(), form, output, [])


def clear(form: Format | None = None, output: Path | None = None) -> None:
    """Empty the cache."""
    from htagraph.output.reports.files import cleared_report

    show(cleared_report(), form, output, [])


for _verb in (info, clear):
    cache.command(cls=Verb)(as_command(_verb))
