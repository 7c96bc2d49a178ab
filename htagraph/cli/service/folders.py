"""Folders: what a server may read. Everything outside, and everything that leads outside, is refused."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from htagraph.core.errors import HtagraphError, shown
from htagraph.trace.discover import SUFFIXES, find_files

__all__ = ["Folders"]

_MAX_LISTED = 2_000
"""Folders below those given that are looked into for jobs. Chosen: a tree of runs; walking them takes well below a
second. Doubled, large stores are listed further, and take longer."""


@dataclass(frozen=True)
class Folders:
    """The folders and files that a server may read, with all that lies in them."""

    roots: tuple[Path, ...]
    """Without symbolic links."""

    @staticmethod
    def of(paths: Sequence[str]) -> Folders:
        """Return what the paths of a command line allow."""
        roots = []
        for text in paths:
            path = Path(text).expanduser()
            if not text or not path.exists():
                msg = f"{text!r}: no such file or folder; give the folders that may be read"
                raise HtagraphError(msg)
            roots.append(path.resolve())
        return Folders(tuple(dict.fromkeys(roots)))

    def jobs(self) -> pd.DataFrame:
        """Return one row per folder with files that may be traces: ``path`` (str), ``files``, ``bytes`` (int64)."""
        rows = []
        for folder, files in self._candidates():
            allowed = [file for file in files if file.is_file() and self._holds(file)]
            if allowed:
                rows.append((str(folder), len(allowed), sum(file.stat().st_size for file in allowed)))
        return pd.DataFrame(sorted(set(rows)), columns=["path", "files", "bytes"])

    def resolved(self, text: str) -> tuple[Path, tuple[Path, ...]]:
        """Return the folder or file that a text means, and its trace files; only of what may be read."""
        path = self._found(text) if text else self._only()
        files = tuple(file for file in find_files(str(path)) if isinstance(file, Path))
        outside = [file for file in files if not self._holds(file)]
        if outside:
            msg = f"{outside[0].name}: leads out of the folders that may be read; name its folder when starting"
            raise HtagraphError(msg)
        return path, files

    def relative(self, text: str) -> str:
        """Return a text in which paths in the folders are written as `resolved` takes them, from their folder on.

        Example:
            >>> Folders((Path("/data/runs"),)).relative("/data/runs/a/rank-0.json: the file is empty")
            'a/rank-0.json: the file is empty'
        """
        for root in sorted((root for root in self.roots if root.name), key=lambda root: -len(root.parts)):
            text = text.replace(f"{root}{os.sep}", "").replace(f"{root}:", f"{root.name}:")
        return text

    def _found(self, text: str) -> Path:
        for root in (Path.cwd(), *self.roots):  # an absolute path stays what it is
            try:
                path = (root / text).resolve()
                if self._holds(path) and path.exists():
                    return path
            except (OSError, ValueError, RuntimeError):  # no path at all: too long, a zero byte, links in a circle
                continue
        # the same words whether it exists or not: what lies outside is nobody's business
        msg = f"{shown(text)} is not in the folders that may be read; the tool `jobs` lists what is"
        raise HtagraphError(msg)

    def _only(self) -> Path:
        paths = self.jobs()["path"].tolist()
        if len(self.roots) == 1 and str(self.roots[0]) in paths:  # what lies below it are its own further files
            return self.roots[0]
        if len(paths) != 1:
            msg = f"there are {len(paths)} jobs: give the path of one of those that the tool `jobs` lists"
            raise HtagraphError(msg)
        return Path(paths[0])

    def _holds(self, path: Path) -> bool:
        whole = path.resolve()
        return any(whole == root or whole.is_relative_to(root) for root in self.roots)

    def _candidates(self) -> Iterator[tuple[Path, list[Path]]]:
        left = _MAX_LISTED
        for root in self.roots:
            if root.is_file():
                yield root, [root]
                continue
            for folder, folders, names in os.walk(root):  # follows no links to folders
                folders.sort()
                yield Path(folder), [Path(folder, name) for name in names if name.endswith(SUFFIXES)]
                left -= 1
                if left <= 0:
                    return
