"""Every method of HTA's interface, HTA's own and ours, on real traces: equal, or different and why; and how fast.

    python benchmarks/against_hta.py --hta /path/to/venv/bin/python [FOLDER or FILE ...] [--cache DIR] [--only METHOD …]

HTA lives in an environment of its own (`pip install traceinsight==0.6.1`) and runs in processes of its own; with
`--cache`, its results are kept there for the next time. A folder of several traces is one job, a file is a job of one
rank; by default, everything below ``$HTAGRAPH_SHARED/traces``. Each job is asked twice: without the last profiler step,
which is HTA's default, and with it. What HTA writes and returns for a critical path is compared as well.

*Equal* means the same columns, index, order of rows and values (floats to 1e-6 relative); where only dtypes differ,
that is counted apart. A difference has an explanation only if a test says so (hta_rules.py): most often, HTA is
run again with the defect cured (hta_cures.py) and then says what we say. Times are the processor's, of the first call
after a warm-up on another job. The exit code is 1 if something is unexplained, or if ours raised.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from hta_compare import Difference, differences, equal
from hta_facts import Facts, facts_of
from hta_methods import methods_of, result_file, windows_of
from hta_rules import crash, cures, rule

Job: TypeAlias = dict[str, Any]
Result: TypeAlias = dict[str, Any]

WORKER = Path(__file__).parent / "hta_methods.py"
PAIRS = (("hta/compare/base", "hta/compare/test"), ("hta/trace_diff/control", "hta/trace_diff/test"),
         ("torchrec_v100_equal", "torchrec_v100_leading_missing"))  # fmt: skip
"""Folders that `TraceDiff` compares, where they are there."""
OK = ("equal", "dtypes", "explained", "HTA failed")
VERDICTS = (*OK, "unexplained", "ours failed")


@dataclass
class Case:
    """One method on one job and window."""

    job: Job
    window: str
    method: str
    verdict: str = ""
    why: str = ""
    found: list[Difference] = field(default_factory=list)
    ratio: float | None = None
    """Time of HTA / ours, where both answered."""

    def __str__(self) -> str:
        times = f"  (HTA/ours {self.ratio:.1f})" if self.ratio else ""
        why = f": {self.why}" if self.why else ""
        return f"{self.job['name']} | {self.window} | {self.method} | {self.verdict}{why}{times}"


@dataclass(frozen=True)
class Bench:
    """Where things are."""

    hta: str
    cache: Path
    ours: Path
    types: Path
    limit: int

    def run(self, side: str, cases: Iterable[Case], cure: Sequence[str] = ()) -> None:
        """Let one side answer the cases that it has not answered yet."""
        only: dict[str, Job] = {}
        for case in cases:
            if not self.path(side, case, cure).exists():
                job = only.setdefault(case.job["name"], {**case.job, "only": defaultdict(list)})
                job["only"][case.window].append(case.method)
        if not only:
            return
        with tempfile.NamedTemporaryFile("w", suffix=".json") as jobs:
            jobs.write(json.dumps(list(only.values())))
            jobs.flush()
            python = self.hta if side == "hta" else sys.executable
            command = [python, str(WORKER), "--side", side, "--jobs", jobs.name, "--limit", str(self.limit)]
            command += ["--out", str(self.cache if side == "hta" else self.ours), "--types", str(self.types)]
            with (self.ours / f"{side}.log").open("ab") as log:
                subprocess.run([*command, *(["--cure", *cure] if cure else [])], check=True, stderr=log, stdout=log)

    def path(self, side: str, case: Case, cure: Sequence[str] = ()) -> Path:
        """Return where a result is."""
        folder = self.cache if side == "hta" else self.ours
        return result_file(folder, case.job["name"], case.window, cure, case.method)

    def result(self, side: str, case: Case, cure: Sequence[str] = ()) -> Result:
        """Return a result."""
        path = self.path(side, case, cure)
        if not path.exists():
            return {"seconds": 0.0, "error": "Absent: there is no result", "value": None}
        found: Result = pickle.loads(path.read_bytes())
        return found


def jobs_below(places: Sequence[Path], root: Path) -> list[Job]:
    """Return the jobs of files and folders: several traces in a folder of ranks are one job."""
    folders: dict[Path, list[Path]] = defaultdict(list)
    for place in places:
        found = [place] if place.is_file() else sorted(place.rglob("*.json*"))
        for path in found:
            if path.name.endswith((".json", ".json.gz")) and "_et." not in path.name:
                folders[path.parent].append(path)
    jobs = []
    for folder, paths in folders.items():
        ranks = [rank_of(path) for path in paths]
        if len(paths) > 1 and sorted(ranks) == list(range(len(paths))):
            jobs.append(job_of(name_of(folder, root), paths))
        else:
            jobs += [job_of(name_of(path, root).removesuffix(".gz").removesuffix(".json"), [path]) for path in paths]
    return sorted(jobs, key=lambda job: sum(Path(path).stat().st_size for path in job["files"].values()))


def name_of(path: Path, root: Path) -> str:
    """Return a job's name: where it is below the root."""
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def job_of(name: str, paths: Sequence[Path]) -> Job:
    """Return a job of files whose ranks their headers say; 0 where they say none."""
    return {"name": name, "files": {str(rank_of(path)): str(path.resolve()) for path in paths}}


def pairs_below(root: Path) -> list[Job]:
    """Return the pairs to compare."""
    there = [(root / a, root / b) for a, b in PAIRS if (root / a).is_dir() and (root / b).is_dir()]
    return [
        {**job_of(f"diff {a.relative_to(root)} {b.name}", files(a)), "test": job_of("", files(b))["files"]}
        for a, b in there
    ]


def files(folder: Path) -> list[Path]:
    """Return a folder's traces."""
    return sorted(folder.glob("*.json*"))


@cache
def rank_of(path: Path) -> int:
    """Return the rank in a trace's header, 0 where it has none."""
    import gzip

    data = path.read_bytes()
    found = re.search(rb'"rank":\s*(\d+)', gzip.decompress(data) if path.suffix == ".gz" else data)
    return int(found[1]) if found else 0


def judged(bench: Bench, cases: Sequence[Case], facts: dict[str, Facts]) -> None:
    """Give every case its verdict: compare, and try to explain what differs."""
    for case in cases:
        hta, ours = bench.result("hta", case), bench.result("ours", case)
        case.ratio = ratio_of(hta, ours)
        if ours["error"]:
            case.verdict, case.why = "ours failed", f"{ours['error']} (HTA: {hta['error'] or 'answered'})"
        elif hta["error"]:
            case.verdict, case.why = "HTA failed", hta["error"]
        else:
            case.found = differences(hta["value"], ours["value"])
            kinds = {each.kind for each in case.found}
            case.verdict = "equal" if not kinds else "dtypes" if kinds == {"dtype"} else "unexplained"
            if kinds == {"dtype"}:
                case.why = "; ".join(map(str, case.found[:3]))
    explain_by_cures(bench, [case for case in cases if case.verdict in ("unexplained", "HTA failed")], facts)
    for case in cases:
        if case.verdict == "unexplained":
            explain_by_rule(bench, case, facts[case.job["name"]])
        elif case.verdict == "HTA failed" and not case.why.startswith("D"):
            what = crash(case.method, case.why, facts[case.job["name"]])
            case.why = f"{what} ({case.why})" if what else case.why
            case.verdict = case.verdict if what else "unexplained"


def ratio_of(hta: Result, ours: Result) -> float | None:
    """Return the processor time of HTA's answer over ours (at least 5 ms each), None where one did not answer."""
    if hta["error"] or ours["error"]:
        return None
    theirs, mine = (float(each["cpu"] if "cpu" in each else each["seconds"]) for each in (hta, ours))
    return max(theirs, 0.005) / max(mine, 0.005)


def explain_by_cures(bench: Bench, cases: Sequence[Case], facts: dict[str, Facts]) -> None:
    """Run HTA again with all cures that can matter; where it then says what we say, find one that does alone."""
    sets: dict[tuple[str, ...], list[Case]] = defaultdict(list)
    for case in cases:
        if possible := cures(case.method, facts[case.job["name"]]):
            sets[tuple(possible)].append(case)
    singles: dict[str, list[Case]] = defaultdict(list)
    for possible_cures, mine in sets.items():
        for case in explained(bench, mine, possible_cures):
            for cure in possible_cures if len(possible_cures) > 1 else ():
                singles[cure].append(case)
    for cure, mine in singles.items():
        explained(bench, [case for case in mine if "+" in case.why.split(" cured")[0]], [cure])


def explained(bench: Bench, cases: Sequence[Case], cure: Sequence[str]) -> list[Case]:
    """Return the cases where HTA with cures says what we say; they say so."""
    bench.run("hta", cases, cure)
    solved = [case for case in cases if cured_equal(bench, case, cure)]
    for case in solved:
        error = bench.result("hta", case)["error"]
        case.why = f"{'+'.join(cure)} cured: equal" + (f" ({error})" if error else "")
        case.verdict = "HTA failed" if error else "explained"
    return solved


def explain_by_rule(bench: Bench, case: Case, facts: Facts) -> None:
    """Let the method's rules look at the two results, and at HTA's with all cures."""
    ours = bench.result("ours", case)["value"]
    for cure in (list[str](), cures(case.method, facts)):
        hta = bench.result("hta", case, cure)
        said = None if hta["error"] else rule(case.method, hta["value"], ours, facts)
        if said:
            case.verdict, case.why = "explained", "+".join([*cure, said])
            return


def cured_equal(bench: Bench, case: Case, cure: Sequence[str]) -> bool:
    """Return whether HTA with cures says what we say, but for dtypes."""
    hta = bench.result("hta", case, cure)
    return not hta["error"] and equal(hta["value"], bench.result("ours", case)["value"], tolerance(cure))


def tolerance(cure: Sequence[str]) -> float:
    """Return by how much results may differ, µs: HTA rounds some to 10 ns, which in ns it rounds to nothing."""
    return 0.0051 if "D2" in cure else 1e-9


def summary(cases: Sequence[Case]) -> None:
    """Print a row per method."""
    by_method: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        by_method[case.method].append(case)
    print(
        f"\n{'method':42}"
        + "".join(f"{verdict:>13}" for verdict in VERDICTS)
        + f"{'HTA/ours':>10}{'least':>8}  defects"
    )
    for method, mine in by_method.items():
        counts = Counter(case.verdict for case in mine)
        ratios = [case.ratio for case in mine if case.ratio]
        times = f"{statistics.median(ratios):>10.1f}{min(ratios):>8.1f}" if ratios else f"{'':>18}"
        defects = sorted({name for case in mine for name in re.findall(r"\b[CD]\d+\b", case.why)})
        print(f"{method:42}" + "".join(f"{counts[verdict] or '.':>13}" for verdict in VERDICTS) + times, *defects)


def main() -> None:
    """Run both sides, compare, explain, print."""
    root = Path(os.environ.get("HTAGRAPH_SHARED", "../shared")) / "traces"
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="*", type=Path, help=f"folders and files (default: {root})")
    parser.add_argument("--hta", required=True, help="Python of an environment with traceinsight==0.6.1")
    parser.add_argument("--cache", type=Path, help="folder where HTA's results are kept")
    parser.add_argument("--ours", type=Path, help="folder where our results are left (default: nowhere)")
    parser.add_argument("--only", nargs="*", default=[], help="only methods whose names begin so")
    parser.add_argument("--limit", type=int, default=240, help="seconds per method and trace")
    parser.add_argument("--all", action="store_true", help="print the equal ones too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        ours = options.ours or Path(scratch) / "ours"
        bench = Bench(
            options.hta, options.cache or Path(scratch) / "hta", ours, Path(scratch) / "types.json", options.limit
        )
        ours.mkdir(parents=True, exist_ok=True)
        root = root.resolve()
        jobs = jobs_below([place.resolve() for place in options.places] or [root], root)
        jobs += [] if options.places else pairs_below(root)
        sys.exit(bench_all(bench, jobs, options))


def bench_all(bench: Bench, jobs: Sequence[Job], options: argparse.Namespace) -> int:
    """Run everything, print it, and return the exit code."""
    facts = {job["name"]: facts_of([*job["files"].values(), *job.get("test", {}).values()]) for job in jobs}
    bench.types.write_text(json.dumps({name: kind for each in facts.values() for name, kind in each.types.items()}))
    cases = [
        Case(job, window, method)
        for job in jobs
        for window in windows_of(job)
        for method in methods_of(job)
        if not options.only or method.startswith(tuple(options.only))
    ]
    for case in cases:
        bench.path("ours", case).unlink(missing_ok=True)
    for side in ("hta", "ours"):
        bench.run(side, cases)
    judged(bench, cases, facts)
    for case in cases:
        if options.all or case.verdict not in ("equal", "dtypes"):
            print(case)
            for each in case.found[:6] if case.verdict == "unexplained" else ():
                print(f"      {each}")
    summary(cases)
    bad = [case for case in cases if case.verdict not in OK]
    print(f"\n{len(cases)} comparisons, {len(bad)} unexplained or failed")
    return int(bool(bad))


if __name__ == "__main__":
    main()
