"""runs_of: several recordings of one job in one folder."""

from __future__ import annotations

from pathlib import Path

from htagraph.trace.reading.discover import SUFFIXES

__all__ = ["runs_of"]


def runs_of(path: str) -> list[str]:
    """Return the recordings that a path stands for: the folders of traces in a folder that has none itself, else it.

    Args:
        path: what `htagraph.load` takes as a text.

    Example:
        >>> runs_of("data/demo")
        ['data/demo']
    """
    folder = Path(path)
    if not folder.is_dir() or _has_traces(folder):
        return [path]
    runs = sorted(str(each) for each in folder.iterdir() if each.is_dir() and _has_traces(each))
    return runs or [path]


def _has_traces(folder: Path) -> bool:
    return any(each.name.endswith(SUFFIXES) and each.is_file() for each in folder.iterdir())
