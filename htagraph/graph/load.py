"""load: trace files → one DependencyGraph over all ranks.

A large file of which some steps or a window of time are wanted is thinned while it is read.
"""

from __future__ import annotations

import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.errors import HtagraphError, Issue, OtherFileError, RankError, SelectionError, TraceError
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import (
    DEFAULT_NAMING,
    HOST_CATEGORIES,
    RUNTIME_CATEGORIES,
    Naming,
    activity_kind,
    names_like,
    step_number,
)
from htagraph.graph.construction.activities import RankPart, prepare
from htagraph.graph.construction.borrowing import borrow
from htagraph.graph.construction.build import build
from htagraph.graph.construction.captured import Capture
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.storage.cache import bytes_digest, cached
from htagraph.graph.tolerances import LIMITS
from htagraph.trace.columns import Trace
from htagraph.trace.discover import RankedFile, TracePaths, few_of, rank_files, run_listing
from htagraph.trace.kept import Extent, Frames, Survey, Windows, merged, overlaps
from htagraph.trace.readers import in_parallel, json_bytes, read_trace
from htagraph.trace.remote import TracePath

if TYPE_CHECKING:
    from htagraph.cluster.job import DistributedJob

__all__ = ["load"]

Progress = Callable[[float], None]
Window = tuple[float | None, float | None]
_YEAR_NS = 365 * 86_400 * 10**9
"""ns since the epoch, one year: earlier times count from the start of the host or of the recording, and cannot be
compared between ranks. Chosen: no host runs for longer. Doubled, nothing changes before 1972."""
_NEVER_NS = 2**62
"""ns since 1970: the end of a window that is open. As the latest time that is read, see `read_trace`."""
_LARGE_BYTES = 256 << 20
"""Bytes of JSON from which a file is thinned while it is read. Chosen: smaller ones fit, and are read once instead of
twice. Doubled, the memory that steps of such files take at first doubles."""
_APART_NS = 10 * 10**9
"""ns: recordings further apart than this are from different runs. Chosen: ranks of one run are recorded together, and
clocks of hosts differ by less. Doubled, runs that follow each other within 20 s are taken for one."""


@overload
def load(
    path: TracePaths, ranks: Sequence[int] | int | None = None, steps: Sequence[int] | int | None = None,
    progress: Progress | None = None, *, on_error: Literal["raise", "skip"] = "raise", naming: Naming = DEFAULT_NAMING,
    cache: bool | str | os.PathLike[str] = False, time: Window | None = None, python: bool | None = None,
    engine: None = None, captures: TracePaths | None = None,
) -> DependencyGraph: ...  # fmt: skip
@overload
def load(
    path: TracePaths, ranks: Sequence[int] | int | None = None, steps: Sequence[int] | int | None = None,
    progress: Progress | None = None, *, on_error: Literal["raise", "skip"] = "raise", naming: Naming = DEFAULT_NAMING,
    cache: bool | str | os.PathLike[str] = False, time: Window | None = None, python: bool | None = None,
    engine: object, captures: None = None,
) -> DistributedJob: ...  # fmt: skip
def load(  # noqa: PLR0913 - one argument per choice
    path: TracePaths,
    ranks: Sequence[int] | int | None = None,
    steps: Sequence[int] | int | None = None,
    progress: Progress | None = None,
    *,
    on_error: Literal["raise", "skip"] = "raise",
    naming: Naming = DEFAULT_NAMING,
    cache: bool | str | os.PathLike[str] = False,
    time: Window | None = None,
    python: bool | None = None,
    engine: Any = None,
    captures: TracePaths | None = None,
) -> DependencyGraph | DistributedJob:
    """Return the dependency graph of a job recorded in Kineto traces or exports of Nsight Systems.

    Args:
        path: a folder, a file (``.json``, ``.json.gz``, ``.json.zst``, one per rank; ``.sqlite``, ``.sqlite.gz``, of
            one rank or several), a glob, several of these, or a map from rank to file; paths, or URLs such as
            ``s3://run42/*.json.gz``, which need fsspec and the store's package.
        ranks: read these ranks only.
        steps: keep the activities of these ProfilerStep numbers only, with the device work launched in them.
        progress: called with the share done, 0 to 1.
        on_error: ``"skip"`` leaves out files that are absent or cannot be read and reports them in ``graph.issues``.
        naming: patterns that decide an event's kind by its name; extend `htagraph.DEFAULT_NAMING` for kernels of your
            own.
        cache: open the graph from the cache if these files were loaded before and have not changed, else put the graph
            there; True for the cache of the commands, or a folder. Small jobs, which load at once, and jobs with a
            naming of their own, with captures or ``on_error="skip"`` are not cached. With an engine, each worker
            caches its ranks.
        time: (from, to), µs since the job's first activity, as the ranks' clocks say (where a file has no base time,
            since its own first activity); None for an end that is open. Keeps host activities that begin in this
            window, ``from <= start < to``, and the device work that they launched; device work without a launch in the
            file is kept if it begins in the window itself. An activity that began earlier is left out, even if it
            encloses kept activities. If `steps` is given too, an activity must meet both.
        python: keep calls of Python functions (``python_function``), most of a trace that was recorded with stacks.
            True for all, False for none; None keeps the calls unless a file has more than 4,000,000 of them; the calls
            of such a file are left out, and ``graph.issues`` says so (``python_left_out``). Without calls of Python
            functions there are no modules and no sources of code, Python is time between operators, and waits that only
            a Python function names are not known.
        engine: workers that read a rank each and send its digest, for jobs that do not fit into one machine:
            ``"processes"`` or a number of them, a ``distributed.Client`` or the address of its scheduler, the module
            ``ray``, or any ``concurrent.futures`` executor. Files that cannot be read are then always left out and
            reported, in ``job.missing``.
        captures: recordings in which kernels of replayed CUDA graphs were launched one by one, such as an eager
            warm-up, or the capture itself, with the profiler on: as `path`, a list of such jobs, or `path` itself.
            Kernels with the same order, names and grids there get the operators, modules, shapes and annotations of
            the capture (see docs/recording.md); ``graph.issues`` counts the others (``replay_unnamed``).

    Steps and times are chosen while a large file is read, so that its other activities are never in memory. Such a file
    is read at least twice.

    Returns:
        The graph; ``graph.issues`` lists what was repaired or dropped. With an engine, a `DistributedJob`, which gives
        breakdowns by rank, step times, the critical path, waits, stragglers and what-ifs.

    Raises:
        TraceError: a path does not exist, or a file is no trace, or a file is damaged beyond recovery.
        RankError: files do not form one job, or a rank in `ranks` is absent.
        SelectionError: a step in `steps` is in no rank, or no activity begins in the window in `time`.
        ValueError: `time` is no window or ends before it begins, or `time` or `captures` is given with an engine.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo", ranks=[0, 1])
        >>> graph.ranks
        (0, 1)
    """
    if on_error not in ("raise", "skip"):
        msg = f"on_error is 'raise' or 'skip', not {on_error!r}"
        raise ValueError(msg)
    ranks = _numbers("ranks", ranks)
    steps = _numbers("steps", steps)
    time = _checked(time)
    if engine is not None:
        from htagraph.cluster.job import load_on

        if captures is not None:
            msg = "captures= is read by no worker; load the ranks in question without an engine, ranks=[…]"
            raise ValueError(msg)
        if time is not None:
            msg = "time= counts from the first activity of all ranks, which no worker knows; give steps= with an engine"
            raise ValueError(msg)
        how = {"steps": None if steps is None else tuple(steps), "cache": cache, "naming": naming, "python": python}
        return load_on(engine, path, ranks, how, progress=progress)
    if cache is not False and naming == DEFAULT_NAMING and on_error == "raise" and captures is None:
        make = partial(load, path, ranks, steps, progress, time=time, python=python)
        options = {"ranks": ranks, "steps": steps, "time": time, "python": python}
        chosen = None if ranks is None else lambda: {str(file.path) for file in _chosen(rank_files(path), ranks)}
        return cached(make, path, options, None if cache is True else cache, chosen)
    wanted = Wanted(None if steps is None else tuple(steps), python=python)
    parts, skipped = _parts(path, ranks, wanted, time, progress, on_error=on_error, naming=naming)
    skipped += _copies([part.rest for part in parts])
    lenders = [] if captures is None else _captures(captures, naming)
    graph = build((borrow(parts.pop(), lenders) for _ in range(len(parts))), naming)  # each is freed once it is there
    if not skipped and captures is None:
        return graph
    return graph.replace(issues=graph.issues + tuple(skipped), captures=tuple(each.trace for each in lenders))


def _captures(paths: TracePaths, naming: Naming) -> list[Capture]:
    """Return the recordings that may lend frames; a list of paths is one job each."""
    jobs = paths if isinstance(paths, Sequence) and not isinstance(paths, str) else [paths]
    files = [file for job in jobs for file in rank_files(job)]
    each = partial(_part, naming=naming, wanted=Wanted(python=True), spans=None)
    out = list[Capture]()
    for _, part in in_parallel(files, each, None):
        if not isinstance(part, RankPart):
            raise part
        out.append(Capture(build([part], naming), part.rest.rank, len(out)))
    return out


def _parts(  # noqa: PLR0913 - what `load` was given
    path: TracePaths, ranks: Sequence[int] | None, wanted: Wanted, time: Window | None, progress: Progress | None, *,
    on_error: str, naming: Naming,
) -> tuple[list[RankPart], list[Issue]]:  # fmt: skip
    """Return (the parts of all ranks, which files were left out)."""
    skipped: list[Issue] = []

    def skip(path: TracePath, error: HtagraphError) -> None:
        skipped.append(Issue(str(path), "file_skipped", str(error), 1))

    def leave_out(path: TracePath, why: HtagraphError) -> None:
        kind = why.code if isinstance(why, OtherFileError) else "made_by_htagraph"
        skipped.append(Issue(str(path), kind, str(why).removeprefix(f"{path}: "), 1))

    files = rank_files(path, skip if on_error == "skip" else None, leave_out)
    files = _chosen(files, ranks)
    first, then = (progress, progress) if time is None else _halves(progress)
    surveyed: dict[RankedFile, Surveyed | HtagraphError] = {}
    spans = None
    if time is not None:
        surveyed = {file: each for file, each in in_parallel(files, partial(_surveyed, wanted=wanted), first)}
        common = _common(surveyed.values())
        spans = {
            file: each if isinstance(each, HtagraphError) else (each, _span(each, common, time))
            for file, each in surveyed.items()
        }
    each = partial(_part, naming=naming, wanted=wanted, spans=spans)
    by_rank: dict[int, RankPart] = {}
    for file, part in in_parallel(files, each, then):
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
    _require_steps(parts, wanted.steps)
    if time is not None and not any(len(part.activities) for part in parts):
        raise _none_begins(time, list(surveyed.values()), wanted.steps)
    return parts, skipped


def _copies(traces: Sequence[Trace]) -> Iterator[Issue]:
    """Yield an issue for each set of ranks whose files hold the same bytes, of files on the disk."""
    on_disk = [(trace.path, trace.rank) for trace in traces if isinstance(trace.path, Path)]
    on_disk = list({path: (path, rank) for path, rank in on_disk}.values())  # one file may hold several ranks
    by_size, alike = Counter(path.stat().st_size for path, _ in on_disk), defaultdict(list)
    for path, rank in on_disk:
        if by_size[path.stat().st_size] > 1:
            alike[bytes_digest(path)].append((rank, str(path)))
    for same in filter(lambda same: len(same) > 1, map(sorted, alike.values())):
        listed = ", ".join(str(rank) for rank, _ in same[: LIMITS.few]) + (", …" if same[LIMITS.few :] else "")
        detail = f"ranks {listed} have the same file ({len(same)} copies), so how they differ is not known"
        yield Issue(same[0][1], "same_file", detail, len(same), same[0][0])


def _chosen(files: list[RankedFile], ranks: Sequence[int] | None) -> list[RankedFile]:
    if ranks is None or not files:
        return files
    have = [file.rank for file in files]
    absent = sorted(set(ranks) - set(have))
    if absent:
        msg = f"rank {absent[0]} is not among the files; they have ranks {few_of([*map(str, have)])}"
        raise RankError(msg)
    return [file for file in files if file.rank in set(ranks)]


def _part(
    file: RankedFile, *, naming: Naming, wanted: Wanted, progress: Callable[[int], None], compiled: bool,
    spans: Mapping[RankedFile, tuple[Surveyed, tuple[int, int]] | HtagraphError] | None,
) -> RankPart | HtagraphError:  # fmt: skip
    read = partial(read_trace, file.path, file.rank_in, progress, compiled=compiled, part=file.part)
    try:
        if spans is not None:
            found = spans[file]
            if isinstance(found, HtagraphError):
                return found
            return thin_part_of(read, replace(wanted, span=found[1]), naming, found[0])
        if wanted.steps is not None and json_bytes(file.path) >= _LARGE_BYTES:
            size = file.path.stat().st_size
            again = partial(read_trace, file.path, file.rank_in, compiled=compiled, part=file.part)
            before = partial(again, progress=lambda at: progress(at // 2))
            read = partial(again, progress=lambda at: progress((size + at) // 2))
            return thin_part_of(read, wanted, naming, survey(before, wanted))
        return part_of(read, wanted, naming)
    except HtagraphError as error:
        return error
    except MemoryError:
        return _too_large(file.path)


def _too_large(path: TracePath) -> TraceError:
    what = "does not fit into memory; read fewer ranks at once (ranks=), or keep some steps or a window of time only"
    return TraceError(f"{path}: {what} (steps=, time=), or leave out calls of Python functions (python=False)")


def _common(surveyed: Iterable[Surveyed | HtagraphError]) -> int:
    """Return when the first activity of the files with a common base starts, ns; 0 if there is none."""
    firsts = [each.first for each in surveyed if isinstance(each, Surveyed)]
    return min((first for first in firsts if first > _YEAR_NS), default=0)


def _origin(file: Surveyed, common: int) -> int:
    """Return from when a file's times count, ns on its clock: without a common base, times cannot be compared."""
    return common if file.first > _YEAR_NS else file.first


def _span(file: Surveyed, common: int, time: Window) -> tuple[int, int]:
    """Return a window on a file's clock, ns."""
    origin = _origin(file, common)
    begin, end = (None if each is None else min(origin + round(each * 1000), _NEVER_NS) for each in time)
    return file.extent.valid_from + file.base if begin is None else begin, _NEVER_NS if end is None else end


def _none_begins(
    time: Window, surveyed: Sequence[Surveyed | HtagraphError], steps: Sequence[int] | None
) -> SelectionError:
    """Return the error for a window of time in which no activity begins; it says in which some do."""
    common = _common(surveyed)
    known = [each for each in surveyed if isinstance(each, Surveyed) and each.extent.events]
    latest = max((each.last - _origin(each, common) for each in known), default=None)
    chosen = "" if steps is None else f" in steps {', '.join(map(str, steps))}"
    have = "the job has no activities" if latest is None else (
        f"the job's activities begin from 0 to {latest / 1000:,.0f} µs"
    )  # fmt: skip
    return SelectionError(f"time={time}: no activity{chosen} begins in this window; {have}")


def _halves(progress: Progress | None) -> tuple[Progress | None, Progress | None]:
    """Return what is called with the share done of the first of two readings, and of the second."""
    if progress is None:
        return None, None
    return lambda share: progress(share / 2), lambda share: progress(0.5 + share / 2)


def _surveyed(
    file: RankedFile, *, wanted: Wanted, progress: Callable[[int], None], compiled: bool
) -> Surveyed | HtagraphError:
    try:
        read = partial(read_trace, file.path, file.rank_in, progress, compiled=compiled, part=file.part)
        return survey(read, wanted)
    except HtagraphError as error:
        return error
    except MemoryError:
        return _too_large(file.path)


def _numbers(name: str, value: Sequence[int] | int | None) -> list[int] | None:
    """Return numbers of ranks or steps as a list; a single number is a list of one, and a text is refused."""
    if value is None:
        return None
    if isinstance(value, int):
        return [value]
    numbers = [] if isinstance(value, str) else list(value)
    if isinstance(value, str) or not all(isinstance(number, Integral) for number in numbers):
        msg = f"{name}={value!r}: give whole numbers, such as {name}=[0, 1]"
        raise ValueError(msg)
    return numbers


def _checked(time: Window | None) -> Window | None:
    """Return a window as floats within what a clock can say; refuse what is none, or ends before it begins."""
    if time is None:
        return None
    most = _NEVER_NS / 1000
    try:
        begin, end = (None if each is None else min(max(float(each), -most), most) for each in time)
    except (TypeError, ValueError, OverflowError):
        begin = end = math.nan
    if any(each is not None and math.isnan(each) for each in (begin, end)):
        msg = f"time={time!r}: give (from, to) in µs, None for an end that is open"
        raise ValueError(msg)
    if begin is not None and end is not None and not begin < end:
        msg = f"time={tuple(time)}: the window ends before it begins; give (from, to) in µs"
        raise ValueError(msg)
    return begin, end


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
        msg = (
            f"{windows[0][2].path.parent}: the files were recorded at different times, by several runs. "
            f"{run_listing(runs)}. "
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
    has = f"they have steps {few_of([*map(str, sorted(marks))])}" if marks else "they have no ProfilerStep annotations"
    msg = f"no activity in steps {few_of([*map(str, absent)])}: {has}"
    raise SelectionError(msg)


class ReadTrace(Protocol):
    """Reads a file."""

    def __call__(self, *, frames: Frames, sieve: Survey | Windows | None = None) -> Trace:
        """Return what it holds; see `read_trace`."""


@dataclass(frozen=True)
class Wanted:
    """What of each file is wanted."""

    steps: tuple[int, ...] | None = None
    """Numbers of steps; None for all."""
    span: tuple[int, int] | None = None
    """A window, ns on the clock of the file's trace; None for all."""
    python: bool | None = None
    """Whether calls of Python functions are; None if they are not too many, see `MOST_FRAMES`."""


@dataclass(frozen=True, eq=False)
class Surveyed:
    """What is known of a file before its events are kept."""

    marks: Trace
    """The file with the annotations of steps alone."""
    extent: Extent
    """Times of its events, ns as in the file."""
    first: int
    """When its first activity starts, ns on the clock of the trace."""
    last: int
    """When its last activity starts, as `first`."""

    @property
    def base(self) -> int:
        """What is added to times as in the file, ns."""
        return self.marks.facts.origin_ns


def survey(read: ReadTrace, wanted: Wanted) -> Surveyed:
    """Return a file's steps and times; reads it once, and keeps little in memory."""
    sieve = Survey()
    marks = read(frames=Frames(asked=False), sieve=sieve)
    frames, base = Frames(asked=wanted.python), marks.facts.origin_ns
    first, last = sieve.span(frames)
    return Surveyed(marks, sieve.extent, first + base, last + base)


def part_of(read: ReadTrace, wanted: Wanted, naming: Naming) -> RankPart:
    """Return what is wanted of a file, all of which is in memory at first."""
    return prepare(read(frames=Frames(asked=wanted.python)), naming, wanted.steps, wanted.span)


def thin_part_of(read: ReadTrace, wanted: Wanted, naming: Naming, surveyed: Surveyed) -> RankPart:
    """Return what `part_of` returns; but what is not wanted is dropped while the file is read.

    Which step an activity is in depends on what encloses it. So all is kept that overlaps a window around each step,
    and the windows are right if they hold all of what begins in a step. Else the file is read again with longer ones.
    """
    marks = _marks(surveyed.marks, naming, wanted.steps)
    if wanted.steps is None:
        windows = np.array([wanted.span], np.int64).reshape(-1, 2)
    else:  # with a margin
        more = (marks[:, 1] - marks[:, 0]) // LIMITS.margin
        windows = merged(np.stack([marks[:, 0], marks[:, 1] + more], axis=1))
    for _ in range(LIMITS.readings):
        sieve = Windows(windows - surveyed.base, surveyed.extent, surveyed.marks.events.index)
        trace = read(frames=Frames(asked=wanted.python, windows=sieve.windows), sieve=sieve)
        needed = _needed(trace, naming, marks) if wanted.steps is not None else windows
        longer = merged(np.concatenate([windows, needed]))
        if np.array_equal(longer, windows):
            return prepare(trace, naming, wanted.steps, wanted.span, sieve.launches)
        windows = longer
        del trace
    return part_of(read, wanted, naming)


def _marks(trace: Trace, naming: Naming, steps: tuple[int, ...] | None) -> Array:
    """Return start and end of the annotations of some steps."""
    table = trace.events
    chosen = [
        activity_kind(trace.categories[category], trace.names[name], naming) == ActivityKind.STEP
        and step_number(trace.names[name]) in (steps or ())
        for category, name in zip(table.category.tolist(), table.name.tolist(), strict=True)
    ]
    return np.stack([table.start, table.end], axis=1)[np.array(chosen, np.bool_)]


def _needed(trace: Trace, naming: Naming, marks: Array) -> Array:
    """Return the windows that must be known as a whole to tell what is in some steps.

    These are: each step up to the end of what begins in it; and communication on host threads that is under way then,
    since what it encloses depends on what runs in it.
    """
    host = trace.events.take(trace.in_categories(*HOST_CATEGORIES))
    order = np.argsort(host.start, kind="stable")
    start, end = host.start[order], host.end[order]
    first, behind = np.searchsorted(start, marks[:, 0]), np.searchsorted(start, marks[:, 1])
    ends = [int(end[i:j].max(initial=mark)) for i, j, mark in zip(first, behind, marks[:, 1], strict=True)]
    needed = merged(np.stack([marks[:, 0], np.array(ends, np.int64)], axis=1))
    calls = trace.events.take(trace.in_categories(*(HOST_CATEGORIES - RUNTIME_CATEGORIES)))
    calls = calls.take(names_like(naming.host_communication, trace.names, calls.name))
    beside = overlaps(calls.start, calls.duration, needed)
    return merged(np.concatenate([needed, np.stack([calls.start, calls.end], axis=1)[beside]]))
