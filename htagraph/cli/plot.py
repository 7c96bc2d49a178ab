"""``htagraph plot``: a result as a figure in a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from htagraph.cli.options import Paths, Ranks, Steps, read, refuse_input
from htagraph.cli.targets import Figure

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["plot"]

_WITHOUT_TRACES = ("diff", "sweep", "what_if")
"""Figures of what one job alone does not give: two jobs, a scenario."""
Name = Annotated[str, typer.Argument(help="Which figure, such as temporal_breakdown or critical-path.")]


def plot(name: Name, paths: Paths, *, output: Figure, ranks: Ranks = None, steps: Steps = None) -> None:
    """Draw a result and write the figure to a file.

    NAME is that of the analysis: temporal_breakdown, overlap, idle_breakdown, kernel_breakdown, operator_breakdown,
    module_breakdown, kernel_owners, kernel_distribution, launch_stats, queue_length, memory_bandwidth,
    memory_timeline, roofline, collectives, stragglers, critical_path, slack, opportunities or timeline.
    """
    from htagraph.output.plot.choose import FIGURES, figure_function
    from htagraph.output.plot.files import write_figure

    known = [each for each in FIGURES if each not in _WITHOUT_TRACES]
    chosen = name.replace("-", "_")
    if chosen not in known:
        others = "what-if and diff draw their own: htagraph what-if traces/ --network 2 -o figure.svg"
        msg = f"{name!r} is no figure of one job: choose one of {', '.join(known)}; {others}"
        raise typer.BadParameter(msg, param_hint="NAME")
    refuse_input(output, paths, "--output")
    figure = figure_function(chosen)(_result(chosen, read(paths, ranks, steps)))
    write_figure(figure, output)


def _result(name: str, graph: DependencyGraph) -> Any:  # noqa: ANN401 - of any analysis
    """Return what a figure is drawn of."""
    import htagraph as hg

    if name == "timeline":
        return graph
    return hg.memory.timeline(graph) if name == "memory_timeline" else getattr(hg, name)(graph)
