"""``htagraph serve``: the page of ``report``, with every event behind it."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Paths, Ranks, Steps, given, read

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

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
    from htagraph.service.answers import EVENTS, OVERLAY, UI, Served
    from htagraph.service.server import server_of

    page = report_bytes(graph, given(paths, ranks, steps), events=EVENTS)
    overlay = (lambda: _overlay(graph)) if perfetto_ui is not None else None
    server = server_of(Served(graph, page, overlay, perfetto_ui), port)
    address = f"http://127.0.0.1:{server.server_address[1]}"
    typer.echo(f"{address}/ (Ctrl-C ends it)", err=True)
    if perfetto_ui is not None:
        typer.echo(f"{address}{UI}#!/?url={address}{OVERLAY} (Perfetto, with the critical path)", err=True)
    with suppress(KeyboardInterrupt):
        server.serve_forever()
    server.server_close()


def _overlay(graph: DependencyGraph) -> bytes:
    """Return the traces with the critical path drawn over them."""
    from htagraph.analyses.critical_path import critical_path

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "overlay.pftrace.gz"
        critical_path(graph).to_perfetto(target)
        return target.read_bytes()
