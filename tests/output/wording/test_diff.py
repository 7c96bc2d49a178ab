"""Whether limits and the next command carry their figures and files."""

from __future__ import annotations

import htagraph as hg
from htagraph.output.wording.diff import next_command, too_long
from tests.reach import DATA, graph_of
from tests.strategies import load, op


def test_a_limit_is_told_with_both_times() -> None:
    text = too_long("step_time", 1000.0, 2000.0, "step_time>+5%")
    assert text == "Too long: step_time is 2.00 ms instead of 1.00 ms, which exceeds step_time>+5%."


def test_the_next_command_reads_the_job_after() -> None:
    graph = graph_of(DATA / "demo")
    (line,) = next_command(hg.diff(graph, graph), ["a", "b"])
    assert line.endswith(": htagraph critical-path b --steps 5-7")
    assert next_command(hg.diff(load([]), load([])), ["a", "b"]) == []
    longer = hg.diff(load([op("a", 0, 10)]), load([op("a", 0, 900)]))
    assert next_command(longer, ["a", "b"])[0].startswith("To see what the slower job waits for")
