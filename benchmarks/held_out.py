"""Steps held out: ``python benchmarks/held_out.py [PATH ...]``: what does step i's graph say of step j?

The graph of step i is given nothing of step j but the durations of its kernels and copies (of matched collectives the
transfer), matched by rank, stream, name and order; its replay is the prediction of how long step j takes. Both
directions of every pair of steps with the same work are tried. Beside the error stands that of taking step i's time.
"""

from __future__ import annotations

import argparse
import os
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd

import htagraph as hg
from htagraph.core.kinds import EdgeKind
from htagraph.queries.replay import predict

WORK = ("computation", "memory", "communication")
OWN_TIME = (EdgeKind.BODY, EdgeKind.COLLECTIVE, EdgeKind.P2P)
_MATCHED = 0.98
"""The share of a step's kernels and copies that must exist in the other step. Chosen: steps of one program differ by a
few rare kernels; a lower share would compare different work, and 1 would leave out most real traces."""


def main() -> None:
    """Print one line per trace and the median over all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    options = parser.parse_args()
    rows = []
    for path in options.paths or known():
        try:
            found = held_out(hg.load(path))
        except hg.HtagraphError as error:
            print(f"{path}: {error}")
            continue
        if len(found):
            rows.append(
                (path.name, len(found), *(100 * found[["error", "naive"]].median()), 100 * found["error"].max())
            )
    table = pd.DataFrame(rows, columns=["trace", "pairs", "median error %", "same as step i %", "worst %"])
    print(table.round(2).to_string(index=False))
    print(f"median over traces: {table['median error %'].median():.2f} %")


def known() -> list[Path]:
    """Return the jobs in reach."""
    shared = Path(os.environ.get("HTAGRAPH_SHARED", "../shared")) / "traces"
    folders = ["megatron_tp8_a100", "torchrec_v100_equal", "torchrec_v100_leading_missing", "gloo4_cpu"]
    files = sorted(path for part in ("hta", "tracelens", "kineto") for path in (shared / part).rglob("*.json.gz"))
    return [Path("data/demo"), Path("data/gloo_ddp"), *(shared / each for each in folders), *files]


def held_out(graph: hg.DependencyGraph) -> pd.DataFrame:
    """Return one row per pair of steps: predicted and recorded duration, ns, and relative errors."""
    steps = hg.step_times(graph)
    lasts = steps.groupby("step").agg(start=("start_us", "min"), end=("end_us", "max"))
    work = graph.select(kind=WORK).to_frame().reset_index()
    if not len(work) or len(lasts) < 2:
        return pd.DataFrame(columns=["error", "naive"])
    where = ["rank", "stream", "name"]
    work["turn"] = work.sort_values("start_us").groupby([*where, "step"]).cumcount()
    rows = []
    for known_step, other in permutations(lasts.index.tolist(), 2):
        mine, theirs = (work[work["step"] == step] for step in (known_step, other))
        both = mine.merge(theirs, on=[*where, "turn"], suffixes=("", "_other"))
        if len(both) < _MATCHED * max(len(mine), len(theirs)):
            continue
        recorded = float(lasts.loc[other, "end"] - lasts.loc[other, "start"])
        own = float(lasts.loc[known_step, "end"] - lasts.loc[known_step, "start"])
        foretold = predicted(graph, known_step, both)
        rows.append((known_step, other, abs(foretold - recorded) / recorded, abs(own - recorded) / recorded))
    return pd.DataFrame(rows, columns=["step", "other", "error", "naive"])


def predicted(graph: hg.DependencyGraph, step: int, both: pd.DataFrame) -> float:
    """Return how long a step takes, µs, if its work took as long as that of another one."""
    edges, lag = graph.edges, graph.edges.lag.copy()
    twin = np.full(len(graph.activities) + 1, -1, np.int64)
    twin[both["activity"].to_numpy()] = both["activity_other"].to_numpy()
    for kind in OWN_TIME:
        of_kind = np.flatnonzero((edges.kind == kind) & (edges.activity >= 0))
        takes = np.full(len(twin), -1, np.int64)
        takes[edges.activity[of_kind]] = edges.lag[of_kind]
        mine = of_kind[(twin[edges.activity[of_kind]] >= 0) & (takes[twin[edges.activity[of_kind]]] >= 0)]
        lag[mine] = takes[twin[edges.activity[mine]]]
    time = predict(graph, lag)
    begin = graph.select(kind="step", step=step).activities
    end = graph.select(kind="boundary", step=step).activities
    return float(time[2 * end].max() - time[2 * begin].min()) / 1000


if __name__ == "__main__":
    main()
