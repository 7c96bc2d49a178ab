"""Arguments of another type than a function takes: an error that names the function, and what to give it."""

from __future__ import annotations

from htagraph.core.errors import shown

__all__ = ["check_type"]


def check_type(value: object, wanted: type | tuple[type, ...], takes: str) -> None:
    """Raise TypeError unless a value is of a type.

    Args:
        value: what was given.
        wanted: the type, or several.
        takes: the function and what it takes, the beginning of the message.

    Example:
        >>> check_type("data/demo", int, "htagraph.digest takes the graph of one rank")
        Traceback (most recent call last):
        ...
        TypeError: htagraph.digest takes the graph of one rank, not 'data/demo' (str)
    """
    if not isinstance(value, wanted):
        msg = f"{takes}, not {shown(value)} ({type(value).__name__})"
        raise TypeError(msg)
