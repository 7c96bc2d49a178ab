"""Are opportunities ranked rightly? ``python benchmarks/ranking.py [--jobs N] [--seed S] [--worst K]``.

Random training jobs are simulated, written as traces, loaded, and asked for their opportunities. The truth about those
rows that the simulator has a change for (a kernel by its name, the network, the data loader, the optimizer, the launch
calls) is the same job simulated with that change at factor 0. The error is |predicted gain - true gain| as share of
the job's mean step. A job's order is right if none of its first five such rows truly gains less, by more than 0.2 % of
the step, than one ranked behind it, and none is missing: data loader, optimizer, launch calls and the network of a
single group, where they are not listed, gain no more than the last row, or the same as one that is listed. Nothing is
fitted to these jobs: their seeds are the options'.
"""

from __future__ import annotations

import argparse
import glob
import multiprocessing
import random
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))  # the jobs are another benchmark's

import htagraph as hg
from benchmarks.accuracy import jobs, recordings
from htagraph import DependencyGraph
from htagraph.simulate import Job, ScaleKernels, ScaleLaunches, ScaleLoader, ScaleNetwork, ScaleOptimizer, simulate

ROWS = 12
"""How many opportunities are asked for. Chosen: more than any list shows; twice as many take twice as long."""
FIRST = 5
"""How many of the first rows must be in the right order. Chosen: what a reader acts on."""
FREE_PERCENT = 0.2
"""Rows whose gains are this close, in percent of the step, may stand in any order. Chosen: three times
the 95th percentile of the errors that accuracy.py finds; doubled, it forgives wrong orders that a user would notice."""
OPTIMIZER = "Optimizer.step"
PHASES = {"data loading": "loader", "launch calls": "launches"}
CHANGES: dict[str, Any] = {
    "network": ScaleNetwork(factor=0, latency_factor=0), "loader": ScaleLoader(factor=0),
    "launches": ScaleLaunches(factor=0), "optimizer": ScaleOptimizer(factor=0),
}  # fmt: skip


class Row(NamedTuple):
    """An opportunity whose true gain is known."""

    seed: int
    regime: str
    recorded: str
    place: int
    """In the table of opportunities, from 0; ROWS if it is not there, and then its predicted gain is the last row's."""
    what: str
    name: str
    step_ns: float
    predicted_ns: float
    """Gained per step."""
    true_ns: float

    @property
    def gain_percent(self) -> float:
        """The true gain, percent of the step."""
        return 100 * self.true_ns / self.step_ns


def groups_of(graph: DependencyGraph) -> set[str]:
    """Return the names of the process groups."""
    return set(graph.matches.group) if graph.matches is not None else set()


def kind_of(graph: DependencyGraph, what: str, name: str) -> str:
    """Return which kind of change a row is to the simulator; empty where it has none for exactly this."""
    if what == "kernel":
        return what
    if what == "group":  # the simulator has one network for all groups
        return "network" if groups_of(graph) == {name} else ""
    return "optimizer" if name.startswith(OPTIMIZER) else PHASES.get(name, "")


def makespan_ns(job: Job) -> int:
    """Return from the first start to the last end of anything in a job, ns."""
    ranks = simulate(job).ranks
    return max(int(each.end_ns.max()) for each in ranks) - min(int(each.start_ns.min()) for each in ranks)


def trial(seed: int) -> list[Row]:
    """Return the opportunities of one random job whose truth the simulator can tell, in their order."""
    draw = random.Random(seed)
    regime = draw.choice(sorted(jobs()))
    job = jobs()[regime](draw)
    job = job.model_copy(update={"seed": seed, "steps": draw.choice((3, 4))})
    recorded = draw.choice(sorted(recordings(draw, job.ranks)))
    written = job.model_copy(update=recordings(draw, job.ranks)[recorded])
    with tempfile.TemporaryDirectory() as folder:
        simulate(written).write(folder, suffix=".json", truth=False)
        graph = hg.load(folder)
    step, before = simulate(job).mean_step_ns, makespan_ns(job)
    table = hg.opportunities(graph, top=ROWS, curve=())
    listed = [
        (place, kind_of(graph, what, name), name, 1000 * gain / job.steps)
        for place, (what, name, gain) in enumerate(zip(table["what"], table["name"], table["gain_us"], strict=True))
    ]
    last = listed[-1][3] if len(listed) == ROWS else 0.0
    unknown = set() if len(groups_of(graph)) == 1 else {"network"}
    missing = CHANGES.keys() - {kind for _, kind, _, _ in listed} - unknown
    rows = []
    for place, kind, name, gain in listed + [(ROWS, kind, "(not listed)", last) for kind in sorted(missing)]:
        if kind:
            change = CHANGES.get(kind) or ScaleKernels(name=glob.escape(name), factor=0)
            gained = before - makespan_ns(job.model_copy(update={"changes": (*job.changes, change)}))
            rows.append(Row(seed, regime, recorded, place, kind, name, step, gain, gained / job.steps))
    return rows


def in_order(rows: list[Row]) -> bool:
    """Return whether no row behind one of the first few gains more than that, but for what is free."""
    gains = np.array([row.gain_percent for row in rows if row.place < ROWS])
    sorted_ = all(gains[i + 1 :].max(initial=-np.inf) <= gains[i] + FREE_PERCENT for i in range(min(FIRST, len(gains))))
    return sorted_ and not missed(rows)


def missed(rows: list[Row]) -> list[Row]:
    """Return what should be among the opportunities and is not.

    Of two that gain the same, one of which contains the other, only the smaller is listed.
    """
    free = rows[0].step_ns * FREE_PERCENT / 100 if rows else 0.0
    gains = np.array([row.true_ns for row in rows if row.place < ROWS])
    return [
        row
        for row in rows
        if row.place == ROWS and row.true_ns > row.predicted_ns + free and not (abs(gains - row.true_ns) <= free).any()
    ]


def shares(frame: pd.DataFrame, by: str) -> pd.DataFrame:
    """Return the distribution of errors in percent of the step."""
    errors = frame.groupby(by)["error_percent"]
    table = errors.agg(count="size", median="median", p95=lambda e: float(np.percentile(e, 95)), worst="max")
    return table.join(frame.groupby(by)["gain_percent"].median().rename("median gain")).round(3)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=3000)
    parser.add_argument("--worst", type=int, default=12)
    options = parser.parse_args()
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.map(trial, range(options.seed, options.seed + options.jobs), chunksize=1)
    frame = pd.DataFrame([row for rows in found for row in rows if row.place < ROWS], columns=Row._fields)
    frame["error_percent"] = 100 * (frame["predicted_ns"] - frame["true_ns"]).abs() / frame["step_ns"]
    frame["gain_percent"] = 100 * frame["true_ns"] / frame["step_ns"]
    frame["predicted_percent"] = 100 * frame["predicted_ns"] / frame["step_ns"]
    right = [in_order(rows) for rows in found]
    errors = frame["error_percent"]
    print(f"{len(frame)} gains in {len(found)} jobs, error in percent of the step: median {errors.median():.3f}, "
          f"p95 {np.percentile(errors, 95):.3f}, worst {errors.max():.2f}")  # fmt: skip
    print(f"{np.mean(right):.1%} of the jobs have their first {FIRST} such rows in true order; "
          f"{sum(len(missed(rows)) for rows in found)} rows are missing\n")  # fmt: skip
    for by in ("what", "recorded", "regime"):
        print(shares(frame, by).to_string(), "\n")
    wrong = ", ".join(f"{rows[0].seed} ({rows[0].regime}, {rows[0].recorded})"
                      for rows, order in zip(found, right, strict=True) if not order)  # fmt: skip
    print(f"Not in order: {wrong or 'none'}\n")
    columns = ["seed", "regime", "recorded", "place", "what", "name", "predicted_percent", "gain_percent"]
    worst = frame.nlargest(options.worst, "error_percent")[columns].round(2)
    print(worst.assign(name=worst["name"].str[:40]).to_string(index=False))


if __name__ == "__main__":
    main()
