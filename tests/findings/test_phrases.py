"""Whether figures, names and commands read well inside sentences."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.findings.phrases import CATEGORY_WORDS, command_line, distinct, plural, short_number, shortened, size_text
from htagraph.queries.paths import CATEGORIES


def test_every_category_of_a_path_has_words() -> None:
    assert tuple(CATEGORY_WORDS) == CATEGORIES


def test_the_files_of_a_suggested_command_are_quoted() -> None:
    assert shlex.split(command_line("what-if", ["my job"], "--scale", "name=*a b*:0.5"))[1:] == [
        "what-if", "my job", "--scale", "name=*a b*:0.5",
    ]  # fmt: skip


@given(st.floats(-1e9, 1e9))
def test_a_short_number_is_near_the_number(value: float) -> None:
    assert float(short_number(value).replace(",", "")) == pytest.approx(value, rel=0.01, abs=0.0006)


def test_units_and_plurals() -> None:
    assert (size_text(1e9), size_text(999e6)) == ("1.00 GB", "999.0 MB")
    assert (plural(0, "rank"), plural(1, "rank")) == ("0 ranks", "1 rank")


def test_texts_cut_alike_are_made_unlike_within_their_room() -> None:
    wholes = [f"a_long_kernel_name_{letter}_with_an_end" for letter in "abc"]
    shown = distinct(["a_long…an_end"] * 3, wholes, 13)
    assert len(set(shown)) == 3
    assert max(map(len, shown)) <= 13
    assert distinct(["same…"] * 2, ["same text"] * 2, 5) == ["same…"] * 2


@given(st.text(min_size=1, max_size=80), st.integers(3, 60))
def test_a_shortened_text_keeps_both_ends(text: str, room: int) -> None:
    short = shortened(text, room)
    assert len(short) <= room
    if len(text) > room:
        head, _, tail = short.rpartition("…")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(short) == room
        assert abs(len(head) - len(tail)) <= 1


def test_names_of_several_groups_are_told_apart_by_letters_and_not_by_numbers() -> None:
    words = ("copy_add_clamp", "copy_add_cat_clamp", "add_native_layer_norm", "add_native_layer_norm_round")
    wholes = [f"triton_red_fused_{word}_{number}_0d1d2d3d4d{'5d' * number}e" for word in words for number in range(4)]
    shown = distinct([shortened(whole, 33) for whole in wholes], wholes, 33)
    assert len(set(shown)) == len(shown)
    assert max(map(len, shown)) <= 33
    assert not [text for text in shown if "#" in text]
