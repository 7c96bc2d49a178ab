"""Loading for commands in tests: each job of the repository is read once for all commands of a worker."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from htagraph.graph.tolerances import LIMITS
from tests.reach import DATA

__all__ = ["loading_once"]

_kept: dict[str, Any] = {}
"""What was loaded, by the paths as given, where each leads, the options and the limits."""


def loading_once(load: Callable[..., Any]) -> Callable[..., Any]:
    """Return `htagraph.load` for commands, as a function that reads each job of the repository's data once.

    Files of the data never change, and no command changes a graph (`tests/laws`). Jobs of other folders, on workers,
    with captures, with progress shown or from the cache, are loaded as they are, and so are they under other limits.
    """

    def load_once(paths: Any, *chosen: Any, **options: Any) -> Any:
        if not _is_kept(paths, chosen, options):
            return load(paths, *chosen, **options)
        places = [(str(path), os.path.realpath(path)) for path in paths]
        key = repr((places, chosen, sorted(options.items()), LIMITS))
        if key not in _kept:
            _kept[key] = load(paths, *chosen, **options)
        return _kept[key]

    return load_once


def _is_kept(paths: Any, chosen: tuple[Any, ...], options: dict[str, Any]) -> bool:
    """Return whether all paths are data of the repository, which are read here without the user's cache."""
    has_no_cache = os.environ.get("HTAGRAPH_NO_CACHE") == "1"
    is_usual = not any(map(callable, chosen)) and options.keys() <= {"time", "python", "cache", "on_error"}
    is_list = isinstance(paths, list) and bool(paths)
    return has_no_cache and is_usual and is_list and all(_is_data(path) for path in paths)


def _is_data(path: Any) -> bool:
    """Return whether a path leads to a file or folder of the repository's data."""
    return os.path.exists(path) and Path(os.path.realpath(path)).is_relative_to(DATA)  # noqa: PTH110
