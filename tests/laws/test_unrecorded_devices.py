"""No verb says that nothing ran, or gives a rate, where a device was used and its work was not recorded."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.findings.verdict import sentences
from htagraph.graph.measures.ledger import Part, keeps_counters
from htagraph.output.report import Report
from htagraph.output.reports.device_time import idle_report, kernels_report, roofline_report
from htagraph.output.reports.queues import counters_report, launches_report
from htagraph.output.reports.ranks import collectives_report, plan_report
from htagraph.queries.device_record import DeviceRecord, collective_calls, device_record, unrecorded_ranks
from tests.reach import DATA, REAL, graph_of, label
from tests.strategies import Json, load, op, step

_DEVICE = frozenset({"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", "cuda_sync"})
_CALLS = frozenset({"cuda_runtime", "cuda_driver", "ac2g"})
_NOTHING_RAN = re.compile(r"Nothing ran|used no device|nothing shows that the job used")
_PEAKS = "--peak-tflops"
_COUNT = re.compile(r"^([\d,]+) calls? launched ([\d,]+) ")
_FAST = [path for path in REAL if path.stat().st_size < 2_000_000]
"""Recordings of which every verb answers within seconds."""


def _reports(graph: hg.DependencyGraph) -> dict[str, Report]:
    verbs: Sequence[Callable[..., Report]] = (
        counters_report, idle_report, kernels_report, launches_report, roofline_report, collectives_report,
    )  # fmt: skip
    return {report.command: report for report in (verb(graph, ["traces"]) for verb in verbs)}


def check(graph: hg.DependencyGraph) -> None:
    """Assert that no verb concludes more than the recording of devices allows, and that verbs agree on launches."""
    record = device_record(graph)
    reports = _reports(graph)
    told = [sentence for report in reports.values() for sentence in report.sentences]
    if record.is_lost:
        assert not [sentence for sentence in told if _NOTHING_RAN.search(sentence)]
    if record is not DeviceRecord.RECORDED:
        assert not [sentence for sentence in told if _PEAKS in sentence]
    rates = hg.roofline(graph)
    enqueued = rates[rates["rank"].isin(unrecorded_ranks(graph))]
    assert enqueued[["time_us", "tflop_s", "gb_s"]].isna().all(axis=None)
    _check_launches(reports["launches"], reports["counters"])
    if collective_calls(graph):
        assert "No collective was recorded." not in reports["collectives"].sentences


def _check_launches(launches: Report, counters: Report) -> None:
    """Assert that the first sentence of launches has the counts of its table, and that counters does not deny waits."""
    counted = [match for sentence in launches.sentences if (match := _COUNT.search(sentence))]
    table = launches.tables["calls"]
    for match in counted:
        assert int(match[1].replace(",", "")) == table["calls"].sum()
        assert int(match[2].replace(",", "")) == table["works"].sum()
    if any("waited for earlier work" in sentence for sentence in launches.sentences):
        assert not any("no launch blocked" in sentence for sentence in counters.sentences)


@pytest.mark.slow
@pytest.mark.parametrize("path", _FAST, ids=label)
def test_no_verb_takes_what_was_not_recorded_for_nothing(path: Path) -> None:
    check(graph_of(path))


@pytest.mark.slow
@pytest.mark.parametrize("lost", [_DEVICE, _DEVICE | _CALLS], ids=["devices", "devices_and_calls"])
@pytest.mark.parametrize("folder", [DATA / "demo", DATA / "gpu_demo" / "train"], ids=label)
def test_the_same_holds_where_rows_of_devices_are_lost(folder: Path, lost: frozenset[str], tmp_path: Path) -> None:
    for path in sorted(folder.glob("*.json.gz")):
        document = json.loads(gzip.decompress(path.read_bytes()))
        document["traceEvents"] = [event for event in document["traceEvents"] if event.get("cat") not in lost]
        (tmp_path / path.name).write_bytes(gzip.compress(json.dumps(document).encode()))
    graph = hg.load(tmp_path)
    assert device_record(graph).is_lost
    check(graph)


@pytest.mark.slow
@pytest.mark.parametrize("path", _FAST, ids=label)
def test_times_without_counters_come_before_all_else(path: Path) -> None:
    graph = graph_of(path)
    if not keeps_counters(graph):
        pytest.skip("no profiler of counters")
    first = hg.summarize(graph).changes.first
    assert first is not None
    assert first.text == "Record times without counters."
    assert plan_report(graph, ["traces"]).sentences


def _backward(*, is_recorded: bool) -> list[Json]:
    """Return a step whose backward pass runs on a thread of autograd, which may be recorded or not."""
    events = [step(0, 0, 20_000)]
    events += [op("aten::mm", 100 * number, 90) for number in range(1, 20)]
    events.append({**op("## backward ##", 3_000, 15_000), "cat": "user_annotation"})
    if is_recorded:
        events.append(op("MmBackward0", 3_100, 14_000, tid=99))
    return events


@pytest.mark.parametrize("is_recorded", [True, False], ids=["recorded", "lost"])
def test_a_thread_that_waits_for_gradients_is_no_bound(*, is_recorded: bool) -> None:
    graph = load(_backward(is_recorded=is_recorded))
    assert (Part.THREADS in graph.ledger.lacks) is not is_recorded
    summary = hg.summarize(graph)
    is_bound = any(claim.says == "bound" for claim in summary.claims)
    assert not is_bound or is_recorded
    if not is_recorded:
        assert "threads of the host" in " ".join(sentences(summary.claims))
        assert summary.changes.first is not None
        assert summary.changes.first.text.startswith("Record all threads")


def test_operators_that_need_a_device_are_work_of_a_device() -> None:
    events = [op("aten::mm", 100 * number, 90) for number in range(20)]
    assert device_record(load(events)) is DeviceRecord.UNUSED
    graph = load([*events, op("aten::cudnn_convolution", 3_000, 50)])
    assert device_record(graph) is DeviceRecord.UNRECORDED
    assert graph.ledger.lacks == {Part.DEVICE}
    check(graph)
