"""Whether two readings of one file are equal, field by field; numbers of names and lanes may differ."""

from __future__ import annotations

import numpy as np

from htagraph.trace.columns import Events, Trace
from htagraph.trace.kineto.read import UNPADDED, metadata


def assert_same_columns(one: Trace, other: Trace) -> None:
    """Compare everything but the positions of events in the file, which only the compiled scan keeps."""
    for field in ("facts", "counts", "thread_names", "issues"):
        assert getattr(one, field) == getattr(other, field), field
    assert metadata(one.facts) == metadata(other.facts)
    assert np.array_equal(one.bookmarks[UNPADDED], other.bookmarks[UNPADDED])
    assert_same_tables(one.events, other.events, one, other)
    assert_same_tables(one.instants, other.instants, one, other)
    for column in ("is_start", "time"):
        assert np.array_equal(getattr(one.flows, column), getattr(other.flows, column)), column
    assert _texts(one.flows.lane, one.lanes) == _texts(other.flows.lane, other.lanes)
    assert np.array_equal(one.flows.id, other.flows.id)


def assert_same_tables(one: Events, other: Events, of: Trace, of_other: Trace) -> None:
    for column in ("index", "start", "duration"):
        assert np.array_equal(getattr(one, column), getattr(other, column)), column
    for column, texts in (("name", "names"), ("category", "categories"), ("lane", "lanes")):
        assert _texts(getattr(one, column), getattr(of, texts)) == _texts(
            getattr(other, column), getattr(of_other, texts)
        )
    assert set(one.args) == set(other.args)
    for name, sparse in one.args.items():
        ours, theirs = sparse.dense(len(one)), other.args[name].dense(len(other))
        assert ours.dtype == theirs.dtype
        if ours.dtype == np.int32:  # numbers of texts
            assert _texts(ours, (*of.names, None)) == _texts(theirs, (*of_other.names, None)), name
        else:
            assert np.array_equal(ours, theirs), name


def _texts(numbers: np.ndarray, texts: tuple[object, ...]) -> list[object]:
    return [texts[number] for number in numbers.tolist()]
