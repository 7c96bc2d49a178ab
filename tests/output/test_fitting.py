"""Tables fit: names keep both ends and stay apart, and what has no room is said."""

from __future__ import annotations

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from htagraph.output.columns import Column, columns_of
from htagraph.output.fitting import cut_all, fitted
from htagraph.output.report import Wording

TILES = [f"ampere_bf16_s16816gemm_bf16_{tile}_ldg8_f2f_stages_64x3_tn" for tile in ("128x128", "256x128")]


def table(names: list[str], **numbers: list[float]) -> list[Column]:
    return columns_of(pd.DataFrame({"kind": ["computation"] * len(names), "name": names, **numbers}), Wording())


def test_names_that_differ_in_the_middle_stay_apart() -> None:
    one, other = fitted(table(TILES), 50).cells[1]
    assert one != other
    assert len(set(cut_all(TILES, 12))) == 2


def test_names_that_differ_in_their_template_arguments_stay_apart() -> None:
    names = [f"void at::native::vectorized_elementwise_kernel<4, {what}>(int)" for what in ("add", "mul", "add")]
    first, second, third = fitted(table(names), 45).cells[1]
    assert first == third != second
    assert first.startswith("at::native")


@given(st.lists(st.text(st.characters(codec="ascii", categories=("L", "N")), max_size=60), min_size=1, max_size=4),
       st.integers(40, 140), st.integers(0, 9))  # fmt: skip
def test_no_table_is_wider_than_its_terminal(names: list[str], width: int, count: int) -> None:
    shown = fitted(table(names, **{f"n{i}_us": [1234.5] * len(names) for i in range(count)}), width)
    assert sum(shown.widths) + 2 * (len(shown.widths) - 1) <= width
    assert len(shown.columns) + len(shown.left_out) >= 1 + any(names) + count
    assert all(len(cell) <= room for cells, room in zip(shown.cells, shown.widths, strict=True) for cell in cells)


def test_what_has_no_room_is_named_and_the_first_and_last_numbers_stay() -> None:
    numbers = {name: [10.0, 20.0] for name in ("total_us", "mean_us", "min_us", "max_us", "share_percent")}
    shown = fitted(table(TILES, **numbers), 55)
    assert shown.left_out == ["mean µs", "min µs", "max µs"]
    assert [column.name for column in shown.columns] == ["kind", "name", "total_us", "share_percent"]
    assert fitted(table(TILES, **numbers), 140).left_out == []


def test_sentences_are_whole_and_columns_of_nothing_go_first() -> None:
    why = "no device work was recorded: threads are analyzed instead"
    rows = {"analysis": ["x" * 20], "why": [why], "gain_us": [0.0], "total_us": [5.0], "share_percent": [7.0]}
    shown = fitted(columns_of(pd.DataFrame(rows), Wording()), 52)
    assert shown.left_out == ["gain µs"]
    assert shown.cells[1] == [why]


def test_template_arguments_take_no_more_room_than_tells_names_apart() -> None:
    names = [f"void f<{'x' * 300}, {what}>(int)" for what in ("add", "mul")]
    shown = fitted(table(names, total_us=[1.0, 2.0]), 500)
    assert shown.widths[1] == 72
    assert len(set(shown.cells[1])) == 2


def test_what_tells_the_devices_of_a_rank_apart_stays() -> None:
    frame = pd.DataFrame({"rank": [0, 0], "device": ["cpu", "0"], "peak_bytes": [1e6, 2e9], "last_bytes": [1e6, 5e6]})
    for ranks, expected in (([0, 0], ["rank", "device", "last_bytes"]), ([0, 1], ["rank", "peak_bytes", "last_bytes"])):
        shown = fitted(columns_of(frame.assign(rank=ranks), Wording()), 20)
        assert [column.name for column in shown.columns] == expected


def test_empty_texts_take_no_room() -> None:
    frame = pd.DataFrame({"name": ["a", "b"], "cause_name": ["", ""], "rank": [1, 2]})
    assert [column.name for column in fitted(columns_of(frame, Wording()), 80).columns] == ["name", "rank"]
