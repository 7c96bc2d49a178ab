"""The folder of the cache: where it is, what it holds, and what leaves it when it is full.

``graphs/`` holds one file per graph, named after what decides what the graph is; ``jobs/`` holds one small file per
job: the state of its files, and the name of its graph. The time of a graph's file is when it was last used.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["CachedGraph", "cache_folder", "cached_graphs", "clear", "limit_bytes", "make_room"]

SUFFIX: Final = ".htagraph"
"""Ending of the names of graphs' files."""
_LIMIT_GB: Final = 10.0
"""GB that the cache may fill, unless HTAGRAPH_CACHE_GB says otherwise. Chosen: a hundred million events, a few percent
of a disk. Doubled, jobs of last week are still there."""
_ABANDONED_S: Final = 3600
"""Seconds after which a file that was not finished belongs to a process that died. Chosen: writing takes seconds."""
_KEPT_S: Final = 90 * 86_400
"""Seconds for which the states of a job's files are kept. Chosen: they take a hundred bytes per file."""


class CachedGraph(NamedTuple):
    """A graph in the cache."""

    path: Path
    size: int
    """Bytes."""
    used_s: float
    """When it was last used, seconds since 1970."""
    job: str = ""
    """The trace that it was made of, or the folder of all of them."""
    files: int = 0
    """How many traces."""


def cache_folder(where: str | os.PathLike[str] | None = None) -> Path | None:
    """Return the folder of the cache, given or the user's own; None if there is none or HTAGRAPH_NO_CACHE is set."""
    if os.environ.get("HTAGRAPH_NO_CACHE"):
        return None
    return Path(os.path.expanduser(where)) if where is not None else _own_folder()  # noqa: PTH111 - Path's raises


def _own_folder() -> Path | None:
    from platformdirs import user_cache_path  # takes a moment

    try:
        folder = user_cache_path("htagraph", appauthor=False)
    except RuntimeError:  # a user without a home has none
        return None
    with suppress(OSError):
        if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():  # as under sudo: others could not empty it
            return None
    return folder if folder.is_absolute() else None


def limit_bytes() -> int:
    """Return how many bytes the graphs in the cache may fill."""
    with suppress(KeyError, ValueError, OverflowError):
        return max(0, int(float(os.environ["HTAGRAPH_CACHE_GB"]) * 1e9))
    return int(_LIMIT_GB * 1e9)


def cached_graphs(folder: Path) -> list[CachedGraph]:
    """Return the graphs in a cache, the one used last first."""
    jobs: dict[str, tuple[str, int]] = {}
    for path in _inside(folder / "jobs", ".json"):
        with suppress(OSError, ValueError, LookupError, TypeError):
            record = json.loads(path.read_bytes())
            jobs[record["graph"]] = str(record["job"]), len(record["files"])
    graphs = []
    for path in _inside(folder / "graphs", SUFFIX):
        with suppress(OSError):  # another process may have removed it
            stat = path.stat()
            graphs.append(CachedGraph(path, stat.st_size, stat.st_mtime, *jobs.get(path.stem, ())))
    return sorted(graphs, key=lambda graph: -graph.used_s)


def make_room(folder: Path) -> None:
    """Remove the graphs that were not used for longest until the others fit, and what processes left behind."""
    room = limit_bytes()
    for graph in cached_graphs(folder):
        room -= graph.size
        if room < 0:
            _remove(graph.path)
    now = time.time()
    for below, suffix, seconds in (
        ("graphs", ".part", _ABANDONED_S),
        ("jobs", ".part", _ABANDONED_S),
        ("jobs", ".json", _KEPT_S),
    ):
        for path in _inside(folder / below, suffix):
            with suppress(OSError):
                if path.stat().st_mtime < now - seconds:
                    _remove(path)


def clear(folder: Path) -> tuple[int, int]:
    """Remove everything from a cache; return how many graphs, and how many bytes, are gone."""
    graphs = cached_graphs(folder)
    for below, suffix in (("graphs", SUFFIX), ("graphs", ".part"), ("jobs", ".part"), ("jobs", ".json")):
        for path in _inside(folder / below, suffix):
            _remove(path)
    gone = [graph for graph in graphs if not graph.path.exists()]
    return len(gone), sum(graph.size for graph in gone)


def _inside(folder: Path, suffix: str) -> Iterator[Path]:
    """Yield the files of the cache in one of its folders."""
    with suppress(OSError):
        yield from [path for path in folder.iterdir() if path.name.endswith(suffix)]


def _remove(path: Path) -> None:
    with suppress(OSError):  # it is gone, or in use on a system that keeps such files
        path.unlink()
