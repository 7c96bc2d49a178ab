from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import shutil
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as nst

import htagraph as hg
from htagraph import DependencyGraph, HtagraphError
from htagraph.core.errors import Issue
from htagraph.graph.storage import saved
from htagraph.graph.storage.saved import SCHEMA, pack, read_file, unpack, write_file
from htagraph.trace.columns import Device, Facts, Group, Trace
from htagraph.trace.remote import RemotePath, TracePath
from tests.graph.storage.same import difference
from tests.reach import DATASETS, REPOSITORY, graph_of, label
from tests.strategies import Frames, frames, jobs, load

DERIVED = (
    "time", "out_offsets", "in_offsets", "in_edges", "topological_order", "gap", "binding", "gap_kind", "awake", "tree",
)  # fmt: skip


def again(graph: DependencyGraph, folder: Path) -> DependencyGraph:
    hg.save(graph, folder)
    return hg.open(folder)


@pytest.mark.parametrize("path", DATASETS, ids=label)
def test_an_opened_graph_is_equal_in_every_field(path: Path, tmp_path: Path) -> None:
    graph = graph_of(path)
    opened = again(graph, tmp_path)
    assert difference(graph, opened) == ""
    for name in DERIVED:
        assert difference(getattr(graph, name), getattr(opened, name), name) == ""
    opened.check()


@pytest.mark.slow
@settings(max_examples=10)
@given(jobs())
def test_any_job_comes_back(tmp_path_factory: Any, job: Any) -> None:
    graph = load(job)
    assert difference(graph, again(graph, tmp_path_factory.mktemp("saved"))) == ""


@settings(max_examples=10)
@given(frames())
def test_a_graph_of_tables_comes_back(tmp_path_factory: Any, made: Frames) -> None:
    graph = made.graph
    assert difference(graph, again(graph, tmp_path_factory.mktemp("saved"))) == ""


@pytest.mark.slow
@pytest.mark.parametrize("answer", [hg.summarize, hg.critical_path, hg.opportunities, hg.stragglers, hg.overlap])
def test_an_opened_graph_gives_the_same_answers(answer: Any, tmp_path: Path) -> None:
    graph = graph_of(DATASETS[0])
    one, other = answer(graph), answer(again(graph, tmp_path))
    if hasattr(one, "to_frame"):
        one, other = one.to_frame(), other.to_frame()
    assert difference(one, other, "answer") == ""


def test_an_event_is_read_from_its_unchanged_file(tmp_path: Path) -> None:
    file = shutil.copy2(REPOSITORY / "data/demo/rank-0.json.gz", tmp_path)
    opened = again(hg.load(file), tmp_path / "saved")
    assert opened.event(3) == hg.load(file).event(3)
    Path(file).write_bytes(b"{}")
    with pytest.raises(hg.TraceError, match="was changed"):
        opened.event(3)


def copied(folder: Path, name: str = "rank-0.json.gz") -> Path:
    folder.mkdir(parents=True)
    return Path(shutil.copy(REPOSITORY / "data/demo/rank-0.json.gz", folder / name))


@pytest.mark.parametrize(
    "path", [RemotePath("https://host/rank-0.json.gz"), RemotePath("s3://b/rank-0.json"), Path("//host/share/0.json")]
)
def test_addresses_that_only_the_graph_names_are_not_followed(
    path: TracePath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fsspec", reason="without it nothing is fetched")

    def fetched(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("fsspec.core.url_to_fs", fetched)
    graph = hg.load(copied(tmp_path / "traces"))
    graph = graph.replace(traces={0: replace(graph.traces[0], path=path)})
    opened = again(graph, tmp_path / "saved")
    row = int(np.flatnonzero(opened.activities.event >= 0)[0])
    for ask in (
        lambda: opened.event(row),
        lambda: hg.to_perfetto(hg.critical_path(opened), tmp_path / "o.json"),
        lambda: hg.arguments(opened, ["Input type"]),
    ):
        with pytest.raises(hg.TraceError, match=r"not followed.*htagraph\.open\(folder, traces=…\)"):
            ask()
    assert not list(tmp_path.glob("o.json*"))
    assert hg.summarize(opened)
    given = hg.open(tmp_path / "saved", traces=tmp_path / "traces")
    assert given.event(row) == hg.load(tmp_path / "traces").event(row)


def test_traces_that_were_moved_are_given_and_must_be_as_large(tmp_path: Path) -> None:
    path = copied(tmp_path / "traces")
    graph = hg.load(path)
    hg.save(graph, tmp_path / "saved")
    row = int(np.flatnonzero(graph.activities.event >= 0)[0])
    event = graph.event(row)
    moved = path.rename(tmp_path / "rank-0.json.gz")
    with pytest.raises(hg.TraceError, match="cannot be read again"):
        hg.open(tmp_path / "saved").event(row)
    assert hg.open(tmp_path / "saved", traces=moved).event(row) == event
    moved.write_bytes(moved.read_bytes() + b" ")
    with pytest.raises(hg.TraceError, match="is not the file of rank 0: it has"):
        hg.open(tmp_path / "saved", traces=moved)


def test_a_local_file_that_is_not_the_one_recorded_is_not_read(tmp_path: Path) -> None:
    graph = hg.load(copied(tmp_path / "traces"))
    other = copied(tmp_path / "other")
    graph = graph.replace(traces={0: replace(graph.traces[0], path=other, fingerprint=(other.stat().st_size, 1))})
    opened = again(graph, tmp_path / "saved")
    with pytest.raises(hg.TraceError, match="was changed since"):
        opened.event(int(np.flatnonzero(opened.activities.event >= 0)[0]))


def test_no_array_of_an_opened_graph_can_be_written(tmp_path: Path) -> None:
    opened = again(graph_of(DATASETS[0]), tmp_path)
    with pytest.raises(ValueError, match="read-only"):
        opened.activities.start[0] = 0
    with pytest.raises(ValueError, match="read-only"):
        opened.traces[0].events.start[0] = 0


def test_saving_again_replaces_what_was_there_and_leaves_nothing_else(tmp_path: Path) -> None:
    first, second = graph_of(DATASETS[0]), graph_of(DATASETS[1])
    kept = again(first, tmp_path)
    assert difference(second, again(second, tmp_path)) == ""
    assert difference(first, kept) == ""  # still mapped
    assert [each.name for each in tmp_path.iterdir()] == [saved.GRAPH_FILE]


def test_processes_that_save_at_once_leave_a_whole_graph(tmp_path: Path) -> None:
    graph = graph_of(DATASETS[0])
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_save_often, args=(graph, tmp_path)) for _ in range(3)]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        if (tmp_path / saved.GRAPH_FILE).is_file():
            assert len(hg.open(tmp_path).activities) == len(graph.activities)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert difference(graph, hg.open(tmp_path)) == ""


def _save_often(graph: DependencyGraph, folder: Path) -> None:
    for _ in range(4):
        saved.save(graph, folder)


@pytest.mark.parametrize("folder", ["absent", "."])
def test_a_folder_without_a_graph_is_named(folder: str, tmp_path: Path) -> None:
    with pytest.raises(hg.StoredGraphError, match=r"cannot be opened.*htagraph\.save"):
        hg.open(tmp_path / folder)


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"\0" * 64])
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / saved.GRAPH_FILE).write_bytes(content)
    with pytest.raises(hg.StoredGraphError, match="cannot be opened"):
        hg.open(tmp_path)


def test_a_graph_of_a_release_with_other_fields_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hg.save(graph_of(DATASETS[0]), tmp_path)
    monkeypatch.setitem(SCHEMA, "Events", [*SCHEMA["Events"], "offset"])
    with pytest.raises(hg.StoredGraphError, match="another release"):
        hg.open(tmp_path)


def with_first(columns: Any, column: str, value: int) -> Any:
    """Return columns in one of which the first number is another."""
    values = getattr(columns, column).copy()
    values[0] = value
    return replace(columns, **{column: values})


def in_a_circle(columns: Any, length: int) -> Any:
    """Return columns whose parents lead back to the activity they start from."""
    parent, circle = columns.parent.copy(), np.flatnonzero(~graph_of(DATASETS[0]).activities.on_device)[:length]
    parent[circle] = np.roll(circle, 1)
    return replace(columns, parent=parent)


@pytest.mark.parametrize(
    ("part", "change"),
    [
        *((part, partial(with_first, column=column, value=value)) for part, column, value in (
            ("edges", "source", -1), ("edges", "target", 10**6), ("edges", "activity", -2),
            ("activities", "parent", 10**6), ("activities", "cause", -2), ("activities", "name", 10**6),
            ("activities", "lane", 10**6), ("activities", "category", -1), ("matches", "join", 10**6),
            ("matches", "collective", 10**6), ("tree", "parent", 10**6), ("tree", "order", -1),
            ("tree", "first", 10**6), ("tree", "stop", 0), ("activities", "kind", -1), ("edges", "provenance", 99),
            ("activities", "lane", -1), ("activities", "duration", -5), ("activities", "start", 2**62),
            ("edges", "lag", 2**60),
        )),
        *((part, partial(in_a_circle, length=length)) for part in ("activities", "tree") for length in (1, 2, 3)),
        ("activities", lambda columns: replace(columns, duration=columns.duration[1:])),
        ("matches", lambda columns: replace(columns, size=columns.size[1:])),
        ("graph", lambda graph: graph.activities),
        ("graph", lambda graph: replace(graph, names=list(graph.names))),
        ("graph", lambda graph: replace(graph, clocks=(graph.matches,))),
    ],
)  # fmt: skip
def test_parts_that_do_not_belong_together_are_refused(part: str, change: Any, tmp_path: Path) -> None:
    """Numbers that refer to nothing, activities above themselves, columns of other lengths, something else."""
    graph: Any = graph_of(DATASETS[0])
    stored = {"graph": graph, "tree": graph.tree}
    if part in stored:
        stored[part] = change(stored[part])
    else:
        stored["graph"] = replace(graph, **{part: change(getattr(graph, part))})
    content, arrays = pack(stored)
    write_file(tmp_path / saved.GRAPH_FILE, {"schema": SCHEMA, "parts": content}, arrays, durable=False)
    with pytest.raises(hg.StoredGraphError, match=r"cannot be opened: .*; load the traces"):
        hg.open(tmp_path)


@given(st.lists(st.integers(-1, 9), min_size=10, max_size=10))
def test_walks_up_end_where_a_graph_of_them_has_no_cycle(parent: list[int]) -> None:
    up = networkx.DiGraph([(child, above) for child, above in enumerate(parent) if above >= 0])
    for first in (np.arange(10), np.arange(10)[::-1]):
        assert saved._climbs_end(np.array(parent), first) == networkx.is_directed_acyclic_graph(up)


def test_a_graph_with_something_unknown_is_not_saved(tmp_path: Path) -> None:
    traces: Any = {0: {1, 2}}
    wrong = replace(graph_of(DATASETS[0]), traces=traces)
    with pytest.raises(hg.GraphError, match="set cannot be stored"):
        hg.save(wrong, tmp_path)
    assert not list(tmp_path.iterdir())


texts = st.text(st.characters(exclude_categories=()), max_size=4)  # also halves of surrogate pairs
issues = st.builds(Issue, texts, texts, texts, st.integers())
values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), texts, issues,
        st.lists(texts, max_size=40).map(tuple), st.lists(issues, max_size=4).map(tuple),
        st.builds(Path, st.text("ab/", max_size=4)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(texts, st.integers(), st.tuples(st.integers(), texts)), inner, max_size=3),
    ),
    max_leaves=8,
)  # fmt: skip


def through_json(value: Any) -> Any:
    content, arrays = pack(value)
    return unpack(json.loads(json.dumps(content)), arrays)


@given(values)
def test_every_value_comes_back_with_its_type(value: Any) -> None:
    assert difference(value, through_json(value), "value") == ""


def test_integers_of_any_size_come_back() -> None:
    assert through_json([2**63, -(2**70), 10**5000]) == [2**63, -(2**70), 10**5000]


def test_texts_that_repeat_are_stored_once() -> None:
    _, arrays = pack([tuple(["name"] * 1000), tuple(["name", "other"] * 10)])
    assert [array.nbytes for array in arrays] == [4 * 1000, 4 * 20, len("nameother"), 2 * 8]


def test_an_array_that_two_share_is_stored_once() -> None:
    array = np.arange(3)
    content, arrays = pack([array, array, array[:]])
    assert len(arrays) == 2 + 2  # and the texts, of which there are none
    assert unpack(content, arrays)[0] is unpack(content, arrays)[1]


@pytest.mark.parametrize("value", [Fraction(1, 2), {1}, object(), b"bytes", lambda: 0])
def test_what_is_not_known_is_refused_by_name(value: Any) -> None:
    with pytest.raises(TypeError, match=type(value).__name__):
        pack({"deep": [value]})


@given(st.dictionaries(texts, st.one_of(texts, st.integers(), st.none(), st.lists(st.floats(allow_nan=False)))))
def test_facts_come_back_with_the_settings_of_the_recording(raw: dict[str, Any]) -> None:
    groups = (Group("0", "default", 2, (0, 1)), Group("1", "", None, "[0, 2, ..., 8]"))
    facts = Facts(rank=3, groups=groups, devices=(Device(0, "H100"), Device(None, "")), settings=raw)
    back = through_json(facts)
    assert difference(facts, back, "facts") == ""
    assert facts == back


@pytest.mark.parametrize("name", saved.SCHEMA)
def test_a_field_that_is_added_to_a_class_is_stored(name: str) -> None:
    """Every class is stored by its fields, as they are when it is stored."""
    assert saved.SCHEMA[name] == list(saved._CLASSES[name].__dataclass_fields__)


@pytest.mark.slow
def test_every_class_that_a_graph_holds_is_known() -> None:
    """A field with a class that is not in the list fails here, before it does for a user."""
    for folder in DATASETS:
        graph = graph_of(folder)
        assert difference(graph, through_json(graph)) == ""


def test_an_object_with_other_fields_is_refused() -> None:
    content, arrays = pack(Issue("file", "what", "detail", 1))
    del content["value"]["object"][1]["rank"]  # which has a default
    with pytest.raises(TypeError, match="Issue"):
        unpack(content, arrays)


@pytest.mark.parametrize(
    "content",
    [
        {"object": ["Popen", {"args": "true"}]},
        {"object": ["Path", {}]},
        {"call": []},
        {"array": 7},
        {},
        {"a": 1, "b": 2},
    ],
)
def test_what_was_not_packed_is_refused(content: Any) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        unpack({"value": content, "texts": 0}, [np.empty(0, np.uint8), np.empty(0, np.int64)])


def test_all_of_a_trace_is_kept() -> None:
    assert set(saved.SCHEMA["Trace"]) == {each.name for each in dataclasses.fields(Trace)}


def test_numbers_below_and_above_what_is_there_are_found() -> None:
    numbers = np.array([-1, 0, 4], np.int32)
    assert saved.are_within([(numbers, -1, 5), (numbers[:0], 0, 0)])
    assert not saved.are_within([(numbers, -1, 5), (numbers, 0, 5)])
    assert not saved.are_within([(numbers, -1, 4), (numbers, -1, 5)])


ARRAYS: list[Any] = [
    np.arange(5, dtype=np.int32),
    np.empty((0, 3)),
    np.array([True]),
    np.arange(6.0).reshape(2, 3),
    np.array([-1], np.int8),
]
plain = nst.arrays(
    st.sampled_from([np.int8, np.uint64, np.float32, np.bool_]), nst.array_shapes(min_dims=0, min_side=0)
)


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    write_file(tmp_path / "file", {"a": [1, None]}, ARRAYS, durable=True)
    return tmp_path / "file"


@given(st.lists(plain, max_size=3))
def test_arrays_are_read_as_they_were_written(tmp_path_factory: Any, arrays: list[Any]) -> None:
    path = tmp_path_factory.mktemp("files") / "file"
    write_file(path, "text", arrays, durable=False)
    content, back = read_file(path)
    assert content == "text"
    assert [(x.dtype, x.shape, x.tobytes()) for x in back] == [(x.dtype, x.shape, x.tobytes()) for x in arrays]


def test_arrays_are_mapped_aligned_and_cannot_be_written(path: Path) -> None:
    for array in read_file(path)[1]:
        assert not array.flags.writeable
        assert not array.flags.owndata
        assert array.size == 0 or array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous


def test_of_arrays_with_strides_their_values_are_written(tmp_path: Path) -> None:
    write_file(tmp_path / "file", 0, [np.arange(6)[::-2], np.broadcast_to(np.int8(3), 4)], durable=False)
    assert [each.tolist() for each in read_file(tmp_path / "file")[1]] == [[5, 3, 1], [3, 3, 3, 3]]


def test_every_byte_that_is_changed_is_noticed(tmp_path: Path) -> None:
    path, array = tmp_path / "file", np.arange(3, dtype=np.int32)
    write_file(path, "text", [array], durable=False)
    sound = path.read_bytes()
    unnoticed = []
    for at in range(len(sound)):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 16]) + sound[at + 1 :])
        try:
            content, arrays = read_file(path)
        except HtagraphError:
            continue
        unnoticed.append(at)
        assert content == "text"
        assert arrays[0].tolist() == array.tolist()
    assert unnoticed == list(range(64 + 12, 64 + 64))  # behind the array, where nothing is


def test_a_file_that_is_cut_short_is_noticed(path: Path) -> None:
    sound = path.read_bytes()
    for size in range(0, len(sound), 7):
        path.write_bytes(sound[:size])
        with pytest.raises(HtagraphError, match="cannot be opened"):
            read_file(path)


def test_more_bytes_than_were_written_are_noticed(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(HtagraphError, match="manifest"):
        read_file(path)


def test_another_format_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "_FORMAT", 99)
    with pytest.raises(HtagraphError, match="has format 2, this release reads format 99"):
        read_file(path)


@pytest.mark.parametrize("row", [["O", [1], 64, 0], [">i4", [1], 64, 0], ["<i4", [-1], 64, 0], ["<i8", [1], 32, 0]])
def test_arrays_of_objects_and_of_odd_places_are_refused(path: Path, row: Any) -> None:
    data = np.frombuffer(path.read_bytes(), np.uint8)
    with pytest.raises(HtagraphError, match="cannot read"):
        saved._array(path, data, row)


def test_an_array_beyond_the_file_is_refused(path: Path) -> None:
    data = np.frombuffer(path.read_bytes(), np.uint8)
    with pytest.raises(HtagraphError, match="an array is damaged"):
        saved._array(path, data, ["<i8", [2**62], 64, 0])


def test_objects_are_refused_and_leave_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="object"):
        write_file(tmp_path / "file", 0, [np.array([{}], object)], durable=False)
    assert not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_replaced_stays_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="space"):
        write_file(path, 0, [], durable=False)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == ["file"]


def test_who_has_mapped_a_file_keeps_its_arrays_when_it_is_replaced(path: Path) -> None:
    before = read_file(path)[1][0]
    write_file(path, 0, [np.zeros(5, np.int32)], durable=False)
    assert before.tolist() == [0, 1, 2, 3, 4]


def test_the_manifest_is_plain_json(path: Path) -> None:
    data = path.read_bytes()
    manifest = json.loads(data[data.index(b'{"content"') :])
    assert manifest["arrays"][0][:3] == ["<i4", [5], 64]
