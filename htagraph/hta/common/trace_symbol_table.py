"""TraceSymbolTable: the numbers that stand for names and categories in HTA's frames."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from htagraph.hta.shapes.names import is_step

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TraceSymbolTable"]


class TraceSymbolTable:
    """Names and categories, numbered; as HTA's `TraceSymbolTable`, with the methods that its users call."""

    NULL: int = -128

    def __init__(self) -> None:
        self.sym_table: list[str] = []
        self.sym_index: dict[str, int] = {}

    def add_symbols(self, symbols: Iterable[str]) -> None:
        """Number the symbols that have no number yet."""
        for symbol in symbols:
            if symbol not in self.sym_index:
                self.sym_index[symbol] = len(self.sym_table)
                self.sym_table.append(symbol)

    def is_empty(self) -> bool:
        """Return whether no symbol has a number."""
        return not self.sym_table

    def get_sym_id_map(self) -> dict[str, int]:
        """Return the number of each symbol."""
        return self.sym_index

    def get_sym_table(self) -> list[str]:
        """Return the symbol of each number."""
        return self.sym_table

    def find_matches(self, patterns: list[str]) -> list[int]:
        """Return the numbers of the symbols in which one of the regular expressions is found."""
        return [self.sym_index[symbol] for symbol in self.find_matched_symbols(patterns)]

    def find_matched_symbols(self, patterns: list[str]) -> list[str]:
        """Return the symbols in which one of the regular expressions is found."""
        wanted = [re.compile(pattern) for pattern in patterns]
        return [symbol for symbol in self.sym_table if any(each.search(symbol) for each in wanted)]

    def get_profiler_step_ids(self) -> list[int]:
        """Return the numbers of the names of profiler steps."""
        return [number for symbol, number in self.sym_index.items() if is_step(symbol)]

    def add_symbols_to_trace_df(self, trace_df: pd.DataFrame, col: str) -> None:
        """Put the symbols in the place of their numbers in a column of the caller's frame."""
        known = len(self.sym_table)
        trace_df[col] = [self.sym_table[i] if 0 <= i < known else "" for i in trace_df[col]]
