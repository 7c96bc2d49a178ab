"""Paths, folders, globs → the trace files of one job and the rank of each."""

from __future__ import annotations

import glob
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from htagraph.core.computing import Threads
from htagraph.core.errors import HtagraphError, IssueLog, OtherFileError, RankError, TraceError
from htagraph.trace.columns import MAX_RANKS, Facts
from htagraph.trace.readers import READERS, SUFFIXES, format_of, reader_for
from htagraph.trace.remote import RemotePath, TracePath, is_url, on_disk, path_of

__all__ = [
    "SUFFIXES", "RankedFile", "TracePaths", "few_of", "find_files", "look_at", "named_rank", "rank_files",
    "run_listing", "runs_of",
]  # fmt: skip

PathText: TypeAlias = str | os.PathLike[str]
TracePaths: TypeAlias = PathText | Sequence[PathText] | Mapping[int, PathText]
"""A folder, a file, a glob, several of these, or a map from rank to file; each a path, or a URL such as ``s3://…``."""

Skip: TypeAlias = Callable[[TracePath, HtagraphError], None]

_MAP_IT = "give the rank of each file, load({0: 'a.json', 1: 'b.json'})"
_MAX_LISTED = 8
"""Files that an error message lists. Chosen: a line or two; doubling it lengthens the message only."""
_REQUESTS = 16
"""Headers of remote files that are read at once. Chosen: a store takes tens of ms to answer. Doubled, the headers of
thousands of files are read in half the time, where the store allows it."""
_ENDS = ", ".join(suffix for suffix in SUFFIXES if not suffix.endswith(".tmp"))
"""How names of traces end, in words; not those of files that are still being written."""
_CUT = ("truncated", "gzip_truncated")
"""Codes of the issues of a file that ends early."""
_MOST_BY_NUMBER = 4_096
"""Files of which the numbers in their names are taken for ranks though no header says a rank, at most. Chosen: PyTorch
writes ranks since jobs are larger; more such files are requests or runs. Doubled, reading them takes some 10 s."""


@dataclass(frozen=True)
class RankedFile:
    """A trace file, its rank, and how the rank is known."""

    path: TracePath
    rank: int
    source: str
    """``"header"``, ``"name"``, ``"given"``, ``"only file"`` or ``"process"``, for files of several processes."""
    run: str
    """World size and job of the file's run, as text, to distinguish runs; empty if the header has neither."""
    made: bool = False
    """True if htagraph exported the file, see `Facts.exported`."""
    parts: tuple[int, ...] = ()
    """Processes that are ranks: all of the file, see `Facts.processes`, and the rank's own once ranks are known."""

    def __fspath__(self) -> str:
        """Return the path: a ranked file stands for its rank's part of the file wherever a path of a rank is given."""
        return os.fspath(self.path)

    @property
    def part(self) -> int | None:
        """The rank's part of a file that holds several ranks."""
        return self.parts[0] if self.parts else None

    def rank_in(self, facts: Facts, log: IssueLog) -> int:
        """Return the rank once the whole file is read, and report what speaks against it.

        A rank in the complete header, part of which may follow the events, wins over one from the file's name.
        """
        header_rank = _rank_of(facts)
        if self.source in ("given", "process"):
            return self.rank
        if header_rank is None:
            if self.source == "only file" and any(map(log.has, _CUT)):
                log.add("rank_unknown", f"the file ends before it says its rank; read as rank {self.rank}: {_MAP_IT}")
            return self.rank
        named = named_rank(self.path)
        if named not in {-1, header_rank}:
            detail = f"the file's name says rank {named}, its distributedInfo rank {header_rank}"
            log.add("rank_differs", f"{detail}; read as rank {header_rank}: if that is wrong, {_MAP_IT}")
        return header_rank


Looked: TypeAlias = tuple[TracePath, RankedFile | HtagraphError]
Look: TypeAlias = Callable[[Sequence[TracePath]], Sequence[Looked]]


def find_files(paths: PathText | Sequence[PathText], skip: Skip | None = None) -> list[TracePath]:
    """Return the trace files that a path, a folder, a glob or several of these stand for, sorted, each once.

    `skip` is called with each path that has no trace file, instead of raising a TraceError.
    """
    local: set[Path] = set()
    remote: set[RemotePath] = set()
    for path in _several(paths):
        with _skipping(path_of(path), skip):
            if is_url(path):
                remote.update(_expand_url(RemotePath(os.fspath(path))))
            else:
                local.update(_expand(on_disk(path)))
    return [*sorted(local), *sorted(remote)]


def rank_files(
    paths: TracePaths, skip: Skip | None = None, left_out: Skip | None = None, *, look: Look | None = None
) -> list[RankedFile]:
    """Return the files of one job, each with its rank, ordered by rank.

    The rank is that given by the caller, else ``distributedInfo.rank`` in the file, else a number as in ``rank-3`` in
    the file's name, else the one number in which the files' names differ. A single file without a rank is rank 0. So
    is a file that ends before its header says the rank (as of traces on demand) the rank of its name.

    Args:
        paths: what `find_files` takes, or a map from rank to file.
        skip: called with each path that does not exist or is not a readable trace, instead of raising.
        left_out: called with each file of a folder or glob that is left out because there are recordings beside it:
            those that htagraph exported, see `Facts.exported`, and other JSON, such as a configuration or an execution
            trace.
        look: what is in the header of each file, see `look_all`, which is used if it is not given.

    Raises:
        TraceError: a path does not exist or holds no trace.
        RankError: two files claim one rank, or the files come from several runs.
    """
    if isinstance(paths, Mapping):
        given = []
        for rank, path in paths.items():
            with _skipping(path_of(path), skip):
                file = path_of(path)
                if not file.is_file():
                    msg = f"{file}: no such file"
                    raise TraceError(msg)
                parts = path.parts if isinstance(path, RankedFile) else ()
                given.append(RankedFile(file, checked_rank(rank, file), "given", "", parts=parts))
        return sorted(given, key=lambda file: file.rank)
    looked = (look or look_all)(find_files(paths, skip))
    named = {path for path in map(path_of, _several(paths)) if path.is_file()}  # one by one, not by a folder or glob
    ranked = _recorded(_ranked(looked, named, skip, left_out), left_out)
    _refuse_formats(ranked)
    ranked = _by_process(ranked) if any(file.parts for file in ranked) else _number_by_name(ranked)
    _refuse_mixed(ranked)
    return sorted(ranked, key=lambda file: file.rank)


def _refuse_formats(files: Sequence[RankedFile]) -> None:
    """Refuse files of several formats: two profilers recorded two runs, or one run twice."""
    by_format: dict[str, list[str]] = defaultdict(list)
    for file in files:
        by_format[format_of(file.path)].append(file.path.name)
    if len(by_format) > 1:
        listed = "; ".join(f"{name}: {few_of(names)}" for name, names in sorted(by_format.items()))
        msg = f"{_folder(list(files))}: files of several formats ({listed}); give those of one format, by a glob"
        raise RankError(msg)


def _by_process(files: list[RankedFile]) -> list[RankedFile]:
    """Return a file for each process that is a rank: numbered through the files, in the order of numbers in names."""
    patterns, numbers = ({of(file.path) for file in files} for of in (pattern_of_name, number_in_name))
    if len(files) > 1 and (len(patterns) > 1 or len(numbers) == 1):
        listed = few_of([f"{file.path.name} ({max(1, len(file.parts))} ranks)" for file in files])
        msg = (
            f"{_folder(files)}: files of several processes whose names differ in more than a number: {listed}; give one"
        )
        raise RankError(msg)
    ordered = sorted(files, key=lambda file: number_in_name(file.path))
    parts = [(file, part) for file in ordered for part in file.parts or (None,)]
    return [
        replace(file, rank=rank, source="process", parts=() if part is None else (part,))
        for rank, (file, part) in enumerate(parts)
    ]


def _several(paths: PathText | Sequence[PathText]) -> Sequence[PathText]:
    return [paths] if isinstance(paths, str | os.PathLike) else paths


def look_all(files: Sequence[TracePath]) -> list[Looked]:
    """Return what `look_at` finds in each file; many remote ones at once."""
    alone = len(files) == 1
    if not any(isinstance(path, RemotePath) for path in files):
        return [look_at(path, alone=alone) for path in files]
    with Threads(_REQUESTS, "htagraph-headers") as threads:
        return list(threads.map(lambda path: look_at(path, alone=alone), files))


def look_at(path: TracePath, *, alone: bool) -> Looked:
    """Return a file with what its header and its name say of its rank, or the error that it has; and its path.

    For the only file of a job, `alone`, the whole file is not searched for its rank.
    """
    try:
        return path, _rank_one(path, alone=alone)
    except HtagraphError as error:
        return path, error


def _ranked(
    looked: Sequence[Looked], named: set[TracePath], skip: Skip | None, left_out: Skip | None
) -> list[RankedFile]:
    """Return the files that are traces; other JSON is an error only where it was named, or where there is no trace."""
    ranked = [found for _, found in looked if isinstance(found, RankedFile)]
    refused = [(path, found) for path, found in looked if not isinstance(found, RankedFile)]
    for path, why in refused:
        if ranked and isinstance(why, OtherFileError) and path not in named:
            if left_out is not None:
                left_out(path, why)
        else:
            with _skipping(path, skip):
                raise why
    return ranked


@contextmanager
def _skipping(path: TracePath, skip: Skip | None) -> Iterator[None]:
    """Pass an error about a path to `skip`, if there is one, instead of raising it."""
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
    path = Path(text).expanduser()
    if path.is_dir():
        named = [file for file in path.iterdir() if file.name.endswith(SUFFIXES)]
        files = [file for file in named if _may_be_read(file)]
        regular = [file for file in path.iterdir() if _may_be_read(file)]
        unread = [file for file in regular if any(reader.recognizes(file) for reader in READERS.values())]
        if not files and unread:
            return unread  # which reading explains
        if not files:
            for file in named[:1]:
                raise _not_regular(file)
            below = sorted({file.parent for file in path.rglob("*") if file.name.endswith(SUFFIXES)})[:3]
            hint = f"there are traces in {', '.join(map(str, below))}" if below else "give what torch.profiler wrote"
            msg = f"{path}: no {_ENDS} file in this folder; {hint}"
            raise TraceError(msg)
        return files
    if _may_be_read(path):
        return [path]
    if path.exists():
        raise _not_regular(path)
    matches = [Path(match) for match in glob.glob(str(path), recursive=True)]  # noqa: PTH207 - absolute patterns too
    if not matches:
        msg = f"{text}: no such file, folder or match{_beside(path)}"
        raise TraceError(msg)
    return [file for file in matches if _may_be_read(file)]  # a glob may match folders too


def _beside(path: Path) -> str:
    """Return the end of an error about a missing path: a path of nearly the same name, or the folder."""
    folder = next((above for above in path.parents if above.is_dir()), None)
    steps = path.relative_to(folder).parts if folder is not None else ()
    if folder is None or not steps or glob.has_magic(str(path)):
        return ""
    with suppress(OSError):
        import difflib  # which few messages need

        beside = {entry.name: str(entry) for entry in folder.iterdir() if not entry.name.startswith(".")}
        alike = difflib.get_close_matches(steps[0], beside, n=1)
        if alike:
            return f"; did you mean {beside[alike[0]]}?"
    return f"; the folder {folder} is there" if len(steps) > 1 else ""


def _expand_url(path: RemotePath) -> list[RemotePath]:
    try:
        found = path.below()
    except OSError as error:
        msg = f"{path}: {error.strerror or error}"
        raise TraceError(msg) from error
    files = found if path.has_magic or found == [path] else [file for file in found if file.name.endswith(SUFFIXES)]
    if not files:
        msg = f"{path}: no match" if path.has_magic else f"{path}: no {_ENDS} file in this folder"
        raise TraceError(msg)
    return files


def _may_be_read(path: Path) -> bool:
    """Return True for a regular file, and for a link to nothing; reading a pipe or a device may never end."""
    return path.is_file() or _leads_nowhere(path)


def _not_regular(path: Path) -> TraceError:
    return TraceError(f"{path}: not a regular file; write the trace to a file first")


def _leads_nowhere(path: Path) -> bool:
    """Return True for a link to nothing or to itself: a trace that is missing, which reading reports."""
    return path.is_symlink() and not path.exists()


def _rank_one(path: TracePath, *, alone: bool) -> RankedFile:
    facts = reader_for(path).survey(path, and_tail=not alone)
    if len(facts.processes) > 1:
        return RankedFile(path, -1, "", facts.run, facts.exported, facts.processes)
    rank = _rank_of(facts)
    if rank is not None:
        return RankedFile(path, rank, "header", facts.run, facts.exported)
    in_name = rank_in_name(path)
    return RankedFile(path, in_name, "name" if in_name >= 0 else "", facts.run, facts.exported)


def _recorded(files: list[RankedFile], left_out: Skip | None) -> list[RankedFile]:
    """Return the files that a profiler wrote, or all files if htagraph exported all of them."""
    if all(file.made for file in files):
        return files
    for file in files:
        if file.made and left_out is not None:
            left_out(file.path, TraceError("exported by htagraph from the traces beside it; left out"))
    return [file for file in files if not file.made]


def named_rank(path: TracePath) -> int:
    """Return the rank in the name of a file, -1 for none."""
    try:
        return rank_in_name(path)
    except RankError:
        return -1


def _rank_of(facts: Facts) -> int | None:
    """Return the rank that a file states, or None if it states none or one out of range."""
    return facts.rank if facts.rank is not None and 0 <= facts.rank < RANK_LIMIT else None


def _number_by_name(files: list[RankedFile]) -> list[RankedFile]:
    """Return the files with a rank for each that has none: the number in which the files' names differ."""
    unknown = [file for file in files if file.rank < 0]
    if not unknown:
        return files
    if len(files) == 1:
        return [replace(files[0], rank=0, source="only file")]
    if _numbers_are_ranks(files):
        return [
            replace(file, rank=number_in_name(file.path), source="name") if file.rank < 0 else file for file in files
        ]
    listed = few_of([file.path.name for file in unknown])
    msg = (
        f"{_folder(files)}: no rank in {listed} (neither distributedInfo nor the file's name has one): these may be "
        f"several jobs; give one file, such as {unknown[0].path}; of one job, put rank0, rank1, … into names of "
        "files (in Python, load takes the rank of each)"
    )
    raise RankError(msg)


def _numbers_are_ranks(files: list[RankedFile]) -> bool:
    """Return whether names differ in a number only, and it is the rank where headers say one, or counts from 0."""
    numbers = [number_in_name(file.path) for file in files]
    if len({pattern_of_name(file.path) for file in files}) > 1 or not all(0 <= each < RANK_LIMIT for each in numbers):
        return False
    known = [file.rank == number for file, number in zip(files, numbers, strict=True) if file.rank >= 0]
    if known:  # one may agree by chance, as rank 0 of step 0
        return len(known) > 1 and all(known)
    return sorted(numbers) == list(range(len(files))) and len(files) <= _MOST_BY_NUMBER


def _refuse_mixed(files: list[RankedFile]) -> None:
    by_rank: dict[int, list[RankedFile]] = defaultdict(list)
    for file in files:
        by_rank[file.rank].append(file)
    runs = sorted({file.run for file in files if file.run})
    twice = {rank: same for rank, same in by_rank.items() if len(same) > 1}
    if not twice and len(runs) < 2:
        return
    groups = _guess_runs(files)
    listing = run_listing([[f"{file.path.name} (rank {file.rank})" for file in group] for group in groups])
    cause = f"rank {next(iter(twice))} has {len(next(iter(twice.values())))} files" if twice else " and ".join(runs)
    msg = (
        f"{_folder(files)}: several runs in one place ({cause}). {listing}. "
        "Pass the files of one run (a glob such as 'traces/*run1*'), or a map {rank: file}"
    )
    raise RankError(msg)


def _guess_runs(files: list[RankedFile]) -> list[list[RankedFile]]:
    """Group files by their headers' run; if a group has a rank twice, the k-th oldest file of each rank forms run k."""
    by_run: dict[str, list[RankedFile]] = defaultdict(list)
    for file in files:
        by_run[file.run].append(file)
    groups: list[list[RankedFile]] = []
    for same_run in by_run.values():
        seen: dict[int, int] = defaultdict(int)
        parts: dict[int, list[RankedFile]] = defaultdict(list)
        for file in sorted(same_run, key=_modified):
            parts[seen[file.rank]].append(file)
            seen[file.rank] += 1
        groups += [sorted(part, key=lambda file: file.rank) for part in parts.values()]
    return groups


def _modified(file: RankedFile) -> tuple[float, str]:
    return 0.0 if isinstance(file.path, RemotePath) else file.path.stat().st_mtime, file.path.name


def run_listing(runs: Sequence[Sequence[str]]) -> str:
    """Return the first runs and the first files of each, in words."""
    more = len(runs) - _MAX_LISTED
    listed = "; ".join(f"run {chr(65 + i)}: {few_of(run)}" for i, run in enumerate(runs[:_MAX_LISTED]))
    return f"{listed}; and {more:,} more runs" if more > 0 else listed


def few_of(texts: Sequence[str]) -> str:
    """Return the first of some texts, and how many more there are."""
    more = len(texts) - _MAX_LISTED
    return ", ".join(texts[:_MAX_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def _folder(files: list[RankedFile]) -> str:
    return str(files[0].path.parent)


RANK_LIMIT = MAX_RANKS
"""Ranks are below this, as tables have a row for each. A larger number in a header or a file name is not a rank."""
_RANK = re.compile(r"(?:(?P<of>[a-z]+)[-_ .]?)?(?<![a-z])rank[-_ =.]?(?P<number>\d+)", re.IGNORECASE)
_WITHIN = frozenset(("local", "node", "host", "group", "tp", "pp", "dp", "cp", "ep", "mp", "sp", "fsdp"))
"""Words before ``rank`` in numbers that count within a part of the job only, as in ``local_rank0_rank9``."""
_LAST_NUMBER = re.compile(r"(\d+)(?=\D*$)")


def rank_in_name(path: TracePath) -> int:
    """Return the rank that a file's name has, as in ``rank-3``; -1 if it has none, or several that differ.

    Numbers within a part of the job, as in ``local_rank-3``, are none. A number too large to be one raises a RankError.
    """
    found = [each for each in _RANK.finditer(path.name) if (each["of"] or "").lower() not in _WITHIN]
    ranks = {int(each["number"]) for each in found}
    return checked_rank(ranks.pop(), path) if len(ranks) == 1 else -1


def checked_rank(rank: int, path: TracePath) -> int:
    """Return a number that can be a rank."""
    if not (isinstance(rank, int) and 0 <= rank < RANK_LIMIT):
        msg = f"{path}: {rank!r} is not a rank; give the rank of each file: load({{0: 'a.json', 1: 'b.json'}})"
        raise RankError(msg)
    return rank


def number_in_name(path: TracePath) -> int:
    """Return the last number in a file's name, as the 3 of ``kineto_3.json``; -1 if it has none."""
    number = _LAST_NUMBER.search(path.name)
    return int(number[1]) if number else -1


def pattern_of_name(path: TracePath) -> str:
    """Return a file's name without its last number: equal for files of which only that differs."""
    return _LAST_NUMBER.sub("#", path.name)


def runs_of(path: str) -> list[str]:
    """Return the recordings that a path stands for: the folders of traces in a folder that has none itself, else it.

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
