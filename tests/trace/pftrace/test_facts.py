"""Facts of a recording."""

from __future__ import annotations

from pathlib import Path

import htagraph as hg
from htagraph.simulate import Job, simulate
from htagraph.trace.pftrace.facts import survey
from tests.trace.pftrace.made import EVENTS, host, small


def test_a_survey_finds_what_a_file_says(tmp_path: Path) -> None:
    frame = host("train.py(3): step", 0, 5, "python_function")
    facts = survey(small(tmp_path / "a.pftrace", [*EVENTS, frame]), and_tail=False)
    assert (facts.rank, facts.has_stacks, facts.on_cuda, facts.exported, facts.base_ns) == (None, True, True, False, 0)
    assert [lack[0] for lack in facts.lacks] == ["ranks, groups and devices", "directions of copies"]


def test_a_first_packet_may_be_long(tmp_path: Path) -> None:
    text = small(tmp_path / "a.pftrace", [host("n" * 200_000, 0, 1)])
    assert survey(text, and_tail=False).base_ns == 0


def test_exports_of_htagraph_are_no_recordings(tmp_path: Path) -> None:
    simulate(Job(ranks=1, steps=2, layers=1)).write(tmp_path / "job", truth=False)
    hg.to_perfetto(hg.critical_path(hg.load(tmp_path / "job")), tmp_path / "job" / "path.pftrace.gz")
    facts = survey(tmp_path / "job" / "path.pftrace.gz", and_tail=False)
    assert facts.exported
    assert facts.lacks == ()
    assert [trace.format for trace in hg.load(tmp_path / "job").traces.values()] == ["kineto"]
