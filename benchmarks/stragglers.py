"""Stragglers injected by the simulator: who is named with one slow rank, and who without.

    python -m benchmarks.stragglers --jobs 200

Random jobs over parallelism, steps, noise of activities, spread of steps, clocks and ways of recording. Each is
simulated with one slow rank and without. A slow rank counts if it costs at least a third of what it would if all of a
step were its work: a slow host behind a busy device delays nobody, and then there is nothing to find.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
from dataclasses import dataclass

import pandas as pd

import htagraph as hg
from htagraph.analyses.stragglers import stragglers
from htagraph.simulate import Job, ScaleHost, ScaleKernels, SlowRank, simulate

MIN_EFFECT = 0.3
"""Share of the slow rank's factor beyond 1 by which the mean step must be longer for it to count. Chosen: less is work
that is hidden behind other work."""
CAUSE = {"kernels": "kernels", "host": "host"}
MESHES: dict[str, dict[str, object]] = {
    "data": {"ranks": 4, "layers": 2},
    "data, 8 ranks": {"ranks": 8, "layers": 1},
    "data, 2 ranks": {"ranks": 2, "layers": 2},
    "tensor": {"ranks": 4, "parallelism": "tensor", "layers": 2, "kernel_us": 80.0},
    "tensor x data": {"ranks": 4, "tp": 2, "layers": 2, "kernel_us": 80.0},
    "pipeline": {"ranks": 4, "parallelism": "pipeline", "layers": 4, "microbatches": 4},
    "pipeline x data": {"ranks": 4, "pp": 2, "layers": 2, "microbatches": 3},
    "fsdp": {"ranks": 4, "data_strategy": "fsdp", "layers": 2},
    "host-bound": {
        "ranks": 4, "layers": 1, "kernel_us": 6.0, "host_us_per_op": 12.0, "python_us": 15.0, "layer_mb": 1.0,
        "optimizer": "loop",
    },
}  # fmt: skip
FACTORS = (1.01, 1.02, 1.03, 1.05, 1.15)
"""How many times as long the slow rank takes. Chosen: from less than devices of one kind differ to a broken one."""
RECORDED = ("all ids", "all ids", "no cuda_sync", "no group arguments", "neither")


@dataclass(frozen=True)
class Case:
    """A job, and the rank that is slow in it."""

    facts: dict[str, object]
    job: Job
    slow: SlowRank


def draw(seed: int) -> Case:
    """Return a random job and straggler."""
    rnd = random.Random(seed)
    kind = rnd.choice(list(MESHES))
    changes = dict(MESHES[kind])
    ranks, steps = int(str(changes["ranks"])), rnd.choice([5, 5, 20])
    changes |= {"steps": steps, "seed": rnd.randrange(10**6), "jitter": rnd.choice([0.01, 0.03, 0.05, 0.1])}
    spread, recorded = rnd.choice([0, 0, 0.003, 0.01]), rnd.choice(RECORDED)
    changes["cuda_sync"] = recorded not in ("no cuda_sync", "neither")
    changes["group_args"] = recorded not in ("no group arguments", "neither")
    skewed = rnd.random() < 0.5
    if skewed:
        changes["clock_offsets_us"] = tuple(round(rnd.uniform(-500, 500), 3) for _ in range(ranks))
    changes["changes"] = tuple(
        change(factor=math.exp(rnd.gauss(0, spread)), ranks=(rank,), steps=(step,))
        for rank in range(ranks)
        for step in range(steps if spread else 0)
        for change in (ScaleKernels, ScaleHost)
    )
    factor = rnd.choice(FACTORS)
    what = "host" if kind == "host-bound" or rnd.random() < 0.15 else "kernels"
    slow = SlowRank(rank=rnd.randrange(ranks), what=what, factor=factor)
    facts = {"kind": kind, "steps": steps, "jitter": changes["jitter"], "spread": spread, "recorded": recorded}
    facts |= {"clocks": "skewed" if skewed else "right", "factor": factor, "what": what}
    return Case(facts, Job.model_validate(changes), slow)


def judge(job: Job) -> tuple[int | None, str, float]:
    """Return (the straggler that is named, its cause, the true mean step time in ns)."""
    done = simulate(job)
    with tempfile.TemporaryDirectory() as folder:
        done.write(folder, level=1, truth=False)
        found = stragglers(hg.load(folder))
    cause = "" if found.straggler is None else str(found.ranks.set_index("rank").loc[found.straggler, "cause"])
    return found.straggler, cause, done.mean_step_ns


def main() -> None:
    """Print how many slow ranks were named, by kind of job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100, help="how many jobs, each with a slow rank and without")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    options = parser.parse_args()
    if options.jobs < 1:
        parser.error("--jobs: give at least 1")
    rows = []
    for seed in range(options.first, options.first + options.jobs):
        case = draw(seed)
        alarm, _, without_ns = judge(case.job)
        named, cause, with_ns = judge(case.job.model_copy(update={"slow_ranks": (case.slow,)}))
        counts = with_ns / without_ns - 1 >= MIN_EFFECT * (case.slow.factor - 1)
        right = named == case.slow.rank
        row = {**case.facts, "counts": counts, "alarm": alarm is not None, "found": right}
        row |= {"wrong": named is not None and not right, "cause": right and cause == CAUSE[case.slow.what]}
        rows.append(row)
        if row["alarm"] or row["wrong"] or (counts and not right):
            print(f"seed {seed}: {case.facts}, slow is {case.slow.rank}: named {named}; without: {alarm}", flush=True)
    table = pd.DataFrame(rows)
    alarms, wrong = table["alarm"].sum(), table["wrong"].sum()
    print(f"{len(table)} jobs: {alarms} false alarms without a slow rank, {wrong} wrong names")
    counted = table[table["counts"]]
    for by in (["factor", "steps"], ["kind"], ["jitter"], ["spread"], ["recorded"], ["clocks"], ["what"]):
        print(counted.groupby(by)[["found", "cause"]].agg({"found": ["size", "mean"], "cause": "mean"}).round(2))


if __name__ == "__main__":
    main()
