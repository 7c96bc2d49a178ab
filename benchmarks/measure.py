"""One measurement of htagraph (or of a plain decoder) in a fresh process; prints one JSON object.

Run by `benchmarks/run.py`; by hand: ``python benchmarks/measure.py load TRACE``.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

_DEMO = Path(__file__).parents[1] / "data" / "demo"


def main() -> None:
    """Measure one thing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=sorted(_MEASURES))
    parser.add_argument("path", type=Path)
    options = parser.parse_args()
    print(json.dumps(_MEASURES[options.what](options.path)))


def load(path: Path) -> dict[str, Any]:
    """Time load and graph, imports excluded: the demo data is loaded first."""
    import htagraph as hg

    _warm()
    before = _peak_mb()
    seconds, graph = _timed(lambda: hg.load(path))
    return {
        "seconds": seconds, "rss_before_mb": before, "peak_mb": _peak_mb(),
        "events": sum(trace.counts.get("X", 0) for trace in graph.traces.values()), "edges": len(graph.edges),
    }  # fmt: skip


def decode(path: Path) -> dict[str, Any]:
    """Time reading one file after the other into columns, in this process."""
    from htagraph.trace.reading.read import read_trace

    _warm()
    files = sorted(path.glob("*.json*")) if path.is_dir() else [path]
    seconds, _ = _timed(lambda: [read_trace(file, lambda header: 0) for file in files])
    return {"seconds": seconds}


def longest_path(path: Path) -> dict[str, Any]:
    """Time networkx's dag_longest_path on the whole graph, by dispatch; the topological order included."""
    import networkx as nx

    import htagraph as hg

    nx.dag_longest_path(hg.load(_DEMO))
    graph = hg.load(path)
    seconds, nodes = _timed(lambda: nx.dag_longest_path(graph))
    again, _ = _timed(lambda: nx.dag_longest_path(graph))
    return {"seconds": seconds, "again_seconds": again, "nodes": len(nodes), "vertices": graph.vertex_count}


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
        seconds[name] = min(_timed(case)[0] for _ in range(3))
    longest = min(_timed(lambda: nx.dag_longest_path(graph))[0] for _ in range(3))
    return {"vertices": graph.vertex_count, "longest_path_seconds": longest, "seconds": seconds}


def json_loads(path: Path) -> dict[str, Any]:
    """Time the standard library's decoder on the decompressed bytes."""
    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    before = _peak_mb()
    seconds, _ = _timed(lambda: json.loads(text))
    return {"seconds": seconds, "rss_before_mb": before, "peak_mb": _peak_mb()}


def other_json(path: Path) -> dict[str, Any]:
    """Time other decoders on the same bytes, into plain Python objects; those that are installed."""
    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw
    seconds: dict[str, float] = {}
    for name, function in (("msgspec", "json.decode"), ("orjson", "loads")):
        try:
            decode: Any = importlib.import_module(name)
        except ImportError:
            continue
        for part in function.split("."):
            decode = getattr(decode, part)
        seconds[name], _ = _timed(partial(decode, text))
    return {"seconds": seconds}


def reopen(path: Path) -> dict[str, Any]:
    """Time opening a saved graph, in a process that has not loaded it."""
    import htagraph as hg

    hg.load(_DEMO)
    before = _peak_mb()
    seconds, graph = _timed(lambda: hg.open(path))
    return {"seconds": seconds, "rss_before_mb": before, "peak_mb": _peak_mb(), "activities": len(graph.activities)}


def save(path: Path) -> dict[str, Any]:
    """Load a job and save its graph beside it; return the size per activity."""
    import htagraph as hg

    graph = hg.load(path)
    saved = path / "saved"
    seconds, file = _timed(lambda: hg.save(graph, saved))
    size = file.stat().st_size
    return {"seconds": seconds, "bytes_per_activity": size / max(1, len(graph.activities)), "saved": str(saved)}


def _warm() -> None:
    """Import every module that loading needs, and load its compiled code."""
    import htagraph as hg
    from htagraph.trace.reading.read import read_trace

    hg.load(_DEMO)
    read_trace(next(_DEMO.glob("*.json.gz")), lambda header: 0)  # by the scan, which so small a job does not use


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def _peak_mb() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if sys.platform != "darwin" else peak / 2**20


_MEASURES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "decode": decode,
    "json-loads": json_loads,
    "load": load,
    "longest-path": longest_path,
    "other-json": other_json,
    "reopen": reopen,
    "save": save,
    "what-if": what_if,
}

if __name__ == "__main__":
    main()
