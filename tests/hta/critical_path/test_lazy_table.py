"""A table that is filled on first use."""

from __future__ import annotations

from typing import Any

from htagraph.hta.critical_path.lazy_table import LazyTable


def test_it_is_filled_once_when_it_is_used_and_then_a_dictionary() -> None:
    calls: list[int] = []

    def fill() -> None:
        calls.append(1)
        table.update({1: "a", 2: "b"})

    table: LazyTable = LazyTable(fill)
    assert not calls
    assert 1 in table
    table[3] = "c"
    del table[1]
    held: dict[Any, Any] = {2: "b", 3: "c"}
    assert (dict(table), len(table), len(calls)) == (held, 2, 1)
