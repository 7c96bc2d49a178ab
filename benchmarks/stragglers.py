"""Stragglers injected by the simulator: is the first guess right, and the cause?

    python -m benchmarks.stragglers --jobs 200

Random jobs over regimes, meshes, noise and ways of recording get one slow rank. Counted are those whose mean step
becomes at least 1 % longer by it: a slow host behind a busy device delays nobody, and then there is nothing to find.
With `--none` the same jobs without a slow rank: nobody may be called a straggler.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from dataclasses import dataclass

import htagraph as hg
from htagraph.analyses.stragglers import stragglers
from htagraph.simulate import REGIMES, Job, SlowRank, simulate

EFFECT = 0.01
"""By which share the mean step must be longer for a slow rank to count. Chosen: less is lost in the noise."""
CAUSE = {"kernels": "kernels", "host": "host", "loader": "data_loading"}
GLOBS = ("*", "*", "*gemm*", "*flash*", "*elementwise*", "*layer_norm*")
MESHES = {
    "fsdp": Job(ranks=4, data_strategy="fsdp"),
    "tensor x data": Job(ranks=4, tp=2, kernel_us=80.0),
    "tensor x pipeline": Job(ranks=8, tp=2, pp=2, layers=4),
    "data, 8 ranks": Job(ranks=8, layers=2),
    "8 noisy ranks": Job(ranks=8, layers=3, jitter=0.1),
    "all-to-all": Job(ranks=4, layers=3, all_to_all=True, broadcast_buffers=True),
}
FACTORS = (1.1, 1.15, 1.2, 1.3, 1.5, 2.0)
"""How many times as long the slow rank takes. Chosen: from hardly visible to a broken device."""


@dataclass(frozen=True)
class Case:
    """A job, and the rank that is slow in it."""

    kind: str
    recorded: str
    job: Job
    slow: SlowRank


def draw(seed: int) -> Case:
    """Return a random job and straggler."""
    rnd = random.Random(seed)
    kind = rnd.choice([*(name for name in REGIMES if name != "straggler"), *MESHES])
    job = REGIMES[kind]() if kind in REGIMES else MESHES[kind]
    changes: dict[str, object] = {
        "seed": rnd.randrange(10**6),
        "jitter": rnd.choice([0.03, 0.05, 0.1]),
        "steps": rnd.choice([3, 4, 5]),
    }
    if rnd.random() < 0.3:
        changes["item"] = "none"
    if rnd.random() < 0.3:
        changes["loader_us"] = rnd.choice([1000.0, 3000.0])
    if rnd.random() < 0.3:
        changes["layers"] = rnd.choice([4, 6])
    if rnd.random() < 0.3 and kind != "host_bound":
        changes["kernel_us"] = rnd.choice([10.0, 30.0, 200.0])
    recorded = rnd.choice(["all ids", "all ids", "no cuda_sync", "no group arguments", "neither"])
    changes["cuda_sync"] = recorded not in ("no cuda_sync", "neither")
    changes["group_args"] = recorded not in ("no group arguments", "neither")
    if rnd.random() < 0.5:
        changes["clock_offsets_us"] = tuple(round(rnd.uniform(-500, 500), 3) for _ in range(job.ranks))
    what = rnd.choice(["kernels", "kernels", "host", "host", "loader"])
    slow = SlowRank(
        rank=rnd.randrange(job.ranks),
        what=what,
        factor=rnd.choice(FACTORS),
        name=rnd.choice(GLOBS) if what == "kernels" else "*",
    )
    return Case(kind, recorded, job.model_copy(update=changes), slow)


def effect(case: Case) -> float:
    """Return by which share the mean step is longer for the slow rank."""
    slow = case.job.model_copy(update={"slow_ranks": (case.slow,)})
    return simulate(slow).mean_step_ns / simulate(case.job).mean_step_ns - 1


def judge(case: Case, *, slow: bool = True) -> tuple[bool, bool, bool, str]:
    """Return (is the first guess right, and the cause, is a straggler called, one line about it)."""
    job = case.job.model_copy(update={"slow_ranks": (case.slow,)}) if slow else case.job
    with tempfile.TemporaryDirectory() as folder:
        simulate(job).write(folder, level=1)
        found = stragglers(hg.load(folder))
    table = found.to_frame()
    row = table[table["first_guess"]]
    guess, cause = (int(row["rank"].iloc[0]), row["cause"].iloc[0]) if len(row) else (-1, "none")
    right = guess == case.slow.rank
    line = (
        f"{case.kind}, {case.recorded}, jitter {case.job.jitter}: slow is rank {case.slow.rank}, {case.slow.what} "
        f"{case.slow.name} x {case.slow.factor}; guessed rank {guess}, {cause} "
        f"({row['evidence'].iloc[0] if len(row) else ''}); called: {found.straggler}"
    )
    called = found.straggler is not None if not slow else found.straggler == case.slow.rank
    return right, right and cause == CAUSE[case.slow.what], called, line


def main() -> None:
    """Print how many first guesses and causes were right, by kind of job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=100, help="how many jobs count")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    parser.add_argument("--none", action="store_true", help="without slow ranks")
    options = parser.parse_args()
    count: Counter[tuple[str, str]] = Counter()
    seed, counted, without = options.first, 0, 0
    while counted < options.jobs:
        case = draw(seed)
        seed += 1
        if not options.none and effect(case) < EFFECT:
            without += 1
            continue
        counted += 1
        right, cause, called, line = judge(case, slow=not options.none)
        for group in (case.kind, case.recorded, "all"):
            count.update(
                {(group, "jobs"): 1, (group, "rank"): right, (group, "cause"): cause, (group, "called"): called}
            )
        if called if options.none else not cause:
            print(f"seed {seed - 1}: {line}", flush=True)
    print(f"{counted} jobs counted, {without} whose slow rank delays nobody")
    print(f"{'jobs':20} {'count':>6} {'rank':>7} {'cause':>7} {'called':>7}")
    for group in sorted({group for group, _ in count}, key=lambda name: (name == "all", name)):
        jobs = count[group, "jobs"]
        shares = " ".join(f"{100 * count[group, word] / jobs:6.1f}%" for word in ("rank", "cause", "called"))
        print(f"{group:20} {jobs:6} {shares}")


if __name__ == "__main__":
    main()
