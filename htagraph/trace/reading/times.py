"""Timestamps of every era → int64 ns, without a float on the way where a float would lose a nanosecond.

Kineto wrote whole microseconds since the epoch until March 2024, then microseconds with three decimals, for two weeks
with the fraction not zero-padded (``12.5`` meant 12.005 µs), and since then relative to ``baseTimeNanoseconds``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.errors import TraceError

__all__ = ["EXACT_FLOAT_US", "FractionStyle", "numbers_to_ns", "padded", "text_to_ns"]

Ints: TypeAlias = npt.NDArray[np.int64]

EXACT_FLOAT_US = 2.0**43
"""Below this many µs a float64 is within half a nanosecond of the decimal it was read from."""

_ENOUGH = 50
_LAST_NS = 2**63 - 1000
_LAST_US = _LAST_NS // 1000


def numbers_to_ns(values: Sequence[int | float]) -> Ints:
    """Return µs as ns; floats must lie below `EXACT_FLOAT_US`.

    Example:
        >>> numbers_to_ns([1, 2]).tolist(), numbers_to_ns([12.005, 3]).tolist()
        ([1000, 2000], [12005, 3000])
    """
    array = np.array(values)
    if array.dtype.kind == "i":
        _refuse_out_of_range(array)
        return array.astype(np.int64) * 1000
    array = array.astype(np.float64)
    _refuse_out_of_range(array)
    # whole and fraction apart: their sum in ns may need more than a float's 53 bits, and rounding twice may miss by one
    whole = np.floor(array)
    return whole.astype(np.int64) * 1000 + np.rint((array - whole) * 1000).astype(np.int64)


def _refuse_out_of_range(array: npt.NDArray[Any]) -> None:
    if array.size and not (array.min() > -_LAST_US and array.max() < _LAST_US):
        worst = array[np.argmax(np.abs(array.astype(np.float64)))]
        msg = f"{worst} is not a time in µs"
        raise TraceError(msg)


@dataclass
class FractionStyle:
    """Evidence, over a whole file, of how the fractions of its microseconds were written."""

    varied: int = 0
    """Fractions with one or two digits."""
    decimal: int = 0
    """Fractions that only a decimal number has: a leading zero, or more than three digits."""
    trailing_zero: int = 0
    """Fractions such as ``120`` or ``10``, which a shortest-decimal writer would have cut."""

    def note(self, fraction: str) -> None:
        """Take one fraction's digits into account."""
        digits = len(fraction)
        self.varied += digits < 3
        self.decimal += digits > 3 or (1 < digits <= 3 and fraction[0] == "0")
        self.trailing_zero += 1 < digits <= 3 and fraction[-1] == "0"

    @property
    def unpadded(self) -> bool:
        """Whether ``12.5`` means 12.005 µs in this file."""
        evidence = self.trailing_zero or self.varied >= _ENOUGH
        return bool(self.varied and not self.decimal and evidence)


def text_to_ns(texts: Sequence[str], style: FractionStyle) -> tuple[Ints, Ints]:
    """Return (ns, ns if fractions turn out to be unpadded) of decimal texts in µs, exactly.

    Raises:
        TraceError: a text is no number.

    Example:
        >>> padded, unpadded = text_to_ns(["1711900000000012.5"], FractionStyle())
        >>> padded[0] % 100_000, unpadded[0] % 100_000
        (np.int64(12500), np.int64(12005))
    """
    padded = np.empty(len(texts), dtype=np.int64)
    unpadded = np.empty(len(texts), dtype=np.int64)
    for i, text in enumerate(texts):
        whole, _, fraction = text.strip('"').partition(".")
        if fraction.isdigit() and len(fraction) <= 3 and whole.lstrip("-").isdigit():
            style.note(fraction)
            sign = -1 if whole.startswith("-") else 1
            base = int(whole) * 1000
            if abs(base) >= _LAST_NS:
                raise _no_time(text)
            padded[i] = base + sign * int(fraction.ljust(3, "0"))
            unpadded[i] = base + sign * int(fraction)
        else:
            padded[i] = unpadded[i] = _decimal_to_ns(text.strip('"'), style)
    return padded, unpadded


def padded(text: str) -> str:
    """Return a time in µs whose fraction lacks zeros at its start as a decimal number.

    Example:
        >>> padded("12.5"), padded("12")
        ('12.005', '12')
    """
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction:0>3}" if fraction.isdigit() else text


def _decimal_to_ns(text: str, style: FractionStyle) -> int:
    try:
        number = Decimal(text)
        in_range = -_LAST_US < number < _LAST_US
    except InvalidOperation:  # no number, or NaN, which cannot be compared
        raise _no_time(text) from None
    if not in_range:
        raise _no_time(text)
    if "." in text:
        style.note(text.partition(".")[2])
    return round(number * 1000)


def _no_time(text: str) -> TraceError:
    return TraceError(f"{text!r} is not a time in µs")
