"""Figures as parts of sentences."""

from __future__ import annotations

import glob
import shlex
from collections.abc import Iterable

from htagraph.queries.paths import CATEGORY_WORDS

__all__ = ["and_list", "category_words", "command_line", "glob_of", "plural", "time_text"]

_US_PER_MS = 1000.0
_US_PER_S = 1_000_000.0


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
        'pauses that nothing explains'
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
    return f"*{glob.escape(name)}*"


def command_line(command: str, inputs: Iterable[str], *options: str) -> str:
    """Return what to type to run a command on the same files.

    Example:
        >>> command_line("what-if", ["my job"], "--scale", "name=*gemm*:0.5")
        "htagraph what-if 'my job' --scale 'name=*gemm*:0.5'"
    """
    return shlex.join(["htagraph", command, *inputs, *options])
