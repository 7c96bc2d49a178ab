"""How well a recording on few ranks predicts the job on more: ``python -m benchmarks.capacity_ranks record FOLDER``.

`record` runs each job of `JOBS` on 1, 2, 4 and 8 ranks of this machine, as `benchmarks.record_pairs` runs its jobs (it
needs what that needs); operators sleep, so that a machine of two cores can run eight ranks, and the loopback device
has a limited rate, which all ranks share. ``check FOLDER`` predicts each job from each smaller number of ranks and
compares the mean step with that of other runs. Half of the jobs are `unseen`: those at odd places of `JOBS`, which
nobody looks at while the model is made.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import warnings
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import htagraph as hg
from benchmarks.real_pairs import MEASURED_PERCENT, begins, mean_step_ms
from htagraph.simulate import simulate
from htagraph.whatif.outcome import Outcome

SIZES = (2, 4, 8)
"""Numbers of ranks that jobs are recorded on. Chosen: those that the question is asked for."""


class Grown(NamedTuple):
    """A job that can run on more ranks."""

    job: str
    settings: dict[str, Any]
    sizes: tuple[int, ...] = SIZES
    asked: str = "n"
    """Keyword of `scale_ranks` that grows."""
    strong: bool = False
    """Whether the ranks share the work that there is."""
    groups: str = "*"
    """The groups that grow, which no label of gloo's names."""


FREE_MBIT = 20_000
"""What a loopback device without a limit moves, 10^6 bits per second. Measured with gloo on two cores."""
BLOCKS = {"attn": (5, 8), "mlp": (5, 8)}
DDP = {"operators": BLOCKS, "layers": 2}
FROM_ONE = (1, *SIZES)

JOBS = {
    "ddp_small": Grown("training.training", {**DDP, "width": 64, "mbit": 2000}, FROM_ONE),
    "ddp_heavy": Grown("training.training", {**DDP, "width": 256, "mbit": 2000}, FROM_ONE),
    "ddp_buckets": Grown("training.training", {**DDP, "width": 256, "layers": 4, "bucket_mb": 0.3, "mbit": 4000}),
    "ddp_free": Grown("training.training", {**DDP, "width": 128}, FROM_ONE),
    "ddp_spread": Grown("training.training", {**DDP, "width": 96, "spread": 0.4, "mbit": 2000}),
    "hand_spread": Grown("training.training", {**DDP, "width": 128, "spread": 0.6, "sync": "hand", "mbit": 2000}),
    "fsdp": Grown("training.training", {**DDP, "width": 128, "sync": "fsdp", "mbit": 2000}),
    "fsdp_large": Grown("training.training", {**DDP, "width": 256, "layers": 3, "sync": "fsdp", "mbit": 4000}),
    "every": Grown("communication.every_collective", {"elements": 6_000, "op_ms": 4, "mbit": 2000}),
    "experts": Grown("communication.experts", {"elements": 4_000, "attn_ms": 8, "expert_ms": 8, "mbit": 2000}),
    "server": Grown("communication.server", {"elements": 12_000, "compute_ms": 20, "update_ms": 6, "mbit": 2000}),
    "sharded": Grown("communication.sharded", {"elements": 48_000, "layer_ms": 8, "mbit": 2000}),
    "in_flight": Grown(
        "communication.in_flight", {"elements": 24_000, "produce_ms": 6, "hide_ms": 12, "mbit": 2000}),
    "sequence": Grown("grid.sequence", {"elements": 8_000, "norm_ms": 5, "block_ms": 8, "mask_ms": 5, "mbit": 2000}),
    "gpipe": Grown("communication.pipeline", {"micro": 4, "stage": 10, "mbit": 2000}, asked="pipeline"),
    "1f1b": Grown("communication.pipeline", {"micro": 8, "stage": 6, "schedule": "1f1b", "mbit": 2000},
                  asked="pipeline"),
    "gpipe_strong": Grown(
        "communication.pipeline", {"micro": 8, "stages": 48, "mbit": 2000}, asked="pipeline", strong=True),
    "1f1b_strong": Grown("communication.pipeline", {"micro": 8, "stages": 32, "schedule": "1f1b", "mbit": 2000},
                         asked="pipeline", strong=True),
    "grid_data": Grown("communication.grid", {"tensor": 2, "attn_ms": 6, "back_ms": 10, "mbit": 2000}, (4, 8), "data",
                       groups="[34] *"),
    "grid_data_large": Grown(
        "communication.grid", {"tensor": 2, "attn_ms": 5, "back_ms": 8, "gradient": 120_000, "mbit": 4000}, (4, 8),
        "data", groups="[34] *"),
    "ddp_free_heavy": Grown("training.training", {**DDP, "width": 384}, FROM_ONE),
    "ddp_slow": Grown("training.training", {**DDP, "width": 128, "slow": {"1": 1.3}, "mbit": 2000}),
    "language": Grown("real_work.language", {"width": 64, "layers": 2, "seq": 32}),
    "language_fsdp": Grown("real_work.language", {"width": 64, "layers": 2, "seq": 32, "sync": "fsdp"}),
}  # fmt: skip
"""Name → the job. What takes time sleeps, but for `language`, which computes on as many cores as there are."""


def _staged(microbatches: int, ranks: int) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    few = {"pp": 2, "ranks": 2, "layers": 8, "microbatches": microbatches}
    return few, {"pp": ranks, "ranks": ranks}, {"pipeline": ranks, "strong": True}


SIMULATED = [
    *[
        (kind, {"ranks": few, "jitter": 0.05, "data_strategy": strategy}, {"ranks": many}, {"n": many})
        for kind in ("communication_bound", "gpu_bound") for strategy in ("ddp", "fsdp")
        for few, many in ((2, 4), (2, 8), (4, 8))
    ],
    *[(kind, *_staged(micro, many)) for kind in ("communication_bound", "gpu_bound") for micro in (4, 8)
      for many in (4, 8)],
    ("tensor", {"tp": 2, "ranks": 4}, {"ranks": 8}, {"data": 4}),
    ("tensor", {"tp": 2, "ranks": 4}, {"tp": 4, "ranks": 8}, {"tensor": 4}),
    ("gpu_bound", {"pp": 2, "ranks": 4}, {"ranks": 8}, {"data": 4}),
]  # fmt: skip
"""Simulated jobs: kind, settings recorded, settings then, what is asked."""


def unseen(name: str) -> bool:
    """Return True for the half of the jobs that is kept for the end."""
    return list(JOBS).index(name) % 2 == 1


def settings_of(grown: Grown, ranks: int) -> dict[str, Any]:
    """Return the settings of a job on that many ranks: stages of a pipeline take `stage` ms, or share `stages`."""
    settings = {key: value for key, value in grown.settings.items() if key not in ("stage", "stages")} | {
        "ranks": ranks
    }
    if "pipeline" in grown.job:
        settings["stage_ms"] = [grown.settings.get("stage", grown.settings.get("stages", 0) / ranks)] * ranks
    return settings


def record(folder: Path, only: str, runs: int) -> None:
    """Record each job on each number of ranks; the first run's traces are kept, of all runs when steps began."""
    from benchmarks import record_pairs  # which knows PyTorch

    warnings.simplefilter("ignore")
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    for name, grown in JOBS.items():
        for ranks in grown.sizes if fnmatch.fnmatch(name, only) else ():
            target = folder / name / str(ranks)
            target.mkdir(parents=True, exist_ok=True)
            settings = settings_of(grown, ranks)
            well = [
                record_pairs.record_run(grown.job, settings, target / f"run{run}", keep=run == 1)
                for run in range(1, runs + 1)
            ]
            print(f"{name:20}{ranks} ranks, {sum(well)} of {runs} runs", flush=True)


def recorded_ms(folder: Path) -> list[float]:
    """Return the mean step of each run of a job on a number of ranks, ms."""
    files = sorted(folder.glob("run*.steps.json"))
    return [mean_step_ms(json.loads(file.read_text(encoding="utf-8"))["step_starts_us"]) for file in files]


def check(folder: Path, only: str, half: str) -> pd.DataFrame:
    """Return one row per job and pair of numbers of ranks that were recorded: the prediction beside the truth."""
    rows = []
    for name, grown in JOBS.items():
        if not fnmatch.fnmatch(name, only) or (half != "both" and unseen(name) != (half == "unseen")):
            continue
        sizes = [size for size in grown.sizes if (folder / name / str(size) / "run2.steps.json").exists()]
        for few, many in combinations(sizes, 2):
            rows.append({"job": name, "ranks": f"{few}→{many}", **judged(folder / name, grown, few, many)})
    return pd.DataFrame(rows)


def judged(folder: Path, grown: Grown, few: int, many: int) -> dict[str, Any]:
    """Return what a recording on `few` ranks predicts for `many`, and what these took."""
    truth = float(np.mean(recorded_ms(folder / str(many))))
    graph = hg.load(folder / str(few) / "run1")
    asked = many if grown.asked == "n" else many // int(grown.settings.get("tensor", 1))
    options: dict[str, Any] = {grown.asked: asked, "groups": grown.groups} | ({"strong": True} if grown.strong else {})
    if few == 1:
        options["bandwidth_gb_s"] = grown.settings.get("mbit", FREE_MBIT) / 8000
    row = {"before": float(np.mean(recorded_ms(folder / str(few)))), "truth": truth}
    try:
        outcome = hg.what_if(graph).scale_ranks(**options).run()
    except hg.HtagraphError as error:
        return row | {"refused": str(error)}
    return row | beside(outcome, mean_step_ms(begins(outcome.step_times(), "predicted_start_us")), truth)


def beside(outcome: Outcome, predicted: float, truth: float) -> dict[str, Any]:
    """Return a prediction beside the truth, ms."""
    low, high = predicted * outcome.speedup / outcome.high, predicted * outcome.speedup / outcome.low
    holds = low * (1 - MEASURED_PERCENT / 100) <= truth <= high * (1 + MEASURED_PERCENT / 100)
    return {
        "truth": truth, "predicted": predicted, "error_percent": 100 * (predicted - truth) / truth, "low": low,
        "high": high, "holds": holds, "cause": outcome.interval_cause,
    }  # fmt: skip


def summary(table: pd.DataFrame) -> str:
    """Return the line below the table."""
    known = table[table["predicted"].notna()]
    errors, width = known["error_percent"].abs(), 100 * (known["high"] / known["low"] - 1)
    return (
        f"{len(table)} predictions, {len(table) - len(known)} refused; error %: median {errors.median():.2f}, "
        f"p95 {errors.quantile(0.95):.2f}, worst {errors.max():.2f}; holds {known['holds'].sum()} of {len(known)}; "
        f"median width {width.median():.1f} %"
    )


def simulated() -> pd.DataFrame:
    """Return one row per simulated job: the prediction from few ranks beside the simulation of many."""
    from tests.whatif.changes.simulated import recorded, small

    rows = []
    for kind, few, many, asked in SIMULATED:
        job = small(kind).model_copy(update=few)
        graph, _ = recorded(job)
        truth = simulate(job.model_copy(update=many)).mean_step_ns / 1e6
        outcome = hg.what_if(graph).scale_ranks(**asked).run()
        rows.append({"job": kind, "few": few, "many": many, **beside(outcome, outcome.mean_step_ns / 1e6, truth)})
    return pd.DataFrame(rows)


def main() -> None:
    """Read the command line."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("verb", choices=["record", "check", "simulated"])
    command.add_argument("folder", type=Path, nargs="?", default=Path("ranks"))
    command.add_argument("--only", default="*", help="glob on the names of jobs")
    command.add_argument("--half", choices=["seen", "unseen", "both"], default="both", help="which half of the jobs")
    command.add_argument("--runs", type=int, default=3, help="how often each is run")
    options = command.parse_args()
    if options.verb == "record":
        record(options.folder, options.only, options.runs)
        return
    simulates = options.verb == "simulated"
    table = simulated() if simulates else check(options.folder, options.only, options.half)
    print(table.round(2).to_string(index=False))
    print(summary(table))


if __name__ == "__main__":
    main()
