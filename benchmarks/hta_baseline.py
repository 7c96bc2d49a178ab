"""Time HTA (Holistic Trace Analysis) on traces and print its numbers, to compare ours with.

HTA lives in an environment of its own (`pip install traceinsight==0.6.1`); run this script with that
environment's Python. It needs nothing of `htagraph`. One question per process, so that the memory figures
mean something:

    python benchmarks/hta_baseline.py TRACE [TRACE ...] --what load

prints one JSON object on standard output (everything HTA logs goes to standard error):

* `what`, `rank`, `version` (HTA's);
* `seconds`: the time of the question alone; for every question but `load`, the traces are loaded before the
  clock starts (`load_seconds`), and turning the answer into JSON is not counted;
* `rss_after_import_mb`: peak resident memory after importing HTA, before reading anything;
* `peak_rss_mb`, `peak_rss_child_mb`: peak resident memory of this process, and of its largest child process
  (HTA reads several files in a pool of forked processes; 0 where it made none);
* `values`: the answer, tables as lists of rows; NaN is null.

`critical-path` asks for the second `ProfilerStep`. Its `seconds` are what a user waits for (window, graph and
solution); `values` also has the seconds of `CPGraph.critical_path()` alone and of networkx's longest path
alone.

`all` puts all questions one after another, after loading once, and prints the times of each, in seconds and
in processor seconds (its worker processes included).

`values` answers everything that has a comparable number, once with HTA's default window (the last profiler
step dropped) and once with the last step included.
"""

import argparse
import contextlib
import gzip
import json
import math
import os
import re
import resource
import sys
import time
from collections.abc import Callable, Collection, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    import pandas as pd

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Analysis: TypeAlias = Any  # hta.trace_analysis.TraceAnalysis; HTA has no types to check against
Graph: TypeAlias = Any  # hta.analyzers.critical_path_analysis.CPGraph
Edge: TypeAlias = Any  # hta.analyzers.critical_path_analysis.CPEdge

STEP = "ProfilerStep"
INSTANCE = 1  # counted from 0: the first step of a window often has warm-up work in it


def temporal(analysis: Analysis, _rank: int) -> object:
    """Return the temporal breakdown: a row per rank."""
    return analysis.get_temporal_breakdown(visualize=False)


def overlap(analysis: Analysis, _rank: int) -> object:
    """Return the communication hidden behind computation: a row per rank."""
    return analysis.get_comm_comp_overlap(visualize=False)


def kernel_breakdown(analysis: Analysis, _rank: int) -> object:
    """Return the time by kernel type, and by kernel and rank (at most 1000 names, the rest lumped)."""
    types, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=1000)
    return {"types": types, "kernels": kernels}


def launch_stats(analysis: Analysis, rank: int) -> object:
    """Return, for each launch of the rank, its durations and delay, as columns."""
    return dict(analysis.get_cuda_kernel_launch_stats(ranks=[rank], visualize=False)[rank])


def idle(analysis: Analysis, rank: int) -> object:
    """Return the idle time by stream and cause, and the statistics of the idle intervals."""
    times, intervals = analysis.get_idle_time_breakdown(ranks=[rank], visualize=False, show_idle_interval_stats=True)
    return {"times": times, "intervals": intervals}


def queue_length(analysis: Analysis, rank: int) -> object:
    """Return the summary of the launch queue's length: a row per stream."""
    return analysis.get_queue_length_summary(ranks=[rank])


def memory_bandwidth(analysis: Analysis, rank: int) -> object:
    """Return the summary of the memory bandwidth: a row per kind of copy."""
    return analysis.get_memory_bw_summary(ranks=[rank])


def critical_path(analysis: Analysis, rank: int) -> object:
    """Return the solved graph of one step and whether HTA calls it a success; None where it has no steps."""
    return analysis.critical_path_analysis(rank, STEP, INSTANCE)


QUESTIONS: Mapping[str, Callable[[Analysis, int], object]] = {
    "temporal": temporal,
    "overlap": overlap,
    "kernel-breakdown": kernel_breakdown,
    "launch-stats": launch_stats,
    "idle": idle,
    "queue-length": queue_length,
    "memory-bandwidth": memory_bandwidth,
    "critical-path": critical_path,
}
COMPARABLE = tuple(name for name in QUESTIONS if name != "critical-path")


def shown(answer: object) -> Json:
    """Return an answer as JSON: tables, columns, dicts of them, or a critical path."""
    import pandas as pd

    if answer is None:
        return None
    if isinstance(answer, pd.DataFrame):
        return rows(answer)
    if isinstance(answer, pd.Series):
        return [plain(value) for value in answer.tolist()]
    if isinstance(answer, dict):
        return {str(name): shown(part) for name, part in answer.items()}
    graph, success = cast("tuple[Graph, bool]", answer)
    return {"success": success, **path_facts(graph), **solving_seconds(graph)}


def rows(frame: "pd.DataFrame") -> Json:
    """Return a table as a list of rows.

    A named index becomes columns; of two levels of column names the lower one stays.
    """
    if frame.columns.nlevels > 1:
        frame = frame.set_axis(frame.columns.get_level_values(-1), axis="columns")
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    return [{str(name): plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def plain(value: object) -> Json:
    """Return a table's cell as JSON has it: numpy scalars as numbers, NaN as null."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | None) else str(value)


def path_facts(graph: Graph) -> dict[str, Json]:
    """Return the size of HTA's graph and of its critical path, and the path's weight."""
    edges = graph.critical_path_edges_set
    return {
        "nodes": graph.number_of_nodes(),
        "edges": graph.number_of_edges(),
        "path_nodes": len(graph.critical_path_nodes),
        "path_events": len(graph.critical_path_events_set),
        "path_weight_us": plain(sum(edge.weight for edge in edges)),
        "path_weight_by_edge_type_us": weight_by_type(edges),
    }


def weight_by_type(edges: Collection[Edge]) -> Json:
    """Return the sum of the weights of HTA's edges by the name of their type."""
    names = sorted({edge.type.name for edge in edges})
    return {name: plain(sum(edge.weight for edge in edges if edge.type.name == name)) for name in names}


def solving_seconds(graph: Graph) -> dict[str, Json]:
    """Solve HTA's graph again and return the seconds: with HTA's method, and with networkx alone."""
    import networkx as nx

    start = time.perf_counter()
    graph.critical_path()
    middle = time.perf_counter()
    nx.dag_longest_path(graph, weight="weight")
    end = time.perf_counter()
    return {"solve_seconds": middle - start, "longest_path_seconds": end - middle}


def rank_of(trace: Path) -> int:
    """Return the rank in the trace's header, 0 where it has none."""
    data = trace.read_bytes()
    data = gzip.decompress(data) if trace.suffix == ".gz" else data
    found = re.search(rb'"rank":\s*(\d+)', data)
    return int(found.group(1)) if found else 0


def load(files: Mapping[int, str], *, last_step: bool = False, one_process: bool = False) -> Analysis:
    """Load the traces as a user of HTA does, or, on request, without HTA's pool of processes."""
    from hta.common.trace import Trace
    from hta.trace_analysis import TraceAnalysis

    if not one_process:
        return TraceAnalysis(trace_files=dict(files), include_last_profiler_step=last_step)
    analysis = TraceAnalysis.__new__(TraceAnalysis)
    analysis.t = Trace(trace_files=dict(files))
    analysis.t.load_traces(last_step, use_multiprocessing=False)
    return analysis


def loaded(analysis: Analysis) -> Json:
    """Return what HTA kept: the number of events and columns of each rank."""
    return {str(rank): {"events": len(df), "columns": df.shape[1]} for rank, df in analysis.t.traces.items()}


def ask(options: argparse.Namespace, files: Mapping[int, str], rank: int) -> dict[str, Json]:
    """Load, put the question, and return the seconds of both, the memory and the answer."""
    start = time.perf_counter()
    analysis = load(files, one_process=options.one_process)
    ready = time.perf_counter()
    if options.what == "load":
        return {"seconds": ready - start, **peaks(), "values": loaded(analysis)}
    answer = QUESTIONS[options.what](analysis, rank)
    end = time.perf_counter()
    times: dict[str, Json] = {"load_seconds": ready - start, "seconds": end - ready}
    return {**times, **peaks(), "values": shown(answer)}


def ask_all(options: argparse.Namespace, files: Mapping[int, str], rank: int) -> dict[str, Json]:
    """Return every comparable answer, without and with the last profiler step, and the seconds of it all."""
    start = time.perf_counter()
    windows: dict[str, Json] = {}
    for last_step in (False, True):
        analysis = load(files, last_step=last_step, one_process=options.one_process)
        answers = {name: shown(QUESTIONS[name](analysis, rank)) for name in COMPARABLE}
        windows["last_step_included" if last_step else "last_step_dropped"] = answers
    return {"seconds": time.perf_counter() - start, **peaks(), "values": windows}


def time_all(options: argparse.Namespace, files: Mapping[int, str], rank: int) -> dict[str, Json]:
    """Load, put every question in turn, and return the times of each; null where HTA fails or has no answer."""
    before, start, cpu = peak_rss_mb(resource.RUSAGE_SELF), time.perf_counter(), cpu_seconds()
    analysis = load(files, one_process=options.one_process)
    loading: dict[str, Json] = {"seconds": time.perf_counter() - start, "cpu_seconds": cpu_seconds() - cpu, **peaks()}
    questions: dict[str, Json] = {}
    found: dict[str, Json] = {**loading, "questions": questions}
    for name, question in QUESTIONS.items():
        print(json.dumps({"rss_after_import_mb": before, **found}), file=sys.__stdout__, flush=True)  # may be stopped
        start, cpu = time.perf_counter(), cpu_seconds()
        try:
            answer = question(analysis, rank)
        except Exception:  # noqa: BLE001 - whatever HTA raises
            answer = None
        times: Json = {"seconds": time.perf_counter() - start, "cpu_seconds": cpu_seconds() - cpu}
        questions[name] = times if answer is not None else None
    return found


def cpu_seconds() -> float:
    """Return the processor time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def peak_rss_mb(who: int) -> float:
    """Return the peak resident memory in MiB of this process or of its largest child."""
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(who).ru_maxrss * unit / 2**20, 1)


def peaks() -> dict[str, Json]:
    """Return the peak memory so far."""
    return {
        "peak_rss_mb": peak_rss_mb(resource.RUSAGE_SELF),
        "peak_rss_child_mb": peak_rss_mb(resource.RUSAGE_CHILDREN),
    }


def hta_version() -> str:
    """Return the installed version of HTA, under its new name or its old one."""
    for name in ("traceinsight", "HolisticTraceAnalysis"):
        with contextlib.suppress(PackageNotFoundError):
            return f"{name} {version(name)}"
    return "unknown"


def measure(options: argparse.Namespace) -> dict[str, Json]:
    """Import HTA, ask it, and return the object to print."""
    import hta.trace_analysis  # noqa: F401  (its memory is counted apart)

    after_import = peak_rss_mb(resource.RUSAGE_SELF)
    files = {rank_of(trace): str(trace.resolve()) for trace in options.traces}
    rank = min(files) if options.rank is None else options.rank
    asking = {"values": ask_all, "all": time_all}.get(options.what, ask)
    answer = asking(options, files, rank)
    return {"what": options.what, "rank": rank, "version": hta_version(), "rss_after_import_mb": after_import, **answer}


def main() -> None:
    """Read the command line, measure, and print the result as JSON."""
    parser = argparse.ArgumentParser(description="Time HTA on traces and print its numbers as JSON.")
    parser.add_argument("traces", type=Path, nargs="+", metavar="TRACE", help="a rank's .json or .json.gz")
    parser.add_argument("--what", choices=["load", *QUESTIONS, "values", "all"], default="load")
    parser.add_argument("--rank", type=int, help="for the questions about one rank (default: the lowest)")
    parser.add_argument("--one-process", action="store_true", help="load without HTA's pool of processes")
    with contextlib.redirect_stdout(sys.stderr):  # around the import too: loggers keep the stream they find
        result = measure(parser.parse_args())
    print(json.dumps(result))


if __name__ == "__main__":
    main()
