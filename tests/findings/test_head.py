"""Whether the head of a summary is short, says each number once, and begins with the head of the list of changes."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import htagraph as hg
from htagraph.findings.changes import ranked
from htagraph.findings.finding import Claim
from htagraph.findings.head import MOST_NUMBERS, MOST_WORDS, RecordingExtent, head_of, numbers_in, times_in, words_in
from htagraph.findings.host_pause import HostPauseClaim
from htagraph.findings.next_change import NextChange
from htagraph.findings.phrases import Advice
from htagraph.findings.preconditions import HAS_GRAPHS
from htagraph.findings.ranks_missing import RanksMissingClaim
from tests.findings.claims_by_hand import blocking, bound, gain
from tests.reach import DATASETS, LARGE_BYTES, REAL, REPOSITORY, SHARED, graph_of, label

RECORDINGS = sorted((SHARED.parent / "cases" / "recordings").glob("*.json.gz"))
JOBS = [*DATASETS, *(path for path in [*REAL, *RECORDINGS] if path.stat().st_size < LARGE_BYTES)]


def name_of(path: Path) -> str:
    return path.name if path in RECORDINGS else label(path)


@pytest.mark.parametrize("path", JOBS, ids=name_of)
def test_the_head_has_ninety_words_and_ten_numbers_and_each_time_once(path: Path) -> None:
    summary = hg.summarize(graph_of(path))
    text = str(summary)
    times = times_in(text)
    assert words_in(text) <= MOST_WORDS, text
    assert len(numbers_in(text)) <= MOST_NUMBERS, text
    assert len(set(times)) == len(times), text
    assert summary.to_dict()["results"]["head"] == text.splitlines()


@pytest.mark.parametrize("path", JOBS, ids=name_of)
def test_the_head_begins_with_the_first_change(path: Path) -> None:
    summary = hg.summarize(graph_of(path))
    first = summary.changes.first
    if first is not None and summary.head.first:
        said = summary.to_dict()["results"]["first"]["text"]
        assert summary.head.first == said
        assert summary.head.lines[0].label == ("" if first.is_hypothetical else "First")
    assert not unfollowable(summary)


def extent(text: str, aside: str = "") -> RecordingExtent:
    """Return the extent of a recording, given the words without a full stop, and those in brackets."""
    return RecordingExtent(f"{text}.", f"{text} ({aside})." if aside else f"{text}.")


def unfollowable(summary: hg.Summary) -> list[str]:
    """Return the advice of a list of changes that nobody can follow on what was recorded."""
    graph = summary.graph
    assert graph is not None
    wrong = ["Ampere"] * any("Ampere" in change.action for change in summary.changes)
    wrong += ["half the time of code"] * ("half the time" in f"{summary.head.first} {summary.head.then}".lower())
    without_graphs = HAS_GRAPHS.holds(graph, np.zeros(0, np.int64)) is False
    wrong += ["CUDA graphs"] * (without_graphs and any("CUDA graphs" in change.action for change in summary.changes))
    return wrong


@pytest.mark.parametrize("job", ["demo", "gloo_ddp"])
def test_on_recorded_jobs_the_head_has_a_reason_and_its_command_runs(job: str, run: Any) -> None:
    path = str(REPOSITORY / "data" / job)
    summary = hg.summarize(hg.load(path))
    first = summary.changes.first
    assert summary.head.why
    assert first is not None
    assert first.change is not None
    assert run(*shlex.split(first.change.command([path]))[1:]).code == 0


def test_the_reason_of_the_first_change_stands_before_the_bound() -> None:
    claims = [bound("computation", 70.0), blocking(300.0, 30.0)]
    head = head_of(claims, ranked(claims).rows, extent("1 rank, 3 steps of 2.00 ms"))
    assert [line.label for line in head.lines] == ["First", "", "Why", "Why"]
    assert head.why[0].startswith("The host waits for its device in ")
    assert head.why[1].startswith("Bound by computation: 70 %")


def test_what_is_not_known_stands_last_and_the_unexplained_gives_way() -> None:
    claims = [
        Claim("unexplained", "path", 12.0, "percent"),
        RanksMissingClaim("ranks_missing", "", 8, "count", read=2, missing=(2, 3, 4, 5, 6, 7)),
    ]
    head = head_of(claims, (), extent("2 of 8 ranks, 3.39 s"))
    assert head.lines[-1].text == "Not known: how much of communication is waiting: only 2 of 8 ranks were read."


def test_a_reason_that_says_a_time_again_is_left_out() -> None:
    claims = [gain("aten::mm", 1000.0, 50.0, "operator", target="op=aten::mm"), blocking(300.0, 30.0)]
    recording = extent("1 rank, 1 step of 2.00 ms", "1.00 ms behind earlier work")
    head = head_of(claims, ranked(claims).rows, recording)
    assert "(1.00 ms" in head.recording
    again = head_of(claims, ranked(claims).rows, extent("1 rank, 1 step of 2.00 ms", f"{times_in(head.first)[0]} more"))
    assert again.recording == "1 rank, 1 step of 2.00 ms."


def test_the_next_change_is_said_by_the_first_sentence_of_its_advice() -> None:
    claims = [blocking(300.0, 30.0), gain("aten::mm", 100.0, 10.0, "operator", target="op=aten::mm")]
    first, second = ranked(claims).rows
    advised = replace(second, action=Advice("Begin with v. 2 of gemm.", "See what else takes time."))
    following = NextChange(advised, "This saves 80.0 µs more.")
    head = head_of(claims, (first, advised), extent("1 rank"), following)
    assert head.then == "Begin with v. 2 of gemm. This saves 80.0 µs more."


def test_the_code_of_the_first_fact_is_not_told_twice() -> None:
    code = gain("aten::mm", 1000.0, 50.0, "operator", target="op=aten::mm")
    pause = HostPauseClaim(
        "host_pause",
        "aten::mm",
        44.0,
        "percent",
        inside="f",
        before="",
        after="",
        count=3,
        total_us=9.0,
        longest_us=3.0,
    )
    fact, *_ = ranked([code]).rows
    placed = replace(fact, subject="operator aten::mm", path_percent=44.0)
    claims = [bound("host", 70.0), pause]
    head = head_of(claims, (placed,), extent("1 rank"))
    assert head.first.endswith("44 % of the critical path is in operator aten::mm.")
    assert not any("aten::mm" in reason for reason in head.why)
    of_others = head_of(claims, (), extent("1 rank"))
    assert any("aten::mm" in reason for reason in of_others.why)
