"""Whether it is said which ranks were not read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import htagraph as hg
from htagraph.findings.ranks_missing import RANKS_MISSING
from htagraph.findings.results import Results
from htagraph.findings.unknown_clocks import UNKNOWN_CLOCKS
from htagraph.findings.unmatched import UNMATCHED
from tests.reach import DATA


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        ([1], ["Only rank 1 of 4 was read, so waiting for the others looks like communication."]),
        ([0, 1, 3], ["3 of 4 ranks were read (not 2), so waiting for others looks like transfer"]),
        ([0, 1, 2, 3], []),
    ],
)
def test_ranks_that_were_not_read_are_named(ranks: list[int], words: list[str]) -> None:
    claims = RANKS_MISSING.when(Results(hg.load(DATA / "demo", ranks=ranks)))
    assert [RANKS_MISSING.whole(claim).startswith(each) for claim, each in zip(claims, words, strict=True)] == (
        [True] * len(words)
    )


def test_a_rank_without_events_is_one_that_was_not_read(tmp_path: Path) -> None:
    """Nothing is unmatched: the collectives of the other ranks are known, and the clock of the rank says nothing."""
    files = {}
    for rank in range(4):
        path = DATA / "demo" / f"rank-{rank}.json.gz"
        whole = json.loads(gzip.decompress(path.read_bytes()))
        if rank == 2:
            whole["traceEvents"] = [event for event in whole["traceEvents"] if event["ph"] == "M"]
        files[rank] = tmp_path / f"rank-{rank}.json"
        files[rank].write_text(json.dumps(whole), encoding="utf-8")
    results = Results(hg.load(files))
    (claim,) = RANKS_MISSING.when(results)
    assert RANKS_MISSING.whole(claim).startswith("3 of 4 ranks were read (not 2)")
    assert not UNKNOWN_CLOCKS.when(results)
    assert not UNMATCHED.when(results)
