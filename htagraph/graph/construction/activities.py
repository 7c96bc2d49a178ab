"""Traces → activities: which events are activities, their lane, step, parent and launch."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Mask, looked_up, marked
from htagraph.core.computing import in_parts
from htagraph.core.errors import Issue, IssueLog, shown
from htagraph.core.kinds import ANNOTATIONS, DEVICE, OPERATORS, ActivityKind, of_kinds
from htagraph.core.naming import (
    DEVICE_CATEGORIES,
    HOST_CATEGORIES,
    RUNTIME_CATEGORIES,
    Naming,
    activity_kind,
    step_number,
)
from htagraph.core.parents import ancestors, nearest
from htagraph.graph.activities import CUT, OPEN, Activities, Lane
from htagraph.graph.construction.device_rows import names_of_work
from htagraph.graph.construction.nesting import nest, nesting_order
from htagraph.trace.columns import Events, SparseColumn, Trace
from htagraph.trace.discover import few_of
from htagraph.trace.kept import REAL_ID_SHARE, Launches
from htagraph.trace.readers import reader_of

__all__ = ["RankPart", "prepare", "report_categories"]

_SNAP_NS = 2
"""ns: a child may end this long after its parent. Kineto's clock conversion rounds each end by 1 ns. Doubled,
neighbours that overlap by 3 or 4 ns are nested."""
_LAST_DEVICE = 10_000
"""The largest pid that is read as a device ordinal if no argument names the device. Chosen: no host has more devices,
and pids of real processes are mostly larger. Doubled, only pids up to 20,000 change."""
_STREAM_DIGITS = 12
"""How many digits of a tid are read as a stream id if no argument names the stream. Chosen: they fit into 64 bits.
Doubled, tids of 20 digits and more overflow."""
_IS_DEVICE, _IS_OPERATOR = (np.isin(np.arange(len(ActivityKind)), kinds) for kinds in (DEVICE, OPERATORS))
_IS_WORK = np.array([kind.is_work for kind in ActivityKind])
_OVERFLOW_NS = 100_000_000
"""ns: work that overlaps the next but one on its stream by this long has an impossible duration. Chosen: the overflows
of some ROCm versions are seconds. Doubled, overflows of 0.1 to 0.2 s stay."""


@dataclass(frozen=True, eq=False)
class RankPart:
    """The part of one rank; names, lanes and activities are numbered within the rank."""

    activities: Activities
    names: tuple[str, ...]
    lanes: tuple[Lane, ...]
    boundaries: Array
    at_work: Array
    rest: Trace
    """The trace without the events that are activities."""
    steps: tuple[int, ...]
    """All steps in the file."""
    issues: tuple[Issue, ...]


def prepare(
    trace: Trace, naming: Naming, steps: Sequence[int] | None = None, span: tuple[int, int] | None = None,
    launches: Launches | None = None,
) -> RankPart:  # fmt: skip
    """Return one rank's activities, all or some of them, and the order of starts and ends on its threads.

    Args:
        trace: what its file holds.
        naming: the meaning of the names of events.
        steps: keep what is in these steps, and the device work launched in them.
        span: keep what begins in this window (ns on the clock of the trace), and the device work launched by it; device
            work of which no launch is in the file if it begins in the window itself.
        launches: how device work is linked in the whole file, where the trace holds a part of it.
    """
    log = IssueLog(str(trace.path))
    kind, is_activity = _kinds(trace, naming, log)
    is_activity &= ~_names_of_work(trace, kind, is_activity, log)
    table, kind = trace.events.take(is_activity), kind[is_activity]
    # from here on without the activities: their columns need not be there twice; a graph keeps no texts of its files
    trace = replace(trace, events=trace.events.take(~is_activity), facts=replace(trace.facts, written={}))
    table = _cut_at_end(trace, table, kind, log)
    cause = _causes(trace, table, _on_device(kind), launches, log)
    step = _steps(trace, table, kind, cause)
    in_file = tuple(np.unique(step[kind == ActivityKind.STEP]).tolist())
    if steps is not None:
        lane, _ = _lanes(trace, table, _on_device(kind))
        parent, _, _ = _nest(table, kind, lane, _on_device(kind))  # which step something is in depends on nesting
        step = _steps_as_nested(step, kind, parent, cause)
        table, kind, step, cause = _kept(np.isin(step, list(steps)), table, kind, step, cause)
    if span is not None:
        begun = np.where(cause >= 0, table.start[cause], table.start)
        table, kind, step, cause = _kept((span[0] <= begun) & (begun < span[1]), table, kind, step, cause)
        step = _steps(trace, table, kind, cause)  # a step that began before is not there
        _report_beyond(table, ~_on_device(kind), span[1], log)
    device = _on_device(kind)
    runtime = _in_categories(trace, table, RUNTIME_CATEGORIES)
    launched = cause[device & (cause >= 0)]
    kind[launched[runtime[launched]]] = ActivityKind.LAUNCH  # as device work says, whatever its name says
    lane, lanes = _lanes(trace, table, device)
    table = _clip_overflow(table, lane, device & (kind != ActivityKind.DEVICE_OTHER), log)
    parent, boundaries, at_work = _nest(table, kind, lane, device)
    step = _steps_as_nested(step, kind, parent, cause)
    activities = Activities(
        rank=np.full(len(table), trace.rank, np.int32), kind=kind, name=table.name,
        category=table.category.astype(np.int32) + len(trace.names), lane=lane, start=table.start,
        duration=table.duration, step=step, parent=parent, cause=cause, event=table.index, args=table.args,
    )  # fmt: skip
    report_categories(trace, log)
    names = (*trace.names, *trace.categories)
    return RankPart(
        _with_boundaries(activities), names, lanes, boundaries, at_work, trace, in_file,
        trace.issues + log.issues(trace.rank),
    )  # fmt: skip


def _names_of_work(trace: Trace, kind: Array, is_activity: Mask, log: IssueLog) -> Mask:
    """Return which events of devices only name work that another event of their row is, after reporting them."""
    table = trace.events
    rows = np.flatnonzero(is_activity & _on_device(kind) & _IS_WORK[kind])
    launched = table.arg("correlation")[rows] > 0
    names = np.zeros(len(table), np.bool_)
    on_host = marked(table.name[is_activity & ~_on_device(kind)], len(trace.names))
    names[rows] = names_of_work(
        table.lane[rows], table.start[rows], table.end[rows], launched, on_host[table.name[rows]]
    )
    detail = "events of a device within one another: one of them is the work, the others only name it; left out"
    log.add("device_rows_nested", detail, int(names.sum()))
    return names


def _report_beyond(table: Events, host: Array, until: int, log: IssueLog) -> None:
    """Add an issue if host activities end after the window of time in which they begin."""
    by = (table.end - until)[host]
    by = by[by > 0]
    if len(by):
        which = f"host activities that begin in the window and end up to {by.max() / 1e6:.3f} ms after it"
        log.add("window_cuts", f"{which}; what they call after it is left out, and that time counts as theirs", len(by))


def _on_device(kind: Array) -> Mask:
    return np.asarray(_IS_DEVICE[kind])


def _kept(keep: Array, table: Events, kind: Array, step: Array, cause: Array) -> tuple[Events, Array, Array, Array]:
    """Return what is known of some activities; the causes that are left out are unknown."""
    position = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
    cause = cause[keep]
    cause = np.where(cause >= 0, position[cause], -1).astype(np.int32)
    return table.take(keep), kind[keep], step[keep], cause


def _in_categories(trace: Trace, table: Events, categories: frozenset[str]) -> Mask:
    """Return which events have one of some categories."""
    wanted = np.array([*(category in categories for category in trace.categories), False])  # the last: of none, -1
    return np.asarray(wanted[table.category])


def _kinds(trace: Trace, naming: Naming, log: IssueLog) -> tuple[npt.NDArray[np.int8], Mask]:
    """Return (ActivityKind of every event, which events are activities of the graph)."""
    table = trace.events
    is_activity = _in_categories(trace, table, HOST_CATEGORIES | DEVICE_CATEGORIES)
    categories = list(trace.categories)
    if not {*categories} & {*reader_of(trace).CATEGORIES}:  # also those of events that were not kept
        detail = "events of another program: read as operators on host threads; devices, launches and waits are unknown"
        log.add("other_program", detail, len(table))
        is_activity, categories = np.ones(len(table), np.bool_), ["cpu_op"] * len(categories)
    pair = table.category.astype(np.int64) * len(trace.names) + table.name
    kind_of = np.zeros(len(trace.categories) * len(trace.names), np.int8)
    kind_of[pair] = 1
    for number in np.flatnonzero(kind_of):
        category, name = divmod(int(number), len(trace.names))
        kind_of[number] = activity_kind(categories[category], trace.names[name], naming)
    return kind_of[pair], is_activity


def _lanes(trace: Trace, table: Events, device: Array) -> tuple[npt.NDArray[np.int32], tuple[Lane, ...]]:
    """Return (lane of each activity, the lanes): threads by (pid, tid), streams by (device, stream)."""
    numbers: dict[str, int] = {}  # by text: there are numbers whose hashes are equal
    lanes: list[Lane] = []

    def number_of(each: Lane) -> int:
        text = f"{each.pid!r} {each.tid!r} {each.device} {each.stream} {each.thread}"
        number = numbers.setdefault(text, len(numbers))
        if number == len(lanes):
            lanes.append(each)
        return number

    lane = np.full(len(table), -1, np.int32)
    threads = np.full(len(trace.lanes), -1, np.int32)
    host = np.flatnonzero(~device)
    of_host = table.lane[host]
    for in_file in np.flatnonzero(np.bincount(of_host)).tolist():
        pid, tid = trace.lanes[in_file]
        threads[in_file] = number_of(Lane(trace.rank, pid, tid, thread=trace.thread_names.get((pid, tid), "")))
    lane[host] = threads[of_host]
    keys, place = _distinct(*(column[device] for column in (table.lane, table.arg("device"), table.arg("stream"))))
    streams = np.array([number_of(_stream(trace, *key)) for key in keys], np.int32)
    lane[device] = streams[place]
    return lane, tuple(lanes)


def _distinct(lane: Array, device: Array, stream: Array) -> tuple[list[tuple[int, int, int]], Array]:
    """Return (the distinct rows of three columns in the order of their first occurrence, the number of each row)."""
    first = np.zeros(int(lane.max(initial=-1)) + 1, np.int64)
    first[lane[::-1]] = np.arange(len(lane))[::-1]
    first = first[lane]  # in most files all work of a lane names one device and one stream
    odd = np.flatnonzero((device != device[first]) | (stream != stream[first]))
    if len(odd):
        columns = np.stack([column[odd] for column in (lane, device, stream)])
        _, at, number = np.unique(columns, axis=1, return_index=True, return_inverse=True)
        first[odd] = odd[at][number.ravel()]
    leads = marked(first, len(lane))
    keys = zip(*(column[leads].tolist() for column in (lane, device, stream)), strict=True)
    return list(keys), (np.cumsum(leads) - 1)[first]


def _stream(trace: Trace, in_file: int, ordinal: int, stream: int) -> Lane:
    """Return the lane of device work; if no argument names them, the pid is the device and the tid the stream."""
    pid, tid = trace.lanes[in_file]
    device = ordinal if ordinal >= 0 else pid if isinstance(pid, int) and 0 <= pid <= _LAST_DEVICE else 0
    stream = stream if stream >= 0 else int(re.sub("[^0-9]", "", str(tid))[-_STREAM_DIGITS:] or 0)
    return Lane(trace.rank, device, stream, device=device, stream=stream)


def _clip_overflow(table: Events, lane: Array, work: Array, log: IssueLog) -> Events:
    """Return the table with impossible durations cut at the start of the next activity on the stream, and marked.

    Some ROCm versions write durations that overflow by seconds. A duration is impossible if it ends 0.1 s or more after
    the start of the next but one: a stream overlaps its work with at most one neighbour. Events that only enclose work
    (MTIA's job_exe around packets) are not checked, because they do outlast what they enclose.
    """
    rows = np.flatnonzero(work)
    order = rows[np.lexsort((table.start[rows], lane[rows]))]
    if len(order) < 3:
        return table
    correlation = table.arg("correlation")
    first, follower, second = order[:-2], order[1:-1], order[2:]
    same_lane = lane[first] == lane[second]
    other_launch = (correlation[first] != correlation[second]) | (correlation[first] < 0)
    over = same_lane & other_launch & (table.start[first] + table.duration[first] - table.start[second] >= _OVERFLOW_NS)
    if not over.any():
        return table
    duration = table.duration.copy()
    duration[first[over]] = np.maximum(0, table.start[follower[over]] - table.start[first[over]])
    detail = "device work that runs 0.1 s into its successors; cut at the next start"
    log.add("duration_overflow", detail, int(over.sum()))
    cut = np.sort(first[over]).astype(np.int32)
    marks = SparseColumn(cut, np.ones(len(cut), np.int64), 0)
    return replace(table, duration=duration, args={**table.args, CUT: marks})


def _cut_at_end(trace: Trace, table: Events, kind: Array, log: IssueLog) -> Events:
    """Return the table with regions that reach beyond the end of the recording cut at this end, and marked.

    A region that is open when the profiler stops ends when the job leaves the region, maybe while the trace is
    written: nothing was recorded then. The recording ends when the profiler stops, or with the last other activity.
    """
    if trace.recorded_until is None or not len(table):
        return table
    is_region = of_kinds(kind, ANNOTATIONS)
    latest = table.end.max(where=~is_region, initial=np.iinfo(np.int64).min)
    until = max(trace.recorded_until, int(latest))
    if int(table.end.max()) <= until:
        return table
    rows = np.flatnonzero(is_region & (table.start <= until) & (table.end > until))
    duration = table.duration.copy()
    duration[rows] = until - table.start[rows]
    by_us = int((table.end[rows] - until).max(initial=0)) / 1000
    detail = f"regions open when the profiler stopped, up to {by_us:,.0f} µs before their end; cut at that moment"
    log.add("open_at_end", detail, len(rows))
    marks = SparseColumn(rows.astype(np.int32), np.ones(len(rows), np.int64), 0)
    lane = table.lane.copy()
    lane[rows] = _lanes_of_open(table, kind, rows)
    return replace(table, lane=lane, duration=duration, args={**table.args, OPEN: marks})


def _lanes_of_open(table: Events, kind: Array, rows: Array) -> Array:
    """Return the lanes of regions that were open at the end.

    Some files name the process of such a region in place of the thread: a region alone on a lane belongs to the thread
    that did most after the begin of the region.
    """
    on_host = np.flatnonzero(~_on_device(kind) & ~of_kinds(kind, ANNOTATIONS))
    begun = on_host[table.start[on_host] >= table.start[rows].min()]
    lanes = table.lane[rows]
    if not len(begun):
        return lanes
    busiest = np.bincount(table.lane[begun]).argmax()
    return np.where(np.isin(lanes, table.lane[on_host]), lanes, busiest)


def _causes(
    trace: Trace, table: Events, device: Array, launches_of_file: Launches | None, log: IssueLog
) -> npt.NDArray[np.int32]:
    """Return for each device activity its launch, by correlation id, or else its operator, by a real External id."""
    cause = np.full(len(table), -1, np.int32)
    correlation, external = table.arg("correlation"), table.arg("external_id")
    runtime = _in_categories(trace, table, RUNTIME_CATEGORIES)
    launches = np.flatnonzero(runtime & (correlation > 0))
    wanting = np.flatnonzero(device & (correlation > 0))
    cause[wanting], repeated = _find(correlation[launches], launches, correlation[wanting])
    log.add(
        "correlation_repeated",
        "launches share a correlation id: a merged file of several ranks? analyse one file per rank",
        repeated if launches_of_file is None else launches_of_file.repeated,
    )
    with_id = device & (external > 0)
    is_real = with_id.any() and (external[with_id] == correlation[with_id]).mean() < REAL_ID_SHARE
    if launches_of_file is not None:
        is_real = launches_of_file.external_ids_are_real
    lost = np.flatnonzero(with_id & (cause < 0))
    if is_real and len(lost):
        ops = np.flatnonzero(_in_categories(trace, table, frozenset({"cpu_op"})) & (external > 0))
        cause[lost], _ = _find(external[ops], ops, external[lost])
    missing = int((device & (cause < 0)).sum()) if launches_of_file is None else launches_of_file.missing
    log.add("launch_missing", "device work whose launch is not in the file", missing)
    return cause


def _find(keys: Array, values: Array, wanted: Array) -> tuple[Array, int]:
    """Return (the value of each wanted key or -1, how many keys are repeats); a repeated key has its first value."""
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    return looked_up(keys, values[order], wanted), int((keys[1:] == keys[:-1]).sum())


def _nest(table: Events, kind: Array, lane: Array, device: Array) -> tuple[Array, Array, Array]:
    """Return (parent of each activity, host boundaries as vertices, activity that runs right after each boundary)."""
    rows = np.flatnonzero(~device)
    end = table.end
    order = rows[nesting_order(lane[rows], table.start[rows], end[rows])].astype(np.int32)
    is_work = _IS_WORK[kind[order]]
    of_order = lane[order], table.start[order], end[order]
    above, boundaries, inner = nest(*of_order, is_work, _SNAP_NS)
    beside = _beside_other_work(kind[order], above)
    if beside.any():
        asked = _outlasts_its_call(kind[order], end[order], boundaries, inner)
        above, boundaries, inner = nest(*of_order, is_work & ~beside, _SNAP_NS, ~(beside & asked))
    parent = np.full(len(table), -1, np.int32)
    row_of = np.append(order, np.int32(-1))  # the last, which -1 points to, is none
    for part in in_parts(len(order)):
        parent[order[part]] = row_of[above[part]]
    for part in in_parts(len(boundaries)):
        boundaries[part] = row_of[boundaries[part] >> 1] << 1 | boundaries[part] & 1
        inner[part] = row_of[inner[part]]
    return parent, boundaries, inner


def _beside_other_work(kind: Array, parent: Array) -> Mask:
    """Return which communication on host threads went on while its thread ran operators: its caller did not wait yet.

    Such a range names a time, not what the thread did in it.
    """
    out = np.zeros(len(kind), np.bool_)
    communicates = kind == ActivityKind.HOST_COMMUNICATION
    if communicates.any():
        inside = parent[(kind == ActivityKind.OP) & (parent >= 0)]
        out[inside[communicates[inside]]] = True
    return out


def _outlasts_its_call(kind: Array, end: Array, boundaries: Array, inner: Array) -> Mask:
    """Return which communication on host threads goes on after the operator of its thread that asked for it.

    The thread then went on by itself: what it runs meanwhile is no part of the communication.
    """
    before = np.full(len(kind), -1, np.int32)  # what ran when each interval began
    opens = np.flatnonzero(boundaries[1:] % 2 == 0) + 1
    before[boundaries[opens] // 2] = inner[opens - 1]
    out = (kind == ActivityKind.HOST_COMMUNICATION) & (before >= 0)
    out[out] = (kind[before[out]] == ActivityKind.OP) & (end[before[out]] < end[out])
    return np.asarray(out)


def _steps(trace: Trace, table: Events, kind: Array, cause: Array) -> npt.NDArray[np.int32]:
    """Return the step of each activity: by time for host activities, by its launch for device work."""
    step = np.full(len(table), -1, np.int32)
    marks = np.flatnonzero(kind == ActivityKind.STEP)
    if not len(marks):
        return step
    marks = marks[np.argsort(table.start[marks], kind="stable")]
    number = np.array([step_number(trace.names[name]) for name in table.name[marks]], np.int32)
    at = np.searchsorted(table.start[marks], table.start, side="right") - 1
    inside = (at >= 0) & (table.start < table.end[marks][at])
    step[inside] = number[at[inside]]
    device = _on_device(kind)
    step[device] = np.where(cause[device] >= 0, step[cause[device]], -1)
    step[marks] = number
    return step


def _steps_as_nested(step: Array, kind: Array, parent: Array, cause: Array) -> npt.NDArray[np.int32]:
    """Return the steps, corrected by nesting so that they agree with `graph.tree`.

    What encloses a step is not in it, even if it starts at the same time, as a Python frame of the profiler does. What
    is inside an operator is in the operator's step, even if it starts after the step has ended.
    """
    is_step = kind == ActivityKind.STEP
    step = np.where(ancestors(parent, np.flatnonzero(is_step)) & ~is_step, np.int32(-1), step)
    above = np.where(is_step, -1, parent)  # a step around another one is a step all the same
    in_operator = (above >= 0) & _IS_OPERATOR[kind[above]]
    outer = nearest(above, ~in_operator, np.arange(len(step)))
    of_step = nearest(above, step >= 0, outer)
    step = np.where(of_step >= 0, step[of_step], np.int32(-1))
    launched = np.flatnonzero(cause >= 0)
    step[launched] = step[cause[launched]]
    return step


def _with_boundaries(acts: Activities) -> Activities:
    """Return the activities followed by one BOUNDARY per step: when its annotation and all its work have ended."""
    marks = np.flatnonzero(acts.kind == ActivityKind.STEP)
    if not len(marks):
        return acts
    steps, first = np.unique(acts.step[marks], return_index=True)
    marks = marks[first]
    counts = (acts.step >= 0) & (acts.on_device | (acts.kind == ActivityKind.STEP))
    latest = np.full(len(marks), np.iinfo(np.int64).min)
    np.maximum.at(latest, np.searchsorted(steps, acts.step[counts]), acts.end[counts])
    return acts.followed_by(
        rank=acts.rank[marks], kind=ActivityKind.BOUNDARY, name=acts.name[marks], category=acts.category[marks],
        lane=acts.lane[marks], start=latest, step=acts.step[marks],
    )  # fmt: skip


def report_categories(rest: Trace, log: IssueLog) -> None:
    """Report complete events whose category is absent or unknown."""
    counts = np.bincount(rest.events.category, minlength=len(rest.categories)).tolist()
    detail = "complete events without a category (cat): of a host thread or a device, nobody knows; not in the graph"
    log.add("category_missing", detail, sum(n for n, name in zip(counts, rest.categories, strict=True) if not name))
    known = reader_of(rest).CATEGORIES
    unknown = {name: n for n, name in zip(counts, rest.categories, strict=True) if name and name not in known and n}
    listed = few_of([f"{shown(name)} ({n:,})" for name, n in unknown.items()])
    detail = f"complete events of unknown categories, not in the graph: {listed}"
    log.add("unknown_category", detail, sum(unknown.values()))
