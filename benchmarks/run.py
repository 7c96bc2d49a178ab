"""Speed and memory beside HTA and plain decoders: ``python -m benchmarks.run [--hta PYTHON] [--minutes N]``.

Prints what it does, appends this run's ratios to benchmarks/history.jsonl, and writes docs/BENCHMARKS.md with a chart.
HTA runs with the Python of its own environment (``python -m venv hta && hta/bin/pip install traceinsight==0.6.1``);
without ``--hta``, or without orjson, their comparisons are left out.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.speed.chart import chart
from benchmarks.speed.figures import ratios_of
from benchmarks.speed.history import append, entry, read
from benchmarks.speed.page import page
from benchmarks.speed.rounds import in_rounds, sides
from benchmarks.speed.traces import BenchTrace, repeated, simulated

REPOSITORY = Path(__file__).parents[1]
HISTORY = REPOSITORY / "benchmarks" / "history.jsonl"
RECORDED = "traces/hta/trace_diff/control/control.json.gz"
"""A recorded training job of 74,937 complete events, among the traces that HTAGRAPH_SHARED names."""


def main() -> None:
    """Measure, and write what was found."""
    options = parsed()
    with tempfile.TemporaryDirectory() as scratch:
        kept = options.traces or Path(scratch)
        traces = traces_of(options, kept)
        commands = {
            trace: sides(trace, Path(scratch) / f"saved-{number}", options.hta) for number, trace in enumerate(traces)
        }
        runs = in_rounds(commands, options.rounds, 60 * options.minutes, say)
    found = ratios_of(runs)
    for name, ratio in found.items():
        say(f"{name}: {ratio}")
    if options.dry:
        return
    append(HISTORY, entry(found, REPOSITORY))
    if not chart(runs, REPOSITORY / "docs" / "benchmarks.svg"):
        say("matplotlib is not installed: docs/benchmarks.svg is as it was")
    target = REPOSITORY / "docs" / "BENCHMARKS.md"
    target.write_text(page(runs, read(HISTORY)), encoding="utf-8")
    say(f"{HISTORY} and {target} are written")


def parsed() -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hta", help="Python of an environment with traceinsight==0.6.1")
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("HTAGRAPH_SHARED", "../shared")))
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**4, 10**5, 10**6], help="complete events")
    parser.add_argument("--large", action="store_true", help="also 10^7 events (10 GB of disk and memory)")
    parser.add_argument("--rounds", type=int, default=5, help="how often each process runs, if the time allows")
    parser.add_argument("--minutes", type=float, default=6.5, help="no round begins that would end later")
    parser.add_argument("--traces", type=Path, help="a folder in which traces are kept for the next run")
    parser.add_argument("--dry", action="store_true", help="print the ratios, and write nothing")
    return parser.parse_args()


def traces_of(options: argparse.Namespace, folder: Path) -> Sequence[BenchTrace]:
    """Return the traces to measure on; real ones where they are there, from the size of one repeat."""
    sizes = sorted({*options.sizes, *([10**7] if options.large else [])})
    folder.mkdir(parents=True, exist_ok=True)
    traces = []
    for size in sizes:
        say(f"making traces of {size:,} events")
        traces.append(simulated(size, folder))
        source = options.shared / RECORDED
        if source.exists() and size >= 10**5:
            traces.append(repeated(source, size, folder))
    return traces


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


if __name__ == "__main__":
    main()
