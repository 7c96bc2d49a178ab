"""load_on: trace files → a job whose ranks lie with workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from htagraph.cluster.engines import Engine, engine_of
from htagraph.cluster.job import DistributedJob, MissingRank, reasons
from htagraph.cluster.on_worker import ReadOptions, digest_of, looks, release
from htagraph.cluster.run_each import Failed, Patience, run_each
from htagraph.core.errors import HtagraphError, Issue, OtherJsonError, RankError, TraceError
from htagraph.queries.rank_digests.digest import RankDigest
from htagraph.queries.rank_digests.job_skeleton import joined_job
from htagraph.trace.discover import Looked, RankedFile, TracePaths, rank_files, rank_in_name
from htagraph.trace.remote import TracePath

__all__ = ["load_on"]


def load_on(
    engine: Any,  # noqa: ANN401 - of one of several libraries
    paths: TracePaths,
    ranks: Sequence[int] | None,
    reading: Mapping[str, Any],
    *,
    progress: Callable[[float], None] | None = None,
    patience: Patience | None = None,
) -> DistributedJob:
    """Return a job whose ranks are read by workers, one file per call; only digests of ranks travel.

    The engine, paths, ranks, progress and errors are those of `htagraph.load`; `reading` has fields of `ReadOptions`.
    All workers must have the same release, and see the same files. Files that cannot be read, and ranks whose workers
    were lost time and again, are left out: ``job.missing`` lists them.
    """
    workers, waits = engine_of(engine), patience or Patience()
    read_as = ReadOptions(**reading, release=release())
    lacking: list[MissingRank] = []
    beside: list[Issue] = []

    def skip(path: TracePath, error: HtagraphError) -> None:
        lacking.append(MissingRank(_named_rank(path), str(path), str(error)))

    def leave_out(path: TracePath, why: HtagraphError) -> None:
        kind = "other_json" if isinstance(why, OtherJsonError) else "made_by_htagraph"
        beside.append(Issue(str(path), kind, str(why), 1))

    files = rank_files(paths, skip, leave_out, look=lambda found: _looked(workers, found, waits))
    if ranks is not None:
        have = {file.rank for file in files}
        lacking += [MissingRank(rank, "", "no file of it was given") for rank in sorted(set(ranks) - have)]
        files = [file for file in files if file.rank in set(ranks)]
    digests: dict[int, tuple[RankedFile, RankDigest]] = {}
    for file, answer in run_each(workers, digest_of, files, read_as, patience=waits):
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
    return DistributedJob(moments, read, tuple(sorted(lacking)), workers, read_as, tuple(beside), waits)


def _looked(workers: Engine, paths: Sequence[TracePath], patience: Patience) -> list[Looked]:
    """Return what the headers of files say, read by workers, in the order of the files."""
    size = 64  # a call costs some ms, as reading some headers does
    batches = [tuple(paths[at : at + size]) for at in range(0, len(paths), size)]
    by_path: dict[TracePath, Looked] = {}
    for batch, answer in run_each(workers, looks, batches, len(paths) == 1, patience=patience):
        if isinstance(answer, Failed):
            by_path.update((path, (path, TraceError(f"{path}: {answer.why}"))) for path in batch)
        else:
            by_path.update((looked[0], looked) for looked in answer)
    return [by_path[path] for path in paths]


def _named_rank(path: TracePath) -> int:
    try:
        return rank_in_name(path)
    except RankError:
        return -1
