"""Scenarios: predict the job with something faster, slower or left out; each method of a `Scenario` is a change.

`sweep` predicts one scenario for many factors: for instance, how much faster a job gets as its kernels do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from htagraph.core.computing import Threads, most_threads
from htagraph.core.errors import SelectionError, check_type, shown
from htagraph.core.tables import Col, Table, described
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.weights import State, initial
from htagraph.whatif.asked import meaning_of
from htagraph.whatif.links import assumed
from htagraph.whatif.options import Changes
from htagraph.whatif.outcome import Outcome

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Scenario", "sweep", "what_if"]

TABLE = Table(
    "Predictions by factor",
    Col("factor"),
    Col("makespan_us", doc="predicted makespan"),
    Col("mean_step_us", doc="predicted usual step; the makespan where there are no steps", heading="step_us"),
    Col("saved_us", doc="how much shorter the makespan becomes; negative if the makespan becomes longer"),
    Col("speedup", doc="the recorded makespan over the predicted one"),
    Col("low high", doc="only with `intervals`: the 90 % interval of ``speedup``"),
)


def what_if(graph: DependencyGraph, *, also: DependencyGraph | Iterable[DependencyGraph] = ()) -> Scenario:
    """Return a scenario without changes; chain changes onto it, then ``.run()`` it.

    The replay derives every wait: work starts when the last of its predecessors allows it. Without changes, the replay
    is exact to 0 ns.

    Args:
        graph: the job.
        also: another recording of it, or several, as with another batch: they make a change of the batch surer.

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
    check_type(graph, DependencyGraph, "htagraph.what_if takes a graph (of a job on workers: job.load([0, 1]))")
    recordings = tuple(also) if isinstance(also, Iterable) and not isinstance(also, str) else (also,)
    for recording in recordings:
        check_type(recording, DependencyGraph, "htagraph.what_if takes graphs of other recordings as also=")
    return Scenario(graph, replace(initial(graph), also=recordings))


@dataclass(frozen=True, eq=False)
class Scenario(Changes):
    """Changes to a job, applied left to right. A scenario is immutable: every method returns a new one.

    A method takes keywords, or a selection and the number of the change, or the text of its option on the command line:
    ``scale(factor=0.5, name="*gemm*")``, ``scale(graph.select(name="*gemm*"), 0.5)`` and ``scale("name=*gemm*:0.5")``
    are one change. Further examples: ``set(selection, "12us")`` and ``network(2)``. A selection alone means exactly its
    activities; ``op=selection`` means all that is inside.

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
        _ = state.graph.replay_order  # what cannot happen is an error now, not when a time is read
        return Outcome(self.graph, state, self.changes, links)

    def apply(self, function: Callable[..., State], **options: Any) -> Scenario:  # noqa: ANN401 - the change's options
        """Return the scenario with one more change, given as a function ``(state, **options) -> state``."""
        return self._after(getattr(function, "__name__", "change"), function(self.state, **options), options)

    def _after(self, change: str, state: State, options: dict[str, Any]) -> Scenario:
        given = ", ".join(f"{key}={value!r}" for key, value in options.items() if value is not None)
        means = f": {meaning_of(change, options)}" if change == "scale_network" else ""  # else taken for the opposite
        return Scenario(self.graph, state, (*self.changes, f"{change}({given}){means}"))


@described(TABLE)
def sweep(
    graph: DependencyGraph, scenario: Callable[[Scenario, float], Scenario], factors: Iterable[float], *,
    threads: int | None = None, intervals: bool = False,
) -> pd.DataFrame:  # fmt: skip
    """Return the predictions of one scenario for several factors, each as if it were run alone.

    The scenarios are replayed in threads. The first replay finds what all replays share: for instance, the order of
    the graph.

    Args:
        graph: the job.
        scenario: makes the scenario of a factor: it is called with ``hg.what_if(graph)`` and the factor, and returns
            the scenario with its changes. It must not write to anything that it shares with other calls.
        factors: numbers, in any order; `scenario` decides what they mean.
        threads: how many scenarios are replayed at once; by default as many as the machine has cores, up to 8.
        intervals: also give the interval of each prediction, which takes as long as ten replays.

    Returns:
        One row per factor, in their order: {columns}.

    Raises:
        SelectionError: nothing meets the criteria of the scenario, a factor that the change cannot use, or `threads`
            below 1.
        TypeError: `scenario` is no function, or does not return a scenario, or a factor is no number.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> table = hg.sweep(graph, lambda job, factor: job.scale(factor=factor, kind="computation"), [1.0, 0.5, 0.0])
        >>> bool(table["makespan_us"].is_monotonic_decreasing), float(table["speedup"][0])
        (True, 1.0)
    """
    import pandas as pd

    if threads is not None and threads < 1:
        msg = f"threads={threads}: give 1 or more"
        raise SelectionError(msg)
    check_type(graph, DependencyGraph, "htagraph.sweep takes a graph first (of a job on workers: job.load([0, 1]))")
    if not callable(scenario):
        msg = f"htagraph.sweep takes a function of a scenario and a factor, not {shown(scenario)}"
        raise TypeError(msg)
    check_type(factors, Iterable, "htagraph.sweep takes a list of factors")
    numbers = list(factors)
    job = what_if(graph)
    for factor in numbers:
        check_type(factor, Real, "htagraph.sweep takes factors that are numbers")

    def row(factor: float) -> tuple[float, ...]:
        changed = scenario(job, factor)
        check_type(changed, Scenario, "htagraph.sweep takes a function that returns the changed scenario")
        outcome = changed.run()
        return (
            float(factor), outcome.makespan_ns / 1000, outcome.step_ns / 1000, outcome.saved_ns / 1000,
            outcome.speedup, *((outcome.low, outcome.high) if intervals else ()),
        )  # fmt: skip

    rows = [row(factor) for factor in numbers[:1]]
    with Threads(threads or most_threads()) as pool:
        rows += pool.map(row, numbers[1:])
    columns = [name for name in TABLE.types if intervals or name not in ("low", "high")]
    return pd.DataFrame(rows, columns=columns).astype("float64")
