"""Replayed CUDA graphs get the operators of a capture: the eager labels of the same kernels are the truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.graph.activities import replayed
from htagraph.queries.attribution import annotation_of, module_of, operator_of
from tests.reach import DATA, raw_events

GENERATE, TRAIN = DATA / "gpu_demo" / "generate", DATA / "gpu_demo" / "train"
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")


def _names(graph: DependencyGraph, rows: np.ndarray) -> list[str]:
    return [graph.names[graph.activities.name[row]] if row >= 0 else "" for row in rows.tolist()]


def _replayed(graph: DependencyGraph) -> np.ndarray:
    return np.flatnonzero(replayed(graph.activities, graph.names))


def _steps(events: list[dict[str, Any]]) -> list[tuple[float, float]]:
    marks = [e for e in events if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep")]
    return sorted((e["ts"], e["dur"]) for e in marks)


def _graphed(events: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    """Return the kernels of the second step as one launch of a CUDA graph, without their operators."""
    begin, length = _steps(events)[1]
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") in CALLS}
    work = [
        e for e in events if e.get("cat") in DEVICE and begin <= calls[e["args"]["correlation"]]["ts"] < begin + length
    ]
    work.sort(key=lambda e: calls[e["args"]["correlation"]]["ts"])
    launch = calls[work[0]["args"]["correlation"]] | {"name": "cudaGraphLaunch", "args": {"correlation": 1 << 30}}
    out, at = [launch], max(launch["ts"], work[0]["ts"])
    for node, event in enumerate(work):
        args = {
            key: event["args"][key] for key in ("device", "stream", "grid", "block", "bytes") if key in event["args"]
        }
        args |= {"correlation": 1 << 30, "truth": events.index(event)} | {k: v(node) for k, v in more.items()}
        out.append(event | {"ts": at, "tid": 7, "args": args | {"stream": 7}})
        at += event["dur"]
    return out


def _file(folder: Path, name: str, events: list[dict[str, Any]]) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_tokens_of_a_graph_have_the_operators_of_eager_tokens() -> None:
    graph = hg.load(GENERATE, captures=GENERATE)
    graph.check()
    assert hg.replay(graph).max_error_ns == 0
    acts, work = graph.activities, _replayed(graph)
    assert (acts.kind[operator_of(graph, work)] == hg.ActivityKind.OP).all()
    assert {name.split()[0] for name in _names(graph, annotation_of(graph, work))} == {"decode_graph"}
    eager = np.flatnonzero(acts.on_device & ~replayed(acts, graph.names))
    eager = eager[[name.startswith("decode_eager") for name in _names(graph, annotation_of(graph, eager))]]
    first = work[acts.cause[work] == acts.cause[work[0]]]
    truth = dict(zip(_names(graph, eager), _names(graph, operator_of(graph, eager)), strict=True))
    found = dict(zip(_names(graph, first), _names(graph, operator_of(graph, first)), strict=True))
    assert found == {kernel: truth[kernel] for kernel in found}
    assert not [issue for issue in graph.issues if issue.what == "replay_unnamed"]
    shapes = hg.arguments(graph, ["Input Dims"], operator_of(graph, work))["Input Dims"]
    assert shapes.notna().all()


@pytest.mark.parametrize("lacks_step", [False, True])
def test_a_step_as_a_graph_has_its_operators_modules_and_shapes(tmp_path: Path, lacks_step: bool) -> None:  # noqa: FBT001
    events = raw_events(TRAIN / "rank-0.json.gz")
    replay = _file(tmp_path, "replay", _graphed(events))
    (begin, length), _ = _steps(events)[1:]
    rest = [e for e in events if not (lacks_step and e.get("ph") == "X" and begin <= e["ts"] < begin + length)]
    graph, eager = hg.load({0: replay}, captures={0: _file(tmp_path, "capture", rest)}), hg.load(TRAIN)
    work = _replayed(graph)
    row = dict(zip(eager.activities.event.tolist(), range(len(eager.activities)), strict=True))
    truth = np.array([row[event] for event in hg.arguments(graph, ["truth"], work)["truth"]])
    assert _names(graph, operator_of(graph, work)) == _names(eager, operator_of(eager, truth))
    modules = _names(graph, module_of(graph, work))
    assert [n for n in modules if "Module" in n] == [n for n in _names(eager, module_of(eager, truth)) if "Module" in n]
    saved = hg.save(graph, tmp_path / "saved")
    assert hg.open(tmp_path / "saved").captures[0].path == graph.captures[0].path, saved


def test_kernels_that_are_in_no_capture_are_counted(tmp_path: Path) -> None:
    replay = _file(tmp_path, "replay", _graphed(raw_events(TRAIN / "rank-0.json.gz")))
    graph = hg.load({0: replay}, captures=DATA / "gloo_ddp" / "rank-0.json.gz")
    (issue,) = [issue for issue in graph.issues if issue.what == "replay_unnamed"]
    assert issue.count == len(_replayed(graph))
    table = hg.validate([replay]).support.set_index("analysis")
    assert table.loc["operators of CUDA graphs", "supported"] == "no"


def test_annotations_of_nodes_are_used_without_a_capture(tmp_path: Path) -> None:
    marks = {"graph node id": lambda node: (5 << 32) + node + 1, "str": lambda node: f"layer {node // 50}"}
    graph = hg.load({0: _file(tmp_path, "replay", _graphed(raw_events(TRAIN / "rank-0.json.gz"), **marks))})
    assert {*_names(graph, annotation_of(graph, _replayed(graph)))} == {"layer 0", "layer 1", "layer 2"}


def test_a_capture_of_calls_alone_names_kernels_by_their_order(tmp_path: Path) -> None:
    events = raw_events(TRAIN / "rank-0.json.gz")
    steps = _steps(events)
    call = next(e for e in events if e.get("cat") == "cuda_runtime")
    begin = call | {"name": "cudaStreamBeginCapture", "ts": steps[1][0], "dur": 0.1, "args": {}}
    end = begin | {"name": "cudaStreamEndCapture", "ts": sum(steps[1]), "dur": 0.1}
    capture = [*(e for e in events if e.get("cat") not in DEVICE), begin, end]
    replay = _file(tmp_path, "replay", _graphed(events))
    graph, eager = hg.load({0: replay}, captures={0: _file(tmp_path, "capture", capture)}), hg.load(TRAIN)
    work = _replayed(graph)
    row = dict(zip(eager.activities.event.tolist(), range(len(eager.activities)), strict=True))
    truth = np.array([row[event] for event in hg.arguments(graph, ["truth"], work)["truth"]])
    assert _names(graph, operator_of(graph, work)) == _names(eager, operator_of(eager, truth))


def test_workers_read_no_captures() -> None:
    with pytest.raises(ValueError, match="captures="):
        hg.load(GENERATE, captures=GENERATE, engine="processes")  # type: ignore[call-overload]
