"""A step that is open when the profiler stops is as long as what was recorded of it, in every answer."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.core.kinds import ActivityKind
from htagraph.findings.open_step import OPEN_STEP
from htagraph.findings.results import Results
from htagraph.graph.activities import OPEN
from tests.laws.test_start_up import REPORTS
from tests.reach import DATA, raw_events
from tests.strategies import Json, load, write

BEYOND_US = 13_000_000.0
FOLDERS = [DATA / "demo", DATA / "gpu_demo" / "train"]


def last_step(events: list[Json]) -> Json:
    steps = [event for event in events if str(event.get("name", "")).startswith("ProfilerStep#")]
    return max(steps, key=lambda event: float(event["ts"]) * (event["cat"] == "user_annotation"))


def left_open(events: list[Json], *, is_of_process: bool) -> list[Json]:
    """Return a recording whose last step ends when the job leaves it, long after the profiler stopped."""
    last = last_step(events)
    place = {"pid": last["pid"], "tid": last["pid"] + 7} if is_of_process else {}
    longer = {**last, **place, "dur": float(last["dur"]) + BEYOND_US}
    return [longer if event is last else event for event in events]


@cache
def opened(folder: Path, *, is_of_process: bool = False) -> hg.DependencyGraph:
    files = sorted(folder.glob("rank-*.json.gz"))
    job = {rank: left_open(raw_events(path), is_of_process=is_of_process) for rank, path in enumerate(files)}
    return load(job)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("is_of_process", [False, True])
def test_no_time_after_the_end_of_the_recording_counts(folder: Path, *, is_of_process: bool) -> None:
    whole = hg.load(folder)
    cut = opened(folder, is_of_process=is_of_process)
    assert "open_at_end" in {issue.what for issue in cut.issues}
    assert hg.critical_path(cut).makespan_ns < hg.critical_path(whole).makespan_ns + BEYOND_US * 10
    assert Results(cut).steps == Results(whole).steps
    lengths = [hg.step_times(graph)["duration_us"].max() for graph in (whole, cut)]
    assert lengths[1] < lengths[0] + BEYOND_US / 100
    cut.check()


def test_an_open_step_is_on_the_thread_of_its_work() -> None:
    graph = opened(DATA / "gpu_demo" / "train", is_of_process=True)
    acts = graph.activities
    marks = acts.kind == ActivityKind.STEP
    assert len(set(acts.lane[marks].tolist())) == 1
    assert acts.arg(OPEN)[marks].tolist().count(1) == 1


@pytest.mark.parametrize("command", REPORTS)
def test_no_report_names_the_time_after_the_end(command: str) -> None:
    said = " ".join(REPORTS[command](opened(DATA / "gpu_demo" / "train")).sentences)
    assert "13.0" not in said
    assert "100 %" not in said


def test_a_part_of_a_job_is_cut_as_the_whole(tmp_path: Path) -> None:
    events = left_open(raw_events(next((DATA / "gpu_demo" / "train").glob("*.gz"))), is_of_process=False)
    number = int(last_step(events)["name"].split("#")[1])
    path = write(events, tmp_path / "rank-0.json")
    whole, part = hg.load(path), hg.load(path, steps=[number])
    ends = [graph.activities.end[graph.activities.kind == ActivityKind.STEP].max() for graph in (whole, part)]
    assert ends[0] == ends[1]


def test_a_step_that_ends_within_the_recording_is_as_recorded() -> None:
    graph = hg.load(DATA / "gpu_demo" / "train")
    assert OPEN not in graph.activities.args
    assert OPEN_STEP.when(Results(graph)) == []
