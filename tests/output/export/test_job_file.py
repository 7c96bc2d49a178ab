"""What a file over all ranks holds; `test_perfetto` reads such files with Perfetto's trace processor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from htagraph.output.export.job_file import JobFile, Written
from tests.strategies import COMPUTE, kernel, launch, load, op


def test_what_was_written_is_said_in_a_line() -> None:
    written = Written(Path("o.json"), 12, 0, 3, moved=1, arrows_left_out=0, left_out=2)
    assert str(written) == (
        "o.json: 12 slices, 3 counter values added; 1 recorded slice put on separate tracks, marked (2), because of "
        "partial overlap; 2 recorded events without a usable time left out. Open it in https://ui.perfetto.dev"
    )


def test_ranks_whose_times_are_recorded_are_those_of_their_files(tmp_path: Path) -> None:
    graph = load({0: [op("a", 0, 5), launch(1, 2, 1), kernel(COMPUTE, 4, 5, 1)]}, tmp_path)
    recorded = JobFile.of(graph)
    assert (recorded.predicted, recorded.drawn) == (False, [])
    moved = graph.replace(activities=replace(graph.activities, start=graph.activities.start + 1000))
    predicted = JobFile.of(moved)
    assert (predicted.predicted, predicted.drawn) == (True, [0])
    events = list(predicted.activities(predicted.drawn, np.zeros(len(moved.activities), np.int64)))
    assert [event["name"] for event in events if event["ph"] == "X"] == ["a", "cudaLaunchKernel", COMPUTE]
