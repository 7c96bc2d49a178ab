"""``htagraph cache``: what the cache of loaded jobs holds, and emptying it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from htagraph.cli.options import Form, show
from htagraph.cli.targets import Output
from htagraph.cli.verbs import Verb
from htagraph.output.wording import cache as wording

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.output.report import Report

__all__ = ["cache"]

cache = typer.Typer(
    name="cache", help="Jobs that were loaded before: what is kept of them, and where.", no_args_is_help=True
)


@cache.command(cls=Verb)
def info(form: Form = None, output: Output = None) -> None:
    """Where the cache is, how full, and which jobs it holds."""
    import pandas as pd

    from htagraph.findings.verbs import files as findings
    from htagraph.graph.storage.cache_folder import cache_folder, cached_graphs, limit_bytes

    folder = cache_folder()
    graphs = cached_graphs(folder) if folder is not None else []
    size, limit = sum(graph.size for graph in graphs), limit_bytes()
    rows = [(graph.job, graph.files, graph.size, _moment(graph.used_s), graph.path.name) for graph in graphs]
    table = pd.DataFrame(rows, columns=["job", "files", "bytes", "used_utc", "file"])
    sentences = (
        findings.no_cache() if folder is None else findings.cache_contents(str(folder), len(graphs), size, limit)
    )
    figures = {"folder": str(folder or ""), "graphs": len(graphs), "total_bytes": size, "limit_bytes": limit}
    show(_report("cache info", {"cache": table}, sentences, figures), form, output, [])


@cache.command(cls=Verb)
def clear(form: Form = None, output: Output = None) -> None:
    """Empty the cache."""
    from htagraph.findings.verbs import files as findings
    from htagraph.graph.storage.cache_folder import cache_folder
    from htagraph.graph.storage.cache_folder import clear as emptied

    folder = cache_folder()
    count, size = emptied(folder) if folder is not None else (0, 0)
    sentences = findings.no_cache() if folder is None else findings.cache_cleared(str(folder), count, size)
    figures = {"folder": str(folder or ""), "removed_graphs": count, "removed_bytes": size}
    show(_report("cache clear", {}, sentences, figures), form, output, [])


def _report(command: str, tables: dict[str, pd.DataFrame], sentences: list[str], figures: dict[str, object]) -> Report:
    import pandas as pd

    from htagraph.output.report import Report, Wording

    inputs = pd.DataFrame(columns=["rank", "file"])
    issues = pd.DataFrame(columns=["rank", "file", "what", "detail", "count"])
    brief = {name: table.drop(columns="file") for name, table in tables.items()}
    return Report(command, inputs, issues, 0.0, tables, sentences, figures, brief, Wording(wording.TITLES))


def _moment(seconds: float) -> str:
    import datetime

    return datetime.datetime.fromtimestamp(seconds, tz=datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
