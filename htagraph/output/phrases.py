"""Figures, names and commands as parts of sentences."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from htagraph.core.naming import exact_glob

__all__ = [
    "CATEGORY_WORDS", "and_list", "category_words", "command_line", "glob_of", "plural", "short_number", "size_text",
    "time_text",
]  # fmt: skip

CATEGORY_WORDS = {
    "host": "host code (operators and Python)", "launch": "launch calls", "computation": "computation",
    "communication": "transfers between ranks", "waiting": "pauses between kernels",
    "sync": "returns from blocking calls", "memory": "memory copies", "data_loading": "the data loader",
    "gap": "unexplained pauses", "head": "time before the first recorded activity",
}  # fmt: skip
"""What the time of a segment of a critical path was spent on, by its category."""

_US_PER_MS = 1000.0  # µs
_US_PER_S = 1_000_000.0  # µs
_BYTES_PER_GB, _BYTES_PER_MB = 1e9, 1e6
"""Decimal, as bandwidths are."""


def time_text(us: float) -> str:
    """Return a time in the unit that suits it.

    Example:
        >>> time_text(12.34), time_text(26_241.7), time_text(2_500_000)
        ('12.3 µs', '26.2 ms', '2.50 s')
    """
    if abs(us) >= _US_PER_S:
        return f"{us / _US_PER_S:.2f} s"
    if abs(us) >= _US_PER_MS:
        return f"{us / _US_PER_MS:.{2 if abs(us) < 10 * _US_PER_MS else 1}f} ms"
    return f"{us:.1f} µs"


def size_text(count: float) -> str:
    """Return a number of bytes in the unit that suits it.

    Example:
        >>> size_text(2.5e9), size_text(4e5)
        ('2.50 GB', '0.4 MB')
    """
    return f"{count / _BYTES_PER_GB:.2f} GB" if count >= _BYTES_PER_GB else f"{count / _BYTES_PER_MB:.1f} MB"


def short_number(value: float) -> str:
    """Return a number with about three digits.

    Example:
        >>> short_number(1234.4), short_number(12.34), short_number(1.234), short_number(0.01234), short_number(0.0)
        ('1,234', '12.3', '1.23', '0.012', '0')
    """
    size = abs(value)
    return f"{value:,.{0 if size >= 1000 else 1 if size >= 10 else 2 if size >= 1 else 3}f}" if value else "0"


def and_list(words: Iterable[str]) -> str:
    """Return words as they are listed in a sentence.

    Example:
        >>> and_list(["a", "b", "c"])
        'a, b and c'
    """
    *first, last = list(words)
    return f"{', '.join(first)} and {last}" if first else last


def category_words(category: str) -> str:
    """Return what a category of a critical path is.

    Example:
        >>> category_words("gap")
        'unexplained pauses'
    """
    return CATEGORY_WORDS.get(category, category)


def plural(count: int, word: str) -> str:
    """Return a number of things.

    Example:
        >>> plural(1, "hop"), plural(2000, "hop")
        ('1 hop', '2,000 hops')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def glob_of(name: str) -> str:
    """Return a glob that fits a name, however it goes on before and behind it.

    Example:
        >>> glob_of("at::native::reduce_kernel")
        '*at::native::reduce_kernel*'
    """
    return f"*{exact_glob(name)}*"


def command_line(command: str, inputs: Iterable[str], *options: str) -> str:
    """Return what to type to run a command on the same files.

    Example:
        >>> command_line("what-if", ["my job"], "--scale", "name=*gemm*:0.5")
        "htagraph what-if 'my job' --scale 'name=*gemm*:0.5'"
    """
    return shlex.join(["htagraph", command, *inputs, *options])
