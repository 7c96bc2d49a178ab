"""Record a model that is trained at several batches: ``python -m benchmarks.record_batches MODEL OUTPUT``.

The models are functions of `benchmarks.recorded.batches`; operators are recorded with their shapes. Batches take turns,
so that what drifts meets all of them. Written per batch and run, into OUTPUT: `bBATCH-RUN/rank-0.json.gz`, the trace,
and `bBATCH-RUN.steps.json`, when each recorded step began, µs. ``python -m benchmarks.capacity batch`` judges by them.

It needs what `record_pairs.py` needs.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

from benchmarks.record_pairs import record_run

BATCHES = (4, 8, 16, 32, 64)
"""Chosen: from where calls bind to where arithmetic does."""


def main() -> None:
    """Record each batch as often as asked for."""
    asked = parser().parse_args()
    importlib.import_module("benchmarks.recorded.batches")  # once, for all processes that are forked
    asked.output.mkdir(parents=True, exist_ok=True)
    for name, batch in runs(asked.batches, asked.runs):
        print(name, flush=True)
        # Linux stops real-time threads that never wait for 50 ms of each second
        settings = {"batch": batch, "fair": True}
        if not record_run(f"batches.{asked.model}", settings, asked.output / name, keep=True):
            sys.exit(f"not recorded: {name}")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("model", choices=("convolutional", "encoder"))
    command.add_argument("output", type=Path)
    command.add_argument("--batches", type=int, nargs="+", default=list(BATCHES))
    command.add_argument("--runs", type=int, default=2, help="how often each batch is run")
    return command


def runs(batches: list[int], count: int) -> list[tuple[str, int]]:
    """Return the name and the batch of each run, in the order of recording.

    >>> runs([2, 4], 2)
    [('b2-1', 2), ('b4-1', 4), ('b2-2', 2), ('b4-2', 4)]
    """
    return [(f"b{batch}-{run}", batch) for run in range(1, count + 1) for batch in batches]


if __name__ == "__main__":
    main()
