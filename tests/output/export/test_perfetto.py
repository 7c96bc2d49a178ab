"""What the real Perfetto reads of what is written: everything, at its time, without a complaint."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter, defaultdict
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph import DependencyGraph
from htagraph.core.errors import TraceError
from htagraph.graph.activities import BETWEEN, Lane
from htagraph.output.export.originals import MetSlices
from htagraph.output.export.perfetto import (
    MergedJob,
    bandwidths,
    counters_to_perfetto,
    held_back,
    memory,
    queues,
    recorded_samples,
    to_perfetto,
)
from htagraph.output.export.trace_writer import slice_rows
from htagraph.output.scene import Slices, nesting_tracks, threads_first
from htagraph.queries.samples import sampled
from tests.damage import healthy, kineto_text
from tests.reach import DATA, DATASETS, JOBS, LARGE_BYTES, SHARED, graph_of, label
from tests.strategies import COMPUTE, arrow, kernel, launch, load, op
from tests.trace.kineto.test_samples import counter
from tests.trace_processor import ENGINE, Perfetto, Row, needs_perfetto

SETS = sorted(path for path in SHARED.iterdir() if path.name.startswith(("gloo", "megatron", "torchrec"))) if (
    SHARED.is_dir()
) else []  # fmt: skip
SINGLE = [path for path in JOBS if path.parent not in SETS]
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",  # the shared wrapper of the engine leaves its pipes to the garbage collector
    "ignore::pytest.PytestUnraisableExceptionWarning",
)


def events_of(path: Path) -> list[dict[str, Any]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    found: list[dict[str, Any]] = json.loads(data, parse_float=Decimal)["traceEvents"]
    return found


def ns(value: Any) -> int:
    assert Decimal(value) * 1000 % 1 == 0
    return int(Decimal(value) * 1000)


def check_in_perfetto(path: Path, events: list[dict[str, Any]]) -> None:
    """Hold what Perfetto reads against what the file says: slices, arrows and their ends, counters, arguments."""
    written = Counter(
        (e["name"], ns(e["ts"]), ns(e.get("dur", 0)), e["pid"], e["tid"]) for e in events if e["ph"] == "X"
    )
    perfetto = Perfetto(path)
    assert perfetto.complaints() == []
    read = Counter(
        perfetto.rows(
            "select s.name, ts, dur, pid, tid from slice s join thread_track t on s.track_id = t.id "
            "join thread using (utid) join process using (upid)"
        )
    )
    instants = Counter(e["name"] for e in events if e["ph"] in "iI")
    rest = written - read
    assert not rest, list(rest)[:5]
    assert sum((read - written).values()) <= sum(instants.values())
    arrows = perfetto.rows(
        "select extract_arg(f.arg_set_id, 'cat') as cat, a.ts as begin, a.dur, b.ts as head, tb.tid from flow f "
        "join slice a on a.id = slice_out join slice b on b.id = slice_in join thread_track t on b.track_id = t.id "
        "join thread tb using (utid)"
    )
    heads = Counter((e["cat"], ns(e["ts"]), e["tid"]) for e in events if e["ph"] == "f")
    assert Counter((cat, begin, tid) for cat, _, _, begin, tid in arrows) == heads
    tails = Counter((e["cat"], ns(e["ts"])) for e in events if e["ph"] == "s" and e["cat"] != "critical_path")
    assert Counter((cat, begin) for cat, begin, *_ in arrows if cat != "critical_path") == tails
    assert all(begin + dur == head for cat, begin, dur, head, _ in arrows if cat == "critical_path")
    values = perfetto.rows("select c.ts, value, t.name from counter c join counter_track t on t.id = c.track_id")
    counted = [
        (ns(e["ts"]), float(v), f"{e['name']} {k}") for e in events if e["ph"] == "C" for k, v in e["args"].items()
    ]
    assert Counter(map(rounded, values)) == Counter(map(rounded, counted))
    check_arguments(perfetto, events)


def check_counts_in_perfetto(path: Path, events: list[dict[str, Any]]) -> None:
    """The same for large files, by number and sum of durations alone."""
    slices = [ns(e.get("dur", 0)) for e in events if e["ph"] in "XiI"]
    perfetto = Perfetto(path)
    assert perfetto.complaints() == []
    assert perfetto.rows("select count(*) as n, sum(dur) as total from slice") == [(len(slices), sum(slices))]
    arrows = Counter(e["cat"] for e in events if e["ph"] == "f")
    query = "select extract_arg(arg_set_id, 'cat') as cat, count(*) as n from flow group by 1"
    assert dict(perfetto.rows(query)) == arrows


def rounded(value: Row) -> Row:
    """Return a counter's value without the last digits, which Perfetto reads differently."""
    return value[0], float(f"{value[1]:.9g}"), value[2]


def check_arguments(perfetto: Perfetto, events: list[dict[str, Any]]) -> None:
    found: dict[Row, dict[str, str]] = defaultdict(dict)
    for ts, tid, cat, key, value in perfetto.rows(
        "select ts, tid, category, key, display_value from slice s join thread_track t on s.track_id = t.id "
        "join thread using (utid) join args a on a.arg_set_id = s.arg_set_id where s.category like 'critical_path%'"
    ):
        found[ts, tid, cat][key.removeprefix("args.").removeprefix("debug.")] = value
    said = {
        (ns(e["ts"]), e["tid"], e["cat"]): e["args"]
        for e in events
        if e["ph"] == "X" and str(e.get("cat", "")).startswith("critical_path")
    }
    assert found.keys() == said.keys()
    for at, args in said.items():
        assert found[at].keys() == args.keys()
        for key, value in args.items():
            got = found[at][key]
            assert (float(got) == pytest.approx(float(value), rel=1e-5)) if key.endswith("_us") else (
                got == (str(value).lower() if isinstance(value, bool) else str(value))
            ), key  # fmt: skip


@pytest.mark.slow
@needs_perfetto
@pytest.mark.parametrize("path", [*SINGLE, *SETS], ids=label)
def test_perfetto_reads_the_path_over_every_trace_without_a_complaint(path: Path, tmp_path: Path) -> None:
    graph = graph_of(path)
    critical = hg.critical_path(graph)
    written = critical.to_perfetto(tmp_path / "o.json.gz")
    events = events_of(tmp_path / "o.json.gz")
    files = [path] if path.is_file() else list(path.iterdir())
    if path not in DATASETS and sum(file.stat().st_size for file in files) > LARGE_BYTES:
        check_counts_in_perfetto(tmp_path / "o.json.gz", events)
    else:
        check_in_perfetto(tmp_path / "o.json.gz", events)
    ours = [e for e in events if e["ph"] == "X" and e.get("cat") == "critical_path"]
    assert len(ours) == len(critical.segments)
    assert sum(ns(e["dur"]) for e in ours) == critical.makespan_ns
    stretches = [e for e in events if e["ph"] == "X" and e.get("cat") == "critical_path_stretch"]
    assert sum(ns(e["dur"]) for e in stretches) == critical.makespan_ns
    assert all(sum(ns(v) for k, v in e["args"].items() if k.endswith("_us")) == ns(e["dur"]) for e in stretches)
    check_analysis_tracks(critical, events)
    added = [e for e in events if e["ph"] == "X" and str(e.get("cat", "")).startswith("critical_path")]
    assert written.slices == len(added)
    recorded = sum(trace.counts.get("X", 0) for trace in graph.traces.values())
    assert sum(e["ph"] == "X" for e in events) == recorded + written.slices - left_out_slices(graph, events, written)


def check_analysis_tracks(critical: hg.CriticalPath, events: list[dict[str, Any]]) -> None:
    """Hold the tracks beside the path's slices against the path: pieces, what is next, who waited."""
    by_kind = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            by_kind[event.get("cat")].append(event)
    whole = {event["tid"] for event in by_kind["critical_path_stretch"]}
    pieces = [event for event in by_kind["critical_path_piece"] if event["tid"] in whole]
    assert sum(ns(event["dur"]) for event in pieces) == critical.makespan_ns
    near = critical.near(3)
    said = [
        (float(event["args"]["slack_us"]), float(event["args"]["work_us"])) for event in by_kind["critical_path_next"]
    ]
    all_near = iter(zip(near["slack_us"], near["work_us"], strict=True))
    assert all(each in all_near for each in said)  # in this order; one that only returns to the path has no slice
    table = critical.hops()
    table = table[table["waited_us"] > 0]
    waited = [float(event["dur"]) for event in by_kind["critical_path_wait"]]
    assert len(waited) == len(table)
    assert all(had <= said + 0.001 for had, said in zip(waited, table["waited_us"], strict=True))


def left_out_slices(graph: DependencyGraph, events: list[dict[str, Any]], written: Any) -> int:
    """Return how many slices were left out: none, but for those of clocks that were hours off."""
    hours_off = sum(issue.count for issue in graph.issues if issue.what == "time_outlier")
    assert (written.left_out > 0) == (hours_off > 0) or written.left_out == 0
    return hours_off


@pytest.mark.slow
@needs_perfetto
@pytest.mark.parametrize("path", [DATA / "demo", *SETS[1:2]], ids=label)
def test_perfetto_reads_the_counters_that_were_written(path: Path, tmp_path: Path) -> None:
    graph = hg.load(path, ranks=[0, 1])  # of eight ranks two are enough: each has all counters
    written = counters_to_perfetto(graph, tmp_path / "c.json")
    assert written.counters == len(hg.queue_length(graph)) + len(hg.memory_bandwidth(graph)) > 0
    check_in_perfetto(tmp_path / "c.json", events_of(tmp_path / "c.json"))
    some = hg.queue_length(graph).head(3)
    fewer = counters_to_perfetto(graph, tmp_path / "d.json", queue_length=some, memory_bandwidth=pd.DataFrame(
        {"rank": [], "copy": [], "time_us": [], "bandwidth_gb_s": []}))  # fmt: skip
    assert fewer.counters == 3
    at = sorted(ns(e["ts"]) for e in events_of(tmp_path / "d.json") if e["ph"] == "C")
    base = json.loads((tmp_path / "d.json").read_text())["baseTimeNanoseconds"]
    assert at == sorted(graph.origin_ns - base + round(us * 1000) for us in some["time_us"])


def test_ranks_line_up_on_the_common_clock_and_share_no_process(tmp_path: Path) -> None:
    graph = graph_of(DATA / "demo")
    assert any(clock.offset_ns for clock in graph.clocks)
    hg.critical_path(graph).to_perfetto(tmp_path / "o.json")
    root = json.loads((tmp_path / "o.json").read_text(), parse_float=Decimal)
    starts = {rank: set[int]() for rank in graph.ranks}
    for event in root["traceEvents"]:
        if event["ph"] == "X" and event["pid"] >= 1000:
            starts[event["pid"] // 1000 - 1].add(ns(event["ts"]) + root["baseTimeNanoseconds"])
    for rank in graph.ranks:
        mine = np.arange(len(graph.activities))[graph.activities.of_rank(rank)]
        mine = mine[graph.activities.event[mine] >= 0]
        assert set(graph.time[2 * mine].tolist()) <= starts[rank]


def test_what_lies_on_the_path_says_so(tmp_path: Path) -> None:
    path = hg.critical_path(graph_of(DATA / "demo"))
    path.to_perfetto(tmp_path / "o.json")
    marked = sum(
        ns(e["args"]["critical_us"]) for e in events_of(tmp_path / "o.json") if "critical_us" in e.get("args", {})
    )
    of_files = path.graph.activities.event[path.segments.activity] >= 0
    assert marked == int(path.segments.length[of_files].sum())


def test_arrows_are_where_the_path_changes_lane_and_say_why(tmp_path: Path) -> None:
    path = hg.critical_path(graph_of(DATA / "demo"))
    written = path.to_perfetto(tmp_path / "o.json")
    table = path.to_frame()
    changes = (table["lane"] != table["lane"].shift()) | (table["rank"] != table["rank"].shift())
    assert written.arrows == int(changes.sum()) - 1
    arrows = [e for e in events_of(tmp_path / "o.json") if e["ph"] == "f" and e["cat"] == "critical_path"]
    kinds = {kind.label for kind in hg.EdgeKind}
    assert {e["args"]["kind"] for e in arrows} <= kinds
    assert {"kind", "weight_us", "what", "category"} <= arrows[0]["args"].keys()
    assert "Open it in" in str(written)


def test_a_graph_of_ones_own_is_drawn_without_a_file(tmp_path: Path) -> None:
    acts = pd.DataFrame({"name": ["a", "b", "c"], "duration_ns": [5, 7, 1], "lane": ["x", "y", "x"]})
    graph = DependencyGraph.from_frames(acts, pd.DataFrame({"source": [0, 1], "target": [1, 2]}))
    to_perfetto(hg.critical_path(graph), tmp_path / "o.json")
    names = [e["name"] for e in events_of(tmp_path / "o.json") if e["ph"] == "X" and e["pid"] >= 1000]
    assert sorted(names) == ["a", "b", "c"]


@pytest.mark.parametrize("job", [{0: []}, {0: [op("a", 0, 5)]}, {0: [kernel(COMPUTE, 0, 0)], 3: []}])
def test_small_jobs_are_written(job: Any, tmp_path: Path) -> None:
    written = hg.critical_path(load(job, tmp_path)).to_perfetto(tmp_path / "o.json.gz")
    assert written.path.is_file()


def test_dangling_and_backward_arrows_are_left_out_and_counted(tmp_path: Path) -> None:
    where = {"cat": "ac2g", "name": "ac2g", "pid": 100, "tid": 1}
    flows = [
        {"ph": "s", "id": 1, "ts": 0, **where}, {"ph": "f", "id": 1, "ts": 5, "bp": "e", **where, "pid": 0, "tid": 7},
        {"ph": "s", "id": 2, "ts": 0, **where}, {"ph": "f", "id": 3, "ts": 5, "bp": "e", **where, "pid": 0, "tid": 7},
        {"ph": "s", "id": 4, "ts": 99, **where}, {"ph": "f", "id": 4, "ts": 5, "bp": "e", **where, "pid": 0, "tid": 7},
    ]  # fmt: skip
    graph = load({0: [launch(0, 2, 1), kernel(COMPUTE, 5, 5, 1), kernel(COMPUTE, 8, 5, 2), *flows]}, tmp_path)
    written = hg.critical_path(graph).to_perfetto(tmp_path / "o.json")
    assert (written.arrows_left_out, written.moved) == (4, 1)
    events = events_of(tmp_path / "o.json")
    assert sum(e["ph"] in "sf" and e["cat"] == "ac2g" for e in events) == 2
    assert "stream 7 (2)" in {e["args"]["name"] for e in events if e["ph"] == "M"} or any(
        str(e["args"]["name"]).endswith("(2)") for e in events if e["ph"] == "M"
    )


def test_a_trace_is_never_written_over_nor_read_once_changed(tmp_path: Path) -> None:
    source = tmp_path / "rank-0.json"
    source.write_text(kineto_text(healthy(3)))
    path = hg.critical_path(hg.load(source))
    with pytest.raises(TraceError, match="is the trace itself"):
        path.to_perfetto(source)
    source.write_text(kineto_text(healthy(4)))
    with pytest.raises(TraceError, match="was changed"):
        path.to_perfetto(tmp_path / "o.json")
    assert not (tmp_path / "o.json").exists()


times = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 8)), max_size=30)


@given(times, st.integers(0, 2), st.integers(0, 25))
def test_an_arrow_meets_a_slice_around_its_moment(rows: list[tuple[int, int, int]], lane: int, moment: int) -> None:
    lanes, start, duration = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    slices = MetSlices(lanes, start, duration, nesting_tracks(lanes, start, duration))
    found = int(slices.met(np.array([lane]), np.array([moment]))[0])
    around = (lanes == lane) & (start <= moment) & (moment <= start + duration)
    if not around.any():
        assert found == -1
    else:
        assert lanes[found] == lane
        assert start[found] == start[around].max()


def test_the_path_of_a_prediction_lies_over_its_own_activities(tmp_path: Path) -> None:
    """The recorded events are where they were recorded: the path would not meet them."""
    outcome = hg.what_if(hg.load(DATA / "demo")).scale(name="*gemm*", factor=0.5).run()
    path = outcome.critical_path()
    written = path.to_perfetto(tmp_path / "path.json")
    assert written.predicted
    assert "predicted times" in str(written)
    slices = [event for event in events_of(tmp_path / "path.json") if event["ph"] == "X"]
    where = {event["args"]["activity"]: event for event in slices if event["pid"] != 1}
    acts = outcome.graph.activities
    assert len(where) == sum(acts.of_rank(rank).stop - acts.of_rank(rank).start for rank in outcome.graph.ranks)
    time = dict.fromkeys(where, Decimal(0))
    for event in slices:
        if event["cat"] == "critical_path" and event["args"]["activity"] in where:
            beneath = where[event["args"]["activity"]]
            time[event["args"]["activity"]] += event["dur"]
            if event["args"].get("edge") == "body" and "gap" not in event["args"]:
                assert beneath["ts"] <= event["ts"] <= event["ts"] + event["dur"] <= beneath["ts"] + beneath["dur"]
    assert {row for row, event in where.items() if "critical_us" in event["args"]} == {r for r in time if time[r]}
    assert all(where[row]["args"]["critical_us"] == time[row] for row in time if time[row])


@pytest.mark.parametrize("job", ["demo", "gloo_ddp"])
def test_the_path_and_the_counters_go_into_one_file_if_asked(job: str, tmp_path: Path) -> None:
    path = hg.critical_path(graph_of(DATA / job))
    both = to_perfetto(path, tmp_path / "both.json", counters=True)
    alone = to_perfetto(path, tmp_path / "alone.json")
    counted = counters_to_perfetto(path.graph, tmp_path / "counters.json").counters
    assert (both.slices, both.arrows, both.counters) == (alone.slices, alone.arrows, counted)
    assert alone.counters == 0
    assert (counted > 0) == (job == "demo")


def test_a_prediction_lies_beside_what_was_recorded(tmp_path: Path) -> None:
    outcome = hg.what_if(hg.load(DATA / "demo")).scale(name="*gemm*", factor=0.5).run()
    written = to_perfetto(outcome, tmp_path / "both.json")
    assert not written.predicted
    events = events_of(tmp_path / "both.json")
    process = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    slices = [event for event in events if event["ph"] == "X"]
    graph, origin = outcome.graph, min(ns(event["ts"]) for event in slices)
    for rank in graph.ranks:
        mine = [e for e in slices if process[e["pid"]] == f"rank {rank}, predicted"]
        rows = np.array([e["args"]["activity"] for e in mine])
        assert sorted(rows.tolist()) == list(range(len(graph.activities)))[graph.activities.of_rank(rank)]
        base = {ns(e["ts"]) - int(graph.time[2 * row]) for e, row in zip(mine, rows.tolist(), strict=True)}
        assert len(base) == 1
        assert origin >= 0
    whole = [e for e in slices if e["tid"] == 1_000_000 and e["cat"] == "critical_path_stretch"]
    assert sum(ns(e["dur"]) for e in whole) == outcome.critical_path().makespan_ns < outcome.baseline_ns
    with pytest.raises(TypeError, match="DependencyGraph is not written"):
        to_perfetto(outcome.graph, tmp_path / "g.json")  # type: ignore[arg-type]
    if ENGINE.is_file() and shutil.which("node"):
        assert Perfetto(tmp_path / "both.json").complaints() == []


def test_the_counters_of_a_prediction_lie_in_its_processes(tmp_path: Path) -> None:
    outcome = hg.what_if(hg.load(DATA / "demo", ranks=[0])).scale(name="*gemm*", factor=0.5).run()
    counters_to_perfetto(outcome.graph, tmp_path / "counters.json")
    events = events_of(tmp_path / "counters.json")
    named = {event["pid"] for event in events if event["name"] == "process_name"}
    assert {event["pid"] for event in events if event["ph"] in "CX"} == named


def test_a_job_as_recorded_is_no_prediction(tmp_path: Path) -> None:
    graph = hg.load(DATA / "demo", ranks=[0])
    assert not hg.critical_path(graph).to_perfetto(tmp_path / "path.json").predicted
    assert not hg.what_if(graph).run().critical_path().to_perfetto(tmp_path / "same.json").predicted


def test_views_beside_the_traces_do_not_make_their_folder_unreadable(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DATA / "demo", tmp_path / "job"))
    graph = hg.load(folder)
    hg.critical_path(graph).to_perfetto(folder / "path.json.gz")
    counters_to_perfetto(graph, folder / "counters.json.gz")
    again = hg.load(folder)
    assert len(again.activities) == len(graph.activities)
    assert [issue.what for issue in again.issues if issue not in graph.issues] == ["made_by_htagraph"] * 2


def test_a_bandwidth_that_is_no_number_is_not_written(tmp_path: Path) -> None:
    graph = hg.load(DATA / "demo", ranks=[0])
    table = hg.memory_bandwidth(graph).assign(bandwidth_gb_s=float("inf"))
    counters_to_perfetto(graph, tmp_path / "c.json", memory_bandwidth=table)
    assert "Infinity" not in (tmp_path / "c.json").read_text()


@needs_perfetto
def test_perfetto_reads_names_that_end_in_a_backslash(tmp_path: Path) -> None:
    graph = load([op("C:\\dir\\", 0, 9), op("b", 10, 5)], tmp_path)
    hg.critical_path(graph).to_perfetto(tmp_path / "out.json")
    perfetto = Perfetto(tmp_path / "out.json")
    assert perfetto.complaints() == []
    names = {name.replace("\\\\", "\\") for (name,) in perfetto.rows("select name from slice")}  # as it shows them
    assert {"C:\\dir\\ ", "b"} <= names


def test_activities_are_slices_with_their_numbers_and_their_time_on_the_path() -> None:
    acts = pd.DataFrame({"name": ["a", "b", "a"], "duration_ns": [5, 7, 1], "lane": ["x", "y", "x"]})
    graph = hg.DependencyGraph.from_frames(acts, pd.DataFrame({"source": [0, 1], "target": [1, 2]}))
    job = MergedJob.of(graph, "o.json")
    slices, *names = job.activities(0, np.array([0, 7_000, 0]), " there")
    assert isinstance(slices, Slices)
    read = json.loads(b"[" + bytes(slice_rows(slices).joined) + b"]")
    assert [event["name"] for event in read] == ["a", "b", "a"]
    assert [event["args"] for event in read] == [{"activity": 0}, {"activity": 1, "critical_us": 7}, {"activity": 2}]
    assert [event["tid"] for event in read] == [1, 2, 1]
    assert [event["args"]["name"] for event in names if isinstance(event, dict)] == ["rank 0 there", "x", "y"]


def test_main_threads_come_first_and_streams_last() -> None:
    lanes = (Lane(1, 5, 5), Lane(0, 0, 7, device=0, stream=7), Lane(0, 4, 9), Lane(0, 4, 4))
    assert sorted((BETWEEN, *lanes), key=lambda lane: threads_first(lane, 1)) == [BETWEEN, *lanes[::-1]]


def job_of(path: Path) -> MergedJob:
    return MergedJob.of(graph_of(path), "o.json")


def test_every_row_of_the_tables_is_a_value() -> None:
    job = job_of(DATA / "demo")
    lengths, copies = hg.queue_length(job.graph), hg.memory_bandwidth(job.graph)
    found = list(queues(lengths, job))
    assert sum(len(each) for each in found) == len(lengths)
    assert len(found) == len(lengths.groupby(["rank", "device", "stream"]))
    assert [float(each.value.max()) for each in found] == lengths.groupby(["rank", "device", "stream"], sort=False)[
        "queue_length"
    ].max().tolist()
    assert sum(len(each) for each in bandwidths(copies, job)) == len(copies)
    assert all((each.moment >= 0).all() for each in found)


def table(device: str) -> pd.DataFrame:
    return pd.DataFrame({"rank": [0, 0], "device": [device] * 2, "time_us": [1.5, 2.0], "allocated_bytes": [10, 5],
                         "reserved_bytes": [0, 0]})  # fmt: skip


@pytest.mark.parametrize("device", ["cuda:0", "cpu", "cuda:9"])
def test_memory_lies_with_its_device_or_with_the_host(device: str) -> None:
    job = job_of(DATA / "demo")
    (one,) = memory(table(device), job)  # nothing is reserved
    pids = job.device_pids()
    assert one.pid == (pids[0, 0] if device == "cuda:0" else pids[0, -1])
    assert (one.name, one.series, one.value.tolist()) == ("memory allocated", device, [10, 5])
    assert (one.moment - (job.graph.origin_ns - job.base_ns)).tolist() == [1_500, 2_000]


def test_memory_of_a_rank_without_activities_is_left_out() -> None:
    frame: Any = table("cpu").assign(rank=77)
    assert not list(memory(frame, job_of(DATA / "demo")))


def read(path: Path) -> tuple[Counter[Any], ...]:
    """Return slices, arrows, values of counters and arguments as Perfetto reads them, if it complains of nothing.

    Slices without duration are inside each other as JSON, and beside each other in the native format.
    """
    perfetto = Perfetto(path)
    assert perfetto.complaints() == []
    slices = perfetto.rows("select name, coalesce(category, '') as c, ts, dur, iif(dur, depth, 0) as d from slice")
    arrows = perfetto.rows(
        "select a.name as n, a.ts as t, a.dur as d, b.name as m, b.ts as u, b.dur as e from flow f "
        "join slice a on a.id = f.slice_out join slice b on b.id = f.slice_in"
    )
    values = perfetto.rows("select ts, value, t.name as n from counter c join counter_track t on t.id = c.track_id")
    args = perfetto.rows(
        "select name, ts, dur, replace(key, 'debug.', '') as k, display_value as v from slice "
        "join args using (arg_set_id)"
    )
    return (
        Counter(slices),
        Counter(arrows),
        Counter((ts, round(value, 3), name) for ts, value, name in values),
        Counter(args),
    )


def check(graph: hg.DependencyGraph, folder: Path, *, arguments: bool = True) -> None:
    path = hg.critical_path(graph)
    text, native = (to_perfetto(path, folder / name, counters=True) for name in ("o.json.gz", "o.pftrace.gz"))
    assert (native.slices, native.arrows, native.counters) == (text.slices, text.arrows, text.counters)
    as_text, as_native = read(text.path), read(native.path)
    assert as_native[:3] == as_text[:3]
    if arguments:
        assert as_native[3] == as_text[3]


@pytest.mark.slow
@needs_perfetto
def test_perfetto_reads_a_job_as_it_reads_it_as_json(tmp_path: Path) -> None:
    check(graph_of(DATA / "demo"), tmp_path)


@needs_perfetto
def test_what_begins_at_one_moment_is_inside_what_lasts_longer(tmp_path: Path) -> None:
    """In the file, short ones stand before the long ones that they are inside of, and heads of arrows before tails."""
    call, work = launch(5, 1, 1), kernel(COMPUTE, 5, 4, 1)
    events = [
        work, op("inner", 0, 5), op("zero", 0, 0), op("outer", 0, 9), op("same", 0, 9), op("last", 9, 3), call,
        op("mid", 5, 2), *arrow(3, call, work),
    ]  # fmt: skip
    check(load({0: events, 1: events[::-1]}, tmp_path), tmp_path, arguments=False)


def phases(path: Path) -> Counter[Any]:
    pb = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    found: Counter[Any] = Counter()
    names: dict[int, str] = {}
    for packet in pb.Trace.FromString(path.read_bytes()).packet:
        names |= {each.iid: each.name for each in packet.interned_data.event_names}
        if packet.HasField("track_event"):
            event = packet.track_event
            args = tuple(json.dumps(json.loads(each.legacy_json_value)) for each in event.debug_annotations)
            args = tuple(each for each in args if each != "{}")
            cats = tuple(map(names.get, event.category_iids))
            found[packet.timestamp, event.type, names.get(event.name_iid, ""), cats, args, len(event.flow_ids)] += 1
    return found


rows = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=20)
pairs = st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=6)


@given(rows, pairs)
def test_what_begins_together_stands_in_order(rows: list[tuple[int, int, int]], pairs: list[tuple[int, int]]) -> None:
    track, start, duration = (np.array([row[at] for row in rows], np.int64) for at in range(3))
    # arrows from a track to a later one never make a circle
    arrows = [(tail, head) for tail, head in pairs if max(tail, head) < len(rows) and track[tail] < track[head]]
    tails, heads = (np.array([arrow[at] for arrow in arrows], np.int64) for at in range(2))
    late = held_back(track, start, duration, (tails, heads)).tolist()
    order = [row for row in range(len(rows)) if row not in late] + late
    assert sorted(order) == list(range(len(rows)))
    place = {row: at for at, row in enumerate(order)}
    for a in range(len(rows)):
        for b in range(len(rows)):
            if (track[a], start[a]) == (track[b], start[b]) and duration[a] > duration[b]:
                assert place[a] < place[b]
    assert all(place[tail] < place[head] for tail, head in arrows if start[tail] == start[head])


def test_what_is_in_order_stays_where_it_is() -> None:
    start = np.array([0, 0, 5, 5, 5])
    none = np.zeros(0, np.int64)
    assert not len(held_back(np.zeros(5), start, np.array([9, 4, 3, 3, 0]), (none, none)))


@needs_perfetto
def test_sampled_counters_of_two_devices_are_two_tracks_and_equal_the_file(tmp_path: Path) -> None:
    samples = [
        counter("Power (W)", moment, 100.5 * moment + device, f"GPU {device} Counters")
        for moment in (3, 7)
        for device in (0, 1)
    ]
    graph = load([kernel(COMPUTE, 0, 9), *samples])
    for name in ("o.json", "o.pftrace"):
        perfetto = Perfetto(to_perfetto(hg.critical_path(graph), tmp_path / name).path)
        assert perfetto.complaints() == []
        rows = perfetto.rows("select ts, value, track_id from counter order by ts, value")
        assert [(ts, value) for ts, value, _ in rows] == [(3000, 301.5), (3000, 302.5), (7000, 703.5), (7000, 704.5)]
        assert len({track for _, _, track in rows}) == 2


def test_samples_of_ranks_whose_events_are_not_copied_are_drawn(tmp_path: Path) -> None:
    graph = load([kernel(COMPUTE, 0, 9), counter("Power (W)", 3, 301.5)])
    job = replace(MergedJob.of(graph, tmp_path / "o.json"), originals=[])
    (values,) = recorded_samples(sampled(graph), job)
    assert (values.name, values.series, values.moment.tolist()) == ("Power (W)", "device 0", [3000])
    assert values.value.tolist() == [301.5]
    assert not list(recorded_samples(sampled(graph), replace(job, predicted=True)))
    assert not list(recorded_samples(sampled(graph), MergedJob.of(graph, tmp_path / "o.json")))
