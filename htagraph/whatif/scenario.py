"""Scenario: a chain of changes to a job; each method calls the function of its name in `whatif.changes`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from htagraph.queries.replay import predict
from htagraph.queries.weights import ChangeError, State
from htagraph.whatif import changes as change
from htagraph.whatif.link_sharing import assumed
from htagraph.whatif.outcome import Outcome

if TYPE_CHECKING:
    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Scenario"]


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
        given = ", ".join(f"{key}={value!r}" for key, value in options.items() if value is not None)
        name = getattr(function, "__name__", "change")
        return Scenario(self.graph, function(self.state, **options), (*self.changes, f"{name}({given})"))

    def scale(self, *, factor: float, **criteria: Any) -> Scenario:  # noqa: ANN401 - those of graph.select
        """Let selected activities take `factor` times as long; see `htagraph.whatif.changes.scale`."""
        return self.apply(change.scale, factor=factor, **criteria)

    def set_duration(self, *, ns: float, **criteria: Any) -> Scenario:  # noqa: ANN401 - those of graph.select
        """Let each selected activity take `ns` nanoseconds; see `htagraph.whatif.changes.set_duration`."""
        return self.apply(change.set_duration, ns=ns, **criteria)

    def remove(self, **criteria: Any) -> Scenario:  # noqa: ANN401 - those of graph.select
        """Leave selected activities out, with the calls that launch them; see `htagraph.whatif.changes.remove`."""
        return self.apply(change.remove, **criteria)

    def scale_network(self, *, factor: float, **criteria: Any) -> Scenario:  # noqa: ANN401 - those of graph.select
        """Let transfers between ranks take `factor` times as long; see `htagraph.whatif.changes.scale_network`."""
        return self.apply(change.scale_network, factor=factor, **criteria)

    def network(
        self,
        *,
        latency_us: float | None = None,
        bandwidth_gb_s: float | None = None,
        bandwidth_gbps: float | None = None,
    ) -> Scenario:
        """Give the network another latency (µs) or bus bandwidth (GB/s); see `whatif.changes.network`.

        ``bandwidth_gbps`` is the former name of `bandwidth_gb_s`, with the same unit, and deprecated.
        """
        if bandwidth_gbps is not None:
            if bandwidth_gb_s is not None:
                msg = "network: bandwidth_gbps= is the former name of bandwidth_gb_s=; give the latter alone"
                raise ChangeError(msg)
            warnings.warn("network(bandwidth_gbps=) is now bandwidth_gb_s=", DeprecationWarning, stacklevel=2)
            bandwidth_gb_s = bandwidth_gbps
        return self.apply(change.network, latency_us=latency_us, bandwidth_gb_s=bandwidth_gb_s)

    def no_interruptions(self) -> Scenario:
        """Let nothing interrupt host threads; see `htagraph.whatif.changes.no_interruptions`."""
        return self.apply(change.no_interruptions)

    def no_launch_overhead(self, **criteria: Any) -> Scenario:  # noqa: ANN401 - those of graph.select
        """Let launch calls and launch latency take no time; see `htagraph.whatif.changes.no_launch_overhead`."""
        return self.apply(change.no_launch_overhead, **criteria)

    def cuda_graph(
        self,
        *,
        step: int | Sequence[int] | None = None,
        start_us: float | None = None,
        end_us: float | None = None,
        rank: int | Sequence[int] | None = None,
    ) -> Scenario:
        """Launch all kernels of steps, or of a range of time, as one CUDA graph; see `whatif.changes.cuda_graph`."""
        return self.apply(change.cuda_graph, step=step, start_us=start_us, end_us=end_us, rank=rank)

    def infinite_host(self) -> Scenario:
        """Let the host take no time; see `htagraph.whatif.changes.infinite_host`."""
        return self.apply(change.infinite_host)

    def infinite_gpu(self) -> Scenario:
        """Let kernels and copies take no time; see `htagraph.whatif.changes.infinite_gpu`."""
        return self.apply(change.infinite_gpu)

    def inject(
        self,
        *,
        rank: int,
        factor: float,
        kind: Literal["kernels", "host", "loader"] = "kernels",
        **criteria: Any,  # noqa: ANN401 - those of graph.select
    ) -> Scenario:
        """Make one rank's kernels, host or data loader slower; see `htagraph.whatif.changes.inject`."""
        return self.apply(change.inject, rank=rank, factor=factor, kind=kind, **criteria)

    def jitter(self, *, sigma: float, runs: int = 100, seed: int = 0, **criteria: Any) -> Scenario:  # noqa: ANN401
        """Draw selected durations at random, `runs` times; see `htagraph.whatif.changes.jitter`."""
        return self.apply(change.jitter, sigma=sigma, runs=runs, seed=seed, **criteria)

    def remove_sync(self, **criteria: Any) -> Scenario:  # noqa: ANN401 - those of graph.select
        """Let blocking calls wait for no device work; see `htagraph.whatif.changes.remove_sync`."""
        return self.apply(change.remove_sync, **criteria)

    def free_dataloader(self, **criteria: Any) -> Scenario:  # noqa: ANN401 - rank and step
        """Let the data loader always have the next batch ready; see `htagraph.whatif.changes.free_dataloader`."""
        return self.apply(change.free_dataloader, **criteria)

    def fix_straggler(
        self, *, rank: int | Literal["auto"] = "auto", to: Literal["median", "mean", "min"] = "median"
    ) -> Scenario:
        """Let a rank's own work take no longer than its peers'; see `htagraph.whatif.changes.fix_straggler`."""
        return self.apply(change.fix_straggler, rank=rank, to=to)

    def fuse(self, **criteria: Any) -> Scenario:  # noqa: ANN401 - those of graph.select
        """Make selected kernels that follow each other one kernel; see `htagraph.whatif.changes.fuse`."""
        return self.apply(change.fuse, **criteria)

    def move_to_stream(self, *, stream: int, **criteria: Any) -> Scenario:  # noqa: ANN401 - those of graph.select
        """Run selected device work on another stream of its rank; see `htagraph.whatif.changes.move_to_stream`."""
        return self.apply(change.move_to_stream, stream=stream, **criteria)

    def perfect_overlap(self, *, group: str | None = None) -> Scenario:
        """Let no other work wait for collectives of process groups; see `htagraph.whatif.changes.perfect_overlap`."""
        return self.apply(change.perfect_overlap, group=group)

    def shared_link(self, *, on: bool = True) -> Scenario:
        """Let transfers that overlap slow each other down, or not; see `htagraph.whatif.changes.shared_link`."""
        return self.apply(change.shared_link, on=on)

    def no_overlap(self, *, group: str | None = None) -> Scenario:
        """Let collectives of process groups not overlap with computation; see `htagraph.whatif.changes.no_overlap`."""
        return self.apply(change.no_overlap, group=group)

    def scale_ranks(self, n: int, *, groups: str = "*") -> Scenario:
        """Extrapolate the job to `n` ranks; see `htagraph.whatif.changes.scale_ranks`."""
        return self.apply(change.scale_ranks, n=n, groups=groups)
