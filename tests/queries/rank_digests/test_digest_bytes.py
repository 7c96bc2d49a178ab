from __future__ import annotations

import zlib
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from htagraph import HtagraphError, RankDigest
from htagraph.graph.activities import Activities
from tests.digests import digests_of, digests_of_events
from tests.reach import DATASETS
from tests.strategies import Job, jobs


def assert_equal(one: Any, other: Any) -> None:
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    elif isinstance(one, Activities):
        for each in fields(one):
            assert_equal(getattr(one, each.name), getattr(other, each.name))
    elif isinstance(one, dict):
        assert list(one) == list(other)
        for key, value in one.items():
            for name in ("rows", "values"):
                assert_equal(getattr(value, name), getattr(other[key], name))
            assert value.missing == other[key].missing
    else:
        assert one == other


@given(jobs())
@settings(max_examples=8)
def test_every_digest_comes_back_from_its_bytes(job: Job) -> None:
    for digest in digests_of_events(job):
        again = RankDigest.from_bytes(digest.to_bytes())
        for name in ("linked", "source", "target", "weight", "inside", "owner", "classes"):
            assert_equal(getattr(digest, name), getattr(again, name))
        for name in ("activities", "names", "lanes", "steps", "issues"):
            assert_equal(getattr(digest.part, name), getattr(again.part, name))
        for one, other in zip(digest.sums, again.sums, strict=True):
            assert_equal(one, other)
        assert again.part.rest.header == digest.part.rest.header
        assert (again.path, again.criteria) == (digest.path, digest.criteria)


@given(st.binary(max_size=60))
@example(zlib.compress(b"\x04" + b"\x00" * 7 + b"null"))
@example(
    zlib.compress((60).to_bytes(8, "little") + b'{"version":1,"criteria":{},"content":{},"arrays":[["<i8",[9e9],1]]}')
)
@example(zlib.compress((9).to_bytes(8, "little") + b'{"version'))
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(HtagraphError, match="no digest of a rank"):
        RankDigest.from_bytes(data)


@given(st.data())
@settings(max_examples=30)
def test_damaged_bytes_are_refused_or_give_a_digest(data: st.DataObject) -> None:
    raw = bytearray(zlib.decompress(digests_of(DATASETS[0])[0].to_bytes()))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    try:
        assert RankDigest.from_bytes(zlib.compress(bytes(raw))).rank >= -(1 << 63)
    except HtagraphError as error:
        assert "no digest of a rank" in str(error)


@pytest.mark.parametrize("column", ["source", "target", "owner", "linked"])
def test_numbers_that_refer_to_nothing_are_refused(column: str) -> None:
    digest = digests_of(DATASETS[0])[0]
    other: dict[str, Any] = {column: np.append(getattr(digest, column)[:-1], 1 << 40)}
    changed = replace(digest, **other)
    if column == "linked":
        changed = replace(digest, linked=digest.linked[1:])
    with pytest.raises(HtagraphError, match="do not belong together"):
        RankDigest.from_bytes(changed.to_bytes())


@pytest.mark.parametrize("column", ["name", "lane", "parent"])
def test_activities_that_refer_to_nothing_are_refused(column: str) -> None:
    digest = digests_of(DATASETS[0])[0]
    acts = digest.part.activities
    other: dict[str, Any] = {column: np.full_like(getattr(acts, column), 1 << 20)}
    acts = replace(acts, **other)
    changed = replace(digest, part=replace(digest.part, activities=acts))
    with pytest.raises(HtagraphError, match="do not belong together"):
        RankDigest.from_bytes(changed.to_bytes())


def test_bytes_that_unpack_to_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htagraph.queries.rank_digests.digest_bytes._MAX_BYTES", 1000)
    with pytest.raises(HtagraphError, match="too many"):
        RankDigest.from_bytes(zlib.compress(bytes(2000)))
