"""What-if: predict the job with something faster, slower or left out, by a replay with other weights."""

from __future__ import annotations

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import initial
from htagraph.whatif.scenario import Scenario

__all__ = ["what_if"]


def what_if(graph: DependencyGraph) -> Scenario:
    """Return a scenario without changes; chain changes onto it, then ``.run()`` it.

    The replay derives every wait: work starts when the last of its predecessors allows it. It is exact, to 0 ns, if
    nothing is changed.

    Args:
        graph: the job.

    Returns:
        A scenario. Each of its methods returns a new one; ``.run()`` returns an `htagraph.whatif.outcome.Outcome` with
        ``.baseline_ns``, ``.makespan_ns`` (int, ns), ``.speedup``, ``.low``, ``.high``, ``.step_times()``,
        ``.critical_path()`` and ``.graph``.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> hg.what_if(graph).run().speedup
        1.0
    """
    return Scenario(graph, initial(graph))
