"""Are the conclusions right? ``python -m benchmarks.conclusions [--pairs DIR] [--only GLOB] [--json FILE]``.

Over 200 jobs whose conclusions are known without htagraph's analyses: simulated ones in every regime (the truth is a
planted change, or the job simulated again with something taken away), real traces (the truth is in their raw JSON),
and recorded pairs (their `truth.json`). Printed are precision (of what is said, how much is true) and recall (of what
is clearly to be said, how much is) by kind of conclusion, and each that is wrong or missing.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import time
import traceback
from pathlib import Path

from benchmarks.conclusions_truth.cases import (
    Case,
    changed_cases,
    job_cases,
    late_cases,
    pair_cases,
    pause_cases,
    trace_cases,
)
from benchmarks.conclusions_truth.findings import Finding, scores, wrong_lines
from benchmarks.halves import add_half, of_half

JOBS, CHANGED, LATE, PAUSES = 95, 66, 12, 24
"""How many cases of each kind are simulated. Chosen: each shape and each change several times, in a quarter of an hour;
doubled, it takes twice as long."""


def main() -> None:
    """Judge all cases and print."""
    command = parser()
    options = command.parse_args()
    for folder in options.pairs:
        if not folder.is_dir():
            command.error(f"--pairs {folder}: no such folder")
    if options.json and not options.json.parent.is_dir():
        command.error(f"--json {options.json}: no such folder")
    findings: list[Finding] = []
    cases = all_cases(options.pairs)
    chosen = {name: case for name, case in cases.items() if any(fnmatch.fnmatch(name, glob) for glob in options.only)}
    chosen = {name: chosen[name] for name in of_half(chosen, options.half)}
    if not chosen:
        command.error(f"--only {' '.join(options.only)}: no such case; one of {len(cases)} is {next(iter(cases))!r}")
    for name, case in chosen.items():
        begin = time.perf_counter()
        findings += judged(name, case)
        if options.json:
            options.json.write_text(json.dumps([each._asdict() for each in findings], indent=1), encoding="utf-8")
        if options.verbose:
            print(
                "\n".join([f"{name} {time.perf_counter() - begin:.1f} s", *wrong_lines(findings_of(name, findings))]),
                flush=True,
            )
    print("\n".join(wrong_lines(findings)))
    print(f"\n{len(chosen)} cases, {len(findings)} conclusions said or expected")
    print(scores(findings).round(1).to_string(index=False))


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    command = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    command.add_argument("--pairs", type=Path, nargs="*", default=[], help="more folders of pairs")
    command.add_argument("--only", nargs="*", default=["*"], help="globs on the names of cases")
    add_half(command)
    command.add_argument("--json", type=Path, help="write all conclusions")
    command.add_argument("--verbose", action="store_true", help="print as cases are judged")
    return command


def all_cases(pairs: list[Path]) -> dict[str, Case]:
    """Return every case by name; real ones where `HTAGRAPH_SHARED` says where they are."""
    shared = Path(os.environ.get("HTAGRAPH_SHARED", "../shared"))
    folders = [each for each in (shared / "real_pairs" / "data", *pairs) if each.is_dir()]
    traces = trace_cases(shared / "traces") if (shared / "traces").is_dir() else {}
    return {
        **traces, **pair_cases(folders), **late_cases(LATE), **changed_cases(CHANGED), **job_cases(JOBS),
        **pause_cases(PAUSES),
    }  # fmt: skip


def judged(name: str, case: Case) -> list[Finding]:
    """Return what came of a case; one that fails is a wrong conclusion."""
    try:
        return [each._replace(case=name) for each in case()]
    except Exception:  # noqa: BLE001 - one case must not end the others
        return [Finding("failed", "", "no error", right=False, evidence=traceback.format_exc()[-600:], case=name)]


def findings_of(name: str, findings: list[Finding]) -> list[Finding]:
    """Return the findings of a case."""
    return [each for each in findings if each.case == name]


if __name__ == "__main__":
    main()
