"""``htagraph serve``: the page of ``report``, with every event behind it."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Paths, Ranks, Steps, given, read
from htagraph.cli.waiting import phase
from htagraph.core.errors import HtagraphError

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.service.server import Served

__all__ = ["serve"]


def serve(
    paths: Paths,
    *,
    ranks: Ranks = None,
    steps: Steps = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Of this machine; 0 for any that is free.")] = 0,
    perfetto_ui: Annotated[
        Path | None,
        typer.Option(
            "--perfetto-ui",
            exists=True,
            file_okay=False,
            help="A folder with a copy of Perfetto's UI, to be opened on these traces.",
        ),
    ] = None,
) -> None:
    """The page of report on this machine's own address, with every event and argument behind it.

    Example: htagraph serve traces/ --port 8080
    """
    graph = read(paths, ranks, steps)
    from htagraph.output.html.report import report_bytes
    from htagraph.service.server import EVENTS, OVERLAY, UI, Served, server_of

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
