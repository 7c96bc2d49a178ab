"""What is dropped while a file is read changes nothing: a part that was thinned equals one cut out of the whole file."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from htagraph.core.naming import DEFAULT_NAMING
from htagraph.graph.construction import parts
from htagraph.graph.construction.activities import RankPart
from htagraph.graph.construction.parts import Read, Wanted, part_of, survey, thin_part_of
from htagraph.trace.columns import SparseColumn
from htagraph.trace.reading import source, split
from htagraph.trace.reading.collect import sieves
from htagraph.trace.reading.read import read_trace
from tests.reach import REAL, label
from tests.strategies import BASE_NS, Json, annotation, complete, kernel, op, step, write

Texts = Sequence[str]


def both(read: Read, wanted: Wanted) -> tuple[RankPart, RankPart]:
    """Return the part cut out of the whole file, and the one thinned while reading."""
    return part_of(read, wanted, DEFAULT_NAMING), thin_part_of(read, wanted, DEFAULT_NAMING, survey(read, wanted))


def assert_same_parts(one: RankPart, other: RankPart) -> None:
    """Compare everything but the numbers of names: names that nothing kept has need no number."""
    for field in dataclasses.fields(one.activities):
        ours, theirs = getattr(one.activities, field.name), getattr(other.activities, field.name)
        if field.name == "args":
            assert set(ours) == set(theirs)
            for name in ours:
                assert _values(ours[name], one.names) == _values(theirs[name], other.names), name
        elif field.name in ("name", "category"):
            assert [one.names[number] for number in ours] == [other.names[number] for number in theirs]
        else:
            assert np.array_equal(ours, theirs), field.name
    assert np.array_equal(one.boundaries, other.boundaries)
    assert np.array_equal(one.at_work, other.at_work)
    assert (one.lanes, one.steps, one.rest.counts) == (other.lanes, other.steps, other.rest.counts)
    assert set(one.issues) == set(other.issues)
    for table in ("events", "instants"):
        assert np.array_equal(getattr(one.rest, table).index, getattr(other.rest, table).index)


def _values(column: SparseColumn, names: Texts) -> list[tuple[int, object]]:
    texts = column.values.dtype == np.int32
    values = [names[number] for number in column.values] if texts else column.values.tolist()
    return sorted(zip(column.rows.tolist(), values, strict=True))


def in_small_pieces(piece: int, rows: int) -> ExitStack:
    """Return a context in which blocks have about `piece` bytes, and rows are dropped after every `rows`."""
    stack = ExitStack()
    for module, name, value in (
        (source, "PIECE_BYTES", piece), (split, "BLOCK_BYTES", piece), (sieves, "_ROWS", rows),
    ):  # fmt: skip
        stack.enter_context(patch.object(module, name, value))
    return stack


_time, _length, _id = st.integers(0, 40), st.integers(0, 20), st.integers(0, 4)
_thread = st.sampled_from([1, 2])
_event = st.one_of(
    st.builds(lambda at, took, tid, ext: op("aten::mm", at, took, tid, **{"External id": ext}), _time, _length, _thread, _id),
    st.builds(lambda at, took, tid: complete("python_function", "f.py(1): g", at, took, tid), _time, _length, _thread),
    st.builds(lambda at, took, tid: annotation("gloo:all_reduce", at, took, tid), _time, _length, _thread),
    st.builds(lambda number, at, took, tid: {**step(number, at, took), "tid": tid}, st.integers(1, 3), _time, _length, _thread),
    st.builds(
        lambda at, took, tid, of: complete("cuda_runtime", "cudaLaunchKernel", at, took, tid, correlation=of),
        _time, _length, _thread, _id,
    ),
    st.builds(
        lambda at, took, of, ext: {**kernel("k", at, took, of), "args": {"correlation": of, "External id": ext, "stream": 7}},
        _time, _length, _id, _id,
    ),
)  # fmt: skip
_events = st.lists(_event, min_size=1, max_size=14)
_window = st.tuples(_time, _time).map(lambda ends: (BASE_NS + 1000 * min(ends), BASE_NS + 1000 * (max(ends) + 1)))
_wanted = st.builds(
    Wanted,
    steps=st.none() | st.lists(st.integers(1, 3), min_size=1, max_size=2).map(tuple),
    span=st.none() | _window,
).filter(lambda wanted: wanted != Wanted())  # fmt: skip


@given(events=_events, wanted=_wanted, piece=st.sampled_from([200, 1000]), rows=st.integers(1, 5), compiled=st.booleans())
@settings(max_examples=60)
def test_a_thinned_part_is_the_part_of_the_whole_file(
    events: list[Json], wanted: Wanted, piece: int, rows: int, compiled: bool,  # noqa: FBT001
) -> None:  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, in_small_pieces(piece, rows):
        read = partial(read_trace, write(events, Path(folder) / "a.json"), lambda _: 0, compiled=compiled)
        assert_same_parts(*both(read, wanted))
