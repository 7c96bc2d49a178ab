"""Start-up, what-ifs, and ranks beside each other: ``python benchmarks/scaling.py [--runs N] [--large]``.

Processes are fresh and alternate between the sides of a comparison, so that a ratio means something on a noisy machine.
Ratios are medians over runs with their spread.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def main() -> None:
    """Run all comparisons and print one line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--large", action="store_true", help="also 5 * 10^6 events (10 GB of disk and memory)")
    options = parser.parse_args()
    imports(options.runs)
    with tempfile.TemporaryDirectory() as scratch:
        what_if(Path(scratch), [50_000] + ([5 * 10**6] if options.large else []))
        parallel(Path(scratch))
        small_ranks(Path(scratch), options.runs)


def imports(runs: int) -> None:
    """Time ``import htagraph`` above a bare interpreter, and ``htagraph --help`` as a whole."""
    code = "import time; t = time.perf_counter(); import htagraph; print(time.perf_counter() - t)"
    report("import htagraph (s)", [float(_output([sys.executable, "-c", code])) for _ in range(runs)])
    run = "subprocess.run([sys.executable, '-m', 'htagraph', '--help'], stdout=subprocess.DEVNULL)"
    script = f"import subprocess, sys, time; t = time.perf_counter(); {run}; print(time.perf_counter() - t)"
    report("htagraph --help (s)", [float(_output([sys.executable, "-c", script])) for _ in range(runs)])


def what_if(scratch: Path, sizes: Sequence[int]) -> None:
    """Time predictions on jobs of two ranks against one pass of the longest path."""
    for size in sizes:
        folder = scratch / f"what-if-{size}"
        options = ["--events", str(size), "--ranks", "2", "-o", str(folder)]
        _output([sys.executable, "-m", "htagraph", "simulate", *options])
        result = json.loads(_output(_measure("what-if", folder)))
        longest = result["longest_path_seconds"]
        print(f"{result['vertices']} vertices: one longest path {1000 * longest:.1f} ms")
        for name, seconds in result["seconds"].items():
            print(f"  what-if on {name}: {seconds / longest:.2f} of it, {1 / seconds:.0f} per second")
        shutil.rmtree(folder)


def parallel(scratch: Path) -> None:
    """Load eight ranks of 50 MB JSON each on two cores and on one."""
    folder = scratch / "eight"
    _output([sys.executable, "-m", "htagraph", "simulate", "--events", "1450000", "--ranks", "8", "-o", str(folder)])
    one, two = _measure("load", folder), _measure("load", folder)
    if shutil.which("taskset"):
        one = ["taskset", "-c", "0", *one]
    slow, fast = alternate([one, two], 3)
    json_mb = sum(int(_output(["sh", "-c", f"gzip -dc {file} | wc -c"])) for file in folder.glob("*.gz")) / 8e6
    report(
        f"8 ranks of {json_mb:.0f} MB JSON: two cores / one core (time)",
        [f["seconds"] / s["seconds"] for s, f in zip(slow, fast, strict=True)],
    )
    shutil.rmtree(folder)


def small_ranks(scratch: Path, runs: int) -> None:
    """Load eight ranks of about 4 MB JSON each and compare with decoding them one after the other."""
    folder = scratch / "small"
    _output([sys.executable, "-m", "htagraph", "simulate", "--events", "110000", "--ranks", "8", "-o", str(folder)])
    whole, decoding = alternate([_measure("load", folder), _measure("decode", folder)], runs)
    report(
        "8 small ranks: load and graph / decoding alone (time)",
        [w["seconds"] / d["seconds"] for w, d in zip(whole, decoding, strict=True)],
    )


def alternate(commands: Sequence[list[str]], runs: int) -> list[list[dict[str, Any]]]:
    """Run the commands in turn, several times, and return each one's results."""
    results: list[list[dict[str, Any]]] = [[] for _ in commands]
    for _ in range(runs):
        for number, command in enumerate(commands):
            results[number].append(json.loads(_output(command)))
    return results


def report(what: str, values: Sequence[float]) -> None:
    """Print a median and its spread."""
    print(
        f"{what}: {statistics.median(values):.3f} [{min(values):.3f} .. {max(values):.3f}], {len(values)} runs",
        flush=True,
    )


def _measure(what: str, path: Path) -> list[str]:
    return [sys.executable, str(HERE / "measure.py"), what, str(path)]


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
