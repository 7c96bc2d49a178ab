"""Issues: problems that were found in a file, and what was done about each. Collected while reading, shown to users."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Issue", "IssueLog"]


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
