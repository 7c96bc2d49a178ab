"""Names and streams from arguments: as both ways of reading a file have them."""

from __future__ import annotations

from pathlib import Path

import pytest

import htagraph as hg
from htagraph.trace.readers import read_trace
from tests.strategies import Json, complete, write


def work(category: str, name: str, start: int, stream: int, **args: object) -> Json:
    return complete(category, name, start, 2, stream, **{"device": 0, "stream": stream, **args}) | {"pid": 0}


EVENTS = [
    work("gpu_memcpy", "Memcpy", 10, 7, **{"copy kind": "HtoD", "src kind": "pageable", "dst kind": "device"}),
    work("gpu_memcpy", "Memcpy", 20, 7, **{"copy kind": 2, "src kind": 3, "dst kind": 2}),
    work("gpu_memset", "Memset", 30, 7, **{"memory kind": 3}),
    work("kernel", "node", 40, 901, original_stream=0),
    work("kernel", "plain", 50, 7),
    work("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 60, 7),
]


@pytest.mark.parametrize("compiled", [False, True])
def test_arguments_name_copies_and_streams(compiled: bool, tmp_path: Path) -> None:  # noqa: FBT001
    trace = read_trace(write(EVENTS, tmp_path / "rank-0.json"), lambda *_: 0, compiled=compiled)
    assert [trace.names[name] for name in trace.events.name] == [
        "Memcpy HtoD (Pageable -> Device)", "Memcpy DtoH (Device -> Pinned)", "Memset (Device)", "node", "plain",
        "Memcpy DtoD (Device -> Device)",
    ]  # fmt: skip
    assert trace.events.arg("stream").tolist() == [7, 7, 7, 0, 7, 7]
    assert not {"copy_direction", "original_stream"} & trace.events.args.keys()
    assert not trace.issues or {issue.what for issue in trace.issues} <= {"no_window_end", "no_base_time"}


def test_the_event_itself_stays_as_written(tmp_path: Path) -> None:
    graph = hg.load(write(EVENTS, tmp_path / "rank-0.json").parent)
    copy = int((graph.activities.event == 0).argmax())
    assert graph.event(copy).name == "Memcpy"
    assert graph.event(copy).args.copy_direction == "HtoD"
