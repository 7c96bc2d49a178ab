"""Which measure notices a wrong graph? ``python -m benchmarks.planted [--seed S]``.

Errors are planted into the graphs of simulated jobs: latencies that are too long or missing, waits that are missing,
that are hidden in other lags, that lead to other work, or that do not exist. The replay of every such graph is exact,
because what edges do not explain becomes a gap. The table says what each measure makes of it:

- ``replay ns``: the largest error of the replay.
- ``not covered %``: device work without its launch, or collectives without partners, whichever is more.
- ``unexplained %``: by how much the makespan falls without gaps that a complete trace would not leave.
- ``infeasible %``: latencies and waits whose lag is three times or more of what another one of their kind took in all.
- ``held out %``: the median error with which the graph of a step predicts another step.
- ``second run %``: the largest error of three what-ifs, of which another recording shows the truth.
- ``outside``: how many of these three truths are outside of the outcome's interval.

docs/MEASURES.md says which kind of error each of them is for.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

import htagraph as hg
from benchmarks.gaps import infeasible_percent
from benchmarks.held_out import held_out
from htagraph.core.kinds import BLOCKING, LAUNCHES, ActivityKind, EdgeKind, Provenance
from htagraph.graph.activities import Edges
from htagraph.simulate import Job, ScaleHost, ScaleKernels, ScaleNetwork, SlowRank, simulate

JOBS: Final = {
    "device-bound": Job(
        ranks=2,
        steps=4,
        layers=3,
        kernel_us=80.0,
        network_gb_s=20.0,
        synchronize="step",
        slow_ranks=(SlowRank(rank=1, factor=1.3),),
    ),
    "host-bound": Job(ranks=2, steps=4, layers=3, kernel_us=8.0, host_us_per_op=12.0, synchronize="step"),
}
"""Jobs with what is planted: device and host waits, exposed transfers, launches that bind."""
CHANGES: Final[dict[str, tuple[Any, dict[str, Any]]]] = {
    "kernels": (ScaleKernels(what="compute", factor=0.5), {"kind": "computation", "factor": 0.5}),
    "host": (ScaleHost(factor=0.5), {"kind": ("op", "annotation", "step", "python"), "factor": 0.5}),
    "network": (ScaleNetwork(factor=3.0, latency_factor=3.0), {"kind": "communication", "factor": 3.0}),
}
"""What-if → (the change of the simulator, the criteria and factor of `scale`)."""

Planted = Callable[[hg.DependencyGraph], hg.DependencyGraph]


def _kept(graph: hg.DependencyGraph, keep: npt.NDArray[np.bool_], lag: npt.NDArray[np.int64]) -> hg.DependencyGraph:
    """Return the graph with some of its edges and other lags, at most as long as recorded."""
    observed = graph.time[graph.edges.target] - graph.time[graph.edges.source]
    edges = replace(graph.edges, lag=np.minimum(lag, observed)).take(np.flatnonzero(keep))
    return graph.replace(edges=edges)


def _of(graph: hg.DependencyGraph, *kinds: EdgeKind) -> npt.NDArray[np.bool_]:
    return np.isin(graph.edges.kind, kinds)


def launch_latency(graph: hg.DependencyGraph, factor: float) -> hg.DependencyGraph:
    """Multiply the latency of launches, up to what was recorded."""
    lag = graph.edges.lag
    scaled = np.where(_of(graph, EdgeKind.LAUNCH), np.rint(lag * factor).astype(np.int64), lag)
    return _kept(graph, np.ones(len(lag), np.bool_), scaled)


def without(graph: hg.DependencyGraph, *kinds: EdgeKind) -> hg.DependencyGraph:
    """Leave out edges."""
    return _kept(graph, ~_of(graph, *kinds), graph.edges.lag)


def hidden(graph: hg.DependencyGraph, *kinds: EdgeKind) -> hg.DependencyGraph:
    """Leave out edges, and take the waits that they explain for work of the activities that waited."""
    edges = graph.edges
    waited = np.zeros(graph.vertex_count, np.bool_)
    waited[edges.target[_of(graph, *kinds)]] = True
    works = _of(graph, EdgeKind.BODY) & waited[edges.target]
    observed = graph.time[edges.target] - graph.time[edges.source]
    return _kept(graph, ~_of(graph, *kinds), np.where(works, observed, edges.lag))


def transfers_with_waiting(graph: hg.DependencyGraph) -> hg.DependencyGraph:
    """Take the whole time of each collective for transfer: nobody waits for another rank."""
    members = np.flatnonzero(graph.activities.kind == ActivityKind.COMMUNICATION)
    own = Edges.of(
        2 * members,
        2 * members + 1,
        graph.activities.duration[members],
        EdgeKind.BODY,
        Provenance.ORDER,
        activity=members,
    )
    kept = graph.edges.take(np.flatnonzero(~_of(graph, EdgeKind.COLLECTIVE, EdgeKind.P2P)))
    return graph.replace(edges=Edges.concatenate([kept, own]), matches=None)


def other_source(graph: hg.DependencyGraph) -> hg.DependencyGraph:
    """Let streams wait for the work before that which they waited for."""
    edges, acts = graph.edges, graph.activities
    source = edges.source.copy()
    for at in np.flatnonzero(_of(graph, EdgeKind.EVENT_WAIT)).tolist():
        row = int(source[at]) // 2
        before = np.flatnonzero((acts.lane == acts.lane[row]) & (acts.start < acts.start[row]))
        source[at] = 2 * before[np.argmax(acts.start[before])] + 1 if len(before) else source[at]
    return graph.replace(edges=replace(edges, source=source))


def invented(graph: hg.DependencyGraph) -> hg.DependencyGraph:
    """Let each launch wait for the last work on the device that was over when it began."""
    acts, time = graph.activities, graph.time
    sources, targets = [], []
    for rank in graph.ranks:
        works = np.flatnonzero((acts.rank == rank) & acts.on_device)
        works = works[np.argsort(time[2 * works + 1], kind="stable")]
        calls = np.flatnonzero((acts.rank == rank) & (acts.kind == ActivityKind.LAUNCH))
        at = np.searchsorted(time[2 * works + 1], time[2 * calls], side="right") - 1
        sources.append(2 * works[at[at >= 0]] + 1)
        targets.append(2 * calls[at >= 0])
    source, target = np.concatenate(sources), np.concatenate(targets)
    new = Edges.of(source, target, time[target] - time[source], EdgeKind.THREAD, Provenance.INFERRED)
    return graph.replace(edges=Edges.concatenate([graph.edges, new]))


PLANTED: Final[Mapping[str, Planted]] = {
    "nothing": lambda graph: graph,
    "launch latency x 10": lambda graph: launch_latency(graph, 10.0),
    "launch latency 0": lambda graph: launch_latency(graph, 0.0),
    "launches missing": lambda graph: without(graph, *LAUNCHES),
    "streams' waits missing": lambda graph: without(graph, EdgeKind.EVENT_WAIT),
    "streams wait for other work": other_source,
    "calls' waits missing": lambda graph: without(graph, *BLOCKING),
    "calls' waits hidden in lags": lambda graph: hidden(graph, *BLOCKING),
    "ranks' waits in transfers": transfers_with_waiting,
    "waits that do not exist": invented,
}
"""Error → the function that plants it."""


def second_run(graph: hg.DependencyGraph, truths: Mapping[str, float]) -> tuple[float, int]:
    """Return (the largest error, %, of what-ifs whose truth is known, how many truths are outside of the interval)."""
    errors, outside = [], 0
    for name, truth in truths.items():
        outcome = hg.what_if(graph).scale(**CHANGES[name][1]).run()
        errors.append(100 * abs(outcome.mean_step_ns - truth) / truth)
        relative = truth / outcome.mean_step_ns
        outside += not outcome.speedup / outcome.high <= relative <= outcome.speedup / outcome.low
    return max(errors), outside


def not_covered_percent(graph: hg.DependencyGraph) -> float:
    """Return the share, %, of device work without its launch or of collectives without partners, whichever is more."""
    parts = graph.coverage()
    counted = [("device work", "launch"), ("collectives", "members matched")]
    shares = parts["share_percent"][[row in counted for row in zip(parts["part"], parts["what"], strict=True)]]
    return 100 - float(shares.min())


def measures(graph: hg.DependencyGraph, truths: Mapping[str, float]) -> dict[str, float]:
    """Return what each measure makes of a graph."""
    replay, (error, outside) = hg.replay(graph), second_run(graph, truths)
    return {
        "replay ns": replay.max_error_ns,
        "not covered %": not_covered_percent(graph),
        "unexplained %": 100 * (1 - replay.explained_ns / replay.makespan_ns),
        "infeasible %": infeasible_percent(graph),
        "held out %": 100 * float(held_out(graph)["error"].median()),
        "second run %": error,
        "outside": outside,
    }


def table(job: Job) -> pd.DataFrame:
    """Return one row per planted error of a job, one column per measure."""
    with tempfile.TemporaryDirectory() as folder:
        simulate(job).write(folder, suffix=".json", truth=False)
        graph = hg.load(folder)
    truths = {
        name: simulate(job.model_copy(update={"changes": (change,)})).mean_step_ns
        for name, (change, _) in CHANGES.items()
    }
    return pd.DataFrame({name: measures(plant(graph), truths) for name, plant in PLANTED.items()}).T


def main() -> None:
    """Print one table per job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=11)
    options = parser.parse_args()
    for name, job in JOBS.items():
        print(f"{name}\n{table(job.model_copy(update={'seed': options.seed})).round(2).to_string()}\n")


if __name__ == "__main__":
    main()
