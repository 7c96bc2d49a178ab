"""Verbs that read one job and do more than show a report on it: they take other files, or write some."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from htagraph.cli.options import chosen, given, read, read_on
from htagraph.cli.writing import need_perfetto, refuse_input, show, write
from htagraph.core.kinds import FULL_QUEUE
from htagraph.core.naming import LINEAR

if TYPE_CHECKING:
    from htagraph.cli.writing import Format

__all__ = ["counters", "critical_path", "memory", "patterns", "summary"]


def summary(  # noqa: PLR0913, PLR0917 - one argument per option
    paths: list[str], ranks: str | None = None, steps: str | None = None, top: int = 5, form: Format | None = None,
    output: Path | None = None, scheduler: str | None = None, full: bool = False,  # noqa: FBT001, FBT002 - an option
) -> None:  # fmt: skip
    """Where did the time go, what bounds this job, and what to try first?"""
    if scheduler is not None:
        from htagraph.output.reports.workers import job_report

        show(job_report(read_on(scheduler, paths, ranks, steps), top=top), form, output, paths)
        return
    graph = read(paths, ranks, steps)
    from htagraph.output.render import render_summary
    from htagraph.output.summary import summarize

    result = summarize(graph, top=top)
    shown = partial(render_summary, result, full=full, inputs=given(paths, ranks, steps))
    write(result, shown, form, output, paths)


def critical_path(  # noqa: PLR0913 - one argument per option
    paths: list[str], *, ranks: str | None = None, steps: str | None = None, top: int = 10, segments: bool = False,
    perfetto: Path | None = None, counters: bool = False, graphviz: Path | None = None, form: Format | None = None,
    output: Path | None = None,
) -> None:  # fmt: skip
    """What decided when the job, or a step, ended: the chain of work and waits across ranks."""
    numbers = chosen(steps, "--steps")
    need_perfetto(perfetto, counters=counters)
    refuse_input(perfetto, paths, "--perfetto")
    graph = read(paths, ranks, None)  # what came before a step may reach into it
    from htagraph.analyses.critical_path import critical_path as path_of
    from htagraph.output.reports.ranks import critical_path_report

    path = path_of(graph, steps=numbers)
    files = [] if perfetto is None else [str(path.to_perfetto(perfetto, counters=counters))]
    if graphviz is not None:
        from htagraph.output.export.graphviz import draw

        drawn = draw(path, graphviz)
        files.append(f"{drawn}: a picture of the path" if drawn.suffix == graphviz.suffix else (
            f"{drawn}: the source of the picture. {graphviz} was not drawn, because Graphviz's dot is not installed "
            f"(apt install graphviz, brew install graphviz). Where it is, draw it by dot -T{graphviz.suffix[1:]} "
            f"{drawn} -o {graphviz}"
        ))  # fmt: skip
    show(critical_path_report(path, given(paths, ranks), top=top, segments=segments), form, output, paths)
    for line in files:
        typer.echo(line, err=True)


def counters(  # noqa: PLR0913 - one argument per option
    paths: list[str], *, ranks: str | None = None, steps: str | None = None, full: int = FULL_QUEUE,
    series: bool = False, perfetto: Path | None = None, form: Format | None = None, output: Path | None = None,
) -> None:  # fmt: skip
    """How many kernels and copies each stream has queued, how long a queue is full, and how fast memory is copied."""
    refuse_input(perfetto, paths, "--perfetto")
    graph = read(paths, ranks, steps)
    from htagraph.output.reports.device_time import counters_report

    report = counters_report(graph, given(paths, ranks, steps), full=full, series=series)
    if perfetto is not None:
        from htagraph.output.export.perfetto import counters_to_perfetto

        report.sentences.append(f"{counters_to_perfetto(graph, perfetto)}.")
    show(report, form, output, paths)


def patterns(  # noqa: PLR0913 - one argument per option
    paths: list[str], *, operator: str = LINEAR, min_length: int = 3, overlay: Path | None = None,
    compress: bool = True, ranks: str | None = None, steps: str | None = None, top: int = 5,
    form: Format | None = None, output: Path | None = None,
) -> None:  # fmt: skip
    """Which sequences of kernels an operator launches, how often, and how long they take."""
    graph = read(paths, ranks, steps)
    from htagraph.output.reports.device_time import patterns_report

    report = patterns_report(graph, given(paths, ranks, steps), operator=operator, min_length=min_length, top=top)
    if overlay is not None:
        from htagraph.output.export.patterns import export_patterns

        for file in export_patterns(graph, overlay, operator, min_length=min_length, top=top, compress=compress):
            typer.echo(f"htagraph: wrote {file}; search it for Patterns", err=True)
    show(report, form, output, paths)


def memory(
    paths: list[str], *, ranks: str | None = None, steps: str | None = None, top: int = 15,
    form: Format | None = None, output: Path | None = None,
) -> None:  # fmt: skip
    """How much memory was in use at the peak, and what held it.

    PATHS are traces (recorded with profile_memory=True), or one memory timeline (export_memory_timeline) or memory
    snapshot (torch.cuda.memory._dump_snapshot).
    """
    from htagraph.trace.profiler_files.files import kind_of

    what = kind_of(paths[0])
    _refuse_snapshots_in(Path(paths[0]))
    if what != "trace":
        if len(paths) > 1 or ranks or steps:
            msg = f"{paths[0]} is a memory {what}: give it alone, without --ranks and --steps"
            raise typer.BadParameter(msg, param_hint="PATHS")
        _show_file(Path(paths[0]), what, top, form, output)
        return
    graph = read(paths, ranks, steps)
    from htagraph.output.reports.files import memory_report

    show(memory_report(graph, top=top), form, output, paths)


def _refuse_snapshots_in(folder: Path) -> None:
    """Refuse a folder that holds only memory snapshots: each is read alone."""
    from htagraph.trace.profiler_files.files import kind_of

    files = sorted(each for each in folder.iterdir() if each.is_file()) if folder.is_dir() else []
    pickles = [file for file in files if ".pickle" in file.name or ".pkl" in file.name]
    if pickles and not any(".json" in file.name for file in files) and kind_of(pickles[0]) == "snapshot":
        msg = f"{folder} holds memory snapshots: give one of them, such as {pickles[0]}"
        raise typer.BadParameter(msg, param_hint="PATHS")


def _show_file(path: Path, what: str, top: int, form: Format | None, output: Path | None) -> None:
    """Show what a memory timeline or snapshot holds."""
    from htagraph.output.reports.files import snapshot_report, timeline_report
    from htagraph.trace.profiler_files.memory_snapshot import read_memory_snapshot
    from htagraph.trace.profiler_files.memory_timeline import read_memory_timeline

    if what == "timeline":
        report = timeline_report(read_memory_timeline(path), path)
    else:
        report = snapshot_report(read_memory_snapshot(path), top=top)
    show(report, form, output, [str(path)])
