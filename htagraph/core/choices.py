"""Options that take one of a few words: refuse any other word and name the ones there are."""

from __future__ import annotations

from collections.abc import Sequence

from htagraph.core.spelling import nearest_words

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
        ValueError: by='steam' is not known: choose one of 'stream', 'rank'; did you mean 'stream'?
    """
    if isinstance(value, str) and value in allowed:
        return
    near = nearest_words(value, allowed) if isinstance(value, str) else ""
    msg = f"{option}={value!r} is not known: choose one of {', '.join(map(repr, allowed))}{near}"
    raise ValueError(msg)
