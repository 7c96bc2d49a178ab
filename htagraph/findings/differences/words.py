"""Words that sentences on two jobs share."""

from __future__ import annotations

from htagraph.findings.limits import MAX_LISTED, MIN_SHARE, ROUNDING
from htagraph.findings.phrases import time_text

__all__ = ["calls_text", "cut", "effect_text", "few", "longer", "more_or_less", "signed"]

_MAX_LETTERS = 100
"""Letters of a call path in a sentence; chosen: about one line. Doubled, two lines."""


def longer(us: float) -> str:
    """Return whether a time grew.

    Example:
        >>> longer(1.0), longer(-1.0)
        ('longer', 'shorter')
    """
    return "longer" if us > 0 else "shorter"


def more_or_less(us: float) -> str:
    """Return by how much a time grew, µs.

    Example:
        >>> more_or_less(-1500.0)
        '1.50 ms less'
    """
    return f"{time_text(abs(us))} {'more' if us > 0 else 'less'}"


def signed(us: float) -> str:
    """Return a change with its sign, µs.

    Example:
        >>> signed(-1500.0)
        '-1.50 ms'
    """
    return f"{'+' if us > 0 else '-'}{time_text(abs(us))}"


def effect_text(us: float, change_us: float) -> str:
    """Return an effect on the step, µs, with its share of the change where it is a part of that.

    Example:
        >>> effect_text(500.0, 1000.0), effect_text(1000.0, 1000.0)
        ('500.0 µs longer (50 % of the change)', '1.00 ms longer (the whole change)')
    """
    share = us / change_us
    share_text = f" ({100 * share:.0f} % of the change)" if share < 1 - ROUNDING else " (the whole change)"
    return f"{time_text(abs(us))} {longer(us)}{share_text if share <= 1 + MIN_SHARE else ''}"


def calls_text(old: float, new: float) -> str:
    """Return how often work is called.

    Example:
        >>> calls_text(4.0, 1.0)
        '1 call instead of 4'
    """
    return f"{new:,.3g} call{'' if new == 1 else 's'} instead of {old:,.3g}"


def few(names: list[str]) -> list[str]:
    """Return names, and how many more there are if they are too many for a sentence.

    Example:
        >>> few(["a", "b"])
        ['a', 'b']
    """
    if len(names) <= MAX_LISTED:
        return names
    return [*names[: MAX_LISTED - 1], f"{len(names) - MAX_LISTED + 1} others"]


def cut(text: str) -> str:
    """Return a call path that fits into a sentence: its end says most, and the outermost name where the path is."""
    if len(text) <= _MAX_LETTERS:
        return text
    first = text.partition(" > ")[0] + " > "
    first = first if len(first) < _MAX_LETTERS // 2 else ""
    return f"{first}…{text[len(first) + 1 - _MAX_LETTERS :]}"
