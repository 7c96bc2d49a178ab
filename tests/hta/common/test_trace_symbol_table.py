"""TraceSymbolTable: numbers and texts, back and forth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.hta.common.trace_symbol_table import (
    DeviceType,
    TraceSymbolTable,
    decode_symbol_id_to_symbol_name,
    infer_device_type,
    is_device_lane,
)


def test_categories_of_2021_are_found_as_todays() -> None:
    table = TraceSymbolTable()
    table.add_symbols(["kernel", "aten::mm"])
    numbers = table.get_sym_id_map()
    assert (numbers["Kernel"], numbers.get("Kernel"), numbers.get("Memset", -1)) == (0, 0, -1)
    assert list(numbers) == ["kernel", "aten::mm"]
    with pytest.raises(KeyError, match="memset"):
        numbers["Memset"]


def table(*symbols: str) -> TraceSymbolTable:
    made = TraceSymbolTable()
    made.add_symbols(symbols)
    return made


@given(st.lists(st.lists(st.text(max_size=3))))
def test_symbols_have_one_number_each(groups: list[list[str]]) -> None:
    made = TraceSymbolTable()
    made.add_symbols_mp(groups)
    assert made.get_sym_table() == list(dict.fromkeys(symbol for group in groups for symbol in group))
    assert all(made.get_sym_table()[number] == symbol for symbol, number in made.get_sym_id_map().items())
    assert made.is_empty() == (not made.get_sym_table())
    assert TraceSymbolTable.create_from_symbol_id_map(made.sym_index).sym_table == made.sym_table


def test_frames_are_encoded_and_decoded() -> None:
    frame = pd.DataFrame({"name": ["a", "b", "a"], "cat": ["x", "x", "y"]})
    made = TraceSymbolTable.create_from_df(frame)
    encoded = frame.copy()
    made.encode_df(encoded)
    assert encoded["name"].dtype.kind == "i"
    made.decode_df(encoded)
    assert encoded[["s_name", "s_cat"]].to_numpy().tolist() == frame[["name", "cat"]].to_numpy().tolist()
    made.decode_df(encoded, create_new_columns=False)
    assert encoded[["name", "cat"]].to_numpy().tolist() == frame[["name", "cat"]].to_numpy().tolist()
    with pytest.raises(ValueError, match="hold texts"):
        TraceSymbolTable.create_from_df(pd.DataFrame({"name": [1], "cat": [2]}))


def test_symbols_take_the_place_of_numbers_once() -> None:
    frame = pd.DataFrame({"name": [1, 0, -1, 5]})
    for _ in range(2):  # a column of texts stays
        table("a", "b").add_symbols_to_trace_df(frame, "name")
        assert frame["name"].tolist() == ["b", "a", "", ""]


def test_short_names_stand_behind_the_numbers() -> None:
    frame = pd.DataFrame({"name": [0, 1], "cat": [1, 1], "user_annotation": [-1, 0]})
    symbols = table("void f<int>(int)", "cpu_op")
    decode_symbol_id_to_symbol_name(frame, symbols)
    assert (frame["s_name"].tolist(), frame["s_user_annotation"].tolist()) == (["f", "cpu_op"], ["", "f"])
    decode_symbol_id_to_symbol_name(frame, symbols, use_shorten_name=False)
    assert frame["s_name"].tolist() == ["void f<int>(int)", "cpu_op"]


def test_tables_are_combined_copied_and_written(tmp_path: Path) -> None:
    one = table("a", "b")
    both = TraceSymbolTable.combine_symbol_tables([one, table("b", "c")])
    assert both.sym_table == ["a", "b", "c"]
    TraceSymbolTable.clone(both).add_symbols(["d"])
    assert len(both.sym_table) == 3
    both._to_csv_file(str(tmp_path / "t.csv"))
    assert TraceSymbolTable.from_csv_file(str(tmp_path / "t.csv")).sym_table == both.sym_table
    frame = pd.DataFrame({"name": [1], "cat": [0]})
    table("z", "b", "a").update_encoded_df(frame, one)
    assert frame.to_numpy().tolist() == [[1, 2]]


def test_kinds_of_symbols_have_their_numbers() -> None:
    made = table("ProfilerStep#1", "cudaLaunchKernel", "Memset (Device)", "cpu_op", "kernel", "gemm")
    assert (made.get_profiler_step_ids(), made.get_kernel_launch_ids(), made.get_memory_name_ids()) == ([0], [1], [2])
    assert (made.get_cpu_event_cat_ids(), made.get_gpu_kernel_cat_ids()) == ([3], [4])
    assert made.get_symbol_names([5, 99]) == {5: "gemm"}
    frame = pd.DataFrame({"name": [1, 1, 5], "cat": [3, 4, 4], "index_correlation": [4, 0, 2]})
    assert made.get_runtime_launch_events_mask(frame).tolist() == [True, False, False]
    assert made.get_operator_or_cuda_runtime_mask(frame).tolist() == [True, False, False]
    assert made.get_events_mask(frame, ["gem"]).tolist() == [False, False, True]
    assert not made.get_events_mask(frame, None).any()


@pytest.mark.parametrize(
    ("pid", "tid", "streams", "kind"),
    [(5, 9, [-1, -1], DeviceType.CPU), (5, 7, [7, 7], DeviceType.GPU), (0, 9, [-1], DeviceType.GPU),
     (5, 9, [-1, 7], DeviceType.UNKNOWN)],
)  # fmt: skip
def test_the_device_is_inferred(pid: int, tid: int, streams: list[int], kind: DeviceType) -> None:
    assert infer_device_type(pd.DataFrame({"pid": pid, "tid": tid, "stream": streams})) == kind
    if pid:
        assert infer_device_type(pd.DataFrame({"stream": streams})) == kind


def test_streams_and_device_tracks_are_no_threads() -> None:
    assert is_device_lane(5, 7, np.array([7, 7]))
    assert is_device_lane(0, 7, np.array([-1]))
    assert not is_device_lane(5, 7, np.array([-1, 7]))
