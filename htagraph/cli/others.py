"""Verbs that read no graph: what traces lack, execution traces, simulated jobs, schemas of JSON, and the cache."""

from __future__ import annotations

import json
import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from htagraph.cli.options import Form, Paths, Top, read
from htagraph.cli.verbs import Verb
from htagraph.cli.waiting import progress
from htagraph.cli.writing import Output, emit, show, target, write
from htagraph.core.errors import HtagraphError

__all__ = ["cache", "demo", "execution_trace", "mcp", "schema", "simulate", "validate"]

cache = typer.Typer(
    name="cache", help="Jobs that were loaded before: what is kept of them, and where.", no_args_is_help=True
)


def validate(
    paths: Paths,
    *,
    arguments: Annotated[bool, typer.Option("--arguments", help="Also check every argument of every event.")] = False,
    form: Form = None,
    output: Output = None,
) -> None:
    """What is wrong with these traces, and what can they answer? Exit code 1 if a file is unusable.

    Always reads the files, never what is cached of them.
    """
    with progress("reading") as advance:
        from htagraph.output.validation import validate as validated

        report = validated(paths, arguments=arguments, progress=advance)
    from htagraph.output.render import render_validation

    write(report, partial(render_validation, report), form, output, paths)
    if not report.usable:
        raise typer.Exit(1)


def execution_trace(
    file: Annotated[Path, typer.Argument(help="What ExecutionTraceObserver wrote: JSON.", show_default=False)],
    paths: Annotated[
        list[str] | None, typer.Argument(help="The trace of the same run, whose operators are linked to the nodes.")
    ] = None,
    *,
    rank: Annotated[int | None, typer.Option("--rank", help="The rank of the execution trace, of several.")] = None,
    top: Top = 15,
    form: Form = None,
    output: Output = None,
) -> None:
    """What an execution trace (Chakra) holds: operators by name with schemas, and which activities are its nodes."""
    from htagraph.output.reports.files import execution_trace_report
    from htagraph.trace.profiler_files.execution_trace import read_execution_trace

    nodes = read_execution_trace(file)
    graph = read(paths, None, None) if paths else None
    shown = execution_trace_report(file, nodes, graph, rank=rank, top=top)
    show(shown, form, output, [str(file), *(paths or [])])


def mcp(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Folders and files that may be read, and all in them; default: here.", show_default=False),
    ] = None,
    *,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Read the files even if an earlier command did, and keep nothing.")
    ] = False,
) -> None:
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


def schema(
    command: Annotated[
        str | None, typer.Argument(metavar="COMMAND", help="A command, such as summary; default: all.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file instead of stdout.")
    ] = None,
) -> None:
    """Print the JSON Schema (2020-12) of what a command prints with --format json; without a command, of all.

    Also of `event`, `select` and `jobs`, which serve and mcp answer.
    """
    from htagraph.core.words import nearest_words
    from htagraph.output.schema import COMMANDS, json_schema

    if command is not None and command not in COMMANDS:
        msg = f"{command!r} prints no JSON: choose from {', '.join(COMMANDS)}{nearest_words(command, COMMANDS)}"
        raise typer.BadParameter(msg, param_hint="COMMAND")
    emit(json.dumps(json_schema(command), indent=2) + "\n", None if output is None else target(output), [])


def demo(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder for the traces: a new or empty one. Else a temporary folder."),
    ] = None,
) -> None:
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
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to; created if it does not exist.")],
    ranks: Annotated[int | None, typer.Option(min=1, help="Processes, one GPU each.")] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps.")] = None,
    regime: Annotated[
        str, typer.Option(help="What bounds the job: gpu_bound, host_bound, communication_bound, straggler, …")
    ] = "balanced",
    events: Annotated[int | None, typer.Option(min=1000, help="Write about this many events instead.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", help="A Job field, such as kernel_us=300.")] = None,
) -> None:
    """Write the traces of a simulated training job, and the true answers about it in DIR/truth."""
    from pydantic import ValidationError

    from htagraph.core.words import nearest_words
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
        msg = f"{field}: {first['msg']}{nearest}"
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


@cache.command(cls=Verb)
def info(form: Form = None, output: Output = None) -> None:
    """Where the cache is, how full, and which jobs it holds."""
    from htagraph.output.reports.files import cache_report

    show(cache_report(), form, output, [])


@cache.command(cls=Verb)
def clear(form: Form = None, output: Output = None) -> None:
    """Empty the cache."""
    from htagraph.output.reports.files import cleared_report

    show(cleared_report(), form, output, [])
