"""``htagraph counters``: summaries, series, and the trace with counters."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from tests.command_line import one_line_of_error
from tests.damage import document, healthy, written
from tests.reach import DATA

DEMO = str(DATA / "demo")


def results(run: Any, *arguments: str) -> dict[str, Any]:
    ran = run("counters", *arguments, "-f", "json")
    assert (ran.code, ran.err) == (0, "")
    found: dict[str, Any] = json.loads(ran.out)["results"]
    return found


def test_summaries_are_given_and_series_if_asked_for(run: Any) -> None:
    assert set(results(run, DEMO)) == {"queues", "bandwidth", "conclusions"}
    found = results(run, DEMO, "--series")
    assert len(found["queue_length"]) == len(hg.queue_length(hg.load(DEMO)))


def test_a_full_queue_is_told(run: Any) -> None:
    assert "No queue held 1,024 kernels and copies" in results(run, DEMO)["conclusions"][0]
    assert "the queue held 100 kernels and copies or more for" in results(run, DEMO, "--full", "100")["conclusions"][0]


def test_the_trace_with_counters_is_written(run: Any, tmp_path: Path) -> None:
    target = tmp_path / "out.json.gz"
    said = results(run, DEMO, "--ranks", "0", "--perfetto", str(target))["conclusions"]
    events = json.loads(gzip.decompress(target.read_bytes()))["traceEvents"]
    graph = hg.load(DEMO, ranks=[0])
    count = len(hg.queue_length(graph)) + len(hg.memory_bandwidth(graph))
    assert sum(event["ph"] == "C" for event in events) == count
    assert f"{count:,} counter values added" in said[-1]


@pytest.mark.parametrize("events", [[], healthy()], ids=["nothing", "one rank"])
@pytest.mark.parametrize("form", ["table", "csv", "md"])
def test_small_jobs_get_an_answer(events: list[Any], form: str, run: Any, tmp_path: Path) -> None:
    ran = run("counters", written(tmp_path / "small.json", document(events)), "-f", form)
    assert (ran.code, ran.err) == (0, "")
    assert "onclusion" in ran.out


def test_wrong_input_is_refused(run: Any) -> None:
    one_line_of_error(run("counters", DEMO, "--ranks", "9"), "rank 9")
    assert run("counters", DEMO, "--full", "0").code == 2
