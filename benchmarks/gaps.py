"""How much nothing explains: ``python benchmarks/gaps.py [PATH ...]``: by trace, the share of pauses without a cause.

``unexplained %`` is by how much the makespan falls when all gaps that a complete trace would not leave are set to 0
(`htagraph.core.kinds.UNEXPLAINED`), ``host %`` the same for Python and other host code that no event covers.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pandas as pd

import htagraph as hg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a script
from benchmarks.held_out import known


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
        rows.append((path.name[:50], makespan, replay.max_error_ns, unexplained, *(worst or [""]), host))
    columns = ["trace", "makespan ms", "replay error ns", "unexplained %", "mostly", "host %"]
    table = pd.DataFrame(rows, columns=columns)
    print(table.round(2).to_string(index=False))
    print(f"median over {len(table)} traces: {table['unexplained %'].median():.3f} %")


if __name__ == "__main__":
    main()
