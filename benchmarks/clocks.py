"""Clocks of simulated jobs: does each claimed uncertainty cover the truth, and how often are clocks called unknown?

    python -m benchmarks.clocks --jobs 200

Random jobs of one or several hosts, with few or many collectives, several groups and pipelines, with and without
process-group arguments, whose clocks differ between hosts; some ranks lack the head or the tail of their collectives.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

import htagraph as hg
from htagraph.core.kinds import ActivityKind
from htagraph.graph.activities import Activities
from htagraph.graph.clocks import Clock, estimate_clocks
from htagraph.graph.construction.matching.match import match
from htagraph.simulate import REGIMES, Job, simulate

MESHES = {
    "few all-reduces": Job(ranks=4, steps=3, layers=1),
    "pipeline x data": Job(ranks=4, pp=2, layers=2),
    "pipeline x data, noisy": Job(ranks=4, pp=2, layers=4, jitter=0.1),
    "tensor x data": Job(ranks=4, tp=2, layers=2),
    "tensor x pipeline x data": Job(ranks=8, tp=2, pp=2, layers=4),
    "fsdp": Job(ranks=4, data_strategy="fsdp", layers=3),
    "all-to-all": Job(ranks=4, layers=2, all_to_all=True, broadcast_buffers=True),
}


@dataclass
class Counts:
    """What the clocks of many jobs were found to be."""

    kinds: Counter[str] = field(default_factory=Counter)
    claimed_us: list[float] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)

    def add(self, what: str, clocks: tuple[Clock, ...], job: Job) -> None:
        """Count the ranks of a job other than gauges."""
        for clock in clocks:
            if clock.gauge < 0:
                self.kinds["unknown"] += 1
            elif clock.gauge != clock.rank:
                true = job.offset_ns(clock.rank) - job.offset_ns(clock.gauge)
                error = abs(clock.offset_ns - true)
                self.kinds["covered" if error <= clock.uncertainty_ns else "missed"] += 1
                self.claimed_us.append(clock.uncertainty_ns / 1000)
                if error > clock.uncertainty_ns:
                    self.misses.append(
                        f"{what}: rank {clock.rank} is off by {error / 1000:.1f} µs, claimed "
                        f"{clock.uncertainty_ns / 1000:.1f} µs of {clock.collectives} collectives"
                    )


def draw(seed: int) -> tuple[str, Job]:
    """Return a random job and its kind."""
    rnd = random.Random(seed)
    kind = rnd.choice([*REGIMES, *MESHES])
    job = REGIMES[kind]() if kind in REGIMES else MESHES[kind]
    per_host = rnd.choice([1, 2, 4, 8])
    size = rnd.choice([0.0, 3.0, 100.0, 5_000.0])
    hosts = [rnd.uniform(-size, size) for _ in range(job.ranks)]
    return kind, job.model_copy(
        update={
            "seed": rnd.randrange(10**6),
            "steps": rnd.choice([1, 2, 3, 6]),
            "era": rnd.choice(["2021", "2024", "2026"]),
            "group_args": rnd.random() < 0.5,
            "gpus_per_node": per_host,
            "clock_offsets_us": tuple(hosts[rank // per_host] for rank in range(job.ranks)),
            "end_spread_us": rnd.choice([1.5, 1.5, 10.0, 40.0]),
        }
    )


def cut(acts: Activities, seed: int) -> Activities:
    """Return activities of which some ranks lack the head or the tail of their communication."""
    rng = np.random.default_rng(seed)
    kind = acts.kind.copy()
    for rank in np.unique(acts.rank):
        rows = np.flatnonzero((acts.kind == ActivityKind.COMMUNICATION) & (acts.rank == rank))
        rows = rows[np.argsort(acts.start[rows], kind="stable")]
        head, tail = (int(rng.integers(0, len(rows) // 3 + 1)) * int(rng.random() < 0.5) for _ in range(2))
        kind[np.concatenate((rows[:head], rows[len(rows) - tail :]))] = ActivityKind.COMPUTATION
    return replace(acts, kind=kind)


def main() -> None:
    """Print how often the truth is covered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="seed of the first job")
    given = parser.parse_args()
    whole, damaged = Counts(), Counts()
    for seed in range(given.first, given.first + given.jobs):
        kind, job = draw(seed)
        with tempfile.TemporaryDirectory() as folder:
            graph = hg.load(dict(enumerate(simulate(job).write(Path(folder), level=1, truth=False))))
        whole.add(f"{seed} {kind}", graph.clocks, job)
        acts = graph.activities
        dense = [name for name in Activities.__dataclass_fields__ if name != "args"]
        acts = Activities(**{name: getattr(acts, name)[: acts.ranked] for name in dense}, args=acts.args)
        found = match(cut(acts, seed), graph.names, graph.traces)
        damaged.add(f"{seed} {kind}, cut", estimate_clocks(graph.ranks, found), job)
    for what, counts in (("whole", whole), ("heads and tails missing", damaged)):
        known = counts.kinds["covered"] + counts.kinds["missed"]
        print(
            f"{what}: {dict(counts.kinds)}; covered {counts.kinds['covered'] / max(1, known):.1%} of {known}; "
            f"median claim {np.median(counts.claimed_us or [0]):.1f} µs"
        )
        print("\n".join(f"    {miss}" for miss in counts.misses[:20]))


if __name__ == "__main__":
    main()
