"""Whether it is said which ranks were not read."""

from __future__ import annotations

import pytest

import htagraph as hg
from htagraph.findings.ranks_missing import RANKS_MISSING
from htagraph.findings.results import Results
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
