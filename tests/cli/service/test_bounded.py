"""Answers of bounded size: what is left out is said, and can be had."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.cli.service.bounded import MAX_BYTES, MAX_ROWS, Window, bounded
from htagraph.core.errors import HtagraphError


def answer(window: Window | None = None, **tables: Any) -> dict[str, Any]:
    envelope = {"command": "x", "inputs": [{"rank": rank} for rank in range(512)], "results": tables}
    found: dict[str, Any] = json.loads(bounded(envelope, window or Window()))
    return found


def test_following_what_cut_says_gives_every_row_once() -> None:
    rows = [{"n": n} for n in range(25)]
    found, offset = [], 0
    while True:
        part = answer(Window(rows=10, table="t", offset=offset), t=rows)
        found += part["results"]["t"]
        if not part["cut"]:
            break
        assert part["cut"][0]["more"] == f"table='t', offset={len(found)}"
        offset = len(found)
    assert found == rows


def test_a_table_as_long_as_was_asked_for_may_be_longer() -> None:
    assert answer(Window(rows=10), t=[{"n": 1}] * 11)["cut"][0]["of"] == "at least 11"
    assert answer(Window(rows=10), t=[{"n": 1}] * 30)["cut"][0]["of"] == "30"


def test_ranks_that_were_read_are_few_unless_asked_for() -> None:
    assert len(answer(t=[])["inputs"]) == 5
    alone = answer(Window(rows=20, table="inputs"), t=[])
    assert (len(alone["inputs"]), alone["results"]) == (20, {})


@given(
    st.dictionaries(st.sampled_from("tuvw"), st.lists(st.dictionaries(st.sampled_from("abcd"), st.text()), max_size=60),
                    max_size=4),
    st.integers(1, MAX_ROWS),
)  # fmt: skip
def test_an_answer_is_sound_json_of_bounded_size_without_control_characters(
    tables: dict[str, list[dict[str, str]]], rows: int
) -> None:
    text = bounded({"results": tables}, Window(rows=rows))
    assert len(text.encode()) <= MAX_BYTES
    assert text.isprintable()
    json.loads(text)


def test_sentences_are_whole_and_long_names_lose_their_middle() -> None:
    sentence = "Rank 2 waits. " * 40
    found = answer(changes=[{"change": "n" * 500, "text": sentence}], verdict=[sentence])["results"]
    assert found["verdict"] == [sentence]
    assert found["changes"][0]["text"] == sentence
    assert len(found["changes"][0]["change"]) < 500


def test_long_names_and_wide_tables_fit() -> None:
    wide = [{f"c{i}": "µ" * 10_000 for i in range(20)}] * 200
    text = bounded({"results": {"a": wide, "b": wide, "said": ["µ" * 10_000] * 30}}, Window(rows=200))
    assert len(text.encode()) <= MAX_BYTES
    assert {each["table"] for each in json.loads(text)["cut"]} == {"a", "b"}


def test_numbers_are_those_that_json_has() -> None:
    row = {"a": float("nan"), "b": np.float64(1.23456), "c": np.int64(3), "d": np.bool_(1), "e": np.inf}
    assert answer(t=[row])["results"]["t"] == [{"a": None, "b": 1.235, "c": 3, "d": True, "e": None}]


def test_a_table_that_is_not_there_is_an_error_that_names_those_that_are() -> None:
    with pytest.raises(HtagraphError, match=r"there are inputs, kernels; did you mean 'kernels'"):
        answer(Window(table="kernel"), kernels=[])
    with pytest.raises(HtagraphError, match="name the table"):
        answer(Window(offset=3), kernels=[])
