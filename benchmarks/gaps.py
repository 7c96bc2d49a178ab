"""How much nothing explains: ``python benchmarks/gaps.py [PATH ...]``: by trace, the share of pauses without a cause.

``unexplained %`` is by how much the makespan falls when all gaps that a complete trace would not leave are set to 0
(`htagraph.core.kinds.UNEXPLAINED`), ``host %`` the same for Python and other host code that no event covers.
``infeasible %`` is the share of latencies and waits whose lag is three times or more of what another one of their kind
took in all.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

import htagraph as hg
from htagraph.core.kinds import EdgeKind

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script
from benchmarks.held_out import known

LATENCIES: Final = (
    EdgeKind.LAUNCH, EdgeKind.STREAM, EdgeKind.EVENT_WAIT, EdgeKind.HOST_SYNC, EdgeKind.MEMCPY_SYNC, EdgeKind.AUTOGRAD,
    EdgeKind.THREAD,
)  # fmt: skip
"""Edges whose lag is no work: it hardly differs from one of a kind and a rank to the next."""
_MUCH_LONGER: Final = 3.0
"""A lag of this many times the least time between the two moments of such an edge is infeasible. Chosen: latencies vary
by a factor of 2. Doubled, errors of up to 6 times pass."""
_FLOOR_NS: Final = 5_000
"""ns: what is less is no error. Chosen: what a call takes. Doubled, hidden waits of up to 10 µs pass."""


def main() -> None:
    """Print one line per trace and the median over all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    options = parser.parse_args()
    rows = []
    for path in options.paths or known():
        try:
            replay = hg.replay(hg.load(path if path.is_dir() else {0: path}))
        except hg.HtagraphError as error:
            print(error)
            continue
        shares = replay.gap_shares()
        worst = shares[~shares["explained"]].sort_values("critical_us")["gap"].tail(1).tolist()
        host = shares.loc[shares["gap"] == "host_untraced", "critical_percent"].sum()
        unexplained = 100 * (1 - replay.explained_ns / replay.makespan_ns) if replay.makespan_ns else 0.0
        makespan = replay.makespan_ns / 1e6
        infeasible = infeasible_percent(replay.graph)
        rows.append((path.name[:50], makespan, replay.max_error_ns, unexplained, *(worst or [""]), host, infeasible))
    columns = ["trace", "makespan ms", "replay error ns", "unexplained %", "mostly", "host %", "infeasible %"]
    table = pd.DataFrame(rows, columns=columns)
    print(table.round(2).to_string(index=False))
    print(f"median over {len(table)} traces: {table['unexplained %'].median():.3f} %")


def infeasible_percent(graph: hg.DependencyGraph) -> float:
    """Return the share, %, of latencies and waits with an infeasible lag: others of the kind and rank took far less."""
    edges = graph.edges
    rows = np.flatnonzero(np.isin(edges.kind, LATENCIES))
    took = (graph.time[edges.target] - graph.time[edges.source])[rows]
    rank = graph.activities.rank[edges.target[rows] >> 1].astype(np.int64)
    _, number = np.unique(np.stack([edges.kind[rows].astype(np.int64), rank]), axis=1, return_inverse=True)
    number = number.ravel()
    least = np.zeros(len(rows))
    for each in np.unique(number):
        least[number == each] = took[number == each].min()
    return 100 * float(np.mean(edges.lag[rows] > _MUCH_LONGER * least + _FLOOR_NS)) if len(rows) else 0.0


if __name__ == "__main__":
    main()
