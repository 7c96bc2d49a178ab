"""DistributedJob: a job whose ranks lie with workers, and what they have in common here.

First what a worker does, which reads one file and sends back the digest of its rank, or a table; last `load_on`.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

import pandas as pd

from htagraph.cluster.engines import Engine, Failed, engine_of, run_each
from htagraph.core.errors import HtagraphError, Issue, OtherFileError, SelectionError, TraceError
from htagraph.core.naming import DEFAULT_NAMING, Naming
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.load import load
from htagraph.graph.storage.cache import release
from htagraph.queries.rank_digests.digest import RankDigest, digest
from htagraph.queries.rank_digests.job_skeleton import JobSkeleton, joined_job
from htagraph.trace.discover import Looked, RankedFile, TracePaths, look_at, named_rank, rank_files
from htagraph.trace.remote import TracePath

__all__ = [
    "DistributedJob", "MissingRank", "NotHereError", "ReadOptions", "digest_of", "load_on", "looks", "table_of",
]  # fmt: skip


class ReadOptions(NamedTuple):
    """How files are read, and by which release."""

    steps: tuple[int, ...] | None = None
    cache: bool | str | os.PathLike[str] = False
    naming: Naming = DEFAULT_NAMING
    python: bool | None = None
    release: str = ""


def looks(paths: Sequence[TracePath], alone: bool) -> list[Looked]:  # noqa: FBT001 - engines pass it on by position
    """Return what the headers of some files say of their ranks."""
    return [look_at(path, alone=alone) for path in paths]


def digest_of(file: RankedFile, reading: ReadOptions) -> bytes | Failed:
    """Return the digest of a rank as bytes."""
    return _answer(file, reading, lambda graph: digest(graph, naming=reading.naming).to_bytes())


def table_of(
    file: RankedFile, reading: ReadOptions, analysis: Callable[..., pd.DataFrame], given: Sequence[Any],
    options: dict[str, Any],
) -> pd.DataFrame | Failed:  # fmt: skip
    """Return an analysis of a rank."""
    return _answer(file, reading, lambda graph: analysis(graph, *given, **options))


def _answer(file: RankedFile, reading: ReadOptions, question: Callable[[DependencyGraph], Any]) -> Any:  # noqa: ANN401
    """Return an answer about a rank, or why there is none. No error leaves: those of stores do not survive the way."""
    if reading.release != release():
        what = f"the worker has htagraph {release() or 'of no release'}, this program {reading.release or 'none'}"
        return Failed(f"{what}; install the same release on both")
    try:
        graph = load(
            {file.rank: file if file.parts else file.path}, steps=reading.steps, naming=reading.naming,
            cache=reading.cache, python=reading.python,
        )  # fmt: skip
        return question(graph)
    except HtagraphError as error:
        why = error.__cause__  # a store or a disk may answer another time
        lasting = FileNotFoundError | PermissionError | IsADirectoryError
        return Failed(str(error), isinstance(why, OSError) and not isinstance(why, lasting))
    except MemoryError:
        return Failed(f"{file.path}: does not fit into the worker's memory", may_mend=True)
    except OSError as error:
        return Failed(f"{file.path}: {error}", may_mend=True)
    except Exception as error:  # noqa: BLE001 - a defect of ours must not cost the other ranks
        return Failed(f"{file.path}: {type(error).__name__}: {error}")


class NotHereError(SelectionError, AttributeError):
    """What was asked needs activities, which only the workers have."""


class MissingRank(NamedTuple):
    """A rank that an answer lacks."""

    rank: int
    """-1 if the file does not tell."""
    file: str
    """Empty if no file of the rank was given."""
    why: str


@dataclass(frozen=True, eq=False)
class DistributedJob:
    """A job whose ranks lie with workers. Made by `htagraph.load` if an engine is given.

    Workers have read each rank and sent its digest; `moments` is the job that was joined from them. Breakdowns that
    look at one rank at a time are asked as of a graph, ``htagraph.temporal_breakdown(job)``: workers analyse their
    ranks, and the rows come together here.
    """

    moments: JobSkeleton
    """The job at the moments that its ranks share: ``step_times()``, ``critical_path()``, ``waits()``, ``slack()``,
    ``stragglers()``, ``what_if()``, ``makespan_ns()``."""
    files: tuple[RankedFile, ...]
    """The files that were read, by rank."""
    missing: tuple[MissingRank, ...]
    """The ranks that all answers lack, and why."""
    engine: Engine = field(repr=False)
    reading: ReadOptions = field(repr=False)
    skipped: tuple[Issue, ...] = field(repr=False, default=())
    """Files beside the traces that were left out."""

    def __repr__(self) -> str:
        """Return how many ranks were read, and which are missing."""
        lacking = f", {len(self.missing)} missing" if self.missing else ""
        return f"DistributedJob({len(self.files):,} ranks{lacking}, {self.moments})"

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that were read, ascending."""
        return tuple(file.rank for file in self.files)

    @property
    def issues(self) -> tuple[Issue, ...]:
        """What was wrong with the files, and which ranks are missing."""
        lacking = tuple(Issue(each.file, "rank_missing", each.why, 1, each.rank) for each in self.missing)
        return self.moments.issues + self.skipped + lacking

    def load(self, ranks: Sequence[int], **options: Any) -> DependencyGraph:  # noqa: ANN401 - of load
        """Return the graph of some ranks, read here: for what only activities can answer.

        Args:
            ranks: the ranks; together they must fit into memory.
            options: those of `htagraph.load`, such as ``steps``.

        Raises:
            SelectionError: a rank was not read.
        """
        by_rank = {file.rank: file.path for file in self.files}
        absent = sorted(set(ranks) - set(by_rank))
        if absent:
            msg = f"rank {absent[0]} is not among those that workers read; see .ranks and .missing"
            raise SelectionError(msg)
        own = {name: getattr(self.reading, name) for name in ("steps", "cache", "naming", "python")}
        return load({rank: by_rank[rank] for rank in ranks}, **(own | options))

    def rank_by_rank(self, analysis: Callable[..., pd.DataFrame], *given: Any, **options: Any) -> pd.DataFrame:  # noqa: ANN401
        """Return the rows of an analysis of all ranks, in their order, each rank analysed by a worker.

        Ranks that no worker could analyse are named in a warning, and in ``attrs["missing"]`` of the result.

        Args:
            analysis: one of htagraph, which looks at one rank at a time.
            given: its further arguments.
            options: its options.

        Raises:
            TraceError: no rank could be analysed.
        """
        tables: dict[int, pd.DataFrame] = {}
        lacking = list(self.missing)
        asked = (self.reading, analysis, given, options)
        for file, answer in run_each(self.engine, table_of, self.files, *asked):
            if isinstance(answer, Failed):
                lacking.append(MissingRank(file.rank, str(file.path), answer.why))
            else:
                tables[file.rank] = answer
        if not tables:
            msg = f"no rank could be analysed: {reasons(lacking)}"
            raise TraceError(msg)
        if len(lacking) > len(self.missing):
            warnings.warn(f"the answer lacks {len(lacking)} ranks: {reasons(lacking)}", stacklevel=3)
        ordered = [tables[rank] for rank in sorted(tables)]
        table = pd.concat([each for each in ordered if len(each)] or ordered[:1], ignore_index=True)
        table.attrs["missing"] = [each.rank for each in sorted(lacking)]
        return table

    def of_moments(self, analysis: str) -> pd.DataFrame:
        """Return what the moments of the job answer to an analysis of that name."""
        return getattr(self.moments, analysis)()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - raises
        if name.startswith("_"):
            raise AttributeError(name)
        asked = _asked_of(self, sys._getframe(1))
        if asked:
            known = f"job.moments.{asked}" if hasattr(JobSkeleton, asked) else (
                "job.moments answers step_times, critical_path, waits, slack, stragglers and what_if"
            )  # fmt: skip
            msg = (
                f"htagraph.{asked} takes a graph, and this job lies with workers: ask it of some ranks, "
                f"htagraph.{asked}(job.load([0, 1])); of all ranks, {known}"
            )
        else:
            msg = (
                f"a job on workers has no {name} here: ask .moments (step_times, critical_path, waits, slack, "
                "stragglers, what_if), or a breakdown by rank, such as htagraph.temporal_breakdown(job); for all else "
                "load some ranks: job.load([0, 1])"
            )
        raise NotHereError(msg)


def _asked_of(job: DistributedJob, frame: FrameType | None) -> str:
    """Return the outermost function of htagraph that was called with a job as if it were a graph; empty if none was.

    Every function of graphs reaches for an attribute that the job lacks, sooner or later, maybe deep inside: the name
    that the user called is that of a frame further out.
    """
    asked = ""
    while frame is not None:  # between two of the package may be frames of others, such as of cached properties
        code, inside = frame.f_code, str(frame.f_globals.get("__name__")).startswith("htagraph.")
        is_public = inside and code.co_name in frame.f_globals.get("__all__", ()) and code.co_argcount > 0
        if is_public and frame.f_locals.get(code.co_varnames[0]) is job:
            asked = code.co_name
        frame = frame.f_back
    return asked


def reasons(lacking: Iterable[MissingRank]) -> str:
    """Return why ranks are missing, the first few of them; what names no rank, names its file."""
    every = sorted(lacking)
    more = f"; and {len(every) - 5} more" if len(every) > 5 else ""
    return "; ".join(f"rank {each.rank}: {each.why}" if each.rank >= 0 else each.why for each in every[:5]) + more


def load_on(
    engine: Any,  # noqa: ANN401 - of one of several libraries
    paths: TracePaths,
    ranks: Sequence[int] | None,
    reading: Mapping[str, Any],
    *,
    progress: Callable[[float], None] | None = None,
) -> DistributedJob:
    """Return a job whose ranks are read by workers, one file per call; only digests of ranks travel.

    The engine, paths, ranks, progress and errors are those of `htagraph.load`; `reading` has fields of `ReadOptions`.
    All workers must have the same release, and see the same files. Files that cannot be read, and ranks whose workers
    were lost time and again, are left out: ``job.missing`` lists them.
    """
    workers = engine_of(engine)
    read_as = ReadOptions(**reading, release=release())
    lacking: list[MissingRank] = []
    beside: list[Issue] = []

    def skip(path: TracePath, error: HtagraphError) -> None:
        lacking.append(MissingRank(named_rank(path), str(path), str(error)))

    def leave_out(path: TracePath, why: HtagraphError) -> None:
        kind = why.code if isinstance(why, OtherFileError) else "made_by_htagraph"
        beside.append(Issue(str(path), kind, str(why), 1))

    files = rank_files(paths, skip, leave_out, look=lambda found: _looked(workers, found))
    if ranks is not None:
        have = {file.rank for file in files}
        lacking += [MissingRank(rank, "", "no file of it was given") for rank in sorted(set(ranks) - have)]
        files = [file for file in files if file.rank in set(ranks)]
    digests: dict[int, tuple[RankedFile, RankDigest]] = {}
    for file, answer in run_each(workers, digest_of, files, read_as):
        try:  # what a worker sent is never trusted to be a digest
            digest = answer if isinstance(answer, Failed) else RankDigest.from_bytes(answer)
        except HtagraphError as error:
            digest = Failed(str(error))
        if isinstance(digest, Failed):
            lacking.append(MissingRank(file.rank, str(file.path), digest.why))
        else:
            digests[file.rank] = file, digest
        if progress is not None:
            progress((len(digests) + len(lacking)) / max(len(files) + len(lacking), 1))
    if not digests:
        msg = f"no file could be read: {reasons(lacking)}" if lacking else "no trace files were given"
        raise TraceError(msg)
    moments = joined_job([digest for _, digest in digests.values()], naming=read_as.naming)
    if ranks is None:
        known = {each.rank for each in lacking}
        why = "no file of it could be read" if -1 in known else "no file of it was given"
        lacking += [MissingRank(rank, "", why) for rank in moments.missing if rank not in known]
    read = tuple(digests[rank][0] for rank in sorted(digests))
    return DistributedJob(moments, read, tuple(sorted(lacking)), workers, read_as, tuple(beside))


def _looked(workers: Engine, paths: Sequence[TracePath]) -> list[Looked]:
    """Return what the headers of files say, read by workers, in the order of the files."""
    size = 64  # a call costs some ms, as reading some headers does
    batches = [tuple(paths[at : at + size]) for at in range(0, len(paths), size)]
    by_path: dict[TracePath, Looked] = {}
    for batch, answer in run_each(workers, looks, batches, len(paths) == 1):
        if isinstance(answer, Failed):
            by_path.update((path, (path, TraceError(f"{path}: {answer.why}"))) for path in batch)
        else:
            by_path.update((looked[0], looked) for looked in answer)
    return [by_path[path] for path in paths]
