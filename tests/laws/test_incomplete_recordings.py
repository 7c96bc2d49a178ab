"""No verdict rests on work that the recording lacks, and a complete recording is never said to lack any."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, NamedTuple

import pytest

import htagraph as hg
from htagraph.cli.diff import limit
from htagraph.cli.verbs import QUESTIONS
from htagraph.findings.incomplete import is_judged, missing_parts
from htagraph.findings.verdict import FINDINGS
from htagraph.graph.measures.ledger import Part
from htagraph.output import regressions
from htagraph.output.report import CONTENTS, Report
from htagraph.output.reports.changes import what_if_report
from htagraph.output.reports.ranks import critical_path_report, plan_report
from htagraph.output.reports.two_jobs import diff_report, names_report
from htagraph.output.reports.workers import job_report, job_stragglers_report
from htagraph.whatif.candidates import CLASSES
from tests.reach import DATA, JOBS, LARGE_BYTES, REAL, graph_of, label

Json = dict[str, Any]
_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
_CALLS = {"cuda_runtime", "cuda_driver"}
_HOST = {"cpu_op", "python_function", "user_annotation", *_CALLS}
SMALL = [path for path in JOBS if path.is_dir() or path.stat().st_size < LARGE_BYTES]
SMALL_JOBS = [DATA / "demo", DATA / "gpu_demo" / "train", DATA / "gpu_demo" / "generate"]


class Loss(NamedTuple):
    """Rows that a recording may lose."""

    name: str
    is_lost: Callable[[list[Json]], Callable[[Json], bool]]
    """Returns the predicate of lost rows, given the rows of one rank."""
    part: Part


def _is_work(event: Json) -> bool:
    return event.get("cat") in _DEVICE


def _is_nothing(_: Json) -> bool:
    return False


def _of_one_stream(events: list[Json]) -> Callable[[Json], bool]:
    """Return the predicate of work on the stream with the second most rows, or on the only stream."""
    streams = [event["args"]["stream"] for event in events if _is_work(event)]
    ranked = sorted(set(streams), key=lambda stream: -streams.count(stream))
    chosen = ranked[min(1, len(ranked) - 1)]
    return lambda event: _is_work(event) and event["args"]["stream"] == chosen


def _from_some_time_on(events: list[Json]) -> Callable[[Json], bool]:
    starts = sorted(float(event["ts"]) for event in events if _is_work(event))
    until = starts[len(starts) * 6 // 10]
    return lambda event: _is_work(event) and float(event["ts"]) >= until


def _of_one_call(events: list[Json]) -> Callable[[Json], bool]:
    """Return the predicate of work that the call with most launches enqueued, or launches of graphs where there are."""
    names = {event["args"]["correlation"]: event["name"] for event in events if "Launch" in event.get("name", "")}
    graphs = {key for key, name in names.items() if "GraphLaunch" in name}
    counts = list(names.values())
    most = max(sorted(set(counts)), key=counts.count)
    chosen = graphs or {key for key, name in names.items() if name == most}
    return lambda event: _is_work(event) and event["args"].get("correlation") in chosen


LOSSES = (
    Loss("all devices", lambda _: _is_work, Part.DEVICE),
    Loss("a device", lambda _: _is_work, Part.DEVICE),
    Loss("a stream", _of_one_stream, Part.DEVICE),
    Loss("from some time on", _from_some_time_on, Part.DEVICE),
    Loss("a call", _of_one_call, Part.DEVICE),
    Loss("the host", lambda _: lambda event: event.get("cat") in _HOST, Part.HOST),
)


def _read(path: Path) -> Json:
    document: Json = json.loads(gzip.decompress(path.read_bytes()))
    return document


def _lossy_copy(folder: Path, into: Path, loss: Loss) -> dict[str, set[int]]:
    """Copy a job without the lost rows; return the launch calls that lost all their work, by the name of the file."""
    orphans = {}
    for number, path in enumerate(sorted(folder.glob("*.json.gz"))):
        document = _read(path)
        events = document["traceEvents"]
        is_lost = loss.is_lost(events)
        if loss.name == "a device" and number:
            is_lost = _is_nothing  # the devices of all other ranks stay
        kept = [event for event in events if not is_lost(event)]
        before = {event["args"].get("correlation") for event in events if _is_work(event)}
        after = {event["args"].get("correlation") for event in kept if _is_work(event)}
        orphans[path.name] = before - after
        (into / path.name).write_bytes(gzip.compress(json.dumps(document | {"traceEvents": kept}).encode()))
    return orphans


def _reports(graph: hg.DependencyGraph) -> list[Report]:
    """Return the report of every command that answers a question about one job."""
    words = ["traces"]
    path = hg.critical_path(graph)
    free_host = hg.what_if(graph).infinite_host().run()
    start = hg.what_if(graph).run()
    reports = [critical_path_report(path, words), what_if_report([start, free_host], ["--infinite-host"])]
    for question in QUESTIONS.values():
        function = resolve_name(f"htagraph.output.{question.report}")
        reports.append(function(graph, words))
    return reports


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name.replace(" ", "_"))
@pytest.mark.parametrize("folder", SMALL_JOBS, ids=label)
def test_nothing_is_concluded_from_a_recording_that_lost_rows(folder: Path, loss: Loss, tmp_path: Path) -> None:
    orphans = _lossy_copy(folder, tmp_path, loss)
    graph = hg.load(tmp_path)
    assert loss.part in graph.ledger.lacks
    for rank, lost in zip(graph.ledger.ranks, orphans.values(), strict=True):
        if loss.part == Part.DEVICE:  # exactly what was dropped
            assert rank.launches_without_work == len(lost)
    lost_parts = {missing.lost for missing in missing_parts(graph)} | graph.ledger.lacks
    summary = hg.summarize(graph)
    resting = {finding.name for finding in FINDINGS if finding.needs & lost_parts}
    assert not resting & {claim.says for claim in summary.claims}
    assert summary.claims[0].says == "incomplete"
    assert summary.changes.first is not None
    assert summary.changes.first.text.startswith("Record")
    notes = {f"{missing.sentence} {missing.advice}" for missing in missing_parts(graph)}
    for report in _reports(graph):
        contents = CONTENTS[report.command]
        first = 1 if contents.concludes else 2  # an answer of recorded facts stands before the note
        assert notes & set(report.sentences[:first]), report.command
        if contents.rests_on & lost_parts and not is_judged(graph, contents.rests_on):
            assert set(report.sentences) <= notes, report.command
            assert not any(len(report.tables.get(name, ())) for name in contents.concludes), report.command
            assert all(value != value for name, value in report.figures.items() if name in contents.concludes)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name.replace(" ", "_"))
@pytest.mark.parametrize("folder", SMALL_JOBS, ids=label)
def test_a_recording_that_lost_rows_is_compared_with_no_complete_one(folder: Path, loss: Loss, tmp_path: Path) -> None:
    _lossy_copy(folder, tmp_path, loss)
    jobs = hg.load(folder), hg.load(tmp_path)
    notes = [f"After: {missing.sentence} {missing.advice}" for missing in missing_parts(jobs[1])]
    result = hg.diff(*jobs)
    assert notes
    assert result.sentences()[: len(notes)] == notes
    assert not any(_IS_CHANGE.search(sentence) for sentence in result.sentences())
    names = hg.compare(*jobs)
    limits = [limit("step_time>+1%"), limit("computation>+1%")]
    report = diff_report(result, names, ("before", "after"), limits=limits)
    assert report.sentences[: len(notes)] == notes
    assert report.figures["exceeded"] == []
    assert report.figures["cannot_tell"] == [each.text for each in limits]
    assert not any(len(table) for name, table in report.tables.items() if name != "inputs")
    strict = diff_report(result, names, ("before", "after"), limits=limits, strict=True)
    assert strict.figures["exceeded"] == [each.text for each in limits]
    comment = regressions.comment(result, result.change, [])
    assert comment.startswith("### ⚪ Cannot tell: one of the recordings is incomplete")
    assert "|" not in comment
    compared = names_report(jobs, names, ("before", "after"))
    assert compared.sentences[: len(notes)] == notes
    assert not len(compared.tables["names"])
    assert not hg.assert_no_slower(folder, tmp_path).is_known
    with pytest.raises(AssertionError, match="one of the recordings is incomplete"):
        hg.assert_no_slower(folder, tmp_path, strict=True)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name.replace(" ", "_"))
def test_nothing_is_concluded_of_a_job_on_workers_that_lost_rows(loss: Loss, tmp_path: Path) -> None:
    _lossy_copy(DATA / "demo", tmp_path, loss)
    with ThreadPoolExecutor(2) as workers:
        job = hg.load(tmp_path, engine=workers)
        reports = [job_report(job), job_stragglers_report(job)]
    for report in reports:
        assert "The recording lacks" in report.sentences[0]
    if loss.part == Part.DEVICE:
        assert len(reports[0].sentences) == len(reports[1].sentences) == 1
        assert not any(len(report.tables["stragglers"]) for report in reports)


_IS_CHANGE = re.compile(r"longer|shorter|as long as|replaced|which makes")
"""Words of a sentence that says how a job changed, or why."""


_OF_HOSTS = re.compile(r"fast host|free CPU|host that takes no time|infinite-host|untraced|between operators")
"""Words of predictions about the time of a host."""


@pytest.mark.slow
@pytest.mark.parametrize("folder", SMALL_JOBS, ids=label)
def test_no_verb_predicts_a_host_that_was_not_recorded(folder: Path, tmp_path: Path) -> None:
    """Launch calls and waits of the host are recorded there; what the host did between them is not."""
    calls = Loss("operators", lambda _: lambda event: event.get("cat") in _HOST - _CALLS, Part.HOST)
    _lossy_copy(folder, tmp_path, calls)
    graph = hg.load(tmp_path)
    assert Part.HOST in graph.ledger.lacks
    for scenario in (hg.what_if(graph).infinite_host(), hg.what_if(graph).scale(factor=0.5, kind="untraced")):
        outcome = scenario.run()
        assert outcome.changes_unrecorded_host
        report = what_if_report([hg.what_if(graph).run(), outcome], ["a change of the host"])
        assert len(report.sentences) == len(missing_parts(graph))
        assert not len(report.tables["prediction"])
    kernels = hg.what_if(graph).scale(factor=0.5, kind="computation").run()
    assert not kernels.changes_unrecorded_host
    told = [sentence for report in _reports(graph) for sentence in report.sentences]
    told += [
        f"{row['text']} {row['advice']} {row['change']}" for row in hg.summarize(graph).to_dict()["results"]["findings"]
    ]
    assert [sentence for sentence in told if _OF_HOSTS.search(sentence)] == []
    names = {*hg.opportunities(graph, top=100)["name"], *hg.plan(graph, budget=16).changes["change"]}
    assert [name for name in names if _OF_HOSTS.search(name) or name == CLASSES[0]] == []


@pytest.mark.slow
@pytest.mark.parametrize("path", SMALL, ids=label)
def test_a_complete_recording_lacks_nothing(path: Path) -> None:
    graph = graph_of(path)
    for rank in graph.ledger.ranks:
        if Part.DEVICE in rank.lacks:
            assert not rank.device_work
            assert rank.launches or rank.device_operators


@pytest.mark.slow
@pytest.mark.parametrize("path", REAL, ids=label)
def test_no_gain_is_predicted_where_other_ranks_set_the_pace(path: Path) -> None:
    graph = graph_of(path)
    if Part.PEERS not in graph.ledger.lacks:
        pytest.skip("devices do more than meet ranks that were not read")
    notes = {f"{missing.sentence} {missing.advice}" for missing in missing_parts(graph)}
    half = hg.what_if(graph).scale(factor=0.5, kind="communication").run()
    reports = [plan_report(graph, []), plan_report(graph, [], budget=3), what_if_report([half, half], ["half"])]
    for report in reports:
        assert set(report.sentences) <= notes, report.command
        assert not any(len(table) for table in report.tables.values()), report.command
    summary = hg.summarize(graph)
    assert not any(claim.unit == "us" for claim in summary.claims)


@pytest.mark.slow
@pytest.mark.parametrize("folder", SMALL_JOBS, ids=label)
def test_a_complete_job_is_judged(folder: Path) -> None:
    graph = hg.load(folder)
    assert missing_parts(graph) == []
    assert hg.summarize(graph).claims[0].says != "incomplete"
    for report in _reports(graph):
        assert not any("recording lacks" in sentence for sentence in report.sentences), report.command
