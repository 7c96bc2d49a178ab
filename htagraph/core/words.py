"""Parts of messages: what a misspelt word may have meant, which words an option takes, how a time is written."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

from htagraph.core.errors import shown

__all__ = ["check_choice", "check_type", "nearest_words", "time_text"]

_MAX_WORDS = 3
"""Words offered; chosen: more of them stop being a hint. Doubled, an error lists up to six."""
_MIN_SIMILARITY = 0.6
"""Similarity, 0 to 1, from which a known word is offered: the default of `difflib.get_close_matches`, a chosen value
that finds one wrong, missing or swapped letter in words of three letters and more. Doubled, nothing is offered."""


def nearest_words(word: str, known: Iterable[object]) -> str:
    """Return the end of an error about an unknown word: the known words most like it, or nothing if none is.

    Case does not count, and a word that begins with the unknown one is like it too.

    Example:
        >>> nearest_words("knd", ["kind", "name", "rank"])
        "; did you mean 'kind'?"
        >>> nearest_words("zzz", ["kind", "name", "rank"])
        ''
    """
    by_lower = {str(candidate).lower(): str(candidate) for candidate in known}
    lower = word.lower()
    alike = difflib.get_close_matches(lower, by_lower, n=_MAX_WORDS, cutoff=_MIN_SIMILARITY)
    longer = [candidate for candidate in by_lower if lower and candidate.startswith(lower) and candidate not in alike]
    words = [repr(by_lower[candidate]) for candidate in [*alike, *longer][:_MAX_WORDS]]
    if not words:
        return ""
    *others, last = words
    return f"; did you mean {', '.join(others)} or {last}?" if others else f"; did you mean {last}?"


def check_choice(option: str, value: object, allowed: Sequence[str]) -> None:
    """Raise ValueError unless `value` is one of the `allowed` words of an option.

    Example:
        >>> check_choice("by", "steam", ("stream", "rank"))
        Traceback (most recent call last):
        ...
        ValueError: by='steam' is not known: choose one of 'stream', 'rank'; did you mean 'stream'?
    """
    if isinstance(value, str) and value in allowed:
        return
    near = nearest_words(value, allowed) if isinstance(value, str) else ""
    msg = f"{option}={value!r} is not known: choose one of {', '.join(map(repr, allowed))}{near}"
    raise ValueError(msg)


def check_type(value: object, wanted: type | tuple[type, ...], takes: str) -> None:
    """Raise TypeError unless a value is of a type.

    `takes` is the beginning of the message: the function and what it takes.

    Example:
        >>> check_type("data/demo", int, "htagraph.digest takes the graph of one rank")
        Traceback (most recent call last):
        ...
        TypeError: htagraph.digest takes the graph of one rank, not 'data/demo' (str)
    """
    if not isinstance(value, wanted):
        msg = f"{takes}, not {shown(value)} ({type(value).__name__})"
        raise TypeError(msg)


_NS_FROM = 0.1
"""µs below which a time is given in ns: one digit behind the point would say little of it. Doubled, 150 ns are not
given as 0.1 µs."""


def time_text(us: float) -> str:
    """Return a time in the unit that suits it.

    Example:
        >>> time_text(0.013), time_text(12.34), time_text(26_241.7), time_text(2_500_000)
        ('13 ns', '12.3 µs', '26.2 ms', '2.50 s')
    """
    if abs(us) >= 1e6:
        return f"{us / 1e6:.2f} s"
    if abs(us) >= 1e3:
        return f"{us / 1e3:.{2 if abs(us) < 1e4 else 1}f} ms"
    if 0 < abs(us) < _NS_FROM:
        return f"{1e3 * us:.0f} ns"
    return f"{us:.1f} µs"
