"""Samples of counters are those of the file, read here with the standard library."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph.simulate import Job, simulate
from htagraph.trace.kineto import samples
from tests.strategies import BASE_NS, Json, kernel, load


def counter(name: str, ts: Any, value: Any, pid: Any = "GPU 0 Counters", **more: Any) -> Json:
    """Return a sample as PyTorch's CUPTI backend writes it: one series, without a name."""
    return {"ph": "C", "name": name, "pid": pid, "ts": ts, "args": {"": value}, **more}


def rows(events: list[Json]) -> list[tuple[Any, ...]]:
    (trace,) = load(events).traces.values()
    return list(samples(trace).itertuples(index=False, name=None))


def test_a_simulated_job_of_that_backend(tmp_path: Path) -> None:
    job = simulate(Job(ranks=2, steps=2, layers=2, backend="cupti"))
    job.write(tmp_path, suffix=".json", truth=False)
    graph = hg.load(tmp_path)
    for rank, trace in graph.traces.items():
        raw = json.loads(job.text(rank), parse_float=Decimal)
        base = raw["baseTimeNanoseconds"]
        expected = [
            (rank, -1, event["name"], base + int(event["ts"] * 1000), float(event["args"][""]))
            for event in raw["traceEvents"]
            if event["ph"] == "C"
        ]
        assert len(expected) > 10
        assert list(samples(trace).itertuples(index=False, name=None)) == expected  # rank 1 has device 1


_VALUES = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**60), 2**60)
_NAMES = st.sampled_from(["Power (W)", "SM Active (%)", "NVLink RX", "Zähler ⚡", "\x1b[31m"])


@given(st.lists(st.tuples(_NAMES, st.integers(0, 3), st.integers(0, 10**9), _VALUES), max_size=20))
@settings(max_examples=50)
def test_every_sample_is_read(given_samples: list[tuple[str, int, int, float]]) -> None:
    events = [counter(name, ns / 1000, value, f"GPU {device} Counters") for name, device, ns, value in given_samples]
    expected = [(device, -1, name, BASE_NS + ns, float(value)) for name, device, ns, value in given_samples]
    assert rows([kernel("gemm", 0, 5), *events]) == expected


def test_counters_of_other_writers() -> None:
    events = [
        kernel("gemm", 0, 5),
        counter("Queue Length", 1, 3, 0, id="7"),
        {"ph": "C", "name": "bw", "pid": 4711, "ts": 2, "args": {"read": "1.5", "write": True, "bw": 10**400}},
        {"ph": "C", "name": "no object", "pid": 0, "ts": 2, "args": [1]},
        counter("no time", "soon", 1),
        counter("no time at all", None, 1),
        {"ph": "C", "pid": 0},
    ]
    found = rows(events)
    assert found[0] == (-1, 0, "Queue Length 7", BASE_NS + 1000, 3.0)
    assert found[1] == (-1, 4711, "bw read", BASE_NS + 2000, 1.5)
    assert [row[2] for row in found[2:]] == ["bw write", "bw"]
    assert all(math.isnan(row[4]) for row in found[2:])
    assert len(found) == 4


def test_a_file_without_samples_is_not_read_again(tmp_path: Path) -> None:
    (trace,) = load([kernel("gemm", 0, 5)], tmp_path).traces.values()
    Path(str(trace.path)).unlink()
    assert not len(samples(trace))


def test_samples_outside_of_all_times_are_left_out() -> None:
    assert rows([kernel("gemm", 0, 5), counter("Power (W)", 9.2e15, 1), counter("Power (W)", -9.2e15, 1)]) == []
