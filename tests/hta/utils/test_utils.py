"""HTA's helpers, against definitions written out."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.hta.utils import utils
from htagraph.hta.utils.utils import data_provider, get_test_data_dir


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), min_size=1, max_size=12))
def test_merged_intervals_cover_the_same_moments(events: list[tuple[int, int]]) -> None:
    frame = pd.DataFrame(events, columns=["ts", "dur"])
    pairs: list[list[int]] = utils.merge_kernel_intervals(frame).to_numpy().tolist()
    assert {t for start, end in pairs for t in range(start, end)} == {
        t for start, lasts in events for t in range(start, start + lasts)
    }
    assert all(first[1] < second[0] for first, second in pairwise(pairs))
    assert list(frame.columns) == ["ts", "dur"], "the caller's frame stays as it is"


@pytest.mark.parametrize(
    ("name", "kind"),
    [("ncclDevKernel_AllReduce_Sum", "COMMUNICATION"), ("ampere_sgemm_128x64", "COMPUTATION"),
     ("Memcpy HtoD (Pageable -> Device)", "MEMORY"), ("cudaDeviceSynchronize", "OTHER"), ("hipLaunchKernel", "OTHER"),
     ("Event Sync", "OTHER"), ("cudnn::winograd", "COMPUTATION"), ("SyncBatchNorm_kernel", "COMPUTATION")],
)  # fmt: skip
def test_kernels_are_told_apart_by_name(name: str, kind: str) -> None:
    assert utils.get_kernel_type(name) == kind
    asked = (utils.is_comm_kernel(name), utils.is_compute_kernel(name), utils.is_memory_kernel(name))
    assert asked == tuple(kind == each for each in ("COMMUNICATION", "COMPUTATION", "MEMORY"))


def test_columns_of_one_level_stay() -> None:
    frame = pd.DataFrame({"a": [1]})
    utils.flatten_column_names(frame)
    assert frame.columns.tolist() == ["a"]


def test_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert utils.normalize_path("./x") == str(tmp_path / "x")
    assert (utils.normalize_path("~/x"), utils.normalize_path("/x")) == ("/home/somebody/x", "/x")


def test_the_column_of_texts_is_found() -> None:
    encoded = pd.DataFrame({"name": [1], "cat": [2]})
    assert utils.get_symbol_column_names(encoded) == ("", "")
    assert utils.get_symbol_column_names(encoded.assign(s_name="a", cat="b")) == ("s_name", "cat")


def test_streams_become_numbers() -> None:
    frame = pd.DataFrame({"stream": ["7", "0x0", None]})
    utils.normalize_gpu_stream_numbers(frame)
    assert frame["stream"].tolist() == [7, -1, -1]


def test_values_within_dictionaries() -> None:
    assert utils.get_value_from_dict({"a": {"b": 1}}, "a.b") == 1
    assert utils.get_value_from_dict({"a": 1}, "a.b", "none") == "none"


def test_a_test_runs_once_for_each_value() -> None:
    seen: list[tuple[int, int]] = []

    class Some:
        @data_provider(lambda: [{"a": 1, "b": 2}, (3, 4)])
        def check(self, a: int, b: int) -> None:
            seen.append((a, b))

    Some().check()
    assert seen == [(1, 2), (3, 4)]


def test_absent_test_data_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "tests" / "data" / "here").mkdir(parents=True)
    monkeypatch.setenv("TEST_DATA_PREFIX_PATH", str(tmp_path))
    assert get_test_data_dir("here") == str(tmp_path / "tests" / "data" / "here")
    with pytest.raises(FileNotFoundError, match="TEST_DATA_PREFIX_PATH"):
        get_test_data_dir("absent")
