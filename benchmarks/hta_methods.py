"""Run every method of HTA's interface, of HTA itself or of `htagraph` in its place, and pickle what it returns.

`against_hta.py` starts this program: once with HTA's own interpreter, once with ours, and compares. It needs nothing
of `htagraph` where it runs HTA:

    python benchmarks/hta_methods.py --side hta --jobs jobs.json --out FOLDER [--cure D2 ...]

The jobs are loaded once per window (without the last profiler step, as HTA does by default, and with it). Every
method then runs in a child process of its own (a fork), because HTA's methods change the frames that they read, so
that results depend on the order of the calls (HTA.md D22); and with a limit on its time. Traces are read through
links in a folder of this program's own, since some methods write beside the trace.

Results are plain data: frames, dicts, lists, and for a critical path the dict of `path_facts`. One pickle per job,
window, set of cures and method: `{"seconds", "cpu", "error", "value"}`; processor time too, since machines are busy.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

sys.path.insert(0, str(Path(__file__).parent))
import hta_cures
from hta_paths import Method, Subject, cpu_seconds, critical_path, events_of

Frame: TypeAlias = Any

WINDOWS = {"last step dropped": False, "last step included": True}
DIFF_WINDOW = "all steps"
"""`TraceDiff` always reads whole traces."""
OPERATORS = ("aten::linear", "aten::conv", "aten::mm", "## forward ##")


def counters(subject: Subject) -> Frame:
    """Return the counter events that `generate_trace_with_counters` appends, per rank and file."""
    before = set(subject.folder.iterdir())
    subject.analysis.generate_trace_with_counters(ranks=subject.ranks)
    made = sorted(set(subject.folder.iterdir()) - before)
    return {path.name: [event for event in events_of(path) if event.get("ph") == "C"] for path in made}


def queue_summary_of_series(subject: Subject) -> Frame:
    """Return the summary made from a time series that was asked for before."""
    series = subject.analysis.get_queue_length_time_series(ranks=subject.ranks)
    return subject.analysis.get_queue_length_summary_from_time_series(series)


def blocked(most: int) -> Method:
    """Return the question for the time spent blocked on a queue of `most` launches."""

    def method(subject: Subject) -> Frame:
        series = subject.analysis.get_queue_length_time_series(ranks=subject.ranks)
        return subject.analysis.get_time_spent_blocked_on_full_queue(series, max_queue_length=most)

    return method


def patterns(operator: str) -> Method:
    """Return the question for the frequent kernel sequences of an operator, and the patterns in the file it writes."""

    def method(subject: Subject) -> dict[str, Any]:
        output = Path(tempfile.mkdtemp(dir=subject.folder))
        table = subject.analysis.get_frequent_cuda_kernel_sequences(operator, str(output), rank=subject.ranks[0])
        overlaid = [
            (path.name, index, event["args"]["Patterns"])
            for path in sorted(output.iterdir())
            for index, event in enumerate(events_of(path))
            if isinstance(event.get("args"), dict) and "Patterns" in event["args"]
        ]
        return {"table": table, "overlaid": overlaid}

    return method


METHODS: Mapping[str, Method] = {
    "profiler_steps": lambda s: s.analysis.get_profiler_steps(),
    "temporal_breakdown": lambda s: s.analysis.get_temporal_breakdown(visualize=False),
    "idle_time_breakdown": lambda s: s.analysis.get_idle_time_breakdown(
        ranks=s.ranks, visualize=False, show_idle_interval_stats=True
    ),
    "gpu_kernel_breakdown": lambda s: s.analysis.get_gpu_kernel_breakdown(visualize=False),
    "gpu_kernel_breakdown(1000)": lambda s: s.analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000),
    "gpu_kernel_breakdown(1000, 1.0)": lambda s: s.analysis.get_gpu_kernel_breakdown(
        visualize=False, num_kernels=1000, duration_ratio=1.0
    ),
    "gpu_user_annotation_breakdown": lambda s: s.analysis.get_gpu_user_annotation_breakdown(visualize=False),
    "gpu_user_annotation_breakdown(cpu)": lambda s: s.analysis.get_gpu_user_annotation_breakdown(
        use_gpu_annotation=False, visualize=False
    ),
    "gpu_kernels_with_user_annotations": lambda s: s.analysis.get_gpu_kernels_with_user_annotations(s.ranks[0]),
    "comm_comp_overlap": lambda s: s.analysis.get_comm_comp_overlap(visualize=False),
    "cuda_kernel_launch_stats": lambda s: s.analysis.get_cuda_kernel_launch_stats(ranks=s.ranks, visualize=False),
    "cuda_kernel_launch_stats(no memory)": lambda s: s.analysis.get_cuda_kernel_launch_stats(
        ranks=s.ranks, visualize=False, include_memory_events=False
    ),
    "queue_length_time_series": lambda s: s.analysis.get_queue_length_time_series(ranks=s.ranks),
    "queue_length_summary": lambda s: s.analysis.get_queue_length_summary(ranks=s.ranks),
    "queue_length_summary_from_time_series": queue_summary_of_series,
    "time_spent_blocked_on_full_queue(1024)": blocked(1024),
    "time_spent_blocked_on_full_queue(1)": blocked(1),
    "memory_bw_time_series": lambda s: s.analysis.get_memory_bw_time_series(ranks=s.ranks),
    "memory_bw_summary": lambda s: s.analysis.get_memory_bw_summary(ranks=s.ranks),
    "trace_with_counters": counters,
    "potential_stragglers": lambda s: s.analysis.get_potential_stragglers(),
    "potential_stragglers(1)": lambda s: s.analysis.get_potential_stragglers(num_candidates=1),
    "cupti_counter_data": lambda s: s.analysis.get_cupti_counter_data_with_operators(ranks=s.ranks),
    "critical_path(ProfilerStep, 0)": critical_path("ProfilerStep", 0),
    "critical_path(ProfilerStep, 1)": critical_path("ProfilerStep", 1),
    "critical_path(all)": critical_path("", None),
    "aten_op_kernels_and_delay": lambda s: s.analysis.get_aten_op_kernels_and_delay(ranks=s.ranks),
    **{f"frequent_sequences({name})": patterns(name) for name in OPERATORS},
}
"""The questions about one job. `aten_op…` asks HTA to draw a table whatever one says: showing is switched off."""


def comparison(device: str, *, short: bool) -> Method:
    """Return the question for the comparison of two traces."""

    def method(subject: Subject) -> Frame:
        diff = subject.analysis
        arguments = {"device_type": getattr(diff.DeviceType, device), "use_short_name": short}
        return diff.TraceDiff.compare_traces(str(subject.folder / "control"), str(subject.folder / "test"), **arguments)

    return method


def operator_changes(subject: Subject) -> dict[str, list[str]]:
    """Return the names that `ops_diff` finds added, deleted and so on."""
    folder = subject.folder
    changes: dict[str, list[str]] = subject.analysis.TraceDiff.ops_diff(str(folder / "control"), str(folder / "test"))
    return changes


DIFF_METHODS: Mapping[str, Method] = {
    **{f"compare_traces({device})": comparison(device, short=False) for device in ("ALL", "CPU", "GPU")},
    "compare_traces(ALL, short names)": comparison("ALL", short=True),
    "ops_diff": operator_changes,
}
"""The questions about two jobs; their `analysis` is the module `trace_diff`."""


def methods_of(job: Mapping[str, Any]) -> Mapping[str, Method]:
    """Return the questions that fit a job."""
    return DIFF_METHODS if "test" in job else METHODS


def windows_of(job: Mapping[str, Any]) -> Sequence[str]:
    """Return the windows in which a job is looked at."""
    return [DIFF_WINDOW] if "test" in job else list(WINDOWS)


def slug(text: str) -> str:
    """Return a name that is a file's name."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in text).strip("_")


def result_file(out: Path, job: str, window: str, cures: Sequence[str], method: str) -> Path:
    """Return where one result is kept."""
    return out / slug(job) / slug(window) / ("+".join(sorted(cures)) or "plain") / f"{slug(method)}.pickle"


def link(files: Mapping[str, str], folder: Path, cures: Sequence[str]) -> dict[int, str]:
    """Put links to the traces, or edited copies of them, into a folder; return rank → path."""
    folder.mkdir(parents=True, exist_ok=True)
    links: dict[int, str] = {}
    for rank, source in files.items():
        target = folder / Path(source).name
        hta_cures.copy_cured(Path(source), target, cures)
        links[int(rank)] = str(target)
    return links


def opened(side: str, job: Mapping[str, Any], window: str, folder: Path, cures: Sequence[str]) -> Subject:
    """Load a job as a user does, or import what compares two."""
    package = {"hta": "hta", "ours": "htagraph"}[side]
    if "test" in job:
        link(job["files"], folder / "control", cures)
        link(job["test"], folder / "test", cures)
        return Subject(import_module(f"{package}.trace_diff"), [int(rank) for rank in job["files"]], folder)
    files = link(job["files"], folder, cures)
    module = import_module(f"{package}.trace_analysis")
    analysis = module.TraceAnalysis(trace_files=files, include_last_profiler_step=WINDOWS[window])
    return Subject(analysis, sorted(files), folder)


def run(method: Method, subject: Subject) -> dict[str, Any]:
    """Return what a method returned or raised, and its seconds."""
    start, busy = time.perf_counter(), cpu_seconds()
    try:
        value, error = method(subject), None
    except Exception as problem:  # noqa: BLE001  (what it raises is the finding)
        value, error = None, f"{type(problem).__name__}: {str(problem)[:300]}"
        traceback.print_exc()
    times = {"seconds": time.perf_counter() - start, "cpu": cpu_seconds() - busy}
    if isinstance(value, dict) and "times" in value:
        times = value.pop("times")
    return {**times, "error": error, "value": value}


def keep(path: Path, result: Mapping[str, Any]) -> None:
    """Write a result, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    part.write_bytes(pickle.dumps(dict(result)))
    part.replace(path)


def run_apart(method: Method, subject: Subject, path: Path, limit_s: int, *, in_ns: bool) -> None:
    """Run a method in a child process, at most so many seconds, and keep what it returned."""
    child = os.fork()
    if child == 0:
        signal.alarm(limit_s)  # whose default action ends the process
        code = 1
        with contextlib.suppress(BaseException):
            result = run(method, subject)
            keep(path, {**result, "value": hta_cures.scaled(result["value"])} if in_ns else result)
            code = 0
        os._exit(code)
    start = time.perf_counter()
    _, status = os.waitpid(child, 0)
    if status:
        why = "Timeout" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM else "Died"
        keep(path, {"seconds": time.perf_counter() - start, "error": f"{why}: status {status}", "value": None})


def warm_up(side: str, job: Mapping[str, Any]) -> None:
    """Run everything once on a small job: what is imported or compiled at first use is not counted."""
    with tempfile.TemporaryDirectory() as name:
        try:
            subject = opened(side, job, windows_of(job)[0], Path(name), [])
        except Exception:  # noqa: BLE001  (it will be reported with the job's own results)
            return
        for method in methods_of(job).values():
            run(method, subject)


def run_job(options: argparse.Namespace, job: Mapping[str, Any], window: str) -> None:
    """Run every wanted method that has no result yet on one job and window."""
    wanted = {
        name: path
        for name in ["load", *methods_of(job)]
        if "only" not in job or name in job["only"].get(window, ())
        if not options.only or name in options.only
        if not (path := result_file(options.out, job["name"], window, options.cure, name)).exists()
    }
    if not wanted:
        return
    with tempfile.TemporaryDirectory() as folder:
        start, busy = time.perf_counter(), cpu_seconds()
        try:
            subject = opened(options.side, job, window, Path(folder), options.cure)
        except Exception as problem:  # noqa: BLE001  (see run)
            traceback.print_exc()
            error = f"{type(problem).__name__}: {str(problem)[:300]}"
            for path in wanted.values():
                keep(path, {"seconds": 0.0, "error": error, "value": None})
            return
        times = {"seconds": time.perf_counter() - start, "cpu": cpu_seconds() - busy}
        gc.freeze()  # else every child copies all objects as soon as it collects garbage
        for name, path in wanted.items():
            print(f"{options.side} | {job['name']} | {window} | {name}", file=sys.stderr, flush=True)
            if name == "load":
                keep(path, {**times, "error": None, "value": None})
            else:
                run_apart(methods_of(job)[name], subject, path, options.limit, in_ns="D2" in options.cure)


def main() -> None:
    """Read the command line and run everything that it asks for."""
    parser = argparse.ArgumentParser(description="Run HTA's interface, HTA's or ours, and pickle the results.")
    parser.add_argument("--side", choices=["hta", "ours"], required=True)
    parser.add_argument(
        "--jobs", type=Path, required=True, help="JSON: a list of {name, files, test?, only?: {window: methods}}"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the results; what is there stays")
    parser.add_argument("--cure", nargs="*", default=[], help="repair these defects of HTA's first (hta_cures.py)")
    parser.add_argument("--types", type=Path, help="JSON: kernel name → type, for the cure of D10")
    parser.add_argument("--only", nargs="*", default=[], help="only these methods")
    parser.add_argument("--limit", type=int, default=240, help="seconds per method (default: 240)")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    jobs = json.loads(options.jobs.read_text(encoding="utf-8"))
    hta_cures.switch_off_drawing()
    hta_cures.patch(options.cure, json.loads(options.types.read_text(encoding="utf-8")) if options.types else {})
    for pair in (True, False):
        warm_up(options.side, next((job for job in jobs if ("test" in job) == pair), {"name": "", "files": {}}))
    for job in jobs:
        for window in windows_of(job):
            run_job(options, job, window)


if __name__ == "__main__":
    main()
