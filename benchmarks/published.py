"""Compare htagraph with published results: ``python benchmarks/published.py DIR [NAME] [--ticks 1000000000]``.

DIR holds straggler analyses of ByteDance (OSDI'25) in the form of ``shared/straggler``; each trace in it is rebuilt
with `DependencyGraph.from_frames` and replayed, see `tests/published/straggler.py`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))  # the helper is the tests'

from tests.published.straggler import NS, Job, analyse, compared, published, read

SHOWN = (
    "/result/step_t_base", "/result/step_t_nodelay", "/result/step_t_noblk", "/result/launch_slowdown",
    "/result/blocking_slowdown", "/result/blocking_decompose_by_dp_rank", "/result/blocking_decompose_by_stage",
    "/result/blocking_decompose_by_optype", "/ms/Ms", "/mw/Mw", "/whatif",
)  # fmt: skip


def main() -> None:
    """Print a table per trace."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("name", nargs="?")
    parser.add_argument("--ticks", type=int, default=NS, help="ticks per second: what times are rounded to")
    options = parser.parse_args()
    names = [path.stem.removeprefix("model-") for path in sorted(options.folder.glob("model-*.json"))]
    for name in [options.name] if options.name else names:
        compare(options.folder, name, options.ticks)


def compare(folder: Path, name: str, ticks: int) -> None:
    """Print how far ours lie from the published numbers of a trace."""
    began = time.perf_counter()
    job = Job(*read(folder, name), ticks)
    graph, built = job.graph, time.perf_counter()
    ours = analyse(job)
    done = time.perf_counter()
    frame = compared(ours, published(folder, name))
    print(f"{name}: {len(job.ops):,} operations → {graph}: {built - began:.2f} s, all questions {done - built:.2f} s\n")
    print(f"{'quantity':<66}{'published':>16}{'ours':>16}{'relative error':>16}")
    for path, row in summarised(frame).iterrows():
        print(f"{path!s:<66}{row['published']:>16.9f}{row['ours']:>16.9f}{row['error']:>16.1e}")
    print()
    for what, errors in frame["error"].groupby(frame.index.str.split("/").str[1]):
        print(f"{what}: {len(errors)} numbers, largest relative error {errors.max():.1e} ({errors.idxmax()})")
    waste = 1 - 1 / ours["result"]["blocking_slowdown"]
    print(f"waste: {100 * waste:.2f} %\n")


def summarised(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table's scalars, and of numbers per step the mean with the largest error."""
    shown = frame[frame.index.str.startswith(SHOWN) & ~frame.index.str.contains("_per_step")]
    per_step = shown.index.str.contains("/step_t")
    steps = shown[per_step].groupby(shown.index[per_step].str.rsplit("/", n=1).str[0] + " (mean, largest error)")
    table = steps.agg({"published": "mean", "ours": "mean", "error": "max"})
    return pd.concat([table, shown[~per_step]])


if __name__ == "__main__":
    main()
