from __future__ import annotations

import zlib
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import htagraph as hg
from htagraph import HtagraphError, Skeleton
from htagraph.queries.time_classes import Classes
from tests.reach import DATASETS, graph_of, label
from tests.strategies import Job, jobs, load

CLASSES: Classes = {"device": {"kind": "device"}, "first step": {"step_index": 0}}


def assert_equal(first: Skeleton, second: Skeleton) -> None:
    for part in ("", "steps", "members"):
        one, other = (getattr(each, part) if part else each for each in (first, second))
        for each in fields(one):
            value, again = getattr(one, each.name), getattr(other, each.name)
            if isinstance(value, np.ndarray):
                assert value.dtype == again.dtype
                assert np.array_equal(value, again)
    assert (first.origin_ns, first.classes) == (second.origin_ns, second.classes)


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_a_skeleton_of_a_trace_comes_back_from_its_bytes(path: Path) -> None:
    skeleton = hg.contract(graph_of(path))
    data = skeleton.to_bytes()
    assert_equal(skeleton, Skeleton.from_bytes(data))
    assert len(data) < 8 * len(skeleton.source)


@given(jobs(min_size=2))
@settings(max_examples=20)
def test_every_skeleton_comes_back_from_its_bytes(job: Job) -> None:
    graph = load(job)
    try:
        skeleton = hg.contract(graph, CLASSES)
    except hg.SelectionError:
        skeleton = hg.contract(graph)
    assert_equal(skeleton, Skeleton.from_bytes(skeleton.to_bytes()))


DATA = hg.contract(graph_of(DATASETS[0])).to_bytes()


@given(st.one_of(st.binary(max_size=30), st.binary(max_size=30).map(zlib.compress)))
@example(b"")
@example(DATA[:-1])
@example(zlib.compress(zlib.decompress(DATA)[:-3]))
@example(zlib.compress(b"\x02" + zlib.decompress(DATA)[1:]))
@settings(max_examples=50)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(HtagraphError, match="no skeleton"):
        Skeleton.from_bytes(data)


@given(st.integers(0, len(zlib.decompress(DATA)) - 1), st.integers(0, 255))
@settings(max_examples=50)
def test_a_changed_byte_is_refused_or_gives_a_skeleton(at: int, value: int) -> None:
    raw = bytearray(zlib.decompress(DATA))
    raw[at] = value
    try:
        assert isinstance(Skeleton.from_bytes(zlib.compress(bytes(raw))), Skeleton)
    except HtagraphError as error:
        assert "no skeleton" in str(error)
