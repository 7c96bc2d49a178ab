"""What a misspelt word may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["nearest_words"]

_MAX_WORDS = 3
"""Words offered; chosen: more of them stop being a hint. Doubled, an error lists up to six."""
_MIN_SIMILARITY = 0.6
"""Similarity, 0 to 1, from which a known word is offered: the default of `difflib.get_close_matches`, a chosen value
that finds one wrong, missing or swapped letter in words of three letters and more. Doubled, nothing is offered."""


def nearest_words(word: str, known: Iterable[object]) -> str:
    """Return the end of an error about an unknown word: the known words most like it, or nothing if none is.

    Case does not count, and a word that begins with the unknown one is like it too.

    Args:
        word: what was given.
        known: what could have been given; anything with a text.

    Returns:
        A question that begins with a semicolon, to append to the error's sentence, or an empty text.

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
