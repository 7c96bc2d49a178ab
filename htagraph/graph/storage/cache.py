"""The cache of graphs: what was loaded before is opened instead, if neither the files nor the program changed.

Whether files still hold what they held follows from their state on the disk where that proves it, else from their
bytes. In the folder, ``graphs/`` holds one file per graph, named after what decides what the graph is; ``jobs/`` holds
one small file per job: the state of its files, and the name of its graph. The time of a graph's file is when it was
last used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, NamedTuple

from htagraph.core.computing import Threads, most_threads
from htagraph.core.errors import HtagraphError, StoredGraphError
from htagraph.graph import storage
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.trace.discover import TracePaths, find_files
from htagraph.trace.readers import json_bytes
from htagraph.trace.remote import RemotePath, TracePath, fingerprint, is_url, path_of

__all__ = [
    "CachedGraph", "FileState", "bytes_digest", "cache_folder", "cached", "cached_graphs", "clear", "file_states",
    "is_unchanged", "limit_bytes", "make_room", "release",
]  # fmt: skip

_WORTH_BYTES: Final = 32 << 20
"""Bytes of JSON from which a job is cached. Measured: smaller jobs load in half a second, which a cache would not
make much shorter. Doubled, jobs that load in a second are not cached."""
_FREE_SHARE: Final = 0.5
"""Share of the free disk that one graph may take. Chosen: other files need the rest. It cannot be doubled: at 1, a
graph fills the disk."""
_PACKAGE: Final = Path(__file__).parents[2]
_DECIDING: Final = ("core", "trace", "graph")
"""Folders of the package whose code decides what a graph is."""

_PIECE_BYTES: Final = 1 << 20
"""Bytes that are digested at once. Chosen: fits into the cache of a processor core. Doubled, nothing is faster."""
_SETTLED_NS: Final = 2_000_000_000
"""ns: a file that changed less than this before it was digested may change again without a new time, because some file
systems count whole seconds or two (FAT). Doubled, files just written are digested once more."""


def cached(
    make: Callable[[], DependencyGraph], paths: TracePaths, options: Mapping[str, Any],
    where: str | os.PathLike[str] | None, chosen: Callable[[], Collection[str]] | None = None,
) -> DependencyGraph:  # fmt: skip
    """Return the graph of some traces from the cache, or make it and put it there.

    The options are JSON: what decides, besides the files, what the graph is. Without `where`, the cache is the user's
    own. If only some of the files are read whole, `chosen` says which; of the others, the state on the disk counts.
    """
    folder, files = cache_folder(where), _files(paths)
    if folder is None or not _is_worth(files):
        return make()
    record = folder / "jobs" / f"{_digest([[_named(file) for file in files], list(files), options])}.json"
    try:
        known = _known(record)
        read = {path for path, state in known.items() if state.digest != str(state.disk)} or (chosen and chosen())
        states = file_states([path_of(file) for file in files], known, read)
    except (OSError, HtagraphError):  # which loading explains
        return make()
    by_file = dict(zip(files, states, strict=True))
    content = [[file, files[file], by_file[file].digest] for file in files]
    key = _digest([_program(), storage.saved.SCHEMA, options, content])
    path = folder / "graphs" / f"{key}{SUFFIX}"
    graph = _opened(path, by_file)
    if graph is None:
        graph = make()
        if not all(is_unchanged(path_of(file), state) for file, state in by_file.items()):
            return graph  # it may hold either content
        _store(graph, path)
    _note(record, key, by_file)
    return graph


def _files(paths: TracePaths) -> dict[str, int | None]:
    """Return the files of a job, as the graph names them, each with the rank that the caller gave; none on an error."""
    try:
        if isinstance(paths, Mapping):
            files: dict[str, int | None] = {str(path_of(path)): rank for rank, path in paths.items()}
            return files if len(files) == len(paths) else {}  # a file of several ranks
        return {str(path): None for path in find_files(paths)}
    except (HtagraphError, OSError):  # which loading raises too
        return {}


def _named(file: str) -> str:
    """Return the name of a file wherever a program runs."""
    return file if is_url(file) else str(Path(file).absolute())


def _is_worth(files: Sequence[str] | Mapping[str, Any]) -> bool:
    try:
        return sum(json_bytes(path_of(file)) for file in files) >= _WORTH_BYTES
    except OSError:
        return False


def _digest(content: Any) -> str:  # noqa: ANN401 - JSON
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=16).hexdigest()


@cache
def release() -> str:
    """Return the release of the program that runs here."""
    try:
        return version("htagraph")
    except PackageNotFoundError:  # not installed
        return ""


@cache
def _program() -> list[Any]:
    """Return the release and the states of the sources: another program may make another graph of the same files."""
    sources = sorted(path for folder in _DECIDING for path in (_PACKAGE / folder).rglob("*.py"))
    states = ((path.relative_to(_PACKAGE).as_posix(), path.stat()) for path in sources)
    return [release(), [[name, stat.st_size, stat.st_mtime_ns] for name, stat in states]]


def _known(record: Path) -> dict[str, FileState]:
    """Return the states of a job's files when it was loaded before."""
    try:
        return {path: FileState(*state) for path, state in json.loads(record.read_bytes())["files"].items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # none, or damaged
        return {}


def _opened(path: Path, states: Mapping[str, FileState]) -> DependencyGraph | None:
    """Return the graph in a file of the cache, if it is there and whole."""
    if not path.exists():
        return None
    try:
        graph = storage.saved.read_graph(path)
    except StoredGraphError:
        return None
    with suppress(OSError):  # another user's file: it only leaves the cache earlier
        os.utime(path)  # the one used last leaves last
    traces: Any = graph.traces  # a dict that only this graph has
    for rank, trace in graph.traces.items():  # with the times of the files as they are: equal bytes may be newer
        state = states[str(trace.path)]
        traces[rank] = replace(trace, fingerprint=(state.size, state.modified_ns))
    return graph


def _store(graph: DependencyGraph, path: Path) -> None:
    """Put a graph into the cache; where that fails, it is made again next time."""
    with suppress(OSError, HtagraphError):  # a full disk, no rights, or a graph that cannot be stored
        _make(path.parent)
        free = shutil.disk_usage(path.parent).free
        most_bytes = min(limit_bytes(), int(_FREE_SHARE * free))
        storage.saved.write_graph(graph, path, durable=False, most_bytes=most_bytes)
        make_room(path.parents[1])


def _note(record: Path, key: str, states: Mapping[str, FileState]) -> None:
    """Note the state of a job's files, so that they need not be read next time."""
    names = [_named(path) for path in states]
    job = names[0].rpartition("/")[0] if any(map(is_url, names)) else os.path.commonpath(names)
    content = {"graph": key, "job": job, "files": {path: astuple(state) for path, state in states.items()}}
    text = json.dumps(content).encode()
    with suppress(OSError):  # without a record the files are read again next time
        if not record.exists() or record.read_bytes() != text:
            _make(record.parent)
            storage.saved.write_whole(record, lambda file: file.write(text), durable=False)


def _make(folder: Path) -> None:
    """Make a folder of the cache that only its user can read: names of kernels and jobs are nobody else's business."""
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)


@dataclass(frozen=True)
class FileState:
    """A file as it was found on the disk, and the digest of its bytes."""

    size: int
    """Bytes."""
    modified_ns: int
    changed_ns: int
    """When its bytes or its entry changed, which no program can set."""
    inode: int
    device: int
    found_ns: int = 0
    """When it was found so."""
    digest: str = ""

    @property
    def disk(self) -> tuple[int, ...]:
        """The state of the file on the disk."""
        return astuple(self)[:5]

    @property
    def is_settled(self) -> bool:
        """Whether another change would show in its times."""
        return max(self.modified_ns, self.changed_ns) + _SETTLED_NS < self.found_ns


def file_states(
    files: Sequence[TracePath], known: Mapping[str, FileState], read: Collection[str] | None = None
) -> list[FileState]:
    """Return the state of each file with the digest of its bytes; files that are as they were known are not read.

    If only some are read, the state on the disk stands for the bytes of the other files.
    """

    def state(path: TracePath) -> FileState:
        if isinstance(path, RemotePath):
            return _in_store(path)
        now, before = _on_disk(path), known.get(str(path))
        if before is not None and before.disk == now.disk and before.is_settled:
            return before
        return replace(now, digest=bytes_digest(path) if read is None or str(path) in read else str(now.disk))

    with Threads(most_threads()) as threads:
        return list(threads.map(state, files))


def is_unchanged(path: TracePath, state: FileState) -> bool:
    """Return whether a file still is as it was found."""
    try:
        return (_in_store(path) if isinstance(path, RemotePath) else _on_disk(path)).disk == state.disk
    except OSError:
        return False


def _in_store(path: RemotePath) -> FileState:
    """Return the state of a file that a store keeps; its tag, or the time of its upload, stands for its bytes."""
    size, tag = fingerprint(path)
    if not tag:
        msg = "the store does not say whether a file changed"
        raise OSError(msg)
    return FileState(size, tag, 0, 0, 0, time.time_ns(), f"{size} {tag}")


def _on_disk(path: Path) -> FileState:
    found_ns = time.time_ns()
    stat = path.stat()
    return FileState(stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino, stat.st_dev, found_ns)


def bytes_digest(path: Path) -> str:
    """Return a digest of a file's bytes."""
    digest, piece = hashlib.blake2b(digest_size=16), memoryview(bytearray(_PIECE_BYTES))
    with path.open("rb", buffering=0) as file:
        while read := file.readinto(piece):
            digest.update(piece[:read])
    return digest.hexdigest()


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
    """The trace that it was made of, or the folder of all its traces."""
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
    with suppress(OSError):  # the folder is not there yet: whoever makes it owns it
        if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():  # as under sudo: others could not empty it
            return None
    return folder if folder.is_absolute() else None


def limit_bytes() -> int:
    """Return how many bytes the graphs in the cache may fill."""
    with suppress(KeyError, ValueError, OverflowError):  # unset, or no number: the usual limit
        return max(0, int(float(os.environ["HTAGRAPH_CACHE_GB"]) * 1e9))
    return int(_LIMIT_GB * 1e9)


def cached_graphs(folder: Path) -> list[CachedGraph]:
    """Return the graphs in a cache, the one used last first."""
    jobs: dict[str, tuple[str, int]] = {}
    for path in _inside(folder / "jobs", ".json"):
        with suppress(OSError, ValueError, LookupError, TypeError):  # a damaged record: the graph has no job
            record = json.loads(path.read_bytes())
            jobs[record["graph"]] = str(record["job"]), len(record["files"])
    graphs = []
    for path in _inside(folder / "graphs", SUFFIX):
        with suppress(OSError):  # another process may have removed it
            stat = path.stat()
            graphs.append(CachedGraph(path, stat.st_size, stat.st_mtime, *jobs.get(path.stem, ())))
    return sorted(graphs, key=lambda graph: -graph.used_s)


def make_room(folder: Path) -> None:
    """Remove the graphs not used for longest until the other graphs fit, and files that processes left behind."""
    room = limit_bytes()
    for graph in cached_graphs(folder):
        room -= graph.size
        if room < 0:
            _remove(graph.path)
    now = time.time()
    left = (("graphs", ".part", _ABANDONED_S), ("jobs", ".part", _ABANDONED_S), ("jobs", ".json", _KEPT_S))
    for below, suffix, seconds in left:
        for path in _inside(folder / below, suffix):
            with suppress(OSError):  # another process removed it first
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
    with suppress(OSError):  # there is no such folder, so nothing is in it
        yield from [path for path in folder.iterdir() if path.name.endswith(suffix)]


def _remove(path: Path) -> None:
    with suppress(OSError):  # it is gone, or in use on a system that keeps such files
        path.unlink()
