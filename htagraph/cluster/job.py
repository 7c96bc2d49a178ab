"""DistributedJob: a job whose ranks lie with workers, and what they have in common here."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

import pandas as pd

from htagraph.cluster.engines import Engine
from htagraph.cluster.on_worker import ReadOptions, table_of
from htagraph.cluster.run_each import Failed, Patience, run_each
from htagraph.core.errors import Issue, SelectionError, TraceError
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.load import load
from htagraph.queries.rank_digests.job_skeleton import JobSkeleton
from htagraph.trace.discover import RankedFile

__all__ = ["DistributedJob", "MissingRank", "NotHereError"]


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
    patience: Patience = field(repr=False, default_factory=Patience)

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
        for file, answer in run_each(self.engine, table_of, self.files, *asked, patience=self.patience):
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
    while frame is not None and str(frame.f_globals.get("__name__")).split(".")[0] == __name__.split(".")[0]:
        code = frame.f_code
        is_public = code.co_name in frame.f_globals.get("__all__", ()) and code.co_argcount > 0
        if is_public and frame.f_locals.get(code.co_varnames[0]) is job:
            asked = code.co_name
        frame = frame.f_back
    return asked


def reasons(lacking: Iterable[MissingRank]) -> str:
    """Return why ranks are missing, the first few of them; what names no rank, names its file."""
    every = sorted(lacking)
    more = f"; and {len(every) - 5} more" if len(every) > 5 else ""
    return "; ".join(f"rank {each.rank}: {each.why}" if each.rank >= 0 else each.why for each in every[:5]) + more
