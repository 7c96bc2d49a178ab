"""What ``htagraph validate`` says."""

from __future__ import annotations

from htagraph.output.phrases import plural

__all__ = ["TITLES", "sentences"]

TITLES = {
    "issues": "Problems in the files: repaired, dropped or unmatched",
    "support": "What these traces can answer",
    "arguments": "Event arguments, and those whose values have an unexpected type",
}
"""Titles by the name of the table."""


def sentences(problems: int, skipped: int) -> list[str]:
    """Return whether the files can be read, and what that means for other commands.

    Args:
        problems: lines of the table of problems.
        skipped: files that cannot be read.
    """
    if not problems:
        return ["Nothing had to be repaired or dropped."]
    if not skipped:
        return ["Every file can be read; what is listed above was repaired, kept or left out, as each line says."]
    return [
        f"{plural(skipped, 'file')} cannot be read, and other commands do not answer for a part of a job unasked: give "
        "them the files that can be read."
    ]
