"""Whether a misspelt word is answered with the words it may have meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core.words import check_choice, check_type, nearest_words, time_text

_CRITERIA = ["kind", "name", "op", "rank", "stream", "step"]


@pytest.mark.parametrize(
    ("word", "nearest"), [("knd", "kind"), ("nmae", "name"), ("Rank", "rank"), ("steam", "stream"), ("str", "stream")]
)
def test_a_typo_is_answered_with_the_word_meant(word: str, nearest: str) -> None:
    assert repr(nearest) in nearest_words(word, _CRITERIA)


@pytest.mark.parametrize("word", ["", "zzz", "colour"])
def test_a_word_that_is_like_none_is_answered_with_nothing(word: str) -> None:
    assert nearest_words(word, _CRITERIA) == ""


def test_several_are_joined_with_or_and_limited() -> None:
    either = {"; did you mean 'item1' or 'item2'?", "; did you mean 'item2' or 'item1'?"}
    assert nearest_words("item", ["item1", "item2"]) in either
    assert nearest_words("item", [f"item{i}" for i in range(10)]).count("'item") == 3


def test_words_need_not_be_texts() -> None:
    assert nearest_words("100", [1000, 7]) == "; did you mean '1000'?"


@given(st.text(max_size=12), st.lists(st.text(min_size=1, max_size=12), max_size=8))
def test_only_known_words_are_offered_and_a_known_word_is_offered_first(word: str, known: list[str]) -> None:
    answer = nearest_words(word, known)
    assert answer == "" or any(repr(candidate) in answer for candidate in known)
    assert nearest_words("", known) == ""
    for candidate in known:
        assert nearest_words(candidate, known) != ""


@pytest.mark.parametrize("value", ["rank", "job"])
def test_a_word_that_is_allowed_passes(value: str) -> None:
    check_choice("by", value, ("rank", "job"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("ranks", r"^by='ranks' is not known: choose one of 'rank', 'job'; did you mean 'rank'\?$"),
        ("stream", "^by='stream' is not known: choose one of 'rank', 'job'$"),
        ("", "^by='' is not known: choose one of 'rank', 'job'$"),
        (None, "^by=None is not known: choose"), (3, "^by=3 is not known: choose"), (["rank"], "is not known: choose"),
    ],
)  # fmt: skip
def test_any_other_value_is_refused_with_those_allowed(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_choice("by", value, ("rank", "job"))


def test_the_error_says_what_is_taken_and_what_was_given() -> None:
    check_type(3, (int, float), "f takes numbers")
    with pytest.raises(TypeError, match=r"^f takes numbers, not 'a{58,}… \(str\)$"):
        check_type("a" * 1000, (int, float), "f takes numbers")


@given(st.floats(0.1, 1e12))
def test_a_time_keeps_its_first_digits(us: float) -> None:
    figure, unit = time_text(us).split()
    assert float(figure) * {"µs": 1, "ms": 1e3, "s": 1e6}[unit] == pytest.approx(us, rel=0.05, abs=0.06)
