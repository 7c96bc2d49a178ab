"""load: trace files → one DependencyGraph over all ranks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

from htagraph.core.errors import HtagraphError, OtherJsonError, RankError, SelectionError, TraceError
from htagraph.core.issues import Issue
from htagraph.core.naming import DEFAULT_NAMING, Naming
from htagraph.graph.construction.activities import RankPart, prepare
from htagraph.graph.construction.build import build
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.storage.cache import cached
from htagraph.trace.reading.discover import RankedFile, TracePaths, rank_files
from htagraph.trace.reading.in_parallel import in_parallel
from htagraph.trace.reading.read import read_trace
from htagraph.trace.remote import TracePath

if TYPE_CHECKING:
    from htagraph.cluster.job import DistributedJob

__all__ = ["load"]

Progress = Callable[[float], None]
_YEAR_NS = 365 * 86_400 * 10**9
"""ns since the epoch, one year: earlier times count from the start of the host or of the recording, and cannot be
compared between ranks. Chosen: no host runs for longer. Doubled, nothing changes before 1972."""
_APART_NS = 10 * 10**9
"""ns: recordings further apart than this are from different runs. Chosen: ranks of one run are recorded together, and
clocks of hosts differ by less. Doubled, runs that follow each other within 20 s are taken for one."""


@overload
def load(
    path: TracePaths,
    ranks: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
    progress: Progress | None = None,
    *,
    on_error: Literal["raise", "skip"] = "raise",
    naming: Naming = DEFAULT_NAMING,
    cache: bool | str | os.PathLike[str] = False,
    engine: None = None,
) -> DependencyGraph: ...
@overload
def load(
    path: TracePaths,
    ranks: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
    progress: Progress | None = None,
    *,
    on_error: Literal["raise", "skip"] = "raise",
    naming: Naming = DEFAULT_NAMING,
    cache: bool | str | os.PathLike[str] = False,
    engine: object,
) -> DistributedJob: ...
def load(  # noqa: PLR0913 - one argument per choice
    path: TracePaths,
    ranks: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
    progress: Progress | None = None,
    *,
    on_error: Literal["raise", "skip"] = "raise",
    naming: Naming = DEFAULT_NAMING,
    cache: bool | str | os.PathLike[str] = False,
    engine: Any = None,
) -> DependencyGraph | DistributedJob:
    """Return the dependency graph of a job recorded in Kineto traces, one file per rank.

    Args:
        path: a folder, a file, a glob, several of these, or a map from rank to file; paths, or URLs such as
            ``s3://bucket/run42/*.json.gz``, for which fsspec and the store's package must be installed.
        ranks: read these ranks only.
        steps: keep the activities of these ProfilerStep numbers only, with the device work launched in them.
        progress: called with the share done, 0 to 1.
        on_error: ``"skip"`` leaves out files that are absent or cannot be read and reports them in ``graph.issues``.
        naming: what the names of events mean; extend `htagraph.DEFAULT_NAMING` for kernels of your own.
        cache: open the graph from the cache if these files were loaded before and have not changed, else put it there;
            True for the cache of the commands, or a folder. Small jobs, which load at once, and jobs with a naming of
            their own or ``on_error="skip"`` are not cached. With an engine, each worker caches its ranks.
        engine: workers that read a rank each and send its digest, for jobs that do not fit into one machine:
            ``"processes"`` or a number of them, a ``distributed.Client`` or the address of its scheduler, the module
            ``ray``, or any ``concurrent.futures`` executor. Files that cannot be read are then always left out and
            reported, in ``job.missing``.

    Returns:
        The graph; ``graph.issues`` lists what was repaired or dropped. With an engine, a `DistributedJob`, of which
        breakdowns by rank, step times, the critical path, waits, stragglers and what-ifs can be asked.

    Raises:
        TraceError: a path does not exist, or a file is no trace or damaged beyond recovery.
        RankError: files do not form one job, or a rank in `ranks` is absent.
        SelectionError: a step in `steps` is in no rank.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo", ranks=[0, 1])
        >>> graph.ranks
        (0, 1)
    """
    if on_error not in ("raise", "skip"):
        msg = f"on_error is 'raise' or 'skip', not {on_error!r}"
        raise ValueError(msg)
    ranks, steps = None if ranks is None else list(ranks), None if steps is None else list(steps)  # may be iterators
    if engine is not None:
        from htagraph.cluster.load import load_on

        how = {"steps": None if steps is None else tuple(steps), "cache": cache, "naming": naming}
        return load_on(engine, path, ranks, how, progress=progress)
    if cache is not False and naming == DEFAULT_NAMING and on_error == "raise":
        make = partial(load, path, ranks, steps, progress)
        return cached(make, path, {"ranks": ranks, "steps": steps}, None if cache is True else cache)
    graph, skipped = _joined(path, ranks, steps, progress, on_error=on_error, naming=naming)
    return graph.replace(issues=graph.issues + skipped) if skipped else graph


def _joined(
    path: TracePaths, ranks: Sequence[int] | None, steps: Sequence[int] | None, progress: Progress | None, *,
    on_error: str, naming: Naming,
) -> tuple[DependencyGraph, tuple[Issue, ...]]:  # fmt: skip
    """Return (the graph of some files, which files were left out)."""
    skipped: list[Issue] = []

    def skip(path: TracePath, error: HtagraphError) -> None:
        skipped.append(Issue(str(path), "file_skipped", str(error), 1))

    def leave_out(path: TracePath, why: HtagraphError) -> None:
        kind = "other_json" if isinstance(why, OtherJsonError) else "made_by_htagraph"
        skipped.append(Issue(str(path), kind, str(why).removeprefix(f"{path}: "), 1))

    files = rank_files(path, skip if on_error == "skip" else None, leave_out)
    files = _chosen(files, ranks)
    by_rank: dict[int, RankPart] = {}
    for file, part in in_parallel(files, partial(_part, naming=naming, steps=steps), progress):
        if isinstance(part, RankPart):
            _refuse_twice(by_rank.setdefault(part.rest.rank, part), part)
        elif on_error == "skip":
            skip(file.path, part)
        else:
            raise part
    parts = list(by_rank.values())
    if not parts:
        reasons = "; ".join(issue.detail for issue in skipped[:3])
        msg = f"no file could be read: {reasons}" if reasons else "no trace files were given"
        raise TraceError(msg)
    if files[0].source != "given":
        _refuse_apart(parts)
    _require_steps(parts, steps)
    return build(parts, naming), tuple(skipped)


def _chosen(files: list[RankedFile], ranks: Sequence[int] | None) -> list[RankedFile]:
    if ranks is None or not files:
        return files
    have = [file.rank for file in files]
    absent = sorted(set(ranks) - set(have))
    if absent:
        msg = f"rank {absent[0]} is not among the files; they have ranks {', '.join(map(str, have))}"
        raise RankError(msg)
    return [file for file in files if file.rank in set(ranks)]


def _part(
    file: RankedFile, *, naming: Naming, steps: Sequence[int] | None, progress: Callable[[int], None], compiled: bool
) -> RankPart | HtagraphError:
    try:
        return prepare(read_trace(file.path, file.rank_in, progress, compiled=compiled), naming, steps)
    except HtagraphError as error:
        return error
    except MemoryError:
        what = "does not fit into memory; read fewer ranks at once, or keep some steps only (ranks=, steps=)"
        return TraceError(f"{file.path}: {what}")


def _refuse_twice(first: RankPart, second: RankPart) -> None:
    """Refuse two files of one rank; a file may name its rank after its events, so only reading it shows that."""
    if first is not second:
        names = " and ".join(sorted(str(part.rest.path) for part in (first, second)))
        msg = (
            f"rank {first.rest.rank} has two files: {names}; pass the files of one run, or a map {{rank: file}} to say "
            "which is which"
        )
        raise RankError(msg)


def _refuse_apart(parts: list[RankPart]) -> None:
    """Refuse ranks that were recorded at different times, because they come from several runs."""
    windows = []
    for part in parts:
        acts = part.activities
        if len(acts) and acts.origin > _YEAR_NS:  # without a common base, times cannot be compared
            windows.append((acts.origin, int(acts.end.max()), part.rest))
    windows.sort(key=lambda window: window[0])
    runs: list[list[str]] = []
    reach = None
    for start, end, trace in windows:
        if reach is None or start > reach + _APART_NS:
            runs.append([])
        runs[-1].append(f"{trace.path.name} (rank {trace.rank})")
        reach = end if reach is None else max(reach, end)
    if len(runs) > 1:
        listing = "; ".join(f"run {chr(65 + i)}: {', '.join(run[:8])}" for i, run in enumerate(runs))
        msg = (
            f"{windows[0][2].path.parent}: the files were recorded at different times, by several runs. {listing}. "
            "Pass the files of one run, or a map {rank: file} to join them all the same"
        )
        raise RankError(msg)


def _require_steps(parts: list[RankPart], steps: Sequence[int] | None) -> None:
    """Refuse step numbers that no rank has."""
    if steps is None:
        return
    marks = {step for part in parts for step in part.steps}
    absent = sorted(set(steps) - marks) if steps else ["(none given)"]
    if not absent:
        return
    has = f"they have steps {', '.join(map(str, sorted(marks)))}" if marks else "they have no ProfilerStep annotations"
    msg = f"no activity in steps {', '.join(map(str, absent))}: {has}"
    raise SelectionError(msg)
