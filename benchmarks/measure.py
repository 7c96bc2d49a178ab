"""One measurement of htagraph (or of a plain decoder) in a fresh process; prints one JSON object.

Run by `benchmarks/run.py` and `benchmarks/scaling.py`; by hand: ``python benchmarks/measure.py load TRACE``. Times are
``seconds`` (wall) and ``cpu_seconds`` (of all threads), imports and loading of compiled code excluded.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import gzip
import importlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import htagraph as hg

_DEMO = Path(__file__).parents[1] / "data" / "demo"
_DECODERS = {"json": "loads", "orjson": "loads", "msgspec": "json.decode"}


class Timed(NamedTuple):
    """How long something took, and what it returned."""

    seconds: float
    cpu_seconds: float
    result: Any

    @property
    def times(self) -> dict[str, float]:
        """Both times."""
        return {"seconds": self.seconds, "cpu_seconds": self.cpu_seconds}


def main() -> None:
    """Measure one thing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=sorted([*_MEASURES, *_DECODERS]))
    parser.add_argument("path", type=Path)
    parser.add_argument("--save", type=Path, help="load: also save the graph there, and time it")
    options = parser.parse_args()
    if options.what in _DECODERS:
        result = plain(options.path, options.what)
    elif options.what == "load":
        result = load(options.path, options.save)
    else:
        result = _MEASURES[options.what](options.path)
    print(json.dumps(result))


def load(path: Path, saved: Path | None = None) -> dict[str, Any]:
    """Time load and graph; where asked for, also saving it."""
    import htagraph as hg

    _warm()
    before = _peak_mb()
    timed = _timed(lambda: hg.load(path))
    graph, peak = timed.result, _peak_mb()
    found = {
        **timed.times, "rss_before_mb": before, "peak_mb": peak, "edges": len(graph.edges),
        "events": sum(trace.counts.get("X", 0) for trace in graph.traces.values()), "activities": len(graph.activities),
    }  # fmt: skip
    if saved is not None:
        saving = _timed(lambda: hg.save(graph, saved))
        found |= {"save": saving.times, "saved_bytes": saving.result.stat().st_size}
    return found


def questions(path: Path) -> dict[str, Any]:
    """Time opening a saved graph, and each question to it: in a process of its own, which has computed nothing else."""
    import htagraph as hg

    demo = hg.load(_DEMO)
    for ask in _questions().values():
        ask(demo)
    before = _peak_mb()
    opened = _timed(lambda: hg.open(path))
    found = {**opened.times, "rss_before_mb": before, "peak_mb": _peak_mb()}
    return {**found, "questions": {name: _apart(ask, opened.result) for name, ask in _questions().items()}}


def _questions() -> dict[str, Callable[[hg.DependencyGraph], Any]]:
    """Return the questions; those with the names of HTA's (`hta_baseline.py`) are answered by both."""
    import htagraph as hg

    def changed(graph: hg.DependencyGraph) -> Any:  # noqa: ANN401 - nobody looks at it
        return hg.what_if(graph).scale(kind="computation", factor=0.5).run().makespan_ns

    return {
        "temporal": hg.temporal_breakdown, "overlap": hg.overlap, "kernel-breakdown": hg.kernel_breakdown,
        "launch-stats": hg.launch_stats, "idle": hg.idle_breakdown, "queue-length": hg.queue_length,
        "memory-bandwidth": hg.memory_bandwidth, "critical-path": lambda graph: hg.critical_path(graph).summary(),
        "summary": hg.summarize, "stragglers": lambda graph: hg.stragglers(graph).to_frame(), "slack": hg.slack,
        "opportunities": hg.opportunities, "what-if": changed,
    }  # fmt: skip


def _apart(ask: Callable[[hg.DependencyGraph], Any], graph: hg.DependencyGraph) -> dict[str, float]:
    """Return the times of a question in a fork, and by how many MB its memory grew."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        before, timed = _peak_mb(), _timed(lambda: ask(graph))
        os.write(writing, json.dumps({**timed.times, "above_mb": _peak_mb() - before}).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        answer = file.read()
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit(f"a question failed, with status {status}")
    found: dict[str, float] = json.loads(answer)
    return found


def plain(path: Path, decoder: str) -> dict[str, Any]:
    """Time another decoder on the decompressed bytes, into plain Python objects."""
    decode: Any = importlib.import_module(decoder)
    for part in _DECODERS[decoder].split("."):
        decode = getattr(decode, part)
    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    before = _peak_mb()
    return {**_timed(lambda: decode(text)).times, "rss_before_mb": before, "peak_mb": _peak_mb()}


def decode(path: Path) -> dict[str, Any]:
    """Time reading one file after the other into columns, in this process."""
    from htagraph.trace.readers import read_trace

    _warm()
    files = sorted(path.glob("*.json*")) if path.is_dir() else [path]
    return _timed(lambda: [read_trace(file, lambda *_: 0) for file in files]).times


def what_if(path: Path) -> dict[str, Any]:
    """Time what-ifs with changed weights, selection and prediction included, beside one pass of the longest path."""
    import networkx as nx

    import htagraph as hg

    graph = hg.load(path)
    scenario = hg.what_if(graph)
    cases: dict[str, Callable[[], Any]] = {
        "kernels": lambda: scenario.scale(kind="computation", factor=0.5).run().makespan_ns,
        "name": lambda: scenario.scale(name="*gemm*", factor=0.5).run().makespan_ns,
        "network": lambda: scenario.scale_network(factor=0.5).run().makespan_ns,
        "host": lambda: scenario.scale(kind="host", factor=0.5).run().makespan_ns,
        "inside an operator": lambda: scenario.scale(op="Optimizer.step*", factor=0.5).run().makespan_ns,
    }
    nx.dag_longest_path(graph)
    seconds = {}
    for name, case in cases.items():
        case()
        seconds[name] = min(_timed(case).seconds for _ in range(3))
    longest = min(_timed(lambda: nx.dag_longest_path(graph)).seconds for _ in range(3))
    return {"vertices": graph.vertex_count, "longest_path_seconds": longest, "seconds": seconds}


def numbers(path: Path) -> dict[str, Any]:
    """Count the numbers that were chosen or measured, by package below a folder of Python files (``htagraph``).

    Counted are constants of modules in upper case, and fields of dataclasses, that are set to a number. Marks and
    fields that stand for nothing (0 and -1) are among them.
    """
    counts = {
        folder.name: sum(len(_numbers_of(ast.parse(file.read_text(encoding="utf-8")))) for file in folder.rglob("*.py"))
        for folder in sorted(path.iterdir())
        if folder.is_dir()
    }
    return {package: count for package, count in counts.items() if count}


def _numbers_of(module: ast.Module) -> list[str]:
    """Return the names of a module's numeric constants, and of numeric fields of its dataclasses."""
    fields = [
        field
        for each in module.body
        if isinstance(each, ast.ClassDef) and any("dataclass" in ast.unparse(mark) for mark in each.decorator_list)
        for field in each.body
    ]
    names = [name for name in map(_name_of_number, module.body) if name == name.upper()]
    return [*filter(None, names), *filter(None, map(_name_of_number, fields))]


def _name_of_number(statement: ast.stmt) -> str:
    """Return the name that a statement sets to a number; an empty text if none."""
    if isinstance(statement, ast.AnnAssign):
        target: ast.expr = statement.target
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
    else:
        return ""
    is_number = statement.value is not None and _is_number(statement.value)
    return target.id if isinstance(target, ast.Name) and is_number else ""


def _is_number(value: ast.expr) -> bool:
    """Return whether an expression is a number, or made of numbers only."""
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def _warm() -> None:
    """Import every module that loading needs, and load its compiled code."""
    import htagraph as hg
    from htagraph.trace.readers import read_trace

    hg.load(_DEMO)
    read_trace(next(_DEMO.glob("*.json.gz")), lambda *_: 0)  # by the scan, which so small a job does not use


def _timed(run: Callable[[], Any]) -> Timed:
    start, cpu = time.perf_counter(), time.process_time()
    result = run()
    return Timed(time.perf_counter() - start, time.process_time() - cpu, result)


def _peak_mb() -> float:
    """Return the peak memory of this program; Linux counts in ru_maxrss what the process was that started it."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if sys.platform != "darwin" else peak / 2**20


_MEASURES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "decode": decode,
    "load": load,
    "numbers": numbers,
    "questions": questions,
    "what-if": what_if,
}

if __name__ == "__main__":
    main()
