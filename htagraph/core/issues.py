"""What was wrong with a file and what was done about it: collected while reading, shown to the user."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Issue", "IssueLog"]


@dataclass(frozen=True)
class Issue:
    """One kind of damage or oddity in one file."""

    file: str
    what: str
    """A stable identifier such as ``"gzip_truncated"``."""
    detail: str
    count: int
    """How many events or places were affected."""
    rank: int = -1


@dataclass
class IssueLog:
    """Collects the issues of one file; equal ones are counted, not repeated."""

    file: str
    _found: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, what: str, detail: str, count: int = 1) -> None:
        """Note `count` occurrences of an issue."""
        if count:
            self._found[what, detail] = self._found.get((what, detail), 0) + count

    def has(self, what: str) -> bool:
        """Return whether an issue was noted."""
        return any(found == what for found, _ in self._found)

    def issues(self, rank: int = -1) -> tuple[Issue, ...]:
        """Return what was found, in the order of first occurrence."""
        return tuple(Issue(self.file, what, detail, count, rank) for (what, detail), count in self._found.items())
