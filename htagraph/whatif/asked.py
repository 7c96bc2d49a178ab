"""Changes as a person asked for them, with their meaning where a number may be taken for the opposite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from htagraph.whatif.options import Change

__all__ = ["MEANINGS", "asked_text"]

MEANINGS: Final = {"scale_network": "transfers take {factor:g} times as long"}
"""Meanings of changes whose numbers can be taken for the opposite, by the name of the change."""


def asked_text(change: Change, asked: str) -> str:
    """Return the words that asked for a change, with the meaning of its number.

    Args:
        change: the change.
        asked: the option and its value.

    Example:
        >>> from htagraph.whatif.options import CHANGES
        >>> asked_text(CHANGES["network"].read("2x"), "--network 2x")
        '--network 2x (transfers take 0.5 times as long)'
    """
    meaning = MEANINGS.get(change.method, "")
    return f"{asked} ({meaning.format(**change.options)})" if meaning else asked
