"""Errors for programs: what ``--format json`` prints where a command fails."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

__all__ = ["error_envelope", "wants_json"]

_OPTIONS = ("--format", "-f")
_JSON = ("--format=json", "-fjson")
_SCHEMA_VERSION = 1
"""That of `htagraph.output.report`, which a command that fails need not import."""


def wants_json(words: Sequence[str]) -> bool:
    """Return whether the words of a command line ask for JSON.

    Example:
        >>> wants_json(["summary", "x", "-f", "json"]), wants_json(["summary", "x", "-o", "a.json"])
        (True, False)
    """
    own = words[: words.index("--")] if "--" in words else words
    return any(word in _JSON for word in own) or any(a in _OPTIONS and b == "json" for a, b in pairwise(own))


def error_envelope(message: str, words: Sequence[str], code: int) -> dict[str, Any]:
    """Return the envelope of a command that failed.

    Args:
        message: one line, such as ``x.json: is damaged; record it again``.
        words: of the command line.
        code: exit code.

    Returns:
        ``schema_version``, ``tool``, ``tool_version``, ``command`` (its word, null if there is none) and ``error``:
        ``message``, ``file`` (that it is about, or null), ``hint`` (what to do, or null) and ``exit_code``.

    Example:
        >>> error_envelope("a.json: no such file; give another", ["idle", "a.json"], 1)["error"]["hint"]
        'give another'
    """
    hint = message.rpartition("; ")[2] if "; " in message else None
    error = {"message": message, "file": _file_of(message, words), "hint": hint, "exit_code": code}
    command = next((word for word in words if not word.startswith("-")), None)
    return {
        "schema_version": _SCHEMA_VERSION, "tool": "htagraph", "tool_version": version("htagraph"), "command": command,
        "error": error,
    }  # fmt: skip


def _file_of(message: str, words: Sequence[str]) -> str | None:
    """Return the path that a message begins with, if it is one that was given or is there."""
    first = message.partition(": ")[0] if ": " in message else ""
    first = first.removeprefix("--output ")
    try:
        return first if first and (first in words or Path(first).exists()) else None
    except (OSError, ValueError):  # too long for a path, or with characters that none has
        return None
