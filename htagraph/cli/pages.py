"""Verbs that draw or serve what a job shows: a figure, one HTML file, and that page with every event behind it."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import typer

from htagraph.cli.options import chosen, given, read
from htagraph.cli.waiting import phase
from htagraph.cli.writing import refuse_input
from htagraph.core.errors import HtagraphError

if TYPE_CHECKING:
    from htagraph.cli.service.server import Served
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["plot", "report", "serve"]

_WITHOUT_TRACES = ("diff", "sweep", "what_if")
"""Figures of what one job alone does not give: two jobs, a scenario."""


def plot(name: str, paths: list[str], *, output: Path, ranks: str | None = None, steps: str | None = None) -> None:
    """Draw a result and write the figure to a file.

    NAME is that of the analysis: temporal_breakdown, overlap, idle_breakdown, kernel_breakdown, operator_breakdown,
    module_breakdown, kernel_owners, kernel_distribution, launch_stats, queue_length, memory_bandwidth,
    memory_timeline, roofline, collectives, stragglers, critical_path, slack, opportunities or timeline.
    """
    import htagraph as hg
    from htagraph.output import plot as figures
    from htagraph.output.whole_files import write_figure

    known = [each for each in figures.__all__ if each not in _WITHOUT_TRACES]
    chosen = name.replace("-", "_")
    if chosen not in known:
        others = "what-if and diff draw their own: htagraph what-if traces/ --network 2 -o figure.svg"
        msg = f"{name!r} is no figure of one job: choose one of {', '.join(known)}; {others}"
        raise typer.BadParameter(msg, param_hint="NAME")
    refuse_input(output, paths, "--output")
    drawn: Any = read(paths, ranks, steps)
    if chosen != "timeline":
        drawn = hg.memory.timeline(drawn) if chosen == "memory_timeline" else getattr(hg, chosen)(drawn)
    write_figure(getattr(figures, chosen)(drawn), output)


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
