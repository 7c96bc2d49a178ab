"""Numbers of processes in what is written for Perfetto."""

from __future__ import annotations

__all__ = ["PREDICTED", "PidOf", "PidOfRank"]

PREDICTED = ", predicted"
"""The process of a rank's activities at predicted times, beside the recorded ones: what its name ends in."""
_PIDS_OF_RANK = 1000
"""Processes that a rank may have before its numbers meet the next rank's; chosen: files have a dozen. Doubled, nothing
changes but the numbers."""


class PidOf(dict[tuple[int, "int | str"], int]):
    """(rank, pid in the file) → pid in what is written: no two ranks share one.

    Example:
        >>> pid_of = PidOf()
        >>> pid_of[0, 4711], pid_of[0, "Spans"], pid_of[1, 4711], pid_of[0, 4711]
        (1000, 1001, 2000, 1000)
    """

    def __missing__(self, key: tuple[int, int | str]) -> int:
        taken = sum(rank == key[0] for rank, _ in self)
        self[key] = pid = (key[0] + 1) * _PIDS_OF_RANK + taken
        return pid


class PidOfRank(PidOf):
    """The same with one process for all that a rank recorded, and one for its predicted times.

    Example:
        >>> pid_of = PidOfRank()
        >>> pid_of[0, 4711], pid_of[0, "Spans"], pid_of[0, PREDICTED]
        (1000, 1000, 1001)
    """

    def __missing__(self, key: tuple[int, int | str]) -> int:
        return (key[0] + 1) * _PIDS_OF_RANK + (key[1] == PREDICTED)
