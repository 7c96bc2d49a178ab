"""Changes as a person asked for, behind the meaning in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from htagraph.whatif.options import Change

__all__ = ["MEANINGS", "asked_text", "factor_note", "factor_words", "meaning_of"]

MEANINGS: Final = {
    "scale": "this work {times}",
    "scale_network": "transfers {times}",
    "host_factor": "host work {times}",
    "inject": "rank {rank} {times}",
    "set_duration": "each of these of that length",
    "remove": "this work left out",
    "network": "transfers as on this network",
    "device": "kernels as on this device",
    "fix_straggler": "the slow rank as fast as its peers",
    "no_launch_overhead": "launch calls that take no time",
    "no_interruptions": "host code that nothing interrupts",
    "infinite_host": "host work that takes no time",
    "infinite_gpu": "kernels and copies that take no time",
    "cuda_graph": "the kernels of a step launched at once",
    "free_dataloader": "a data loader that always has the next batch",
    "free_outside": "no wait for what was not recorded",
    "exclusive_device": "devices that run nothing but the recorded work",
    "remove_sync": "calls that do not wait for the device",
    "pin_memory": "copies in pinned memory",
    "perfect_overlap": "no other work that waits for collectives",
    "no_overlap": "collectives that never overlap with computation",
    "fuse": "these kernels as one",
    "move_to_stream": "this work on that stream",
    "batch": "a batch of {new}",
}
"""Meanings behind the word "with", by the name of the change; the options of further changes say the meaning."""
_TWICE: Final = 2.0
"""The factor that has a word of its own. Chosen: the one that people ask for. Doubled, "twice" would be false."""


def factor_words(factor: float) -> str:
    """Return how fast, or how long, something is that takes so many times as long.

    Example:
        >>> factor_words(0.5), factor_words(2.0), factor_words(0.25), factor_words(1.3), factor_words(0.0)
        ('twice as fast', 'taking twice as long', '4 times as fast', 'taking 1.3 times as long', 'taking no time')
    """
    if not factor:
        return "taking no time"
    if factor == 1:
        return "as long as recorded"
    times = factor if factor > 1 else 1 / factor
    word = "twice" if times == _TWICE else f"{times:.3g} times"
    return f"taking {word} as long" if factor > 1 else f"{word} as fast"


def meaning_of(method: str, options: Mapping[str, Any]) -> str:
    """Return the meaning of a change, as words behind "with"; empty where the options of the change say the meaning.

    Example:
        >>> meaning_of("scale_network", {"factor": 4.0})
        'transfers taking 4 times as long'
    """
    times = factor_words(float(options["factor"])) if "factor" in options else ""
    return MEANINGS.get(method, "").format(**{**options, "times": times})


def asked_text(change: Change, asked: str) -> str:
    """Return the meaning of a change, with the words of the request in brackets.

    Args:
        change: the change.
        asked: the option and its value.

    Example:
        >>> from htagraph.whatif.options import CHANGES
        >>> asked_text(CHANGES["network"].read("2x"), "--network 2x")
        'transfers twice as fast (--network 2x)'
    """
    meaning = meaning_of(change.method, change.options)
    return f"{meaning} ({asked})" if meaning else asked


def factor_note(changes: Sequence[Change]) -> str:
    """Return how to write the opposite of a factor above 1, where a change has one; else an empty text.

    Example:
        >>> from htagraph.whatif.options import CHANGES
        >>> factor_note([CHANGES["network"].read("2")]), factor_note([CHANGES["network"].read("2x")])
        ('a factor is how many times as long: 2 is twice as long, 2x is twice as fast', '')
    """
    for change in changes:
        factor = float(change.options.get("factor", 0.0)) if change.method in _OF_TIMES else 0.0
        if factor > 1:
            times = "twice" if factor == _TWICE else f"{factor:g} times"
            return f"a factor is how many times as long: {factor:g} is {times} as long, {factor:g}x is {times} as fast"
    return ""


_OF_TIMES: Final = frozenset({"scale", "scale_network", "host_factor"})
"""Changes whose factor may also be written as how many times as fast."""
