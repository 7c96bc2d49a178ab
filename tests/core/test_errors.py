from __future__ import annotations

import pytest

from htagraph.core import errors

CLASSES = [name for name in errors.__all__ if name[0].isupper()]
OWN = [getattr(errors, name) for name in CLASSES]


@pytest.mark.parametrize("error", OWN, ids=CLASSES)
def test_one_except_clause_catches_every_error(error: type[Exception]) -> None:
    assert issubclass(error, errors.HtagraphError)
    assert not issubclass(error, ValueError | OSError | KeyError)  # whoever catches those must not catch these


def test_an_unusable_file_is_a_trace_error() -> None:
    assert [error for error in OWN if issubclass(error, errors.TraceError)] == [
        errors.DamagedTraceError, errors.NotATraceError, errors.OtherJsonError, errors.TraceError,
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
