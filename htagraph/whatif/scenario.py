"""What-if: predict the job with something faster, slower or left out; each method of a `Scenario` is a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.replay import predict
from htagraph.queries.weights import State, initial
from htagraph.whatif.links import assumed
from htagraph.whatif.options import Changes
from htagraph.whatif.outcome import Outcome

__all__ = ["Scenario", "what_if"]


def what_if(graph: DependencyGraph) -> Scenario:
    """Return a scenario without changes; chain changes onto it, then ``.run()`` it.

    The replay derives every wait: work starts when the last of its predecessors allows it. Without changes, the replay
    is exact to 0 ns.

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


@dataclass(frozen=True, eq=False)
class Scenario(Changes):
    """Changes to a job, applied left to right. A scenario is immutable: every method returns a new one.

    Example:
        >>> import htagraph as hg
        >>> scenario = hg.what_if(hg.load("data/demo")).scale(factor=0.5, kind="computation").scale_network(factor=0.5)
        >>> scenario.run().speedup > 1
        True
    """

    graph: DependencyGraph
    """The job as recorded."""
    state: State
    """The weights after the changes so far."""
    changes: tuple[str, ...] = ()
    """The changes, in order."""

    def __repr__(self) -> str:
        return f"Scenario({' · '.join(self.changes) or 'nothing changed'})"

    def run(self) -> Outcome:
        """Return the prediction: a replay of the job with these changes."""
        links = assumed(self.state)
        state = links.shared
        time = predict(state.graph, state.lag, state.gap, state.head)
        return Outcome(self.graph, state, self.changes, time, links)

    def apply(self, function: Callable[..., State], **options: Any) -> Scenario:  # noqa: ANN401 - the change's options
        """Return the scenario with one more change, given as a function ``(state, **options) -> state``."""
        return self._after(getattr(function, "__name__", "change"), function(self.state, **options), options)

    def _after(self, change: str, state: State, options: dict[str, Any]) -> Scenario:
        given = ", ".join(f"{key}={value!r}" for key, value in options.items() if value is not None)
        return Scenario(self.graph, state, (*self.changes, f"{change}({given})"))
