"""Options that take one of a few words: refuse any other word and name the ones there are."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

__all__ = ["check_choice"]


def check_choice(option: str, value: object, allowed: Sequence[str]) -> None:
    """Raise ValueError unless `value` is one of the `allowed` words of an option.

    Args:
        option: the option's name, for the message.
        value: what was given.
        allowed: the words that the option takes.

    Example:
        >>> check_choice("by", "steam", ("stream", "rank"))
        Traceback (most recent call last):
        ...
        ValueError: by='steam' is not known; did you mean 'stream'? Choose one of 'stream', 'rank'
    """
    if isinstance(value, str) and value in allowed:
        return
    close = get_close_matches(value, allowed, n=1) if isinstance(value, str) else []
    meant = f"; did you mean {close[0]!r}? Choose" if close else ": choose"
    msg = f"{option}={value!r} is not known{meant} one of {', '.join(map(repr, allowed))}"
    raise ValueError(msg)
