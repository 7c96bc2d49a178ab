"""Whether the findings of a job agree with each other, are each worded, and are few and short for a reader."""

from __future__ import annotations

from pathlib import Path

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
from htagraph.findings.verdict import FINDINGS, ROWS, rows_of, sentences, stated
from htagraph.queries.path_segments import Batches
from htagraph.whatif.options import criteria
from tests.findings.claims_by_hand import bound, contradictions, gain
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
            "12 % of the critical path is unexplained, and predictions are less certain by that much.",
        ),
        (
            Claim("unknown_clocks", "0, 2", 2, "count", ranks=(0, 2)),
            "The clocks of ranks 0 and 2 cannot be compared, so waits are uncertain.",
        ),
        (
            RanksMissingClaim("ranks_missing", "0", 8, "count", read=1, missing=(1, 2)),
            "Only rank 0 of 8 was read, so waiting for the others looks like communication.",
        ),
        (
            RanksMissingClaim("ranks_missing", "", 4, "count", read=3, missing=(3,)),
            "3 of 4 ranks were read (not 3), so waiting for others looks like transfer.",
        ),
        (
            RecordedClaim("recorded", "", 90.0, "percent", has_stacks=True),
            "Recording slows host code, most with Python stacks: without a profiler, steps are shorter and",
        ),
    ],
)  # fmt: skip
def test_a_claim_is_worded_and_ends_with_what_to_do(claim: Claim, words: str) -> None:
    assert words in sentences([claim])[0]
    (row,) = rows_of([claim])
    assert sentences([claim]) == [f"{row['text']} {row['advice']}".strip()]


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


def test_the_same_advice_is_said_once() -> None:
    loader = [
        bound("data_loading", 90.0, batches=Batches(1, 9)),
        gain("data loading", 5000.0, 60.0, "phase", is_loader=True),
    ]
    assert sum("num_workers" in line for line in sentences(loader)) == 1
