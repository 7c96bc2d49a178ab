"""Loading a job: which files, which ranks, which steps, and what happens to the unreadable."""

from __future__ import annotations

import json
import math
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htagraph as hg
from htagraph.core.errors import RankError, SelectionError, TraceError
from htagraph.core.kinds import ActivityKind
from tests.damage import BASE_NS, END, document, header, healthy, kineto_text, op, written
from tests.reach import DATA

load_module: Any = import_module("htagraph.graph.load")

SECOND_NS = 10**9


def job(folder: Path, count: int = 3) -> Path:
    for rank in range(count):
        written(folder / f"trace-{rank}.json.gz", document([*steps(), *healthy()], rank))
    return folder


def steps() -> list[dict[str, object]]:
    where = {"ph": "X", "cat": "user_annotation", "pid": 77, "tid": 77}
    return [{**where, "name": f"ProfilerStep#{number}", "ts": 300 * number - 250, "dur": 290} for number in (1, 2)]


def test_a_folder_is_one_graph_over_its_ranks(tmp_path: Path) -> None:
    graph = hg.load(job(tmp_path))
    assert graph.ranks == (0, 1, 2)
    assert not [issue for issue in graph.issues if issue.rank >= 0]
    graph.check()


@pytest.mark.parametrize("ranks", [[1], [2, 0], (1, 1)])
def test_some_ranks_can_be_chosen(ranks: list[int], tmp_path: Path) -> None:
    assert hg.load(job(tmp_path), ranks=ranks).ranks == tuple(sorted(set(ranks)))


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"ranks": [0, 7]}, "rank 7 is not among the files; they have ranks 0, 1, 2"),
        ({"steps": [9]}, "no activity in steps 9: they have steps 1, 2"),
        ({"steps": [99, 2, 9]}, "no activity in steps 9, 99: they have steps 1, 2"),
        ({"steps": []}, "they have steps 1, 2"),
        ({"time": (5, 5)}, r"time=\(5, 5\): the window ends before it begins"),
        *(({"time": time}, r"time=.*: give \(from, to\) in µs, None for an end that is open") for time in (
            5, "ab", (1,), (1, 2, 3), (math.nan, 5), (None, math.nan), ("a", None), (0, 10**400))),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused_with_what_is(choice: dict[str, Any], message: str, tmp_path: Path) -> None:
    error = {"ranks": RankError, "steps": SelectionError, "time": ValueError}[next(iter(choice))]
    with pytest.raises(error, match=message):
        hg.load(job(tmp_path), **choice)


def test_some_steps_can_be_chosen(tmp_path: Path) -> None:
    whole, part = hg.load(job(tmp_path)), hg.load(tmp_path, steps=[2])
    assert part.steps == (2,)
    assert set(part.activities.step.tolist()) == {2}
    assert 0 < len(part.activities) < len(whole.activities)


def test_traces_without_steps_say_so(tmp_path: Path) -> None:
    with pytest.raises(SelectionError, match="they have no ProfilerStep annotations"):
        hg.load(written(tmp_path / "a.json", document(healthy())), steps=[0])


def test_an_unreadable_file_stops_loading_or_is_skipped_and_reported(tmp_path: Path) -> None:
    written(job(tmp_path) / "trace-1.json.gz", document(healthy(), rank=1)[:300])
    with pytest.raises(TraceError, match=r"trace-1\.json\.gz"):
        hg.load(tmp_path)
    graph = hg.load(tmp_path, on_error="skip")
    skipped = [issue for issue in graph.issues if issue.what == "file_skipped"]
    assert graph.ranks == (0, 2)
    assert [Path(issue.file).name for issue in skipped] == ["trace-1.json.gz"]


@pytest.mark.parametrize("parallel_bytes", [0, 1 << 40])
def test_a_file_found_out_while_reading_is_skipped_too(
    parallel_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("htagraph.trace.readers._LARGE_BYTES", parallel_bytes)
    bad = document([op(1, ts="seven"), END], rank=1)
    written(job(tmp_path) / "trace-1.json.gz", bad)
    with pytest.raises(TraceError, match=r"trace-1\.json\.gz.*such as 'seven'"):
        hg.load(tmp_path)
    assert hg.load(tmp_path, on_error="skip").ranks == (0, 2)


def test_a_file_that_is_not_there_is_skipped_and_reported(tmp_path: Path) -> None:
    files = {rank: job(tmp_path) / f"trace-{rank}.json.gz" for rank in (0, 1, 5)}
    for paths in (files, list(files.values())):
        with pytest.raises(TraceError, match=r"trace-5\.json\.gz: no such file"):
            hg.load(paths)
        graph = hg.load(paths, on_error="skip")
        assert graph.ranks == (0, 1)
        assert [issue.file for issue in graph.issues if issue.what == "file_skipped"] == [str(files[5])]


def test_nothing_but_absent_files_is_an_error_with_reasons(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"no file could be read: .*a\.json: no such file"):
        hg.load([tmp_path / "a.json"], ranks=[0], on_error="skip")


def test_nothing_but_unreadable_files_is_an_error_with_reasons(tmp_path: Path) -> None:
    written(tmp_path / "a.json", "{}")
    written(tmp_path / "b.json", "oops")
    with pytest.raises(TraceError, match=r"no file could be read: .*a\.json.*; .*b\.json"):
        hg.load(tmp_path, on_error="skip")


def test_files_recorded_apart_are_several_runs(tmp_path: Path) -> None:
    for rank, base in enumerate((BASE_NS, BASE_NS + 3600 * SECOND_NS)):
        root = {**header(rank, baseTimeNanoseconds=base), "traceEvents": healthy()}
        written(tmp_path / f"{rank}.json", json.dumps(root))
    with pytest.raises(RankError, match=r"different times.*run A: 0\.json \(rank 0\); run B: 1\.json \(rank 1\)"):
        hg.load(tmp_path)
    assert hg.load({0: tmp_path / "0.json", 1: tmp_path / "1.json"}).ranks == (0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("parallel_bytes", [0, 1 << 40])
def test_two_files_that_turn_out_to_be_one_rank_are_refused_by_name(
    parallel_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("htagraph.trace.readers._LARGE_BYTES", parallel_bytes)
    for rank in (0, 1):  # the files' own word lies too far from both ends to be seen before they are read
        info = {"distributedInfo": {"rank": 0}, "padding": " " * (2 << 20)}
        written(tmp_path / f"rank-{rank}.json", json.dumps({"traceEvents": healthy(), **info}))
    with pytest.raises(RankError, match=r"rank 0 has two files: .*rank-0\.json and .*rank-1\.json"):
        hg.load(tmp_path)
    assert hg.load({rank: tmp_path / f"rank-{rank}.json" for rank in (0, 1)}).ranks == (0, 1)


def test_a_map_gives_ranks_to_files_that_claim_the_same(tmp_path: Path) -> None:
    paths = {rank: written(tmp_path / name, document(healthy())) for rank, name in ((4, "a.json"), (2, "b.json"))}
    graph = hg.load(paths)
    assert graph.ranks == (2, 4)
    assert {rank: trace.path for rank, trace in graph.traces.items()} == paths


def test_progress_ends_at_one(tmp_path: Path) -> None:
    told: list[float] = []
    hg.load(job(tmp_path), progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0


def test_threads_and_one_thread_read_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = hg.load(job(tmp_path))
    monkeypatch.setattr("htagraph.trace.readers._LARGE_BYTES", 0)
    together = hg.load(tmp_path)
    assert together.ranks == alone.ranks
    assert (together.activities.start == alone.activities.start).all()
    assert [together.names[i] for i in together.activities.name] == [alone.names[i] for i in alone.activities.name]
    assert together.issues == alone.issues


def test_an_interrupted_load_leaves_no_thread_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htagraph.trace.readers._LARGE_BYTES", 0)
    monkeypatch.setattr("htagraph.trace.readers.processors", lambda: 2)

    def interrupt(share: float) -> None:
        raise KeyboardInterrupt(share)

    with pytest.raises(KeyboardInterrupt):
        hg.load(job(tmp_path), progress=interrupt)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("htagraph")]


@pytest.mark.parametrize("text", ["[]", '{"traceEvents": []}', kineto_text([END])])
def test_a_trace_without_activities_is_an_empty_graph(text: str, tmp_path: Path) -> None:
    graph = hg.load(written(tmp_path / "a.json", text))
    assert (len(graph.activities), graph.ranks) == (0, (0,))
    graph.check()


def test_a_file_that_does_not_fit_into_memory_is_refused_or_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [written(tmp_path / f"rank-{rank}.json", document(healthy(), rank)) for rank in range(2)]
    real = load_module.read_trace

    def read(path: Path, *given: object, **options: object) -> object:
        if path == paths[1]:
            raise MemoryError
        return real(path, *given, **options)

    monkeypatch.setattr(load_module, "read_trace", read)
    with pytest.raises(
        TraceError, match=r"rank-1\.json: does not fit into memory; .*ranks=.*steps=.*time=.*python=False"
    ):
        hg.load(tmp_path)
    graph = hg.load(tmp_path, on_error="skip")
    assert graph.ranks == (0,)
    assert [issue.what for issue in graph.issues if issue.file == str(paths[1])] == ["file_skipped"]


# windows of time, Python functions, and files that are thinned while they are read


def recorded(graph: hg.DependencyGraph) -> dict[int, list[int]]:
    """Return the positions in their files of the activities of each rank."""
    acts = graph.activities
    return {rank: sorted(acts.event[(acts.rank == rank) & (acts.event >= 0)].tolist()) for rank in graph.ranks}


@pytest.mark.parametrize(("begin", "end"), [(100.0, 320.5), (None, 250), (250, None), (None, None), (0, 1)])
def test_a_window_keeps_what_begins_in_it(begin: float | None, end: float | None, tmp_path: Path) -> None:
    whole, part = hg.load(job(tmp_path)), hg.load(tmp_path, time=(begin, end))
    part.check()
    acts = whole.activities
    origin = min(acts.start[acts.event >= 0])
    low, high = (np.inf * sign if each is None else origin + each * 1000 for sign, each in ((-1, begin), (1, end)))
    begun = np.where(acts.cause >= 0, acts.start[acts.cause], acts.start)
    for rank in whole.ranks:
        chosen = (acts.rank == rank) & (acts.event >= 0) & (low <= begun) & (begun < high)
        assert recorded(part).get(rank, []) == sorted(acts.event[chosen].tolist())


@pytest.mark.parametrize(("end", "cut"), [(150, 1), (190, 2), (200, 0), (None, 0)])
def test_what_outlasts_the_window_is_an_issue_as_what_it_calls_is_missing(
    end: float | None, cut: int, tmp_path: Path
) -> None:
    events = [op(1, ts=100, dur=200), op(2, ts=110, dur=20), op(3, ts=280, dur=20)]
    graph = hg.load(written(tmp_path / "a.json", document(events)), time=(0, end))
    issues = [issue for issue in graph.issues if issue.what == "window_cuts"]
    assert [issue.count for issue in issues] == ([cut] if cut else [])
    assert not cut or f"end up to {(200 - (end or 0)) / 1000:.3f} ms after it" in issues[0].detail


def test_a_window_counts_from_the_first_activity_of_all_ranks(tmp_path: Path) -> None:
    for rank, shift in ((0, 0), (1, 500_000)):
        root = {**header(rank, baseTimeNanoseconds=BASE_NS + shift), "traceEvents": [op(number) for number in (1, 9)]}
        written(tmp_path / f"{rank}.json", json.dumps(root))
    graph = hg.load(tmp_path, time=(0, 600))
    assert recorded(graph) == {0: [0], 1: [0]}
    assert recorded(hg.load(tmp_path, time=(0, 500)))[0] == [0]
    assert 1 not in hg.load(tmp_path, time=(0, 500)).activities.rank


def test_ranks_without_a_common_base_count_each_from_its_own_first_activity(tmp_path: Path) -> None:
    for rank in (0, 1):
        events = [op(number, ts=10_000 * rank + 100 * number) for number in (1, 2, 3)]
        written(tmp_path / f"{rank}.json", json.dumps({**header(rank, baseTimeNanoseconds=0), "traceEvents": events}))
    assert recorded(hg.load(tmp_path, time=(100, 200))) == {0: [1], 1: [1]}


def test_a_window_of_some_steps_is_in_both(tmp_path: Path) -> None:
    whole = hg.load(job(tmp_path), steps=[2])
    first = int((whole.activities.start[whole.activities.event >= 0] - hg.load(tmp_path).activities.start.min()).min())
    part = hg.load(tmp_path, steps=[2], time=(None, first / 1000 + 120))
    assert 0 < len(part.activities) < len(whole.activities)
    assert set(recorded(part)[0]) < set(recorded(whole)[0])


def test_a_window_may_reach_beyond_all_time(tmp_path: Path) -> None:
    whole = recorded(hg.load(job(tmp_path)))
    for time in ((0, math.inf), (-(10**30), 10**30), (-math.inf, None)):
        assert recorded(hg.load(tmp_path, time=time)) == whole
    with pytest.raises(SelectionError, match=r"no activity begins in this window"):
        hg.load(tmp_path, time=(10**30, None))


@pytest.mark.parametrize("base", [BASE_NS, 0])
def test_a_window_in_which_nothing_begins_is_refused_and_one_that_has_something_named(
    base: int, tmp_path: Path
) -> None:
    for rank in (0, 1):
        events = [op(number, ts=2_000 + 500 * number, dur=50) for number in range(1, 4 + rank)]
        root = {**header(rank, baseTimeNanoseconds=base), "traceEvents": events}
        written(tmp_path / f"{rank}.json", json.dumps(root))
    with pytest.raises(SelectionError) as error:
        hg.load(tmp_path, time=(100, 400))
    assert str(error.value) == (
        "time=(100.0, 400.0): no activity begins in this window; the job's activities begin from 0 to 1,500 µs"
    )
    assert recorded(hg.load(tmp_path, time=(1500, None))) == {0: [], 1: [3]}
    with pytest.raises(SelectionError, match="no activity begins"):
        hg.load(tmp_path, time=(1501, None))


@pytest.mark.parametrize("steps", [None, [1]])
def test_a_window_of_a_job_without_activities_or_beside_the_steps_is_refused(
    steps: list[int] | None, tmp_path: Path
) -> None:
    if steps is None:
        written(tmp_path / "a.json", '{"traceEvents": []}')
        match = "the job has no activities"
    else:
        job(tmp_path)
        match = "no activity in steps 1 begins in this window"
    with pytest.raises(SelectionError, match=match):
        hg.load(tmp_path, steps=steps, time=(10**6, None))


def test_a_window_skips_what_cannot_be_read(tmp_path: Path) -> None:
    written(job(tmp_path) / "trace-1.json.gz", document([op(1, ts="seven"), END], rank=1))
    with pytest.raises(TraceError, match="such as 'seven'"):
        hg.load(tmp_path, time=(0, 100))
    assert hg.load(tmp_path, time=(0, 100), on_error="skip").ranks == (0, 2)


def test_steps_of_large_files_are_those_of_small_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = hg.load(job(tmp_path), steps=[2])
    monkeypatch.setattr(load_module, "_LARGE_BYTES", 0)
    monkeypatch.setattr(load_module, "part_of", lambda *_: pytest.fail("all of it was in memory"))
    large = hg.load(tmp_path, steps=[2])
    assert recorded(large) == recorded(small)
    assert large.issues == small.issues
    assert np.array_equal(large.edges.lag, small.edges.lag)
    assert np.array_equal(large.gap, small.gap)


@pytest.mark.parametrize("choice", [{"steps": [1]}, {"time": (0, 400)}])
def test_progress_never_falls_where_files_are_read_twice(
    choice: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_module, "_LARGE_BYTES", 0)
    shares: list[float] = []
    hg.load(job(tmp_path), progress=shares.append, **choice)
    assert shares == sorted(shares)
    assert min(shares) < 0.5
    assert shares[-1] == 1


@pytest.mark.parametrize(("python", "left_out"), [(True, 0), (None, 0), (False, 1)])
def test_python_functions_are_kept_unless_they_are_not_wanted(
    tmp_path: Path, *, python: bool | None, left_out: int
) -> None:
    frame = op(3, cat="python_function", name="train.py(7): step")
    graph = hg.load(written(tmp_path / "a.json", document([*healthy(), frame])), python=python)
    assert (ActivityKind.PYTHON in graph.activities.kind) == (not left_out)
    assert [issue.count for issue in graph.issues if issue.what == "python_not_read"] == [left_out] * left_out


def test_a_cached_graph_is_that_of_the_same_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HTAGRAPH_NO_CACHE")
    monkeypatch.setattr("htagraph.graph.storage.cache._WORTH_BYTES", 0)
    job(tmp_path / "job")
    choices: list[dict[str, Any]] = [{}, {"time": (0, 400)}, {"time": (0, 300)}, {"python": False}]
    for _ in range(2):
        for choice in choices:
            cached = hg.load(tmp_path / "job", cache=tmp_path / "cache", **choice)
            assert recorded(cached) == recorded(hg.load(tmp_path / "job", **choice))
    assert len(list((tmp_path / "cache").rglob("*.htagraph"))) == len(choices)


def test_a_single_number_of_a_rank_or_a_step_is_a_list_of_one() -> None:
    assert hg.load(DATA / "demo", ranks=2).ranks == (2,)
    assert hg.load(DATA / "demo", ranks=0, steps=6).steps == (6,)


@pytest.mark.parametrize("chosen", [{"steps": "6"}, {"steps": ["6"]}, {"ranks": "1"}])
def test_texts_are_no_numbers_of_ranks_or_steps(chosen: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="give whole numbers, such as"):
        hg.load(DATA / "demo", **chosen)
