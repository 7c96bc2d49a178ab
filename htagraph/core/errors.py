"""Errors a user can act on: each message names the file or argument, what is wrong, and what to do.

HtagraphError
├── TraceError             a file cannot be used as a trace
│   ├── NotATraceError     the file is something else (protobuf, zip, JSON without events)
│   │   └── OtherJsonError JSON without events, such as a configuration or an execution trace
│   └── DamagedTraceError  the file was a trace, but its events cannot be recovered
├── RankError              files do not form one job (two files of one rank, two runs in one folder, absent rank)
├── GraphError             a graph breaks one of its invariants
├── StoredGraphError       a file does not hold a saved graph, or a damaged one
└── SelectionError         a selection names something the graph does not have
    └── NothingMeetsError  a selection is sound, but nothing in the graph meets it
"""

from __future__ import annotations

__all__ = [
    "DamagedTraceError", "GraphError", "HtagraphError", "NotATraceError", "NothingMeetsError", "OtherJsonError",
    "RankError", "SelectionError", "StoredGraphError", "TraceError", "printable", "shown",
]  # fmt: skip

_SHOWN = 60
"""Characters of a value that a message shows. Chosen: longer values hide what is wrong with them. Doubled, messages
about long values take another line."""


class HtagraphError(Exception):
    """Base of every error that htagraph raises on purpose."""


class TraceError(HtagraphError):
    """A file cannot be used as a trace."""


class NotATraceError(TraceError):
    """The file is not a Kineto trace: another format, or JSON without events."""


class OtherJsonError(NotATraceError):
    """The file is sound JSON of another kind, such as a configuration or an execution trace."""


class DamagedTraceError(TraceError):
    """The file was a Kineto trace, but is damaged beyond what can be recovered safely."""


class RankError(HtagraphError):
    """The files do not form one job: a rank twice, two runs mixed, or a rank that is not there."""


class GraphError(HtagraphError):
    """A graph breaks one of its invariants; the message names the rule and the events."""


class StoredGraphError(HtagraphError):
    """A file does not hold a graph that this release can open; load the traces again."""


class SelectionError(HtagraphError):
    """A selection asks for something the graph does not have."""


class NothingMeetsError(SelectionError):
    """Nothing in this graph meets a selection, though something in another one may."""


def printable(text: str) -> str:
    r"""Return a text on one line, without characters that command a terminal or turn the direction of writing.

    Example:
        >>> printable("a\x1b[31mb\u202ec")
        'a [31mb c'
    """
    return text if text.isprintable() else "".join(letter if letter.isprintable() else " " for letter in text)


def shown(value: object) -> str:
    """Return a value from a file as a message shows it: as Python writes it, and cut to a few dozen characters.

    Example:
        >>> shown("a" * 1000), shown([1, 2])
        ("'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…", '[1, 2]')
    """
    try:
        text = repr(value[:_SHOWN] if isinstance(value, str) else value)
    except (ValueError, RecursionError):  # an integer of thousands of digits, or lists in lists
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
