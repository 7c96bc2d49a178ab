"""Facts of recordings: in one vocabulary, whatever the format."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import htagraph as hg
from htagraph.core.errors import TraceError
from htagraph.trace.columns import (
    TEXTS,
    Device,
    Events,
    Facts,
    Flows,
    Group,
    GrowingTable,
    Interner,
    LaneInterner,
    SparseColumn,
    as_array,
    extend,
    label,
)
from htagraph.trace.kineto.events import call_columns, columns
from tests.damage import document, healthy, loaded

rows = st.integers(0, 8).flatmap(
    lambda count: st.tuples(
        st.just(count),
        st.lists(st.booleans(), min_size=count, max_size=count),
        st.dictionaries(st.integers(0, max(count - 1, 0)), st.integers(0, 9), max_size=count),
    )
)


def table(count: int, argument: dict[int, int]) -> Events:
    """Return a table whose columns hold the number of their row, with an argument on some rows."""
    number = np.arange(count, dtype=np.int32)
    sparse = SparseColumn(np.array([*argument], np.int32), np.array([*argument.values()], np.int64), -7)
    return Events(
        index=number, name=number, category=number, lane=number, start=number.astype(np.int64),
        duration=2 * number.astype(np.int64), args={"bytes": sparse},
    )  # fmt: skip


@given(rows)
def test_a_taken_table_has_the_rows_of_a_dense_one(made: tuple[int, list[bool], dict[int, int]]) -> None:
    count, keep, argument = made
    argument = argument if count else {}
    whole = table(count, argument)
    part = whole.take(np.array(keep, np.bool_))
    kept = [row for row in range(count) if keep[row]]
    assert len(part) == len(kept)
    for name in ("index", "name", "category", "lane", "start", "duration", "end"):
        assert getattr(part, name).tolist() == getattr(whole, name)[kept].tolist()
    assert part.arg("bytes").tolist() == [argument.get(row, -7) for row in kept]


def test_an_event_ends_its_duration_after_its_start_and_lacks_what_no_row_has() -> None:
    assert table(3, {}).end.tolist() == [0, 3, 6]
    assert table(3, {}).arg("stream").tolist() == [-1, -1, -1]


def test_shifted_flows_differ_in_their_times_only() -> None:
    flows = Flows(np.array([4, 5]), np.array([True, False]), np.array([0, 1], np.int32), np.array([10, 20]))
    moved = flows.shifted(100)
    assert moved.time.tolist() == [110, 120]
    assert (moved.id is flows.id, moved.is_start is flows.is_start, moved.lane is flows.lane) == (True, True, True)


def test_events_are_chosen_by_category_and_read_only(tmp_path: Path) -> None:
    trace = loaded(tmp_path, document(healthy(2)))
    names = np.array(trace.categories)[trace.events.category]
    for wanted in (("kernel",), ("kernel", "cpu_op"), ("absent",), ()):
        assert trace.in_categories(*wanted).tolist() == [name in wanted for name in names]
    with pytest.raises(ValueError, match="read-only"):
        trace.events.start[0] = 1


def test_a_file_that_was_changed_or_deleted_is_noticed(tmp_path: Path) -> None:
    trace = loaded(tmp_path, document(healthy(2)))
    assert trace.unchanged_path() == trace.path
    Path(trace.path).write_text("{}", encoding="utf-8")
    with pytest.raises(TraceError, match="was changed since it was loaded; load it again"):
        trace.unchanged_path()
    Path(trace.path).unlink()
    with pytest.raises(TraceError, match="cannot be read again"):
        trace.unchanged_path()


ids = st.integers(-3, 3) | st.integers(-3, 3).map(str) | st.sampled_from(["", "Spans", "-", "1.5", "١"])
chunks = st.lists(st.lists(st.integers(-(2**40), 2**40), max_size=4), max_size=4)


@given(st.lists(st.text(max_size=1)))
def test_keys_are_numbered_in_the_order_of_their_first_occurrence(keys: list[str]) -> None:
    interner = Interner[str]()
    distinct = list(dict.fromkeys(keys))
    assert [interner[key] for key in keys] == [distinct.index(key) for key in keys]
    assert list(interner) == distinct


@given(st.lists(st.tuples(ids, ids)))
def test_lanes_are_equal_if_their_labels_are(pairs: list[tuple[int | str, int | str]]) -> None:
    interner = LaneInterner()
    numbers = [interner[pair] for pair in pairs]
    labels = [(label(pid), label(tid)) for pid, tid in pairs]
    assert [list(interner.lanes)[number] for number in numbers] == labels
    assert list(interner.lanes) == list(dict.fromkeys(labels))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (7, 7), ("7", 7), ("-7", -7), ("007", 7), (7.5, "7.5"), ("", ""), ("-", "-"), ("Spans", "Spans"),
        ("18446744073709551615", 2**64 - 1), ("1" * 20, int("1" * 20)), ("1" * 21, "1" * 21), ("²", "²"),
    ],
)  # fmt: skip
def test_an_id_is_a_number_if_it_is_written_as_one(written: object, read: int | str) -> None:
    assert label(written) == read


@given(chunks)
def test_a_column_is_the_concatenation_of_its_chunks(values: list[list[int]]) -> None:
    table = GrowingTable()
    for chunk in values:
        extend(table.columns["start"], np.array(chunk, np.int64))
    assert as_array(table.columns["start"]).tolist() == [value for chunk in values for value in chunk]


readings = st.lists(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=3), max_size=4)


@given(made=readings, unpadded=st.booleans())
def test_a_column_of_times_has_both_readings(made: list[list[tuple[int, int]]], *, unpadded: bool) -> None:
    table = GrowingTable()
    for chunk in made:
        padded = np.array([one for one, _ in chunk], np.int64)
        table.add_times("start", padded, np.array([other for _, other in chunk], np.int64))
        table.add_times("duration", padded, padded)
    assert table.column("duration", unpadded=unpadded).tolist() == [one for chunk in made for one, _ in chunk]
    assert table.column("start", unpadded=unpadded).tolist() == [pair[unpadded] for chunk in made for pair in chunk]


def test_arguments_keep_the_rows_that_have_them() -> None:
    table = GrowingTable()
    bulk = next(each for each in columns() if each.column.name == "comms_id")
    table.add_args(bulk.column, np.array([0, 2], np.int32), np.array([2**64 - 1, 5], np.uint64))
    table.add_args(bulk.column, np.array([4], np.int32), np.array([6], np.uint64))
    at, values = map(as_array, table.args["comms_id"])
    assert (at.tolist(), values.tolist()) == ([0, 2, 4], [2**64 - 1, 5, 6])


def test_an_empty_table_has_empty_columns_of_their_types() -> None:
    table = GrowingTable()
    assert table.count == 0
    assert {name: as_array(grown).dtype for name, grown in table.columns.items()} == {
        "index": np.int32, "name": np.int32, "category": np.int32, "lane": np.int32, "start": np.int64,
        "duration": np.int64,
    }  # fmt: skip


@given(made=readings, chosen=st.lists(st.booleans(), min_size=12, max_size=12), unpadded=st.booleans())
def test_rows_that_are_kept_keep_their_times_and_arguments(
    made: list[list[tuple[int, int]]], chosen: list[bool], *, unpadded: bool
) -> None:
    table = GrowingTable()
    bulk = next(each for each in columns() if each.column.name == "stream")
    for chunk in made:
        first = table.count
        padded, other = (np.array([pair[place] for pair in chunk], np.int64) for place in (0, 1))
        for column in ("index", "name", "category", "lane"):
            extend(table.columns[column], np.arange(first, first + len(chunk), dtype=np.int32))
        table.add_times("start", padded, other)
        table.add_times("duration", padded, padded)
        table.add_args(bulk.column, np.arange(first, first + len(chunk), 2, dtype=np.int32), padded[::2].copy())
    pairs = [(row, each, row % 2) for chunk in made for row, each in enumerate(chunk)]
    keep = np.array(chosen[: table.count], np.bool_)
    table.keep(keep)
    left = [pair for pair, stays in zip(pairs, keep, strict=True) if stays]
    assert table.column("start", unpadded=unpadded).tolist() == [each[unpadded] for _, each, _ in left]
    assert as_array(table.columns["index"]).tolist() == np.flatnonzero(keep).tolist()
    rows, values = (as_array(each).tolist() for each in table.args["stream"]) if "stream" in table.args else ([], [])
    expected = {place: each[0] for place, (_, each, odd) in enumerate(left) if not odd}
    assert dict(zip(rows, values, strict=True)) == expected


def test_a_bare_list_of_events_states_no_facts(tmp_path: Path) -> None:
    assert loaded(tmp_path, json.dumps(healthy())).facts == Facts()


def test_facts_are_those_of_the_file() -> None:
    facts = hg.load("data/demo").traces[2].facts
    assert (facts.rank, facts.world_size, facts.backend, facts.host) == (2, 4, "nccl", "node000")
    assert facts.groups == (Group("0", "default_pg", 4, (0, 1, 2, 3)),)
    assert facts.devices == tuple(Device(number, "NVIDIA A100-SXM4-80GB", 85_100_068_864) for number in range(8))
    assert facts.run == "world size 4"
    assert facts.origin_ns == facts.base_ns == 1_775_078_550_000_000_000
    assert not facts.written  # a graph keeps no texts of its files


def test_a_group_that_is_cut_short_is_rebuilt() -> None:
    assert Group("0", "", 5, "[0, 2, ..., 8]").ranks == (0, 2, 4, 6, 8)
    assert Group("0", "", None, "[0, 2, ..., 8]").ranks == Group("0", "", 2, None).ranks == ()


def test_the_texts_among_arguments_are_those_of_the_schema() -> None:
    assert {bulk.column.name for bulk in (*columns(), *call_columns()) if bulk.column.dtype == "str"} == TEXTS - {
        "device_name"
    }  # of frames


@pytest.mark.parametrize(
    ("written", "cores"),
    [([0, 1], {0, 1}), ([3, 3], {3}), ([], set()), (2, set()), (["0"], set()), ([True], set()), ([0.5], set())],
)
def test_cores_are_numbers_or_unknown(written: object, cores: set[int]) -> None:
    assert Facts(settings={"cores": written}).cores == cores
