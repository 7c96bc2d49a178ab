from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.output.export.patterns import export_patterns
from tests.analyses.test_kernel_patterns import linear
from tests.reach import SHARED, raw_events
from tests.strategies import Json, complete, kernel, launch, load, op, write

PATTERN = {"aten::linear|a|b|c": 1}


def overlaid(events: list[Json], folder: Path, **options: Any) -> list[Json]:
    (path,) = export_patterns(load(events, folder), folder / "out", **options)
    assert path == folder / "out" / "overlaid_rank-0.json"
    return raw_events(path)


def test_the_events_of_a_pattern_say_so(tmp_path: Path) -> None:
    events = [*linear(0, 1, "a", "b", "c"), op("other", 50, 5, External_id=3)]
    before, after = events, overlaid(events, tmp_path, compress=False)
    assert [event["args"].get("Patterns") for event in after] == [PATTERN] * 7 + [None]
    for event in after:
        event["args"].pop("Patterns", None)
    assert after == before


def test_other_events_lose_names_and_arguments_where_asked_to(tmp_path: Path) -> None:
    events = [*linear(0, 1, "a", "b", "c"), op("other", 50, 5, key=3), op("other", 60, 5), _profiler()]
    after = overlaid(events, tmp_path)
    assert [event["args"] for event in after[7:9]] == [{}, {}]
    assert after[7]["name"] == after[8]["name"] != "other"
    assert after[9]["name"] == "PyTorch Profiler (0)"
    assert after[9]["args"][after[7]["name"]] == "other"
    assert after[0]["name"] == "aten::linear"


def test_without_an_event_of_the_profiler_the_names_get_one_of_their_own(tmp_path: Path) -> None:
    after = overlaid([*linear(0, 1, "a", "b", "c"), op("other", 50, 5)], tmp_path)
    assert after[-1]["args"][after[7]["name"]] == "other"


def test_events_with_unknown_keys_keep_them(tmp_path: Path) -> None:
    events = [*linear(0, 1, "a", "b", "c"), op("other", 50, 5) | {"unheard_of": 1.25}]
    after = overlaid(events, tmp_path)
    assert after[7]["unheard_of"] == 1.25
    assert after[7]["args"] == {}
    assert after[0]["args"]["Patterns"] == PATTERN
    assert after[1]["args"] == {"correlation": 1, "Patterns": PATTERN}


def test_only_the_most_frequent_patterns_are_marked(tmp_path: Path) -> None:
    events = [*linear(0, 1, "a", "b", "c"), *linear(50, 5, "x", "b", "c"), *linear(100, 9, "x", "b", "c")]
    after = overlaid(events, tmp_path, top=1, compress=False)
    assert ["Patterns" in event["args"] for event in after] == [False] * 7 + [True] * 14


def test_a_rank_without_patterns_has_no_file(tmp_path: Path) -> None:
    job = {0: linear(0, 1, "a", "b", "c"), 1: [op("x", 0, 1), launch(0, 1, 1), kernel("a", 2, 1, 1)]}
    assert [path.name for path in export_patterns(load(job, tmp_path), tmp_path / "out")] == ["overlaid_rank-0.json"]


def test_a_trace_that_changed_is_refused(tmp_path: Path) -> None:
    graph = load(linear(0, 1, "a", "b", "c"), tmp_path)
    (tmp_path / "rank-0.json").write_text(json.dumps({"traceEvents": []}))
    with pytest.raises(hg.TraceError, match="was changed"):
        export_patterns(graph, tmp_path / "out")


@pytest.mark.skipif(not SHARED.exists(), reason="needs the shared traces")
def test_every_event_of_a_real_trace_is_still_there(tmp_path: Path) -> None:
    source = SHARED / "hta/critical_path/alexnet.json.gz"
    (path,) = export_patterns(hg.load({0: source}), tmp_path, "aten::conv2d")
    before, after = raw_events(source), raw_events(path)
    keys = ("ph", "pid", "tid", "ts", "dur", "id", "cat")
    assert [[event.get(key) for key in keys] for event in after] == [
        [event.get(key) for key in keys] for event in before
    ]
    assert sum("Patterns" in event.get("args", {}) for event in after) > 50


def _profiler() -> Json:
    return complete("Trace", "PyTorch Profiler (0)", 0, 99, "PyTorch Profiler") | {"pid": "Spans"}


def test_traces_of_one_name_in_several_folders_get_files_of_their_own(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / str(rank)).mkdir()
        write([*linear(rank, 1, "a", "b", "c")], tmp_path / str(rank) / "trace.json", rank)
    graph = hg.load({rank: tmp_path / str(rank) / "trace.json" for rank in (0, 1)})
    names = ["overlaid_rank-0_trace.json", "overlaid_rank-1_trace.json"]
    assert [path.name for path in export_patterns(graph, tmp_path / "out")] == names
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    assert hg.load(tmp_path / "out").ranks == (0, 1)
