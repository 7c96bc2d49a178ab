"""Errors, problems of files, and whether a misspelt word is answered with the words it may have meant."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from htagraph.core import errors
from htagraph.core.errors import Issue, IssueLog, check_choice, check_type, nearest_words, time_text

CLASSES = [name for name in errors.__all__ if name.endswith("Error")]
OWN = [getattr(errors, name) for name in CLASSES]


@pytest.mark.parametrize("error", OWN, ids=CLASSES)
def test_one_except_clause_catches_every_error(error: type[Exception]) -> None:
    assert issubclass(error, errors.HtagraphError)
    assert not issubclass(error, ValueError | OSError | KeyError)  # whoever catches those must not catch these


def test_an_unusable_file_is_a_trace_error() -> None:
    assert [error for error in OWN if issubclass(error, errors.TraceError)] == [
        errors.DamagedTraceError, errors.NotATraceError, errors.OtherFileError, errors.OtherJsonError,
        errors.TraceError,
    ]  # fmt: skip


def test_the_modules_drawing_shows_every_error_below_its_parent() -> None:
    parents: list[str] = []
    drawn = {}
    for line in (errors.__doc__ or "").splitlines():
        word = next((word for word in line.split() if word.endswith("Error")), "")
        if word:
            depth = line.index(word) // 4
            drawn[word] = parents[depth - 1] if depth else "Exception"
            parents[depth:] = [word]
    assert drawn == {error.__name__: error.__base__.__name__ for error in OWN}


@pytest.mark.parametrize(
    "value", ["x" * 7000, ["x" * 7000], {"a": 1}, 10**5000, "a\x1b[31m\u202eb\ud800", b"\xff", None], ids=range(7)
)
def test_a_value_is_shown_in_a_few_printable_characters(value: object) -> None:
    shown = errors.shown(value)
    assert 1 < len(shown) < 70
    assert shown.isprintable()
    assert shown.encode()


def test_printable_text_commands_no_terminal() -> None:
    hostile = "a\x1b[31m\x9b1mb\u202ec\u2066\u200b\r\n\x00\ud800µ•"
    assert errors.printable(hostile) == "a [31m 1mb c      µ•"
    assert errors.printable("µ → 5 %") == "µ → 5 %"


additions = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 3)), max_size=10)


@given(additions)
def test_equal_issues_are_counted_in_the_order_of_their_first_occurrence(added: list[tuple[str, str, int]]) -> None:
    log = IssueLog("a.json")
    expected: Counter[tuple[str, str]] = Counter()
    for what, detail, count in added:
        log.add(what, detail, count)
        expected.update({(what, detail): count} if count else {})
    issues = log.issues(rank=3)
    assert issues == tuple(Issue("a.json", what, detail, count, 3) for (what, detail), count in expected.items())


@given(additions)
def test_a_log_has_the_codes_that_occurred(added: list[tuple[str, str, int]]) -> None:
    log = IssueLog("a.json")
    for what, detail, count in added:
        log.add(what, detail, count)
    occurred = {what for what, _, count in added if count}
    assert {code for code in "abc" if log.has(code)} == occurred


def test_an_issue_belongs_to_no_rank_until_the_rank_is_known() -> None:
    log = IssueLog("a.json")
    log.add("truncated", "the file ends early")
    assert log.issues()[0].rank == -1


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


@pytest.mark.slow
@given(st.text(max_size=12), st.lists(st.text(min_size=1, max_size=12), max_size=8))
def test_only_known_words_are_offered_and_a_known_word_is_offered_first(word: str, known: list[str]) -> None:
    answer = nearest_words(word, known)
    assert answer == "" or any(repr(candidate) in answer for candidate in known)
    assert nearest_words("", known) == ""
    for candidate in known:
        assert nearest_words(candidate, known) != ""


@pytest.mark.parametrize("value", ["rank", "job"])
def test_a_word_that_is_allowed_passes(value: str) -> None:
    with pytest.raises(ValueError, match=value):  # the same word, where it is not allowed
        check_choice("by", value, ("other",))
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
    assert float(figure) * {"ns": 1e-3, "µs": 1, "ms": 1e3, "s": 1e6}[unit] == pytest.approx(us, rel=0.05, abs=0.06)
