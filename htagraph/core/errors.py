"""What users are told: errors, problems of files, parts of messages.

An error names the file or argument, what is wrong, and what to do:

HtagraphError
├── TraceError             a file cannot be used as a trace
│   ├── NotATraceError     the file is something else (protobuf, zip, JSON without events)
│   │   └── OtherFileError a sound file of another kind, such as another program's database
│   │       └── OtherJsonError JSON without events, such as a configuration or an execution trace
│   └── DamagedTraceError  the file was a trace, but its events cannot be recovered
├── RankError              files do not form one job (two files of one rank, two runs in one folder, absent rank)
├── GraphError             a graph breaks one of its invariants
├── StoredGraphError       a file does not hold a saved graph, or a damaged one
└── SelectionError         a selection names something the graph does not have
    └── NothingMeetsError  a selection is sound, but nothing in the graph meets it
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

__all__ = [
    "DamagedTraceError", "GraphError", "HtagraphError", "Issue", "IssueLog", "NotATraceError", "NothingMeetsError",
    "OtherFileError", "OtherJsonError", "RankError", "SelectionError", "StoredGraphError", "TraceError", "check_choice",
    "check_type", "nearest_words", "printable", "shown", "time_text",
]  # fmt: skip

_SHOWN = 60
"""Characters of a value that a message shows. Chosen: longer values hide what is wrong with them. Doubled, messages
about long values take another line."""


class HtagraphError(Exception):
    """Base of every error that htagraph raises on purpose."""


class TraceError(HtagraphError):
    """A file cannot be used as a trace."""


class NotATraceError(TraceError):
    """The file is not a trace: another format, or JSON without events."""


class OtherFileError(NotATraceError):
    """The file is sound, and of another kind: beside traces it is left out."""

    code = "other_file"


class OtherJsonError(OtherFileError):
    """The file is sound JSON of another kind, such as a configuration or an execution trace."""

    code = "other_json"


class DamagedTraceError(TraceError):
    """The file was a trace, but is damaged beyond what can be recovered safely."""


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


@dataclass(frozen=True)
class Issue:
    """One kind of problem in one file."""

    file: str
    what: str
    """Code of the problem, such as ``"gzip_truncated"``; stable between releases."""
    detail: str
    """The problem and what was done about it, for users."""
    count: int
    """Number of events or places in the file that are affected."""
    rank: int = -1
    """Rank that the file belongs to, -1 if unknown."""


@dataclass
class IssueLog:
    """Collects the issues of one file; equal issues are counted, not repeated."""

    file: str
    _counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, what: str, detail: str, count: int = 1) -> None:
        """Add `count` occurrences of an issue; none if `count` is 0."""
        if count:
            self._counts[what, detail] = self._counts.get((what, detail), 0) + count

    def has(self, what: str) -> bool:
        """Return True if an issue with this code was added."""
        return any(code == what for code, _ in self._counts)

    def issues(self, rank: int = -1) -> tuple[Issue, ...]:
        """Return the issues in the order of their first occurrence."""
        return tuple(Issue(self.file, what, detail, count, rank) for (what, detail), count in self._counts.items())


_MAX_WORDS = 3
"""Words offered; chosen: more of them stop being a hint. Doubled, an error lists up to six."""


def nearest_words(word: str, known: Iterable[object]) -> str:
    """Return the end of an error about an unknown word: the known words most like it, or nothing if none is.

    Case does not count, and a word that begins with the unknown one is like it too.

    Example:
        >>> nearest_words("knd", ["kind", "name", "rank"])
        "; did you mean 'kind'?"
        >>> nearest_words("zzz", ["kind", "name", "rank"])
        ''
    """
    import difflib  # which few messages need

    by_lower = {str(candidate).lower(): str(candidate) for candidate in known}
    lower = word.lower()
    alike = difflib.get_close_matches(lower, by_lower, n=_MAX_WORDS)
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


_NS_FROM = 1.0
"""µs below which a time is given in ns: one digit behind the point makes two times look alike that are not. Doubled,
1.5 µs are given as 1500 ns."""


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
