from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nst

import htagraph.graph.storage.array_file as array_file
from htagraph import HtagraphError
from htagraph.graph.storage.array_file import read_file, write_file

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
    monkeypatch.setattr(array_file, "_FORMAT", 99)
    with pytest.raises(HtagraphError, match="has format 1, this release reads format 99"):
        read_file(path)


@pytest.mark.parametrize("row", [["O", [1], 64, 0], [">i4", [1], 64, 0], ["<i4", [-1], 64, 0], ["<i8", [1], 32, 0]])
def test_arrays_of_objects_and_of_odd_places_are_refused(path: Path, row: Any) -> None:
    data = np.frombuffer(path.read_bytes(), np.uint8)
    with pytest.raises(HtagraphError, match="cannot read"):
        array_file._array(path, data, row)


def test_an_array_beyond_the_file_is_refused(path: Path) -> None:
    data = np.frombuffer(path.read_bytes(), np.uint8)
    with pytest.raises(HtagraphError, match="an array is damaged"):
        array_file._array(path, data, ["<i8", [2**62], 64, 0])


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
