"""How many pairs of a query and a key attention computes, under a causal mask or a window."""

from __future__ import annotations

__all__ = ["attended_pairs"]


def attended_pairs(queries: int, keys: int, *, first: int | None = None, last: int | None = None) -> int:
    """Return the number of pairs of a query and a key that are compared.

    Query `i` sees the keys from ``i + first`` to ``i + last``, those of them that there are.

    Args:
        queries: how many queries there are.
        keys: how many keys there are.
        first: the first key that query 0 sees, also below 0; None for all that come before.
        last: the last key that query 0 sees, at least `first` − 1; None for all that come after.

    Example:
        >>> attended_pairs(3, 3), attended_pairs(3, 3, last=0)  # without a mask; causal
        (9, 6)
    """
    begun = queries * keys if last is None else _sum_of_ramp(queries, keys, last + 1)
    return begun - (0 if first is None else _sum_of_ramp(queries, keys, first))


def _sum_of_ramp(count: int, most: int, begin: int) -> int:
    """Return the sum of `begin`, `begin` + 1, … (`count` numbers), each between 0 and `most` at least and at most."""
    low = min(max(-begin, 0), count)
    high = min(max(most - begin, low), count)
    rising = (high - low) * (2 * begin + low + high - 1) // 2
    return rising + (count - high) * most
