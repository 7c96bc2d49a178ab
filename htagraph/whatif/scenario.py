"""What-if: predict the job with something faster, slower or left out; each method of a `Scenario` is a change."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, getdoc, signature
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, overload

from htagraph.queries.replay import predict
from htagraph.queries.weights import State, initial
from htagraph.whatif import changes
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


class _Adding(Generic[P]):
    """A method that adds a change to a scenario. The file of the change is imported when the method is looked up."""

    def __init__(self, change: Callable[[], Callable[Concatenate[State, P], State]]) -> None:
        self._change = change

    def __set_name__(self, owner: type[Scenario], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, scenario: None, owner: type[Scenario]) -> Callable[Concatenate[Scenario, P], Scenario]: ...

    @overload
    def __get__(self, scenario: Scenario, owner: type[Scenario]) -> Callable[P, Scenario]: ...

    def __get__(self, scenario: Scenario | None, owner: type[Scenario]) -> Any:
        """Return the method, which takes this one's place."""
        method: Any = _adding(self._change())
        setattr(owner, self._name, method)
        return method.__get__(scenario, owner)


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

    cuda_graph = _Adding(lambda: changes.cuda_graph.cuda_graph)
    fix_straggler = _Adding(lambda: changes.fix_straggler.fix_straggler)
    free_dataloader = _Adding(lambda: changes.free_dataloader.free_dataloader)
    fuse = _Adding(lambda: changes.fuse.fuse)
    infinite_gpu = _Adding(lambda: changes.infinite_gpu.infinite_gpu)
    infinite_host = _Adding(lambda: changes.infinite_host.infinite_host)
    inject = _Adding(lambda: changes.inject.inject)
    jitter = _Adding(lambda: changes.jitter.jitter)
    move_to_stream = _Adding(lambda: changes.move_to_stream.move_to_stream)
    network = _Adding(lambda: changes.network.network)
    no_interruptions = _Adding(lambda: changes.no_interruptions.no_interruptions)
    no_launch_overhead = _Adding(lambda: changes.no_launch_overhead.no_launch_overhead)
    no_overlap = _Adding(lambda: changes.no_overlap.no_overlap)
    perfect_overlap = _Adding(lambda: changes.perfect_overlap.perfect_overlap)
    remove = _Adding(lambda: changes.remove.remove)
    remove_sync = _Adding(lambda: changes.remove_sync.remove_sync)
    scale = _Adding(lambda: changes.scale.scale)
    scale_network = _Adding(lambda: changes.scale_network.scale_network)
    scale_ranks = _Adding(lambda: changes.scale_ranks.scale_ranks)
    set_duration = _Adding(lambda: changes.set_duration.set_duration)
    shared_link = _Adding(lambda: changes.shared_link.shared_link)
