"""How good are predictions? ``python benchmarks/accuracy.py [--jobs N] [--seed S] [--worst K] [--regime NAME]``.

Random training jobs are simulated, written as traces, loaded, and changed by what-if; the same jobs simulated with the
change are the truth. The error is |predicted - true| / true of the mean step time, as a table by how the traces were
recorded, by regime and by change, with the share of 90 % intervals that hold the truth and their median width, and the
worst of all. Nothing is fitted to these jobs: their seeds are the options'.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

import htagraph as hg
from htagraph.simulate import (
    REGIMES,
    Job,
    RemoveSync,
    ScaleHost,
    ScaleKernels,
    ScaleLaunches,
    ScaleLoader,
    ScaleNetwork,
    ScaleOptimizer,
    SetNetwork,
    SlowRank,
    simulate,
)
from htagraph.whatif.scenario import Scenario

Rewrite: TypeAlias = Callable[[Scenario], Scenario]
LOADER = "enumerate(DataLoader)*"
OWN = ("op", "annotation", "step", "python")


class Trial(NamedTuple):
    """A what-if whose truth is known."""

    regime: str
    recorded: str
    change: str
    baseline_ns: float
    predicted_ns: float
    true_ns: float
    seed: int
    interval: tuple[float, float, float]
    """The speedup, and its interval."""

    @property
    def error(self) -> float:
        """|predicted - true| / true."""
        return abs(self.predicted_ns - self.true_ns) / self.true_ns

    @property
    def width(self) -> float:
        """How wide the interval is, relative to the prediction."""
        speedup, low, high = self.interval
        return speedup / low - speedup / high

    @property
    def covered(self) -> bool:
        """Whether the interval holds the truth."""
        speedup, low, high = self.interval
        return self.predicted_ns * speedup / high <= self.true_ns <= self.predicted_ns * speedup / low


def jobs() -> dict[str, Callable[[random.Random], Job]]:
    """Return the regimes: those of the simulator, and meshes, sharding and many noisy ranks."""

    def of(name: str) -> Callable[[random.Random], Job]:
        return lambda draw: REGIMES[name]()

    return {name: of(name) for name in REGIMES} | {
        "mesh": lambda draw: Job(ranks=8, tp=2, pp=2, layers=4, kernel_us=draw.choice((40, 120))),
        "fsdp": lambda draw: Job(ranks=4, data_strategy="fsdp", network_gb_s=draw.choice((20.0, 80.0))),
        "all_to_all": lambda draw: Job(ranks=4, all_to_all=True, broadcast_buffers=True),
        "many_noisy": lambda draw: Job(ranks=draw.choice((8, 16, 32)), layers=2, jitter=0.1),
        "pipeline and data": lambda draw: Job(
            ranks=4, pp=2, layers=4, microbatches=draw.choice((2, 4)), gpus_per_node=2
        ),
        "tensor and data": lambda draw: Job(ranks=4, tp=2, layers=3, network_gb_s=draw.choice((20.0, 80.0))),
        "fsdp and tensor": lambda draw: Job(ranks=4, tp=2, data_strategy="fsdp", layers=3, gathers_ahead=1),
        "graphed forward": lambda draw: Job(
            ranks=2, cuda_graph="forward", layers=3, kernel_us=draw.choice((8.0, 80.0))
        ),
        "graphed optimizer": lambda draw: Job(
            ranks=4, cuda_graph="optimizer", optimizer="loop", kernel_us=draw.choice((8.0, 80.0))
        ),
        "graphed pipeline": lambda draw: Job(ranks=4, pp=2, layers=4, cuda_graph="forward"),
        "full queue": lambda draw: Job(ranks=2, queue_depth=32, kernel_us=200.0, optimizer="loop", item="none"),
        "loader-bound": lambda draw: Job(ranks=4, loader_us=draw.choice((5e3, 2e4)), kernel_us=40.0, layers=3),
        "synchronized": lambda draw: Job(ranks=4, synchronize="step", input_memory="pageable", kernel_us=60.0),
    }


def recordings(draw: random.Random, ranks: int) -> dict[str, dict[str, Any]]:
    """Return in which ways a job may have been recorded."""
    offsets = tuple(draw.uniform(-3000, 3000) for _ in range(ranks))
    return {
        "complete": {},
        "no cuda_sync": {"cuda_sync": False},
        "no group args": {"group_args": False},
        "neither": {"cuda_sync": False, "group_args": False},
        "skewed clocks": {"clock_offsets_us": offsets, "cuda_sync": False, "group_args": False},
        "skewed clocks, ids": {"clock_offsets_us": offsets},
        "skewed hosts": {"clock_offsets_us": tuple(offsets[rank // 2] for rank in range(ranks)), "gpus_per_node": 2},
        "stacks": {"with_stack": True, "record_shapes": True},
        "rocm": {"device": "rocm", "cuda_sync": False},
        "old era": {"era": draw.choice(("2021", "2022", "2024-03")), "cuda_sync": False, "group_args": False},
    }


def changes(job: Job, draw: random.Random) -> dict[str, tuple[Any, Rewrite]]:
    """Return changes to a job, each for the simulator and for the graph."""
    factor, slow = draw.choice((0.0, 0.3, 0.5, 0.8, 1.5)), draw.choice((1.2, 1.5, 2.0))
    rank = draw.randrange(job.ranks)
    kernel = draw.choice(("*gemm*", "*elementwise*", "*softmax*", "*"))
    return {
        "kernels": (
            ScaleKernels(name=kernel, what="compute", factor=factor),
            lambda s: s.scale(kind="computation", name=kernel, factor=factor),
        ),
        "network": (
            ScaleNetwork(factor=factor, latency_factor=1.0 if factor else 0.0),
            lambda s: s.scale_network(factor=factor),
        ),
        "host": (ScaleHost(factor=factor), lambda s: s.scale(kind=OWN, factor=factor)),
        "host op": (
            ScaleHost(op="aten::*", factor=factor), lambda s: s.scale(kind="op", name="aten::*", factor=factor)
        ),
        "launches": (ScaleLaunches(factor=factor), lambda s: s.scale(kind="launch", factor=factor)),
        "no launch overhead": (ScaleLaunches(factor=0, latency_factor=0), lambda s: s.no_launch_overhead()),
        "loader": (ScaleLoader(factor=factor), lambda s: s.scale(name=LOADER, factor=factor)),
        "optimizer": (ScaleOptimizer(factor=factor), lambda s: s.scale(op="Optimizer.step*", factor=factor)),
        "no syncs": (RemoveSync(), lambda s: s.remove_sync()),
        "slow kernels": (
            SlowRank(rank=rank, what="kernels", factor=slow), lambda s: s.inject(rank=rank, factor=slow, kind="kernels")
        ),
        "slow host": (
            SlowRank(rank=rank, what="host", factor=slow), lambda s: s.inject(rank=rank, factor=slow, kind="host")
        ),
        "slow loader": (
            SlowRank(rank=rank, what="loader", factor=slow), lambda s: s.inject(rank=rank, factor=slow, kind="loader")
        ),
        "bandwidth": (
            SetNetwork(gb_s=2 * job.network_gb_s, latency_us=job.network_latency_us / 2),
            lambda s: s.scale_network(factor=0.5),
        ),
    }  # fmt: skip


def trial(seed: int, regime: str = "", recorded: str = "", contention: float = 0.0, count: int = 3) -> list[Trial]:
    """Return what came of some changes to one random job."""
    draw = random.Random(seed)
    regime = regime or draw.choice(sorted(jobs()))
    job = jobs()[regime](draw)
    job = job.model_copy(update={"seed": seed, "steps": draw.choice((3, 4)), "contention": contention})
    recorded = recorded or draw.choice(sorted(recordings(draw, job.ranks)))
    written = job.model_copy(update=recordings(draw, job.ranks)[recorded])
    with tempfile.TemporaryDirectory() as folder:
        simulate(written).write(folder, suffix=".json", truth=False)
        scenario = hg.what_if(hg.load(folder))
    baseline = scenario.run().baseline_mean_step_ns
    found = []
    chosen = changes(job, draw)
    for name in draw.sample(sorted(chosen), count):
        change, rewrite = chosen[name]
        truth = simulate(job.model_copy(update={"changes": (change,)})).mean_step_ns
        try:
            outcome = rewrite(scenario).run()
            predicted, interval = outcome.mean_step_ns, (outcome.speedup, outcome.low, outcome.high)
        except hg.SelectionError as error:  # a job without what is to be changed
            print(f"seed {seed}, {regime}: no {name}: {error}", flush=True)
            continue
        found.append(Trial(regime, recorded, f"{name} {_factor(change)}", baseline, predicted, truth, seed, interval))
    return found


def _factor(change: object) -> str:
    factor = getattr(change, "factor", None)
    return "" if factor is None else f"× {factor:g}"


def table(trials: list[Trial]) -> pd.DataFrame:
    """Return one row per trial, errors in percent."""
    frame = pd.DataFrame(trials)
    frame["width_percent"] = [100 * trial.width for trial in trials]
    frame["covered_percent"] = [100 * trial.covered for trial in trials]
    frame["error_percent"] = [100 * trial.error for trial in trials]
    frame["effect_percent"] = 100 * (frame["true_ns"] / frame["baseline_ns"] - 1)
    frame["kind"] = frame["change"].str.split("×").str[0].str.strip()
    return frame


def shares(frame: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return the distribution of errors in percent."""
    errors = frame.groupby(by)["error_percent"]
    columns = {
        "count": errors.size(), "median": errors.median(), "p95": errors.quantile(0.95), "worst": errors.max(),
        "covered": frame.groupby(by)["covered_percent"].mean(), "width": frame.groupby(by)["width_percent"].median(),
    }  # fmt: skip
    return pd.DataFrame(columns)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--worst", type=int, default=15)
    parser.add_argument("--regime", default="")
    parser.add_argument("--recorded", default="")
    parser.add_argument(
        "--contention", type=float, default=0.0, help="kernels beside collectives take longer: no model"
    )
    options = parser.parse_args()
    chosen = (options.regime, options.recorded, options.contention)
    work = [(seed, *chosen) for seed in range(options.seed, options.seed + options.jobs)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        frame = table([each for found in pool.starmap(trial, work, chunksize=4) for each in found])
    errors = frame["error_percent"]
    print(f"{len(frame)} what-ifs: median {errors.median():.3f} %, p95 {np.percentile(errors, 95):.3f} %, "
          f"worst {errors.max():.2f} %; the 90 % interval holds the truth in {frame['covered_percent'].mean():.1f} %, "
          f"median width {frame['width_percent'].median():.2f} %\n")  # fmt: skip
    for by in ("recorded", "regime", "kind"):
        print(shares(frame, by).round(3).to_string(), "\n")
    columns = ["regime", "recorded", "change", "seed", "error_percent", "effect_percent"]
    print(frame.nlargest(options.worst, "error_percent")[columns].round(2).to_string(index=False))


if __name__ == "__main__":
    main()
