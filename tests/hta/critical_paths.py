"""The samples of HTA's own tests of critical paths, and how tests here look at their graphs."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from htagraph.hta.analyzers.critical_path_analysis import CPEdge, CPGraph, critical_path_analysis
from htagraph.hta.trace_analysis import TraceAnalysis
from tests.reach import SHARED

HTA = SHARED / "hta"
SIMPLE_ADD = HTA / "critical_path" / "simple_add.json.gz"
ALEXNET = HTA / "critical_path" / "alexnet.json.gz"
MEASURE = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
shared = pytest.mark.skipif(not HTA.is_dir(), reason="the shared traces are not here")
ZERO_LAUNCHES = "CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE"
SHOW_ZERO_LAUNCHES = "CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE"


@cache
def job_of(path: Path, rank: int = 0) -> TraceAnalysis:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TraceAnalysis(None, str(path)) if path.is_dir() else TraceAnalysis({rank: str(path)})


def analysed(path: Path, annotation: str = "", instance: Any = None, rank: int = 0, **more: Any) -> CPGraph:
    found = critical_path_analysis(job_of(path, rank), rank, annotation, instance, **more)
    assert found is not None
    assert found[1]
    return found[0]


def edge_between(graph: CPGraph, source: int, target: int) -> CPEdge:
    edge: CPEdge = graph.edges[source, target]["object"]
    return edge


def nodes(graph: CPGraph, event: int) -> tuple[int, int]:
    start, end = graph.get_nodes_for_event(event)
    assert start is not None
    assert end is not None
    assert start.is_start
    assert not end.is_start
    return start.idx, end.idx
