"""Whether a report says what was read, and its envelope is JSON."""

from __future__ import annotations

import json
import math
import re

import pandas as pd
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from htagraph.cli import main as cli
from htagraph.core.tables import Table
from htagraph.findings.phrases import CATEGORY_WORDS
from htagraph.output.report import (
    CONTENTS,
    SCHEMA_VERSION,
    Column,
    Report,
    Wording,
    abridged,
    columns_of,
    cut_all,
    fitted,
    report_on,
    top_rows,
    with_shares,
    wording_of,
)
from htagraph.output.schema import ASKED, COMMANDS
from htagraph.queries.inputs import INPUTS, ISSUES, inputs_of, issues_of, window_us
from tests.reach import REPOSITORY
from tests.strategies import COMPUTE, kernel, launch, load, step

TYPES = {"int64", "float64", "str", "bool", "list", "any", "int64?"}
BANNED = (
    "told by", "is its doing", "works", "their own masters", "on its way", "what would be critical next",
    "stand still", "such as it is", "that nothing explains",
)  # fmt: skip


def test_a_report_on_a_graph_carries_what_was_read() -> None:
    graph = load({0: [step(4, 0, 90), launch(5, 2, 1), kernel(COMPUTE, 10, 20, 1)], 2: [step(6, 0, 90)]})
    report = report_on(graph, "idle", {"streams": pd.DataFrame({"rank": [0]})}, ["It is idle."])
    assert isinstance(report, Report)
    assert report.inputs["rank"].tolist() == inputs_of(graph)["rank"].tolist() == [0, 2]
    assert report.inputs["steps"].tolist() == ["4", "6"]
    assert len(report.issues) == len(issues_of(graph))
    assert report.window_us == window_us(graph)


def test_a_number_of_ranks_that_no_file_says_is_unknown() -> None:
    (column,) = columns_of(pd.DataFrame({"world_size": [0, 8]}), Wording())
    assert column.cells == ["unknown", "8"]


def test_its_envelope_is_json_without_nan() -> None:
    table = pd.DataFrame({"us": [1.5, float("nan")]})
    report = report_on(load([step(4, 0, 90)]), "idle", {"streams": table}, ["a"], figures={"low": float("inf")})
    envelope = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert (envelope["schema_version"], envelope["command"]) == (SCHEMA_VERSION, "idle")
    assert envelope["results"] == {"low": None, "streams": [{"us": 1.5}, {"us": None}], "conclusions": ["a"]}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_tables_of_a_command_are_declared_well(command: str) -> None:
    contents = CONTENTS[command]
    assert set(contents.maybe) <= set(contents.tables)
    for table in (*contents.tables.values(), Table("Figures", *contents.figures), INPUTS, ISSUES):
        names = [name for col in table.cols for name in col.names.split()]
        assert len(names) == len(set(names))
        assert {col.type for col in table.cols} <= TYPES
        assert all(" " not in col.names for col in table.cols if col.heading)
        assert set(table.rank_by.split()) <= set(names)


@pytest.mark.parametrize("command", COMMANDS)
def test_titles_are_one_capitalized_line(command: str) -> None:
    titles = wording_of(command).titles.values()
    assert all(title[0].isupper() or title.startswith("torch.") for title in titles)
    assert max(map(len, titles), default=0) <= 100


def test_what_gives_something_is_a_command_or_what_servers_are_asked() -> None:
    known = set(typer.main.get_command(cli.app).commands)  # type: ignore[attr-defined] # of a group
    assert {command.split()[0] for command in COMMANDS} <= known | set(ASKED)


def test_no_title_or_sentence_has_a_banned_phrase() -> None:
    texts = [*CATEGORY_WORDS.values(), *(title for each in COMMANDS for title in wording_of(each).titles.values())]
    for path in [REPOSITORY / "htagraph/output/validation.py", *(REPOSITORY / "htagraph/findings").glob("verbs/*.py")]:
        texts += re.findall(r'f?"([^"\n]* [^"\n]*)"', path.read_text(encoding="utf-8"))
    assert [text for text in texts for phrase in BANNED if phrase in text.lower().replace("networks", "")] == []


@pytest.mark.parametrize(
    ("name", "value", "heading", "cell"),
    [
        ("wait_us", 1234.4, "wait µs", "1,234"), ("wait_us", 12_345.0, "wait ms", "12.3"),
        ("count", 12_000, "count", "12,000"),
        ("mean_bytes", 25e6, "mean MB", "25.0"), ("busbw_gb_s", 28.94, "busbw GB/s", "28.9"),
        ("copied_gb", 0.006, "copied MB", "6.00"), ("copied_gb", 1.5, "copied GB", "1.50"),
        ("share_percent", 12.34, "share %", "12.3"),
        ("speedup", 1.23456, "speedup", "1.235"),
        ("rank", -1, "rank", "-"), ("matched", True, "matched", "yes"), ("file", "a/b/c.json", "file", "c.json"),
        ("wait_us", math.nan, "wait µs", "-"), ("speedup", math.inf, "speedup", "-"), ("op", "a\x1bb", "op", "a b"),
    ],
)  # fmt: skip
def test_a_cell_and_its_heading(name: str, value: object, heading: str, cell: str) -> None:
    (column,) = columns_of(pd.DataFrame({name: [value]}), Wording())
    assert (column.heading, column.cells) == (heading, [cell])
    assert column.is_number == (not isinstance(value, str))


def test_headings_may_say_more() -> None:
    (column,) = columns_of(pd.DataFrame({"pause_us": [1.0]}), Wording(headings={"pause_us": "idle_us"}))
    assert column.heading == "idle µs"


def test_no_rank_has_words_and_nothing_has_no_sign() -> None:
    frame = pd.DataFrame({"rank": [-1, 0], "charged_rank": [-1, 2], "lateness_us": [-0.0001, -0.5]})
    assert [column.cells for column in columns_of(frame, Wording())] == [
        ["-", "0"],
        ["nobody", "2"],
        ["0.000", "-0.500"],
    ]


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


def test_the_column_that_rows_are_ranked_by_always_stays() -> None:
    numbers = {name: [10.0, 20.0] for name in ("start_us", "pause_us", "late_us", "mean_us")}
    frame = pd.DataFrame({"kind": ["computation"] * 2, "name": TILES, **numbers})
    for ranked in ("pause_us", "mean_us"):  # the latter goes before all others where rows are not ranked by it
        shown = fitted(columns_of(frame, Wording(ranked=frozenset({ranked}))), 55)
        assert ranked in [column.name for column in shown.columns]
        assert len(shown.left_out) == 2
    nothing = fitted(columns_of(frame.assign(pause_us=0.0), Wording(ranked=frozenset({"pause_us"}))), 55)
    assert "pause µs" in nothing.left_out


def test_sentences_are_whole_and_columns_of_nothing_go_first() -> None:
    why = "no device work was recorded: threads are analyzed instead"
    rows = {"analysis": ["x" * 20], "why": [why], "gain_us": [0.0], "total_us": [5.0], "share_percent": [7.0]}
    shown = fitted(columns_of(pd.DataFrame(rows), Wording()), 52)
    assert shown.left_out == ["gain µs"]
    assert shown.cells[1] == [why]


def test_template_arguments_take_no_more_room_than_tells_names_apart() -> None:
    names = [f"void f<{'x' * 300}, {what}>(int)" for what in ("add", "mul")]
    shown = fitted(table(names, total_us=[1.0, 2.0]), 500)
    assert shown.cells[1] == ["f<add>", "f<mul>"]


def test_what_tells_the_devices_of_a_rank_apart_stays() -> None:
    frame = pd.DataFrame({"rank": [0, 0], "device": ["cpu", "0"], "peak_bytes": [1e6, 2e9], "last_bytes": [1e6, 5e6]})
    for ranks, expected in (([0, 0], ["rank", "device", "last_bytes"]), ([0, 1], ["rank", "peak_bytes", "last_bytes"])):
        shown = fitted(columns_of(frame.assign(rank=ranks), Wording()), 20)
        assert [column.name for column in shown.columns] == expected


def test_empty_texts_take_no_room() -> None:
    frame = pd.DataFrame({"name": ["a", "b"], "cause_name": ["", ""], "rank": [1, 2]})
    assert [column.name for column in fitted(columns_of(frame, Wording()), 80).columns] == ["name", "rank"]


PARTS_US = {"computation": 15_000, "exposed_communication": 5_000, "exposed_memory": 0, "other": 0, "idle": 0}


def test_parts_that_never_occur_are_left_out_and_large_times_are_ms() -> None:
    row: dict[str, object] = {"rank": 0, "executor": "device", "window_us": 20_000.0}
    row |= {f"{part}_us": us for part, us in PARTS_US.items()}
    row |= {f"{part}_percent": us / 200 for part, us in PARTS_US.items()}
    shown = with_shares(pd.DataFrame([row]))
    parts = [f"{part} ms (%)" for part in PARTS_US if part != "other"]
    assert list(shown.columns) == ["rank", "executor", "window_us", *parts]
    assert shown["computation ms (%)"].tolist() == ["15.0 (75 %)"]


def test_of_many_ranks_each_kind_of_row_has_its_median_and_the_furthest_rows_stay() -> None:
    """Identifiers have no median, and a figure that few ranks have is none of the usual rank's."""
    rows = [(rank, rank, cause, 10.0 + (rank == 7), float("nan")) for rank in range(10) for cause in ("a", "b")]
    frame = pd.DataFrame(rows, columns=["rank", "device", "cause", "idle_us", "rare_us"])
    shown = abridged(top_rows(frame, 2))
    assert shown["rank"].tolist() == ["median", "median", 7, 7]
    assert shown["cause"].tolist() == ["a", "b", "a", "b"]
    assert shown["device"].tolist()[:2] == ["", ""]
    assert shown["rare_us"].isna().all()
    for whole in (frame.head(16), frame.assign(start_us=0.0), frame.assign(rank=frame["rank"] % 4)):
        assert len(abridged(whole)) == len(whole)  # few rows, events, few ranks
