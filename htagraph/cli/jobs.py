"""Verbs that read one job and do more than show a report on it: they take other files, write some, or serve."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import typer

import htagraph as hg
from htagraph.cli.options import chosen, given, read, read_on, say_noted
from htagraph.cli.writing import Format, need_perfetto, phase, refuse_input, show, write
from htagraph.core.errors import HtagraphError, nearest_words
from htagraph.core.kinds import FULL_QUEUE
from htagraph.output.whole_files import write_figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from htagraph.cli.service.server import Served
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["counters", "critical_path", "export", "memory", "patterns", "plot", "report", "serve", "summary"]


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
    output: Path | None = None, full: bool = False,
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
    show(critical_path_report(path, given(paths, ranks), top=top, segments=segments, full=full), form, output, paths)
    for line in files:
        typer.echo(line, err=True)


def counters(  # noqa: PLR0913 - one argument per option
    paths: list[str], *, ranks: str | None = None, steps: str | None = None, full: int = FULL_QUEUE,
    series: bool = False, perfetto: Path | None = None, form: Format | None = None, output: Path | None = None,
) -> None:  # fmt: skip
    """How many kernels and copies each stream has queued, how long a queue is full, and how fast memory is copied."""
    refuse_input(perfetto, paths, "--perfetto")
    graph = read(paths, ranks, steps)
    from htagraph.output.reports.queues import counters_report

    report = counters_report(graph, given(paths, ranks, steps), full=full, series=series)
    if perfetto is not None:
        from htagraph.output.export.perfetto import counters_to_perfetto

        report.sentences.append(f"{counters_to_perfetto(graph, perfetto)}.")
    show(report, form, output, paths)


def patterns(  # noqa: PLR0913 - one argument per option
    paths: list[str], *, operator: str | None = None, min_length: int = 3, overlay: Path | None = None,
    compress: bool = True, ranks: str | None = None, steps: str | None = None, top: int = 5,
    form: Format | None = None, output: Path | None = None,
) -> None:  # fmt: skip
    """Which sequences of kernels repeat, how often, and how long they take: of an operator, or the longest."""
    graph = read(paths, ranks, steps)
    from htagraph.output.reports.patterns import patterns_report, repeating_operator

    report = patterns_report(graph, given(paths, ranks, steps), operator=operator, min_length=min_length, top=top)
    if overlay is not None:
        from htagraph.output.export.patterns import export_patterns

        named = repeating_operator(graph, min_length) if operator is None else operator
        for file in export_patterns(graph, overlay, named, min_length=min_length, top=top, compress=compress):
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

    show(memory_report(graph, given(paths, ranks, steps), top=top), form, output, paths)


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
    from htagraph.trace.profiler_files.files import read_memory_timeline
    from htagraph.trace.profiler_files.memory_snapshot import read_memory_snapshot

    if what == "timeline":
        report = timeline_report(read_memory_timeline(path), path)
    else:
        report = snapshot_report(read_memory_snapshot(path), top=top)
    show(report, form, output, [str(path)])


_WITHOUT_TRACES = ("diff", "sweep", "what_if")
"""Figures of what one job alone does not give: two jobs, a scenario."""


def plot(
    name: str | None = None,
    paths: list[str] | None = None,
    *,
    output: Path | None = None,
    ranks: str | None = None,
    steps: str | None = None,
) -> None:
    """Draw a result and write the figure to a file.

    NAME is that of the analysis: temporal_breakdown, overlap, idle_breakdown, kernel_breakdown, operator_breakdown,
    module_breakdown, kernel_owners, kernel_distribution, launch_stats, queue_length, memory_bandwidth,
    memory_timeline, roofline, collectives, stragglers, critical_path, slack, opportunities, plan, capacity or
    timeline.
    """
    from htagraph.output import plot as figures

    known = [each for each in figures.__all__ if each not in _WITHOUT_TRACES]
    chosen = (name or "").replace("-", "_")
    if chosen not in known:
        raise typer.BadParameter(_no_figure(name, paths, known), param_hint="FIGURE")
    if not paths:
        msg = f"give the traces to draw: htagraph plot {chosen} traces/ -o {chosen}.html"
        raise typer.BadParameter(msg, param_hint="PATHS")
    if output is None:
        from htagraph.findings.phrases import command_line

        msg = f"give the file to write: {command_line('plot', [chosen, *paths], '-o', f'{chosen}.html')}"
        raise typer.BadParameter(msg, param_hint="--output")
    refuse_input(output, paths, "--output")
    drawn: Any = read(paths, ranks, steps)
    if chosen != "timeline":
        drawn = hg.memory.timeline(drawn) if chosen == "memory_timeline" else getattr(hg, chosen)(drawn)
    write_figure(getattr(figures, chosen)(drawn), output)


def _no_figure(name: str | None, paths: Sequence[str] | None, known: Sequence[str]) -> str:
    """Return the fault of the word for a figure, or of a missing word, with an example to run."""
    from htagraph.findings.phrases import command_line

    figures = f"figures are {', '.join(known)}"
    if name is None or (not paths and Path(name).exists()):
        example = command_line("plot", ["idle_breakdown", name or "traces/"], "-o", "idle_breakdown.html")
        return f"which figure? For example: {example}; {figures}"
    drawn_elsewhere = "what-if and diff draw their own: htagraph what-if traces/ --network 2x -o figure.svg"
    return f"{name!r} is no figure of one job{nearest_words(name, known)}; {figures}; {drawn_elsewhere}"


def export(paths: list[str], *, chakra: Path, ranks: str | None = None, steps: str | None = None) -> None:
    """Write a job for other tools: as Chakra execution traces, a file per rank, with all dependencies.

    ASTRA-sim and other simulators replay them. Example: htagraph export traces/ --chakra et/
    """
    graph = read(paths, ranks, steps)
    from htagraph.output.export.chakra import to_chakra

    with phase("writing"):
        files = to_chakra(graph, chakra)
    typer.echo("\n".join(files.sentences), err=True)


def report(
    paths: list[str], *, ranks: str | None = None, steps: str | None = None, compare: bool = False,
    output: Path = Path("report.html"),
) -> None:  # fmt: skip
    """One HTML file: what limits the job, an interactive timeline, and where the time goes.

    Example: htagraph report traces/ -o report.html
    """
    refuse_input(output, paths, "--output")
    if compare:
        written = _compared(paths, chosen(ranks, "--ranks"), chosen(steps, "--steps"), output)
    else:
        graph = read(paths, ranks, steps)
        from htagraph.output.html.report import report as write

        written = write(graph, output, inputs=given(paths, ranks, steps))
    typer.echo(f"{written}: {written.stat().st_size / 1e6:.2f} MB. Open it in a browser.", err=True)


def _compared(paths: list[str], ranks: list[int] | None, steps: list[int] | None, output: Path) -> Path:
    """Write the page about the difference of two jobs."""
    if len(paths) != 2:
        msg = f"it takes two jobs, before and after; {len(paths)} given"
        raise typer.BadParameter(msg, param_hint="--compare")
    graphs = [read([path], None, None) for path in paths]
    from htagraph.analyses.differences import diff
    from htagraph.output.html.report import report as write

    return write(diff(graphs[0], graphs[1], steps=steps, ranks=ranks), output, inputs=paths)


def serve(
    paths: list[str], *, ranks: str | None = None, steps: str | None = None, port: int = 0,
    perfetto_ui: Path | None = None,
) -> None:  # fmt: skip
    """Serve the page of report on this machine's own address, with every event and argument behind it.

    Example: htagraph serve traces/ --port 8080
    """
    graph = read(paths, ranks, steps)
    say_noted()
    from htagraph.cli.service.server import EVENTS, OVERLAY, UI, Served, server_of
    from htagraph.output.html.report import report_bytes

    page = report_bytes(graph, given(paths, ranks, steps), events=EVENTS)
    overlay = (lambda: _overlay(graph)) if perfetto_ui is not None else None
    served = Served(graph, page, overlay, perfetto_ui)
    server = server_of(served, port)
    address = f"http://127.0.0.1:{server.server_address[1]}"
    typer.echo(f"{address}/ (Ctrl-C ends it)", err=True)
    if perfetto_ui is not None:
        typer.echo(f"{address}{UI}#!/?url={address}{OVERLAY} (Perfetto, with the critical path)", err=True)
        with suppress(RuntimeError):  # the system may refuse a thread: the overlay is then drawn when it is asked for
            Thread(target=_draw_ahead, args=(served,), daemon=True).start()
    with suppress(KeyboardInterrupt):
        server.serve_forever()
    server.server_close()


def _draw_ahead(served: Served) -> None:
    """Draw the overlay before it is asked for, and say so: it takes seconds, which a browser waits for."""
    try:
        with phase("drawing the critical path over the traces, for Perfetto"):
            size = len(served.overlay_bytes)
    except (HtagraphError, OSError) as error:
        typer.echo(f"htagraph: the critical path cannot be drawn over the traces: {error}", err=True)
    else:
        typer.echo(f"the traces with the critical path are ready for Perfetto ({size / 1e6:.1f} MB)", err=True)


def _overlay(graph: DependencyGraph) -> bytes:
    """Return the traces with the critical path drawn over them."""
    from htagraph.analyses.critical_path import critical_path

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "overlay.pftrace.gz"
        critical_path(graph).to_perfetto(target)
        return target.read_bytes()
