"""A table that is filled when somebody looks at it: networkx's tables of the nodes and edges of a large graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

__all__ = ["LazyTable"]


class LazyTable(MutableMapping[Any, Any]):
    """A dictionary that calls `fill`, which writes into it, when it is used for the first time."""

    def __init__(self, fill: Callable[[], None]) -> None:
        self._fill: Callable[[], None] | None = fill
        self._held: dict[Any, Any] = {}

    def _content(self) -> dict[Any, Any]:
        if self._fill is not None:
            fill, self._fill = self._fill, None
            fill()
        return self._held

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401 - networkx's
        return self._content()[key]

    def __setitem__(self, key: Any, value: Any) -> None:  # noqa: ANN401 - networkx's
        self._content()[key] = value

    def __delitem__(self, key: Any) -> None:  # noqa: ANN401 - networkx's
        del self._content()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._content())

    def __len__(self) -> int:
        return len(self._content())

    def __contains__(self, key: object) -> bool:
        return key in self._content()
