"""Times as parts of texts."""

from __future__ import annotations

__all__ = ["time_text"]

_NS_PER_US = 1000.0  # ns
_NS_FROM = 0.1
"""µs below which a time is given in ns: one digit behind the point would say little of it. Doubled, 150 ns are not
given as 0.1 µs."""
_US_PER_MS = 1000.0  # µs
_US_PER_S = 1_000_000.0  # µs


def time_text(us: float) -> str:
    """Return a time in the unit that suits it.

    Example:
        >>> time_text(0.013), time_text(12.34), time_text(26_241.7), time_text(2_500_000)
        ('13 ns', '12.3 µs', '26.2 ms', '2.50 s')
    """
    if abs(us) >= _US_PER_S:
        return f"{us / _US_PER_S:.2f} s"
    if abs(us) >= _US_PER_MS:
        return f"{us / _US_PER_MS:.{2 if abs(us) < 10 * _US_PER_MS else 1}f} ms"
    if 0 < abs(us) < _NS_FROM:
        return f"{_NS_PER_US * us:.0f} ns"
    return f"{us:.1f} µs"
