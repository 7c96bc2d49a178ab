"""What if something were faster, slower or not there: predicted by a replay with other weights."""

from __future__ import annotations

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import initial
from htagraph.whatif.scenario import Scenario

__all__ = ["what_if"]


def what_if(graph: DependencyGraph) -> Scenario:
    """Return the scenario in which nothing has changed yet; chain changes onto it, then ``.run()`` it.

    A replay with other weights derives every wait anew: work starts when the last of what it waits for is over. It is
    exact, 0 ns, where nothing is changed.

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
