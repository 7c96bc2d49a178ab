"""Paths, folders, globs → which file is which rank of one job."""

from __future__ import annotations

import glob
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from htagraph.core.errors import HtagraphError, RankError, TraceError
from htagraph.trace.events import Header
from htagraph.trace.reading.read import read_header

__all__ = ["MADE_KEY", "RankedFile", "TracePaths", "find_files", "rank_files"]

PathText: TypeAlias = str | os.PathLike[str]
TracePaths: TypeAlias = PathText | Sequence[PathText] | Mapping[int, PathText]
"""A folder, a file, a glob, several of these, or a map from rank to file."""

Skip: TypeAlias = Callable[[Path, HtagraphError], None]

MADE_KEY = "htagraph"
"""Root key of the files that htagraph makes of traces to show something: nothing is recorded in them."""
_TOO_MANY_RANKS = 2**31
_SUFFIXES = (".json", ".json.gz", ".json.tmp", ".json.gz.tmp")
_RANK_IN_NAME = re.compile(r"(?:^|[^a-z])rank[-_ ]?(\d+)", re.IGNORECASE)
_LAST_NUMBER = re.compile(r"(\d+)(?=\D*$)")


@dataclass(frozen=True)
class RankedFile:
    """A trace file, the rank it belongs to and how that is known."""

    path: Path
    rank: int
    source: str
    """``"header"``, ``"name"``, ``"given"`` or ``"only file"``."""
    run: str
    """What tells this file's run from others; empty where the file does not say."""
    made: bool = False
    """Whether htagraph made it of traces, see `MADE_KEY`."""

    def rank_in(self, header: Header) -> int:
        """Return the rank once the whole file is read: its own word, which may stand behind the events, over a name."""
        said = _said_rank(header) if self.source != "given" else None
        return self.rank if said is None else said


def find_files(paths: PathText | Sequence[PathText], skip: Skip | None = None) -> list[Path]:
    """Return the trace files that a path, a folder, a glob or several of these mean, sorted and without repetition.

    Args:
        paths: the path, or several.
        skip: called with each path that means no trace file, instead of raising.

    Raises:
        TraceError: a path does not exist, or holds no trace file.
    """
    several = [paths] if isinstance(paths, str | os.PathLike) else paths
    found: set[Path] = set()
    for path in several:
        with _skipping(Path(path), skip):
            found.update(_expand(os.fspath(path)))
    return sorted(found)


def rank_files(paths: TracePaths, skip: Skip | None = None, left_out: Skip | None = None) -> list[RankedFile]:
    """Return the files of one job, each with its rank, ordered by rank.

    The rank is what the caller says, else ``distributedInfo.rank`` in the file, else ``rank-3`` or the like in its
    name, else, where only one number differs between the names, that number. A single file without a rank is rank 0.

    Args:
        paths: what `find_files` takes, or a map from rank to file.
        skip: called with each path that is absent or no readable trace, instead of raising.
        left_out: called with each file that htagraph made of traces, see `MADE_KEY`. It is left out where it lies
            beside others.

    Raises:
        TraceError: a path does not exist or holds no trace.
        RankError: two files claim one rank, or the files come from several runs.
    """
    if isinstance(paths, Mapping):
        given = []
        for rank, path in paths.items():
            with _skipping(Path(path), skip):
                given.append(RankedFile(_existing(Path(path)), _checked(rank, Path(path)), "given", ""))
        return sorted(given, key=lambda file: file.rank)
    ranked, found = [], find_files(paths, skip)
    for path in found:
        with _skipping(path, skip):
            ranked.append(_rank_one(path, alone=len(found) == 1))
    ranked = _number_by_name(_recorded(ranked, left_out))
    _refuse_mixed(ranked)
    return sorted(ranked, key=lambda file: file.rank)


@contextmanager
def _skipping(path: Path, skip: Skip | None) -> Iterator[None]:
    """Hand what is wrong with a path to `skip` where there is one."""
    try:
        yield
    except HtagraphError as error:
        if skip is None:
            raise
        skip(path, error)


def _expand(text: str) -> list[Path]:
    if not text:
        msg = "an empty path: was a variable not set?"
        raise TraceError(msg)
    path = Path(text)
    if path.is_dir():
        files = [file for file in path.iterdir() if file.is_file() and file.name.endswith(_SUFFIXES)]
        if not files:
            below = sorted({file.parent for file in path.rglob("*.json*") if file.name.endswith(_SUFFIXES)})[:3]
            hint = f"; traces lie in {', '.join(map(str, below))}" if below else ""
            msg = f"{path}: no .json or .json.gz file in this folder{hint}"
            raise TraceError(msg)
        return files
    if path.is_file():
        return [path]
    if path.exists():
        msg = f"{path}: not a regular file; write the trace to a file first"
        raise TraceError(msg)
    matches = [Path(match) for match in glob.glob(text, recursive=True)]  # noqa: PTH207 - absolute patterns too
    if not matches:
        msg = f"{text}: no such file, folder or match"
        raise TraceError(msg)
    return [file for file in matches if file.is_file()]  # a glob may match folders too


def _checked(rank: int, path: Path) -> int:
    if not (isinstance(rank, int) and 0 <= rank < _TOO_MANY_RANKS):
        msg = f"{path}: {rank!r} is no rank; say which it is: load({{0: 'a.json', 1: 'b.json'}})"
        raise RankError(msg)
    return rank


def _existing(path: Path) -> Path:
    if not path.is_file():
        msg = f"{path}: no such file"
        raise TraceError(msg)
    return path


def _rank_one(path: Path, *, alone: bool) -> RankedFile:
    header = read_header(path, and_tail=not alone)
    said, run, made = _said_rank(header), _run_of(header), MADE_KEY in (header.model_extra or {})
    if said is not None:
        return RankedFile(path, said, "header", run, made)
    named = _RANK_IN_NAME.search(path.name)
    if named:
        return RankedFile(path, _checked(int(named[1]), path), "name", run, made)
    return RankedFile(path, -1, "", run, made)


def _recorded(files: list[RankedFile], left_out: Skip | None) -> list[RankedFile]:
    """Return the files that a profiler wrote; all of them where htagraph made all of them."""
    if all(file.made for file in files):
        return files
    for file in files:
        if file.made and left_out is not None:
            left_out(file.path, TraceError("made by htagraph of the traces beside it; left out"))
    return [file for file in files if not file.made]


def _said_rank(header: Header) -> int | None:
    """Return the rank that a header names, None where it names none that can be."""
    info = header.distributed_info
    usable = info is not None and info.rank is not None and 0 <= info.rank < _TOO_MANY_RANKS
    return info.rank if info is not None and usable else None


def _run_of(header: Header) -> str:
    """Return what all ranks of one run have in common and other runs, as a rule, have not."""
    info = header.distributed_info
    size = info.world_size if info is not None else None
    said = {
        "world size": size,
        "job": header.job_name,
        "version": header.job_version,
        "attempt": header.job_attempt_index,
    }
    return ", ".join(f"{what} {value}" for what, value in said.items() if value is not None)


def _number_by_name(files: list[RankedFile]) -> list[RankedFile]:
    """Give ranks to the files that name none: the number in which their names differ."""
    unknown = [file for file in files if file.rank < 0]
    if not unknown:
        return files
    if len(files) == 1:
        return [RankedFile(files[0].path, 0, "only file", files[0].run)]
    stems = {_LAST_NUMBER.sub("#", file.path.name) for file in files}
    numbers = [_LAST_NUMBER.search(file.path.name) for file in unknown]
    if len(unknown) == len(files) and len(stems) == 1 and all(numbers):
        found = [int(number[1]) for number in numbers if number]
        if sorted(found) == list(range(len(files))):
            return [RankedFile(file.path, number, "name", file.run) for file, number in zip(files, found, strict=True)]
    listed = ", ".join(file.path.name for file in unknown[:8])
    msg = (
        f"{_folder(files)}: no rank in {listed} (neither distributedInfo nor the file's name has one): these may be "
        "several runs; pass one file at a time, or say which is which: load({0: 'a.json', 1: 'b.json'})"
    )
    raise RankError(msg)


def _refuse_mixed(files: list[RankedFile]) -> None:
    by_rank: dict[int, list[RankedFile]] = defaultdict(list)
    for file in files:
        by_rank[file.rank].append(file)
    runs = sorted({file.run for file in files if file.run})
    twice = {rank: same for rank, same in by_rank.items() if len(same) > 1}
    if not twice and len(runs) < 2:
        return
    groups = _guess_runs(files)
    listing = "; ".join(f"run {chr(65 + i)}: {_listing(group)}" for i, group in enumerate(groups))
    cause = f"rank {next(iter(twice))} has {len(next(iter(twice.values())))} files" if twice else " and ".join(runs)
    msg = (
        f"{_folder(files)}: several runs in one place ({cause}). {listing}. "
        "Pass the files of one run (a glob such as 'traces/*run1*'), or a map {rank: file}"
    )
    raise RankError(msg)


def _guess_runs(files: list[RankedFile]) -> list[list[RankedFile]]:
    """Group files by what they say of their run; where that leaves a rank twice, the k-th of each rank form run k."""
    by_run: dict[str, list[RankedFile]] = defaultdict(list)
    for file in files:
        by_run[file.run].append(file)
    groups: list[list[RankedFile]] = []
    for same_run in by_run.values():
        seen: dict[int, int] = defaultdict(int)
        parts: dict[int, list[RankedFile]] = defaultdict(list)
        for file in sorted(same_run, key=lambda file: _modified(file.path)):
            parts[seen[file.rank]].append(file)
            seen[file.rank] += 1
        groups += [sorted(part, key=lambda file: file.rank) for part in parts.values()]
    return groups


def _modified(path: Path) -> tuple[float, str]:
    return path.stat().st_mtime, path.name


def _listing(files: Iterable[RankedFile]) -> str:
    files = list(files)
    names = ", ".join(f"{file.path.name} (rank {file.rank})" for file in files[:8])
    return names + (f" and {len(files) - 8} more" if len(files) > 8 else "")


def _folder(files: list[RankedFile]) -> str:
    return str(files[0].path.parent)
