"""The host threads of a rank: their moments, who wakes whom, what they wait for outside, and data loaders' time.

No event records which thread wakes which other one (producers and consumers with a queue, futures of a thread pool).
The evidence is regularity: whenever a thread has been idle for long, its next operator of one name starts shortly
after the end of an operator of one name on other threads. Nothing in the recording ends when a wait for a process that
was not recorded ends (environments, a request queue, a socket). The wait shows in its pace: the other process needs a
steady time for each item, so a wait is short where the thread's own work was long, and waits end at a steady pace; a
region that works by itself does not make up for the time of the work around it. Time of data loaders is known by the
names of annotations or operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, joined, looked_up, marked
from htagraph.core.computing import rows_where
from htagraph.core.kinds import ADDED, ANNOTATIONS, COMMUNICATION, ActivityKind, of_kinds
from htagraph.core.naming import has_loader_workers, is_collective_call, is_data_loader, names_that
from htagraph.core.parents import nearest, outermost
from htagraph.graph.accept import Ends, Odds, as_own_work, behind_ends, confidence, median_of_others, ratio
from htagraph.graph.activities import Activities, lane_moments
from htagraph.graph.evidence.calls import grouped, mixed
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.evidence.recordings import cores_of_ranks
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = [
    "HandOvers", "HostThread", "hand_overs", "host_threads", "loaders", "may_keep_pace", "outside_waits", "places_of",
    "unnumbered_names", "waited_loaders", "what_of", "worker_loads",
]  # fmt: skip


@dataclass(frozen=True, eq=False)
class HostThread:
    """A host thread: its moments in order, and its top-level activities."""

    lane: int
    vertices: npt.NDArray[np.int32]
    """Starts and ends of its activities, in order."""
    times: Ints
    """When they were recorded, ns."""
    running: npt.NDArray[np.int32]
    """The innermost operator or call that runs right after each moment, or -1."""
    tops: npt.NDArray[np.int32]
    """The activities that no other one on the thread encloses."""
    starts: Ints
    """When each of `tops` starts, ns."""
    ends: Ints
    """When each of `tops` ends, ns."""
    is_worker: bool
    """Whether it is a thread of the autograd engine."""

    def with_worker(self, worker: HostThread) -> HostThread:
        """Return the moments of this thread and of a worker that runs while this thread is blocked, as of one thread.

        The lane and the top-level activities are this thread's.
        """
        times = np.concatenate((self.times, worker.times))
        order = np.argsort(times, kind="stable")
        both = np.maximum(*(each.running_at(times) for each in (self, worker)))
        own = np.concatenate((self.running, worker.running))
        running = np.where(own >= 0, own, both)[order].astype(np.int32)
        return replace(
            self, vertices=np.concatenate((self.vertices, worker.vertices))[order], times=times[order], running=running
        )

    def running_at(self, times: Ints) -> npt.NDArray[np.int32]:
        """Return the innermost operator or call that runs right after each time (ns), or -1."""
        at = np.searchsorted(self.times, times, side="right") - 1
        return np.where(at >= 0, self.running[at], -1).astype(np.int32)


def host_threads(job: RecordedJob, rank: int) -> list[HostThread]:
    """Return the rank's threads, the one with the most activities first; on ties, the one that starts first.

    A worker spends most of its time in backward operators. Where another thread has the steps, a thread that runs any
    backward operator is a worker.
    """
    acts = job.activities
    of_rank, own = acts.of_rank(rank), job.boundaries_of(rank)
    boundaries, at_work = job.boundaries[own], job.at_work[own]
    lanes = acts.lane[boundaries >> 1]
    with_steps = np.unique(acts.lane[of_rank][acts.kind[of_rank] == ActivityKind.STEP])
    threads = []
    cuts = [0, *(np.flatnonzero(np.diff(lanes)) + 1).tolist(), len(lanes)]
    for first, last in pairwise(cuts if len(lanes) else ()):
        vertices = boundaries[first:last]
        opened = vertices[vertices & 1 == 0] >> 1
        tops = opened[acts.parent[opened] < 0]
        backward = (job.forward_thread[tops] > 0) | job.backward_names[acts.name[tops]]
        begins, ends = job.moment(2 * tops), job.moment(2 * tops + 1)
        takes = (ends - begins).astype(np.float64)  # damaged durations may sum to more than an integer holds
        lane = int(acts.lane[opened[0]])
        beside = bool(len(with_steps)) and lane not in with_steps
        is_worker = 2 * takes[backward].sum() > takes.sum() or backward.all() or (beside and backward.any())
        running = at_work[first:last]
        threads.append(HostThread(lane, vertices, job.moment(vertices), running, tops, begins, ends, bool(is_worker)))
    return sorted(threads, key=lambda thread: (-len(thread.vertices), int(thread.times[0])))


HandOvers: TypeAlias = tuple[Array, Array, Array]
"""A row per operator of a thread that takes what another thread's operator made: (the vertex of the end of the operator
that made it, the vertex of the thread's first moment that may depend on it, confidence in percent)."""


def hand_overs(job: RecordedJob, threads: Sequence[HostThread]) -> HandOvers:
    """Return who takes what was made on which other thread of a rank, or on which other rank of several on one clock.

    Between ranks, a wait in which the rank's own communication ended was one for that.
    """
    parts: list[HandOvers] = []
    if len(threads) > 1:
        items = _items(job, [thread.lane for thread in threads])
        takes = _Takes.of(job, threads, items)
        items = items[job.activities.kind[items] != ActivityKind.STEP]
        made = Ends.of(items, job.moment(2 * items + 1))
        links = [link for rows in grouped(takes.key) if (link := _link(job, takes, rows, made)) is not None]
        parts += [_counted(job, link) for link in links]
        is_item = marked(items, len(job.activities))
        parts += _stocked(job, items, [link for link in links if is_item[link.takes.item[link.rows]].all()])
    source, target, confidence = joined(parts, 3)
    return source, target, confidence


def _items(job: RecordedJob, lanes: Sequence[int]) -> Array:
    """Return the operators and calls on some threads that are inside no other one, and steps without any in them.

    They are in the order of threads and starts. A region on a thread without steps is one item, whatever runs in it. A
    thread that runs no operator, but has the steps, may wait for threads that do.
    """
    acts = job.activities
    idle = (*ANNOTATIONS, *ADDED, ActivityKind.PYTHON)
    own = marked(lanes, len(job.lanes) + 1)  # the last is the lane of JOINs, -1
    parts = []
    for rank in sorted({job.lanes[lane].rank for lane in lanes}):
        of_rank = acts.of_rank(rank)
        kind, lane = acts.kind[of_rank], acts.lane[of_rank]
        wanted = own[lane] & ~acts.on_device[of_rank] & ~of_kinds(kind, idle)
        above = np.where(acts.parent[of_rank] >= 0, acts.parent[of_rank] - of_rank.start, -1)
        steps = own[lane] & (kind == ActivityKind.STEP)
        wanted |= own[lane] & (kind == ActivityKind.ANNOTATION) & ~np.isin(lane, lane[steps])
        tops = outermost(above, wanted)
        empty = np.setdiff1d(np.flatnonzero(steps), nearest(above, steps, tops))
        parts += [of_rank.start + tops, of_rank.start + empty]
    items = np.concatenate(parts)
    return items[np.lexsort((job.moment(2 * items), acts.lane[items]))]


class _Takes(NamedTuple):
    """The operators that may have waited for another thread, by their start."""

    threads: dict[int, HostThread]
    """The threads by their lane."""
    item: Array
    lane: Array
    key: npt.NDArray[np.uint64]
    """Equal for operators of one name and annotation behind operators of one name and annotation, on any thread of a
    rank."""
    party: Array
    """For each lane of the job what does not wait for itself: the lane, or the rank where threads are of several."""
    start: Array
    """When each starts, ns."""
    idle: Array
    """For how long its thread had run nothing before, ns; 0 for the first one of a thread."""
    of_ranks: bool
    """Whether the threads are of several ranks."""

    @staticmethod
    def of(job: RecordedJob, threads: Sequence[HostThread], items: Array) -> _Takes:
        """Return the operators of some threads, given by thread and start."""
        name, lane = what_of(job, items), job.activities.lane[items].astype(np.int64)
        start, end = job.moment(2 * items), job.moment(2 * items + 1)
        end = np.where(job.activities.kind[items] == ActivityKind.STEP, start, end)  # nothing runs in it
        first = np.concatenate(([True], lane[1:] != lane[:-1]))[: len(items)]
        before = np.where(first, name, np.roll(name, 1))
        idle = np.where(first, 0, start - np.roll(end, 1))
        order = np.argsort(start, kind="stable")
        ranks, party = np.array([each.rank for each in job.lanes]), np.arange(len(job.lanes))
        of_ranks = len(np.unique(ranks[lane])) > 1
        if of_ranks:
            party = ranks
            idle = np.where(_communicated(job, items, start - idle), 0, idle)
        key = mixed(name, before, ranks[lane])
        by_lane = {thread.lane: thread for thread in threads}
        return _Takes(by_lane, items[order], lane[order], key[order], party, start[order], idle[order], of_ranks)


def _communicated(job: RecordedJob, items: Array, since: Array) -> npt.NDArray[np.bool_]:
    """Return whether communication that operators' threads take part in ended in the pauses before the operators.

    A thread that calls collectives, or sends and receives, takes part in all communication of the rank. Any other
    thread, such as one that serves calls of other ranks, waited for communication only where the pause ended with it.

    Args:
        job: the job.
        items: the operators.
        since: when each pause began, ns.
    """
    acts = job.activities
    out = np.zeros(len(items), np.bool_)
    for rank in np.unique(acts.rank[items]).tolist():
        of_rank = acts.of_rank(rank)
        is_communication = of_kinds(acts.kind[of_rank], COMMUNICATION)
        rows = of_rank.start + np.flatnonzero(is_communication)
        takes_part = _takes_part(job, of_rank, rows)
        on_rank = np.flatnonzero(acts.rank[items] == rank)
        paused = items[on_rank]
        begun = since[on_rank] - 1
        until = job.moment(2 * paused)
        ends = Ends.of(rows, job.moment(2 * rows + 1))
        # the thread may go on before the record of what it waited for ends
        in_pause = ends.between(begun, until + LIMITS.slice_ns)
        at_end = ends.between(np.maximum(begun, until - LIMITS.turn_ns), until) | _runs_out(job, rows, until)
        out[on_rank] = np.where(takes_part[acts.lane[paused]], in_pause, at_end)
    return out


def _takes_part(job: RecordedJob, of_rank: slice, communication: Array) -> npt.NDArray[np.bool_]:
    """Return for each lane of the job whether the thread calls communication of a rank, or records some."""
    acts = job.activities
    is_call = names_that(is_collective_call, job.names)[acts.name[of_rank]] & (acts.kind[of_rank] == ActivityKind.OP)
    calls = acts.lane[of_rank][is_call]
    lanes = np.concatenate((calls, acts.lane[communication]))
    return marked(lanes, len(job.lanes) + 1)


def _runs_out(job: RecordedJob, communication: Array, moment: Array) -> npt.NDArray[np.bool_]:
    """Return at which moments (ns) communication is under way whose record ends within a slice of the host's time."""
    begin = job.moment(2 * communication)
    order = np.argsort(begin, kind="stable")
    last = np.searchsorted(begin[order], moment, "right") - 1
    nearest_begun = last[:, None] - np.arange(LIMITS.nearest_ends)
    end = job.moment(2 * communication + 1)[order]
    if not len(end):
        return np.zeros(len(moment), np.bool_)
    end_of_begun = end[np.maximum(nearest_begun, 0)]
    is_near = (end_of_begun > moment[:, None]) & (end_of_begun <= moment[:, None] + LIMITS.slice_ns)
    runs_out: npt.NDArray[np.bool_] = ((nearest_begun >= 0) & is_near).any(axis=1)
    return runs_out


class _Link(NamedTuple):
    """Operators of one key, which wait for operators of one name on other threads."""

    takes: _Takes
    rows: Array
    """The operators of the key, in order."""
    made: Array
    """The operators of the other name, by their end."""
    woken: Array
    """Which of `rows` waited."""
    by: Array
    """For which of `made`."""
    sure: int
    """Percent of confidence."""


def _link(job: RecordedJob, takes: _Takes, rows: Array, made: Ends) -> _Link | None:
    """Return what wakes the operators of one key (`rows`), None if nothing regular precedes them."""
    waited = np.flatnonzero(takes.idle[rows] >= LIMITS.turn_ns)
    if len(waited) < LIMITS.often:
        return None
    own = np.unique(takes.party[takes.lane[rows]])
    made = made.take(~np.isin(takes.party[job.activities.lane[made.row]], own))
    if not len(made.row):
        return None
    start, idle = takes.start[rows[waited]], takes.idle[rows[waited]]
    name, last = what_of(job, made.row), made.last(start)[:, None] - np.arange(LIMITS.nearest_ends)
    found: list[tuple[int, float, _Link]] = []
    for each in np.unique(name[np.maximum(last, 0)]).tolist():
        of_name = made.take(name == each)
        odds = behind_ends(of_name, start, idle, LIMITS.turn_ns)
        sure = confidence(_unless_full(job, takes, of_name, start, idle, odds) if takes.of_ranks else odds)
        if sure:
            woken = np.flatnonzero(odds[-1])
            by = of_name.last(start[woken])
            delay = float(np.median(start[woken] - of_name.time[by]))
            found.append((len(woken), -delay, _Link(takes, rows, of_name.row, waited[woken], by, sure)))
    if not found:
        return None
    # a thread that waits for several goes on behind the last one, as surely as any of them shows
    most, _, link = max(found, key=lambda of: of[:2])
    return link._replace(sure=max(other.sure for count, _, other in found if count == most))


def _unless_full(job: RecordedJob, takes: _Takes, ends: Ends, start: Array, idle: Array, odds: Odds) -> Odds:
    """Return the odds of starts behind some ends where an end gave a core away and any thread may have taken the core.

    A thread that is ready has a core after a slice of the host's time for each other thread per core, whatever runs: by
    chance, it became ready at most so long before one of the ends. Where that is certain, a start tells nothing.

    Args:
        job: the job.
        takes: the operators of the threads that share the cores.
        ends: the ends, the last one before each start.
        start: when each thread went on, ns.
        idle: how long the thread had been idle by then, ns.
        odds: the odds of the starts if there are cores for all.
    """
    cores = cores_of_ranks(job.traces, job.traces)
    if cores is None:
        return odds
    from htagraph.graph.evidence.full_hosts import were_full  # few files say how many cores there are

    last = np.maximum(ends.last(start), 0)
    rank = job.activities.rank[ends.row[last]]
    is_full = were_full(job, rank, ends.time[last])
    others_per_core = -(-len(takes.threads) // cores) - 1
    ready_ns = max(1, others_per_core) * LIMITS.slice_ns
    around = np.minimum(idle, LIMITS.few * ready_ns)
    chance = ends.before(ready_ns).chance(start - around, start + around, ready_ns, ready_ns)
    of_full = np.where(chance < 1, np.minimum(odds, 1 / chance), 1.0)
    return np.where(is_full, of_full, odds)


def _counted(job: RecordedJob, link: _Link) -> HandOvers:
    """Return the hand-overs to all operators of a link: as seen, and, where counting tells, to all the unseen."""
    takes, rows, made, woken, by, sure = link
    target = _first_moments(takes, rows[woken], job.moment(2 * made[by] + 1))
    found = 2 * made[by] + 1, target, np.full(len(by), sure)
    parts = [found, _one_by_one(job, link)]
    each, usual = _pace(woken, by)
    if each < 1:
        source, target, confidence = joined(parts, 3)
        return source, target, confidence
    last = min(each, LIMITS.in_a_row)
    taker = np.repeat(np.arange(len(rows)), last)
    maker = each * taker + usual - np.tile(np.arange(last), len(rows))
    known = (maker >= 0) & (maker < len(made))
    taker, maker = taker[known], maker[known]
    in_time = job.moment(2 * made[maker] + 1) <= takes.start[rows[taker]]
    new = in_time & ~(np.isin(taker, woken) & np.isin(maker, by))
    taker, maker = taker[new], maker[new]
    parts.append((2 * made[maker] + 1, 2 * takes.item[rows[taker]], np.full(len(maker), Confidence.COUNTED)))
    source, target, confidence = joined(parts, 3)
    return source, target, confidence


def _one_by_one(job: RecordedJob, link: _Link) -> HandOvers:
    """Return the hand-overs to operators of a link's name behind other operators: the k-th operator takes item k.

    A thread that takes items one by one, such as answers of a pool in the order of its questions, may have to wait for
    the first item of a step only. The operator before differs then, and with it the key. Where counts by name disagree,
    or many items were not there in time, no hand-over is returned.
    """
    takes = link.takes
    none = np.zeros(0, np.int64)
    rank = job.activities.rank
    item = takes.item[link.rows[0]]
    same_rank = np.flatnonzero(rank[takes.item] == rank[item])
    name = what_of(job, takes.item[same_rank])
    of_name = same_rank[name == what_of(job, takes.item[link.rows[:1]])[0]]
    number = np.searchsorted(of_name, link.rows[link.woken])
    if len(of_name) == len(link.rows) or _pace(number, link.by)[0] != 1:
        return none, none, none
    ahead = int(np.median(link.by - number))
    taker = np.arange(len(of_name))
    maker = taker + ahead
    was_made = (maker >= 0) & (maker < len(link.made))
    taker = of_name[taker[was_made]]
    source = 2 * link.made[maker[was_made]] + 1
    in_time = job.moment(source) <= takes.start[taker]
    if in_time.mean() < LIMITS.nearly_all:
        return none, none, none
    new = in_time & ~np.isin(taker, link.rows[link.woken])
    target = 2 * takes.item[taker[new]]
    return source[new], target, np.full(len(target), Confidence.COUNTED)


def _pace(taken: Array, made: Array, least: int = 0) -> tuple[int, int]:
    """Return (how many are made for one that takes, by how many the made ones are ahead); (0, 0) if this varies."""
    each = max(least, round((made[-1] - made[0]) / max(1, int(taken[-1] - taken[0]))))
    ahead = made - each * taken
    usual = int(np.median(ahead))
    return (each, usual) if (ahead == usual).mean() >= LIMITS.nearly_all else (0, 0)


def _stocked(job: RecordedJob, items: Array, links: Sequence[_Link]) -> list[HandOvers]:
    """Return the hand-overs in the other direction of each link, in which no thread ever waited.

    If a producer waits for room in a queue, the consumer would wait for the producer if it were faster, and the other
    way round. Which item it takes is not known, because the length of the queue is not. The edges assume the shortest
    queue that the recorded times allow: of a longer one more would be known to wait.
    """
    lane, what = job.activities.lane, what_of(job, items)
    known = {_names(job, link) for link in links}
    parts, done = [], set()
    for link in links:
        waits, frees = names = _names(job, link)
        if (frees, waits) in known or names in done:
            continue
        done.add(names)
        takers, makers = (items[what == each] for each in (frees, waits))
        takers = takers[np.argsort(job.moment(2 * takers), kind="stable")]
        makers = makers[np.argsort(job.moment(2 * makers + 1), kind="stable")]
        given, by = places_of(makers, link.takes.item[link.rows[link.woken]]), places_of(takers, link.made[link.by])
        each, usual = _pace(given, by, 1)
        if len(np.unique(lane[takers])) > 1 or lane[takers[0]] in np.unique(lane[makers]) or each < 1:
            continue
        ready = np.searchsorted(job.moment(2 * makers + 1), job.moment(2 * takers), side="right") - 1
        item = (np.arange(len(takers)) - 1 - usual) // each
        item += int((ready - item).min())
        exists = (item >= 0) & (item < len(makers))
        sure = np.full(exists.sum(), Confidence.FIRST_POSSIBLE)
        parts.append((2 * makers[item[exists]] + 1, 2 * takers[exists], sure))
    return parts


def _names(job: RecordedJob, link: _Link) -> tuple[int, int]:
    """Return what the operators that wait are, and what the operators are that they wait for, as `what_of` has it."""
    waits, made = what_of(job, np.array([link.takes.item[link.rows[0]], link.made[0]])).tolist()
    return waits, made


def what_of(job: RecordedJob, rows: Array) -> npt.NDArray[np.uint64]:
    """Return a number per operator, equal for operators of one name in annotations of one name."""
    acts = job.activities
    region = nearest(acts.parent, acts.kind == ActivityKind.ANNOTATION, rows)
    return mixed(unnumbered_names(acts, rows), np.where(region >= 0, acts.name[region], -1))


def places_of(among: Array, wanted: Array) -> Array:
    """Return where each of the wanted activities is among some distinct activities."""
    order = np.argsort(among)
    return order[np.searchsorted(among, wanted, sorter=order)]


def _first_moments(takes: _Takes, rows: Array, since: Array) -> Array:
    """Return the vertex of the thread's first moment since each time (ns), at the latest the operator's start."""
    target = 2 * takes.item[rows]
    for lane in np.unique(takes.lane[rows]).tolist():
        thread = takes.threads[lane]
        on_lane = takes.lane[rows] == lane
        place = np.searchsorted(thread.times, since[on_lane])
        sooner = thread.times[place] <= takes.start[rows[on_lane]]
        target[on_lane] = np.where(sooner, thread.vertices[place], target[on_lane])
    return target


def outside_waits(job: RecordedJob) -> npt.NDArray[np.int32]:
    """Return for each stretch of `RecordedJob.slices` the region in which it waits for outside, or -1.

    A site is all stretches in regions of one name on a thread between the same activities: each gets one item. It
    is one of waits if waits make up for the work before them: all, or those that follow the wait before by as many
    items.
    """
    acts = job.activities
    source, target, owner = job.slices
    out = np.full(len(source), -1, np.int32)
    frame = of_kinds(acts.kind, (ActivityKind.ANNOTATION, ActivityKind.STEP, ActivityKind.PYTHON))
    around = np.where(source & 1, acts.parent[source >> 1], source >> 1)
    rows = rows_where(
        lambda part: (around[part] >= 0) & ((owner[part] < 0) | (owner[part] == around[part])) & frame[around[part]],
        len(source),
    )
    region, source, target = around[rows], source[rows], target[rows]
    lasts = job.moment(target) - job.moment(source)
    inside, before, behind = unnumbered_names(acts, np.stack((region, source >> 1, target >> 1)))
    key = mixed(acts.lane[region], inside, before, behind, source & 1, target & 1)
    long = lasts >= 2 * LIMITS.turn_ns
    sites, count = np.unique(key[long], return_counts=True)
    wanted = np.flatnonzero(np.isin(key, sites[count > LIMITS.proof]))
    for site in grouped(key[wanted]):
        at = wanted[site][np.argsort(job.moment(source[wanted[site]]), kind="stable")]
        waited = np.flatnonzero(long[at])
        if not _woken_inside(job, target[at[waited]]) and _keep_pace(lasts[at], job.moment(target[at]), waited):
            out[rows[at]] = region[at]
    return out


def unnumbered_names(acts: Activities, rows: Array) -> Array:
    """Return the names of some activities, -1 for steps, which have a number in theirs."""
    return np.where(acts.kind[rows] == ActivityKind.STEP, -1, acts.name[rows])


def _woken_inside(job: RecordedJob, resumes: Array) -> bool:
    """Return whether most stretches of a thread, given by the vertices behind them, end soon after recorded work does.

    That is work of the same rank on another thread or on a device, or communication, which may be the thread's own.
    """
    acts, first = job.activities, resumes[0] >> 1
    own = acts.of_rank(int(acts.rank[first]))
    works = (acts.on_device[own] | (acts.kind[own] == ActivityKind.OP)) & (acts.lane[own] != acts.lane[first])
    works |= acts.kind[own] == ActivityKind.HOST_COMMUNICATION
    moment, rows = job.moment(resumes), own.start + np.flatnonzero(works)
    ends = Ends.of(rows, job.moment(2 * rows + 1))
    return bool(ends.between(moment - LIMITS.turn_ns, moment).mean() > LIMITS.most)


def _keep_pace(wait: Ints, end: Ints, waited: Array) -> bool:
    """Return whether stretches of a site that last `wait` until `end` (ns), long ones `waited`, keep a pace."""
    items, pace = np.diff(waited), np.diff(end[waited])
    alike = [(wait[1:], np.diff(end))]  # short waits follow long work
    alike += [(wait[waited[1:]][rows], pace[rows]) for rows in grouped(items)]
    # the first item of a recording may have been asked for before it
    odds = [_made_up(w[first:], p[first:]) for w, p in alike for first in (0, 1) if len(w) > LIMITS.proof]
    return bool(odds) and confidence(*odds) > 0


def may_keep_pace(wait: Ints, end: Ints) -> bool:
    """Return whether pauses of a site are likelier to make up for the work before them than to be work as well.

    That is no proof: `outside_waits` asks for more, as most pauses are a thread's own.

    Args:
        wait: how long each pause lasts, ns.
        end: when each pause ends, ns.
    """
    pace = np.diff(end)
    later = wait[1:]
    odds = [_made_up(later[first:], pace[first:]) for first in (0, 1) if len(later) - first >= LIMITS.often]
    return bool(odds) and ratio(*odds)[0] > 0


def _made_up(wait: Ints, pace: Ints) -> Odds:
    """Return the odds of waits that make up for the work before them, so that they end at the pace of the others.

    A pace is the time from the end of a wait to the end of the next, ns.
    """
    work = pace - wait
    until = np.maximum(median_of_others(pace).astype(np.int64) - work, wait.min())
    return as_own_work(wait, until, int(wait.max()), fitted=True)


def loaders(job: RecordedJob) -> npt.NDArray[np.int32]:
    """For each stretch of `RecordedJob.slices`, return the loader's annotation or operator whose own time it is, or -1.

    What is open innermost has the time, also if it is an annotation in a Python frame. Python frames inside a loader
    with workers wait for these: their time is the loader's.
    """
    acts = job.activities
    names = names_that(is_data_loader, job.names)
    source, _, owner = job.slices
    out = np.full(len(source), -1, np.int32)
    if not names.any():
        return out
    is_loader = np.append(names[acts.name], [False])
    begun = source >> 1
    here = rows_where(
        lambda part: is_loader[owner[part]] | is_loader[begun[part]] | is_loader[acts.parent[begun[part]]], len(source)
    )
    innermost = np.where(source[here] & 1, acts.parent[begun[here]], begun[here])
    out[here] = np.where(is_loader[innermost], innermost, np.where(is_loader[owner[here]], owner[here], -1))
    waits = np.flatnonzero((names & names_that(has_loader_workers, job.names))[acts.name] & ~acts.on_device)
    if len(waits) and ActivityKind.PYTHON in acts.kind:
        frames = np.flatnonzero((owner >= 0) & (acts.kind[owner] == ActivityKind.PYTHON))
        waited = _around(job, source[frames], waits)
        out[frames[waited >= 0]] = waited[waited >= 0]
    return out


def waited_loaders(job: RecordedJob, vertex: Array) -> Ints:
    """Return for each vertex the annotation or operator of a loader whose workers its thread waits for, or -1."""
    begins, region = job.worker_loads
    return looked_up(begins, region, vertex).astype(np.int64)


def worker_loads(job: RecordedJob) -> tuple[Array, Array]:
    """Return (vertex where it begins, annotation or operator of the loader) of each wait for a loader's workers.

    They are sorted by vertex.
    """
    source, _, _ = job.slices
    loads = np.flatnonzero(job.loaders >= 0)
    loads = loads[names_that(has_loader_workers, job.names)[job.activities.name[job.loaders[loads]]]]
    loads = loads[np.argsort(source[loads], kind="stable")]
    return source[loads], job.loaders[loads]


def _around(job: RecordedJob, vertex: Array, regions: Array) -> Array:
    """Return for each moment of a host thread the region on its thread that lasts then, the last to start; else -1."""
    acts = job.activities
    begin = lane_moments(acts, regions, acts.start[regions])
    order = np.argsort(begin, kind="stable")
    at = np.searchsorted(begin[order], lane_moments(acts, vertex // 2, acts.moment(vertex)), "right")
    region = regions[order][np.maximum(at - 1, 0)]
    lasts = (at > 0) & (acts.lane[region] == acts.lane[vertex // 2])
    return np.where(lasts & (acts.moment(vertex) < acts.end[region]), region, -1)
