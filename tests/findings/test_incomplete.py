"""Whether a recording that lacks a part of the job is said to, and nothing is concluded that rests on the part."""

from __future__ import annotations

import json
from pathlib import Path

import htagraph as hg
from htagraph.findings.changes import changes_of, ranked
from htagraph.findings.incomplete import INCOMPLETE, missing_parts
from htagraph.findings.results import Results
from htagraph.graph.measures.ledger import Part
from htagraph.output.reports.device_time import kernels_report
from htagraph.output.reports.patterns import patterns_report
from htagraph.output.reports.ranks import critical_path_report
from tests.strategies import COMPUTE, Json, kernel, launch, load, op, runtime
from tests.trace.nsys.made import CALLS, GRAPHS, SESSION, Strings, call, export
from tests.trace.nsys.made import kernel as exported


def _without_kernels() -> list[Json]:
    """Return a job whose launches and waits for the device are recorded, and nothing that the device did."""
    events: list[Json] = []
    for number in range(30):
        at = 100 * number
        events += [op("aten::linear", at, 40), launch(at + 5, 8, number + 1)]
        events.append(runtime("cudaDeviceSynchronize", at + 40, 60))
    return events


def test_what_is_missing_comes_first_and_no_verdict_rests_on_it() -> None:
    graph = load(_without_kernels())
    claims = hg.summarize(graph).claims
    assert [claim.says for claim in claims] == ["incomplete"]
    assert INCOMPLETE.whole(claims[0]) == (
        "The recording lacks the work of devices: 30 of 30 launch calls have no kernel or copy in the file, while the "
        "host waits 1.80 ms of 3.00 ms for devices that do nothing in the file and are likely the limit. What bounds "
        "the job, when its device is idle and what changes gain cannot be said."
    )
    (row,) = ranked(claims)
    assert row.text.startswith("Record again: without a second profiler")


def test_what_is_missing_is_a_value_with_how_to_record_it() -> None:
    (missing,) = missing_parts(load(_without_kernels()))
    assert (missing.lost, missing.ranks) == (Part.DEVICE, (0,))
    assert missing.sentence.startswith("The recording lacks the work of devices: 30 of 30")
    assert missing.advice.startswith("Record again")


def test_a_host_alone_lacks_nothing() -> None:
    graph = load([op("aten::mm", 100 * number, 90) for number in range(30)])
    assert INCOMPLETE.when(Results(graph)) == []


def test_a_host_that_hardly_waits_says_nothing_of_the_limit() -> None:
    events = [event for event in _without_kernels() if event["name"] != "cudaDeviceSynchronize"]
    (missing,) = missing_parts(load(events))
    assert missing.why == "30 of 30 launch calls have no kernel or copy in the file"


def _whole_graphs(tmp_path: Path) -> hg.DependencyGraph:
    """Return a job of Nsight Systems that replays CUDA graphs, each recorded as a whole."""
    strings = Strings()
    name = strings("cudaGraphLaunch")
    rows = [{**exported(1000 * n + 20, 1000 * n + 990, 0, n + 1), "graphId": 4, "graphExecId": 5} for n in range(10)]
    calls = [call(1000 * n, 1000 * n + 10, name, n + 1) for n in range(10)]
    return hg.load(export(tmp_path / "a.sqlite", {GRAPHS: rows, CALLS: calls, **SESSION}, strings))


def test_graphs_recorded_as_a_whole_lack_their_kernels_and_no_ranges_of_the_host(tmp_path: Path) -> None:
    graph = _whole_graphs(tmp_path)
    (missing,) = missing_parts(graph)
    assert missing.lost is Part.GRAPHS
    assert missing.why == "10 runs of CUDA graphs, 100 % of the busy time of devices, were recorded as a whole"
    assert missing.advice == "Record with nsys profile --cuda-graph-trace=node."
    first = changes_of(Results(graph)).first
    assert first is not None
    assert first.text == missing.advice
    answer, *rest = critical_path_report(hg.critical_path(graph), ["x"]).sentences
    assert "% computation" in answer
    assert sum("The recording lacks" in sentence for sentence in rest) == 1
    (told,) = patterns_report(graph, ["x"]).sentences
    assert told.endswith("--cuda-graph-trace=node.")


def test_a_device_that_meets_ranks_which_were_not_read_is_bound_by_communication(tmp_path: Path) -> None:
    events: list[Json] = []
    for number in range(20):
        at = 100 * number
        compute = 1 + 2 * number
        meet = 2 + 2 * number
        events += [op("aten::mm", at, 4), launch(at + 1, 1, compute), kernel(COMPUTE, at + 3, 20, compute)]
        events += [launch(at + 5, 1, meet), kernel("ncclDevKernel_AllReduce", at + 23, 75, meet)]
    path = tmp_path / "rank-0.json"
    document = {"distributedInfo": {"rank": 0, "world_size": 4}, "traceEvents": events}
    path.write_text(json.dumps(document), encoding="utf-8")
    graph = hg.load(path)
    (claim,) = INCOMPLETE.when(Results(graph))
    assert INCOMPLETE.why(claim).startswith("Bound by transfers between ranks, or waiting for ranks not recorded: for ")
    answer, *rest = critical_path_report(hg.critical_path(graph), ["x"]).sentences
    assert "% transfers between ranks, or waiting for ranks not recorded" in answer
    assert sum("The recording lacks" in sentence for sentence in rest) == 1
    assert not any("lacks" in sentence for sentence in kernels_report(graph, ["x"]).sentences)


def test_a_file_with_some_launch_calls_was_cut_and_its_host_was_recorded() -> None:
    alone = [kernel("gemm", 100 * number + 30, 20, number + 1) for number in range(40)]
    operators = [op("aten::mm", 100 * number, 20) for number in range(40)]
    without = load([*operators, *alone])
    assert [missing.advice for missing in missing_parts(without) if missing.lost == Part.CALLS] == [
        "Record with ProfilerActivity.CPU."
    ]
    cut = load([*operators, *alone, launch(5, 8, 1)])
    assert [missing.advice for missing in missing_parts(cut) if missing.lost == Part.CALLS] == [
        "Use the whole file, or record again: it has some launch calls, and the others were cut off."
    ]
