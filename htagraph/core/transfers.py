"""The names of copies and fills of memory: read from arguments first, from names second.

Profilers write the direction and the two kinds of memory either into the name (`Memcpy HtoD (Pinned -> Device)`) or
into arguments beside a bare name (`Memcpy`). Every reader gives copies the name with both, so that one kind of copy has
one name in files of all profilers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

__all__ = ["DIRECTIONS", "copy_name", "fill_name"]

DIRECTIONS: Final = {
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
    11: "HtoD",
    12: "DtoH",
    13: "DtoD",
}
"""The words for directions of copies, by CUPTI's numbers; the last three are of unified memory."""
_MEMORY: Final = ("Unknown", "Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static")
"""The words for kinds of memory, by CUPTI's numbers (`CUpti_ActivityMemoryKind`)."""
_ENDS: Final = {"Pageable": "H", "Pinned": "H", "Device": "D", "Device Static": "D", "Array": "A"}
"""Host, device or array: where a kind of memory lies. Managed memory may lie anywhere."""
_NO_WORD: Final = _MEMORY[0]
_UNSTATED: Final = frozenset({"", _NO_WORD})


@lru_cache(maxsize=256)  # combinations of ten directions and eight kinds of memory that files have: a dozen
def copy_name(name: str, direction: str = "", source: str = "", target: str = "") -> str:
    """Return the name of a copy, given its name and three arguments as in the file; an absent argument is empty.

    A direction that no argument says follows from the kinds of memory. Without any argument, the name stays.

    Example:
        >>> copy_name("Memcpy", "HtoD", "pinned", "device"), copy_name("Memcpy", "", "device", "pageable")
        ('Memcpy HtoD (Pinned -> Device)', 'Memcpy DtoH (Device -> Pageable)')
        >>> copy_name("Memcpy HtoD (Pageable -> Device)"), copy_name("Memcpy", "1", "2", "3")
        ('Memcpy HtoD (Pageable -> Device)', 'Memcpy HtoD (Pinned -> Device)')
    """
    source_memory = _memory_word(source)
    target_memory = _memory_word(target)
    word = _direction_word(direction)
    if word in _UNSTATED and source_memory in _ENDS and target_memory in _ENDS:
        word = f"{_ENDS[source_memory]}to{_ENDS[target_memory]}"
    if {word, source_memory, target_memory} <= _UNSTATED:
        return name
    return f"Memcpy {word or _NO_WORD} ({source_memory or _NO_WORD} -> {target_memory or _NO_WORD})"


@lru_cache(maxsize=64)  # kinds of memory that files have: a few
def fill_name(name: str, memory: str = "") -> str:
    """Return the name of a memset, given its name and its kind of memory as in the file; an absent kind is empty.

    Example:
        >>> fill_name("Memset", "3"), fill_name("Memset (Device)")
        ('Memset (Device)', 'Memset (Device)')
    """
    kind_of_memory = _memory_word(memory)
    return name if kind_of_memory in _UNSTATED else f"Memset ({kind_of_memory})"


def _memory_word(written: str) -> str:
    """Return the usual word for a kind of memory, which a file gives as a word or as CUPTI's number."""
    if written.isdecimal():
        number = int(written)
        return _MEMORY[number] if number < len(_MEMORY) else _NO_WORD
    return written.replace("_", " ").title()


def _direction_word(written: str) -> str:
    """Return the usual word for a direction, which a file gives as a word or as CUPTI's number."""
    if written.isdecimal():
        return DIRECTIONS.get(int(written), _NO_WORD)
    return _NO_WORD if written.lower() == _NO_WORD.lower() else written
