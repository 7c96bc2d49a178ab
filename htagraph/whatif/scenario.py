"""What-if: predict the job with something faster, slower or left out; each method of a `Scenario` is a change."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, getdoc, signature
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

from htagraph.queries.replay import predict
from htagraph.queries.weights import State, initial
from htagraph.whatif.changes import (
    cuda_graph,
    fix_straggler,
    free_dataloader,
    fuse,
    infinite_gpu,
    infinite_host,
    inject,
    jitter,
    move_to_stream,
    network,
    no_interruptions,
    no_launch_overhead,
    no_overlap,
    perfect_overlap,
    remove,
    remove_sync,
    scale,
    scale_network,
    scale_ranks,
    set_duration,
    shared_link,
)  # fmt: skip
from htagraph.whatif.links import assumed
from htagraph.whatif.outcome import Outcome

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Scenario", "what_if"]

P = ParamSpec("P")


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


def _adding(change: Callable[Concatenate[State, P], State]) -> Callable[Concatenate[Scenario, P], Scenario]:
    """Return the method that adds a change to a scenario. Its help is that of the change."""
    own = signature(change)

    @wraps(change)
    def method(scenario: Scenario, /, *given: P.args, **options: P.kwargs) -> Scenario:
        state = change(scenario.state, *given, **options)
        asked = own.bind(scenario.state, *given, **options)
        asked.apply_defaults()
        *named, last = list(asked.arguments.items())[1:] or [("", {})]
        criteria = last[1] if isinstance(last[1], dict) else dict([last])
        return scenario._after(change.__name__, state, dict(named) | criteria)

    scenario = Parameter("self", Parameter.POSITIONAL_ONLY)
    shown = own.replace(parameters=[scenario, *list(own.parameters.values())[1:]], return_annotation="Scenario")
    vars(method)["__signature__"] = shown
    text = (getdoc(change) or "").replace("Return the state", "Return the scenario", 1)
    method.__doc__ = re.sub(r"\n*Args:\n    state: .*(?=\n\n|$)|    state: .*\n", "", text)
    return method


@dataclass(frozen=True, eq=False)
class Scenario:
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

    cuda_graph = _adding(cuda_graph.cuda_graph)
    fix_straggler = _adding(fix_straggler.fix_straggler)
    free_dataloader = _adding(free_dataloader.free_dataloader)
    fuse = _adding(fuse.fuse)
    infinite_gpu = _adding(infinite_gpu.infinite_gpu)
    infinite_host = _adding(infinite_host.infinite_host)
    inject = _adding(inject.inject)
    jitter = _adding(jitter.jitter)
    move_to_stream = _adding(move_to_stream.move_to_stream)
    network = _adding(network.network)
    no_interruptions = _adding(no_interruptions.no_interruptions)
    no_launch_overhead = _adding(no_launch_overhead.no_launch_overhead)
    no_overlap = _adding(no_overlap.no_overlap)
    perfect_overlap = _adding(perfect_overlap.perfect_overlap)
    remove = _adding(remove.remove)
    remove_sync = _adding(remove_sync.remove_sync)
    scale = _adding(scale.scale)
    scale_network = _adding(scale_network.scale_network)
    scale_ranks = _adding(scale_ranks.scale_ranks)
    set_duration = _adding(set_duration.set_duration)
    shared_link = _adding(shared_link.shared_link)
