"""What is dropped while a file is read changes nothing: a thinned part equals one cut out of the whole file."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from htagraph.core.naming import DEFAULT_NAMING
from htagraph.graph.construction.activities import RankPart, prepare
from htagraph.graph.load import ReadTrace, Wanted, part_of, survey, thin_part_of
from htagraph.trace import kept as sieves
from htagraph.trace.columns import SparseColumn, Trace
from htagraph.trace.kineto import decode, source
from htagraph.trace.readers import read_trace
from tests.reach import LARGE_BYTES, REAL, label
from tests.strategies import BASE_NS, Json, annotation, complete, kernel, op, step, write

Texts = Sequence[str]


def both(read: ReadTrace, wanted: Wanted) -> tuple[RankPart, RankPart]:
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
        (source, "PIECE_BYTES", piece), (decode, "BLOCK_BYTES", piece), (sieves, "_ROWS", rows),
    ):  # fmt: skip
        stack.enter_context(patch.object(module, name, value))
    return stack


_time, _length, _id = st.integers(0, 30), st.sampled_from([0, 1, 2, 5, 12, 30]), st.integers(0, 4)
_where = (_time, _length, st.sampled_from([1, 1, 1, 2]))


def _op(at: int, took: int, tid: int, external: int) -> Json:
    return op("aten::mm", at, took, tid, **{"External id": external})


def _frame(at: int, took: int, tid: int) -> Json:
    return complete("python_function", "f.py(1): g", at, took, tid)


def _communication(at: int, took: int, tid: int) -> Json:
    return annotation("gloo:all_reduce", at, took, tid)


def _step(at: int, took: int, tid: int, number: int) -> Json:
    return {**step(number, at, took), "tid": tid}


def _launch(at: int, took: int, tid: int, correlation: int) -> Json:
    return complete("cuda_runtime", "cudaLaunchKernel", at, took, tid, correlation=correlation)


def _kernel(at: int, took: int, correlation: int, external: int) -> Json:
    return {**kernel("k", at, took), "args": {"correlation": correlation, "External id": external, "stream": 7}}


_event = st.one_of(
    st.builds(_op, *_where, _id),
    st.builds(_frame, *_where),
    st.builds(_communication, *_where),
    st.builds(_step, *_where, st.integers(1, 3)),
    st.builds(_launch, *_where, _id),
    st.builds(_kernel, _time, _length, _id, _id),
)
_events = st.lists(_event, min_size=1, max_size=14)
_window = st.tuples(_time, _time).map(lambda ends: (BASE_NS + 1000 * min(ends), BASE_NS + 1000 * (max(ends) + 1)))
_steps = st.lists(st.integers(1, 3), min_size=1, max_size=2).map(tuple)
_wanted = st.builds(Wanted, steps=st.none() | _steps, span=st.none() | _window).filter(lambda each: each != Wanted())


@given(
    events=_events, wanted=_wanted, piece=st.sampled_from([200, 1000]), rows=st.integers(1, 5), compiled=st.booleans()
)
@settings(max_examples=40)
def test_a_thinned_part_is_the_part_of_the_whole_file(
    events: list[Json], wanted: Wanted, piece: int, rows: int, compiled: bool,  # noqa: FBT001
) -> None:  # fmt: skip
    with tempfile.TemporaryDirectory() as folder, in_small_pieces(piece, rows):
        read = partial(read_trace, write(events, Path(folder) / "a.json"), lambda *_: 0, compiled=compiled)
        assert_same_parts(*both(read, wanted))


@pytest.mark.parametrize("path", [path for path in REAL if path.stat().st_size < LARGE_BYTES], ids=label)
def test_steps_of_real_traces_are_those_of_the_whole_file(path: Path) -> None:
    read = partial(read_trace, path, lambda *_: 0)
    steps = prepare(read(), DEFAULT_NAMING).steps
    if steps:
        with in_small_pieces(1 << 16, 500):
            assert_same_parts(*both(read, Wanted(steps=steps[-1:])))


def test_a_window_keeps_what_begins_in_it_and_the_work_launched_by_it(tmp_path: Path) -> None:
    """By its definition, event by event."""
    at = {"before": 9, "first": 10, "last": 19, "behind": 20}
    events = [op(name, start, 50) for name, start in at.items()]
    events += [
        _launch(12, 1, 1, 1),
        _kernel(90, 5, 1, 0),
        _launch(8, 1, 1, 2),
        _kernel(15, 2, 2, 0),
        _kernel(17, 2, 9, 0),
    ]
    read = partial(read_trace, write(events, tmp_path / "a.json"), lambda *_: 0)
    for part in both(read, Wanted(span=(BASE_NS + 10_000, BASE_NS + 20_000))):
        assert part.activities.event.tolist() == [1, 2, 4, 5, 8]


def test_a_step_that_began_before_a_window_is_not_there(tmp_path: Path) -> None:
    events = [step(1, 0, 20), op("a", 12, 1), step(2, 20, 20), op("b", 22, 1)]
    read = partial(read_trace, write(events, tmp_path / "a.json"), lambda *_: 0)
    for part in both(read, Wanted(span=(BASE_NS + 10_000, BASE_NS + 90_000))):
        assert part.activities.step[part.activities.event >= 0].tolist() == [-1, 2, 2]


def test_a_call_that_outlasts_its_step_is_read_with_all_it_encloses(tmp_path: Path) -> None:
    events = [step(1, 0, 10), op("long", 5, 90), op("inside", 80, 5), step(2, 200, 10)]
    path, readings = write(events, tmp_path / "a.json"), []

    def read(**choice: Any) -> Trace:
        readings.append(choice)
        return read_trace(path, lambda *_: 0, **choice)

    whole, thinned = both(read, Wanted(steps=(1,)))
    assert_same_parts(whole, thinned)
    assert thinned.activities.event.tolist()[:3] == [0, 1, 2]
    assert len(readings) == 4, "whole; a survey; the step with its margin; with the end of the call"


def test_communication_beside_a_step_is_read_with_all_that_runs_in_it(tmp_path: Path) -> None:
    """What an operator runs after it asked for communication shows that it went on, and so which step a call is in."""
    events = [step(1, 0, 10), op("long", 5, 55), _communication(40, 50, 1), _launch(45, 1, 1, 1), op("later", 80, 5)]
    read = partial(read_trace, write(events, tmp_path / "a.json"), lambda *_: 0)
    whole, thinned = both(read, Wanted(steps=(1,)))
    assert_same_parts(whole, thinned)
    assert 3 in thinned.activities.event
