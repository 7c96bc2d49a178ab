"""The rank that a file's name gives: what counts where its header does not say one, or was lost."""

from __future__ import annotations

import re

from htagraph.core.errors import RankError
from htagraph.trace.remote import TracePath

__all__ = ["RANK_LIMIT", "checked_rank", "number_in_name", "pattern_of_name", "rank_in_name"]

RANK_LIMIT = 2**31
"""Ranks are below this: rank columns are int32. A larger number in a header or a file name is not a rank."""
_RANK = re.compile(r"(?:(?P<of>[a-z]+)[-_ .]?)?(?<![a-z])rank[-_ =.]?(?P<number>\d+)", re.IGNORECASE)
_WITHIN = frozenset(("local", "node", "host", "group", "tp", "pp", "dp", "cp", "ep", "mp", "sp", "fsdp"))
"""Words before ``rank`` in numbers that count within a part of the job only, as in ``local_rank0_rank9``."""
_LAST_NUMBER = re.compile(r"(\d+)(?=\D*$)")


def rank_in_name(path: TracePath) -> int:
    """Return the rank that a file's name has, as in ``rank-3``; -1 if it has none, or several that differ.

    Numbers within a part of the job, as in ``local_rank-3``, are none.

    Raises:
        RankError: the number is too large to be one.
    """
    found = [each for each in _RANK.finditer(path.name) if (each["of"] or "").lower() not in _WITHIN]
    ranks = {int(each["number"]) for each in found}
    return checked_rank(ranks.pop(), path) if len(ranks) == 1 else -1


def checked_rank(rank: int, path: TracePath) -> int:
    """Return a number that can be a rank.

    Raises:
        RankError: it cannot.
    """
    if not (isinstance(rank, int) and 0 <= rank < RANK_LIMIT):
        msg = f"{path}: {rank!r} is not a rank; give the rank of each file: load({{0: 'a.json', 1: 'b.json'}})"
        raise RankError(msg)
    return rank


def number_in_name(path: TracePath) -> int:
    """Return the last number in a file's name, as the 3 of ``kineto_3.json``; -1 if it has none."""
    number = _LAST_NUMBER.search(path.name)
    return int(number[1]) if number else -1


def pattern_of_name(path: TracePath) -> str:
    """Return a file's name without its last number: equal for files of which only that differs."""
    return _LAST_NUMBER.sub("#", path.name)
