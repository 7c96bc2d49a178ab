"""Which number in a file's name is its rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from htagraph.core.errors import RankError
from htagraph.trace.reading.named_rank import checked_rank, number_in_name, pattern_of_name, rank_in_name


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank-3.json", 3),
        ("rank_12.json.gz", 12),
        ("job.Rank 5.pt.trace.json", 5),
        ("rank=4.json", 4),
        ("local_rank-0_rank-9.json", 9),
        ("global_rank9.local_rank1.json", 9),
        ("node-rank0.rank3.json", 3),
        ("local_rank-1.json", -1),
        ("rank-1_rank-2.json", -1),
        ("rank-1_rank-1.json", 1),
        ("frank-3.json", -1),
        ("ranking.json", -1),
        ("pid77.json", -1),
    ],
)
def test_a_name_says_one_rank_of_the_whole_job_or_none(name: str, rank: int) -> None:
    assert rank_in_name(Path(name)) == rank


def test_numbers_that_no_column_of_ranks_holds_are_refused() -> None:
    with pytest.raises(RankError, match="2147483648 is not a rank"):
        rank_in_name(Path(f"rank-{2**31}.json"))
    with pytest.raises(RankError, match="-1 is not a rank"):
        checked_rank(-1, Path("a.json"))


def test_the_last_number_of_a_name_and_what_is_around_it() -> None:
    assert number_in_name(Path("kineto_v2_10.json")) == 10
    assert number_in_name(Path("kineto.json")) == -1
    assert pattern_of_name(Path("kineto_v2_10.json")) == pattern_of_name(Path("kineto_v2_3.json")) == "kineto_v2_#.json"
