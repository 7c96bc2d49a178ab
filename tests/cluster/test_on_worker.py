"""What a worker sends back: an answer, or why there is none; never an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import htagraph as hg
from htagraph.cluster import on_worker
from htagraph.cluster.on_worker import ReadOptions, digest_of, looks, release, table_of
from htagraph.cluster.run_each import Failed
from htagraph.queries.rank_digests.digest import RankDigest
from htagraph.trace.discover import RankedFile
from tests.reach import DATA

FILE = RankedFile(DATA / "demo" / "rank-2.json.gz", 2, "header", "")
READING = ReadOptions(release=release())


def test_a_rank_becomes_a_digest_or_a_table() -> None:
    data = digest_of(FILE, READING)
    assert isinstance(data, bytes)
    assert RankDigest.from_bytes(data).rank == 2
    table = table_of(FILE, READING, hg.overlap, (), {})
    assert not isinstance(table, Failed)
    assert table["rank"].tolist() == [2]


def test_headers_are_looked_at_one_after_another() -> None:
    found = looks([FILE.path, Path("absent")], False)  # noqa: FBT003 - as engines pass it on
    assert [getattr(each, "rank", None) for _, each in found] == [2, None]


@pytest.mark.parametrize(
    ("error", "may_mend"),
    [
        (MemoryError(), True),
        (OSError("gone"), True),
        (ValueError("a defect"), False),
        (hg.TraceError("no trace"), False),
    ],
)
def test_an_error_is_why_there_is_no_answer(
    error: Exception, may_mend: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(on_worker, "load", fails)
    answer = digest_of(FILE, READING)
    assert isinstance(answer, Failed)
    assert answer.may_mend == may_mend


def test_a_store_that_did_not_answer_may_answer_another_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise hg.TraceError(*"x") from OSError("timed out")

    monkeypatch.setattr(on_worker, "load", fails)
    assert digest_of(FILE, READING) == Failed("x", may_mend=True)
