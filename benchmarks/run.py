"""Every measured claim by one command: ``python benchmarks/run.py [--hta PYTHON] [--shared DIR] [--runs N] [--large]``.

Processes are fresh and alternate between the sides of a comparison, so that a ratio means something on a noisy machine.
Ratios are medians over runs with their spread. HTA runs with the Python of its own environment
(``python -m venv hta && hta/bin/pip install traceinsight==0.6.1``); without ``--hta`` its comparisons are left out.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
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
    parser.add_argument("--hta", help="Python of an environment with traceinsight==0.6.1")
    parser.add_argument("--shared", type=Path, default=Path(os.environ.get("HTAGRAPH_SHARED", "../shared")))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--large", action="store_true", help="also 10^7 events (5 minutes, 10 GB of disk and memory)")
    options = parser.parse_args()
    for name in ("control", "test"):
        trace = options.shared / "traces" / "hta" / "trace_diff" / name / f"{name}.json.gz"
        if trace.exists():
            against_decoder(name, trace, options.runs)
            if options.hta:
                against_hta(name, trace, options.hta, options.runs)
    imports(options.runs)
    with tempfile.TemporaryDirectory() as scratch:
        growth(Path(scratch), [10**5, 10**6] + ([10**7] if options.large else []))
        what_if(Path(scratch), [50_000] + ([5 * 10**6] if options.large else []))
        parallel(Path(scratch))
        small_ranks(Path(scratch), options.runs)


def against_hta(name: str, trace: Path, hta: str, runs: int) -> None:
    """Compare load and graph with HTA's load alone, and the longest path with HTA's critical path of one step."""
    ours, theirs = alternate([_measure("load", trace), _hta(hta, "load", trace)], runs)
    report(
        f"{name}: HTA's load / our load and graph (time)",
        [t["seconds"] / o["seconds"] for o, t in zip(ours, theirs, strict=True)],
    )
    above = [
        (o["peak_mb"] - o["rss_before_mb"]) / (t["peak_rss_mb"] - t["rss_after_import_mb"])
        for o, t in zip(ours, theirs, strict=True)
    ]
    report(f"{name}: our peak / HTA's peak, both above their imports (memory)", above)
    report(
        f"{name}: our peak / HTA's peak, whole processes (memory)",
        [o["peak_mb"] / t["peak_rss_mb"] for o, t in zip(ours, theirs, strict=True)],
    )
    ours, theirs = alternate([_measure("longest-path", trace), _hta(hta, "critical-path", trace)], runs)
    report(
        f"{name}: HTA's critical path of one step / our longest path over all (time)",
        [t["seconds"] / o["seconds"] for o, t in zip(ours, theirs, strict=True)],
    )


def against_decoder(name: str, trace: Path, runs: int) -> None:
    """Compare load and graph with json.loads alone on the decompressed bytes."""
    ours, theirs = alternate([_measure("load", trace), _measure("json-loads", trace)], runs)
    report(
        f"{name}: our load and graph / json.loads (time)",
        [o["seconds"] / t["seconds"] for o, t in zip(ours, theirs, strict=True)],
    )
    decoding, others = alternate([_measure("decode", trace), _measure("other-json", trace)], runs)
    for decoder in others[0]["seconds"]:
        report(
            f"{name}: our decoding into columns / {decoder} into objects (time)",
            [o["seconds"] / t["seconds"][decoder] for o, t in zip(decoding, others, strict=True)],
        )


def imports(runs: int) -> None:
    """Time ``import htagraph`` above a bare interpreter, and ``htagraph --help`` as a whole."""
    code = "import time; t = time.perf_counter(); import htagraph; print(time.perf_counter() - t)"
    report("import htagraph (s)", [float(_output([sys.executable, "-c", code])) for _ in range(runs)])
    run = "subprocess.run([sys.executable, '-m', 'htagraph', '--help'], stdout=subprocess.DEVNULL)"
    script = f"import subprocess, sys, time; t = time.perf_counter(); {run}; print(time.perf_counter() - t)"
    report("htagraph --help (s)", [float(_output([sys.executable, "-c", script])) for _ in range(runs)])


def growth(scratch: Path, sizes: Sequence[int]) -> None:
    """Fit time and memory of load and graph against the number of simulated events."""
    found = []
    for size in sizes:
        folder = scratch / f"events-{size}"
        _output([sys.executable, "-m", "htagraph", "simulate", "--events", str(size), "-o", str(folder)])
        result = min(
            (json.loads(_output(_measure("load", folder))) for _ in range(3 if size < 10**7 else 1)),
            key=lambda r: r["seconds"],
        )
        above = (result["peak_mb"] - result["rss_before_mb"]) * 2**20 / result["events"]
        saved = json.loads(_output(_measure("save", folder)))
        opened = json.loads(_output(_measure("reopen", Path(saved["saved"]))))
        print(
            f"{opened['activities']:>9} activities: opened in {opened['seconds']:.3f} s, "
            f"{saved['bytes_per_activity']:.0f} bytes each on the disk"
        )
        print(
            f"{result['events']:>9} events: {result['seconds']:7.2f} s, {above:5.0f} bytes per event above the imports"
        )
        found.append((result["events"], result["seconds"]))
        shutil.rmtree(folder)
    for (few, fast), (many, slow) in itertools.pairwise(found):
        print(f"exponent of time from {few} to {many} events: {math.log(slow / fast) / math.log(many / few):.3f}")


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


def _hta(python: str, what: str, trace: Path) -> list[str]:
    return [python, str(HERE / "hta_baseline.py"), str(trace), "--what", what]


def _output(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
