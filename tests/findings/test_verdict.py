"""Whether the findings of a job agree with each other, are each worded, and are few and short for a reader."""

from __future__ import annotations

import shlex
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import htagraph as hg
from htagraph.findings.change import saved_us, usual_us
from htagraph.findings.device_idle import DeviceIdleClaim
from htagraph.findings.finding import Claim
from htagraph.findings.gain import GainClaim
from htagraph.findings.ranks_missing import RanksMissingClaim
from htagraph.findings.recorded import RecordedClaim
from htagraph.findings.results import Results
from htagraph.findings.verdict import FINDINGS, ROWS, in_brief, rows_of, sentences, stated
from htagraph.output.render import render_summary
from htagraph.queries.path_segments import Batches
from htagraph.whatif.options import criteria
from tests.findings.claims_by_hand import blocking, bound, contradictions, gain
from tests.reach import DATASETS, REAL, REPOSITORY, graph_of
from tests.strategies import load

JOBS = [*DATASETS, *(path for path in REAL if path.stat().st_size < 400_000)]
IDLE = DeviceIdleClaim(
    "device_idle",
    "host_wait",
    9.0,
    "percent",
    rank=0,
    rank_percent=9.0,
    has_several_devices=True,
    host="loader",
    scope="In the steps",
)


def test_each_finding_has_a_file_of_its_name() -> None:
    folder = REPOSITORY / "htagraph" / "findings"
    assert len({finding.name for finding in FINDINGS}) == len(FINDINGS)
    assert [each.name for each in FINDINGS if not (folder / f"{each.name}.py").is_file()] == []


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.name[:30])
def test_claims_of_a_summary_agree_with_its_tables(path: Path) -> None:
    graph = graph_of(path)
    summary = hg.summarize(graph)
    assert contradictions(summary.claims) == []
    assert summary.verdict == sentences(summary.claims)
    assert [claim for _, claims in stated(summary.claims) for claim in claims] == list(summary.claims)
    table = summary.tables["critical_path"]
    shares = table[table["group"] == "category"].set_index("key")["share_percent"]
    for claim in summary.claims:
        if claim.says == "unexplained":
            assert claim.figure == pytest.approx(shares["gap"])
        if isinstance(claim, GainClaim) and claim.target:
            steady = hg.what_if(Results(graph).warm_graph)
            outcome = steady.scale(factor=0.0, **criteria(claim.target)).run()
            assert claim.figure == pytest.approx(saved_us(outcome)[0])
            assert claim.half.value_us <= claim.figure


def test_nothing_recorded_is_said_so() -> None:
    summary = hg.summarize(load([]))
    assert [claim.says for claim in summary.claims] == ["nothing_recorded"]
    assert isinstance(summary.tables["opportunities"], pd.DataFrame)


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (Claim("nothing_recorded", "", 0.0, "count"), "No work was recorded on any rank. Was the profiler active"),
        (
            Claim("unexplained", "path", 12.0, "percent"),
            "Caution: 12 % of the critical path is unexplained, and predictions are less certain by that much.",
        ),
        (
            Claim("unknown_clocks", "0, 2", 2, "count", ranks=(0, 2)),
            "Caution: the clocks of ranks 0 and 2 cannot be compared, so waits are uncertain.",
        ),
        (
            RanksMissingClaim("ranks_missing", "0", 8, "count", read=1, missing=(1, 2)),
            "Caution: only rank 0 of 8 was read, so waiting for the others looks like communication.",
        ),
        (
            RanksMissingClaim("ranks_missing", "", 4, "count", read=3, missing=(3,)),
            "Caution: 3 of 4 ranks were read (not 3), so waiting for others looks like transfer.",
        ),
        (
            RecordedClaim("recorded", "", 90.0, "percent", has_stacks=True),
            "Caution: recording slows host code, most with Python stacks: without a profiler, steps are shorter and",
        ),
    ],
)  # fmt: skip
def test_a_claim_is_worded_and_ends_with_what_to_do(claim: Claim, words: str) -> None:
    assert words in in_brief([claim])[0][0]
    (row,) = rows_of([claim])
    assert sentences([claim]) == [f"{row['text']} {row['advice']}".strip()]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("path", DATASETS, ids=lambda path: path.name)
def test_the_head_says_what_to_do_and_fits_into_fifteen_lines(path: Path, width: int) -> None:
    summary = hg.summarize(graph_of(path))
    head = render_summary(summary, "table", width=width).partition("\n\nTime by rank")[0].splitlines()
    assert len(head) <= 15
    assert head[0].startswith("First: ")


def test_what_is_uncertain_is_one_finding_and_never_left_out() -> None:
    claims = [
        bound("computation", 70.0),
        gain("aten::mm", 100.0, 20.0),
        blocking(30.0, 6.0),
        IDLE,
        replace(IDLE, about="kernel_wait"),
        Claim("unexplained", "path", 12.0, "percent"),
        RanksMissingClaim("ranks_missing", "", 8, "count", read=2, missing=(2, 3, 4, 5, 6, 7)),
    ]
    lines, more = in_brief(claims)
    assert len(lines) == 5
    assert more == 1
    assert lines[-1].startswith("Caution: 12 % of the critical path is unexplained")
    assert "2 of 8 ranks were read" in lines[-1]
    assert lines[0].startswith("Bound by")


@pytest.mark.parametrize("job", ["demo", "gloo_ddp"])
def test_on_real_jobs_they_are_few_and_short_and_the_command_runs(job: str, run: Any) -> None:
    path = str(REPOSITORY / "data" / job)
    summary = hg.summarize(hg.load(path))
    first = summary.changes.first
    assert first is not None
    lines, _ = in_brief(summary.claims, said=first.action)
    assert 3 <= len(lines) <= 5
    assert sum(len(textwrap.wrap(line, 77)) for line in lines) <= 15, lines
    assert first.change is not None
    assert run(*shlex.split(first.change.command([path]))[1:]).code == 0


def test_rows_for_programs_have_the_change_its_gain_and_the_sentence() -> None:
    graph = hg.load(REPOSITORY / "data" / "demo")
    claims = hg.summarize(graph).claims
    rows = rows_of(claims)
    assert [row["kind"] for row in rows] == [claim.says for claim in claims]
    assert all(set(row) == set(ROWS.types) for row in rows)
    bound = rows[0]
    assert (bound["kind"], bound["ranks"], bound["change"]) == ("bound", [2], "")
    saved = usual_us(hg.what_if(graph).scale(factor=0, kind="computation").run())
    assert bound["gain_us"]["value"] == pytest.approx(saved)
    straggler = next(row for row in rows if row["change"] == "--fix-straggler auto")
    assert straggler["gain_us"]["low"] <= straggler["gain_us"]["value"] <= straggler["gain_us"]["high"]
    assert straggler["advice"].startswith("Compare rank 2 with its peers: ")


def test_lists_are_as_long_as_fits_and_the_same_advice_is_said_once() -> None:
    claims = [gain(name, 5000.0, 2.0, "operator", target=f"op={name}") for name in ("a", "b", "c")]
    (whole,), _ = in_brief(claims)
    (short,), _ = in_brief(claims, lambda lines: "operator c" not in lines[0])
    assert ("operator c" in whole, "operator c" in short) == (True, False)
    loader = [
        bound("data_loading", 90.0, batches=Batches(1, 9)),
        gain("data loading", 5000.0, 60.0, "phase", is_loader=True),
    ]
    assert sum("num_workers" in line for line in sentences(loader)) == 1
