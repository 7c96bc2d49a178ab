"""``htagraph execution-trace``: what a Chakra execution trace holds, and which operators of a trace are its nodes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from htagraph.cli.options import Form, Top, read, show
from htagraph.cli.targets import Output
from htagraph.output.wording import execution_trace as wording

if TYPE_CHECKING:
    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph
    from htagraph.output.report import Report

__all__ = ["execution_trace", "report"]


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
    from htagraph.trace.profiler_files.execution_trace import read_execution_trace

    nodes = read_execution_trace(file)
    graph = read(paths, None, None) if paths else None
    show(report(file, nodes, graph, rank=rank, top=top), form, output, [str(file), *(paths or [])])


def report(
    file: Path, nodes: pd.DataFrame, graph: DependencyGraph | None = None, *, rank: int | None = None, top: int = 15
) -> Report:
    """Return the report on an execution trace.

    Args:
        file: where it lies.
        nodes: result of `htagraph.execution_trace.read`.
        graph: the job of the same run, to link its operators; None for none.
        rank: the rank of the execution trace, where the graph has several.
        top: names that are shown.
    """
    import pandas as pd

    from htagraph.findings.verbs import files as findings
    from htagraph.output.report import Report, Wording
    from htagraph.queries.arguments import link_execution_trace
    from htagraph.queries.inputs import inputs_of, issues_of, window_us

    names = nodes.reset_index().groupby("name", as_index=False, sort=False).agg(
        nodes=("et_node", "size"), op_schema=("op_schema", "first")
    )  # fmt: skip
    tables = {"names": names.sort_values("nodes", ascending=False, kind="stable", ignore_index=True)}
    tables["nodes"] = nodes.reset_index()
    inputs = pd.DataFrame({"rank": [-1 if rank is None else rank], "file": [str(file)]})
    issues = pd.DataFrame(columns=["rank", "file", "what", "detail", "count"])
    if graph is not None:
        tables["links"] = link_execution_trace(graph, nodes, rank).reset_index()
        inputs, issues = pd.concat([inputs, inputs_of(graph)[["rank", "file"]]], ignore_index=True), issues_of(graph)
    linked = tables["links"] if graph is not None else None
    window = 0.0 if graph is None else window_us(graph)
    return Report(
        "execution-trace", inputs, issues, window, tables, findings.execution_trace_sentences(nodes, linked), {},
        {"names": tables["names"].head(top)}, Wording(wording.TITLES),
    )  # fmt: skip
