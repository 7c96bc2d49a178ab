"""Which work a wait awaits, where the trace does not say: hypotheses per call site, tested by what happened.

A hypothesis names, for each wait of a site, a moment in the order of calls (an *anchor*: a record, a launch, the wait
itself) and a stream; the work awaited is the last one enqueued on the stream before the anchor. It is refuted where
that work ended after the wait was over, and supported where a wait that nothing else explains was over right after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.issues import Issue
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import names_like
from htagraph.graph.evidence.calls import Calls
from htagraph.graph.evidence.job import Job

__all__ = [
    "CLEARER",
    "TOLERANCE_NS",
    "TWO_CLOCKS_NS",
    "Answer",
    "Plausible",
    "Returns",
    "Site",
    "best",
    "in_order",
    "records_back",
    "returns",
    "unresolved_waits",
]

Array: TypeAlias = npt.NDArray[Any]
TOLERANCE_NS = 2_000
"""ns: errors of recorded times on one device and its host, and of files of whole µs. Doubled, waits of less than 4 µs
are not visible as such."""
_MIN_FEASIBLE = 0.99
"""Share of a site's waits that a hypothesis must not contradict. Chosen: a few records are damaged, and a wrong
hypothesis contradicts far more than 1 %. It cannot be doubled; at 1 one damaged record refutes the truth."""
_SAMPLE = 400
"""Waits of a site that hypotheses are tested on, evenly spread. Chosen for time; 1 % of 400 is 4. Doubled, testing
takes twice as long."""
_MAX_RECORDS_BACK = 12
"""How many records back the awaited one may be. Chosen: libraries record few events between a record and its wait.
Doubled, testing takes twice as long, and rare sites get a wait more."""
TWO_CLOCKS_NS = 20_000
"""ns: a host's and its device's clock disagree by this much in healthy traces (as in `construction.fit`). Doubled,
waits are linked to work that ended up to 40 µs after them."""
_USUAL_RETURN_NS = 20_000
"""ns: a blocked call returns this soon after what it awaited, where nothing else is known of its rank. 4 to 15 µs are
usual. Doubled, more syncs count as explained by chance."""
_MAX_RETURN_NS = 200_000
"""ns: the slowest return of a blocked call that counts; 130 µs were seen in real traces. Doubled, calls that were
busy with something else stretch the window."""
_MIN_RETURNS = 5
"""Returns of a rank from which on its own clocks and window are estimated. Chosen: the 5th percentile of fewer says
nothing. Doubled, short traces fall back to the usual return."""
CLEARER = 1.1
"""Times more waits that a later hypothesis must explain to replace an earlier, more natural one. Chosen against
chance among `_SAMPLE` waits. Doubled, natural but wrong hypotheses win."""


@dataclass(frozen=True, eq=False)
class Site:
    """The waits of one call site."""

    position: npt.NDArray[np.int64]
    """Of the waiting calls."""
    over: npt.NDArray[np.int64]
    """When each wait was over, ns: what it awaits ended before. The largest number where that is not known."""
    free: npt.NDArray[np.int64]
    """When, but for the wait, it would have been over, ns."""
    window: int
    """At most so long after the end of what it awaited a wait is over, ns."""
    tolerance: int = TOLERANCE_NS
    """At most so long before it, by the errors of clocks, ns."""


@dataclass(frozen=True, eq=False)
class Answer:
    """The hypothesis that fits a site best."""

    lane: npt.NDArray[np.int64]
    anchor: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    """The awaited work of each wait, -1 for none."""
    explained: int
    """How many waits of the sample were over right after the awaited work, and would have been over earlier."""
    unexplained: int
    """How many waits of the sample took visibly long, and the hypothesis does not say why."""


class Plausible(IntEnum):
    """How much a hypothesis needs evidence."""

    NO = 0  # it is accepted if it explains waits that no other does
    YES = 1  # it is accepted if it is not refuted and no other explains more


Hypothesis: TypeAlias = tuple[Array, Array, Plausible]
"""(lane, anchor of each wait, how plausible)."""


def best(calls: Calls, site: Site, hypotheses: Iterator[Hypothesis]) -> Answer | None:
    """Return the hypothesis that is never refuted and explains most, the first of equals; None if all are refuted."""
    count = len(site.position)
    sample = np.unique(np.linspace(0, count - 1, min(count, _SAMPLE)).astype(np.int64))
    chosen: Hypothesis | None = None
    score = -1.0
    visible = int((site.over - site.free > TOLERANCE_NS)[sample].sum())
    for lane, anchor, plausible in hypotheses:
        source = calls.enqueued.last_before(lane[sample], anchor[sample])
        feasible, explained = _tested(calls, site, sample, source)
        enough = explained > 0 if plausible else explained >= max(2, visible / 5)
        if not feasible or not (enough or plausible) or not (source >= 0).any():
            continue
        if explained > score * CLEARER or chosen is None:
            chosen, score = (lane, anchor, plausible), float(explained)
        if score >= visible:
            break  # none can explain more
    if chosen is None:
        return None
    lane, anchor, _ = chosen
    return Answer(lane, anchor, calls.enqueued.last_before(lane, anchor), int(score), visible - int(score))


def _tested(calls: Calls, site: Site, sample: Array, source: Array) -> tuple[bool, int]:
    """Return (whether the sources ended before the waits were over, how many waits they explain)."""
    known = source >= 0
    end = calls.job.activities.end[np.maximum(source, 0)]
    over, free = site.over[sample], site.free[sample]
    fits = ~known | (end <= over + site.tolerance)
    explains = known & fits & (end > free + TOLERANCE_NS) & (over - end <= site.window)
    return bool(fits.mean() >= _MIN_FEASIBLE) if len(fits) else False, int(explains.sum())


def records_back(calls: Calls, position: Array) -> Iterator[tuple[Array, Array]]:
    """Yield for k = 1, 2… the k-th latest record on the thread before each call, and the stream launched on before it.

    Both are -1 where there is none.
    """
    records = calls.records
    stride = len(calls.row) + 1
    at = np.searchsorted(calls.thread[records] * stride + records, calls.thread[position] * stride + position)
    for back in range(1, _MAX_RECORDS_BACK + 1):
        index = at - back
        found = (index >= 0) & (len(records) > 0)
        record = np.where(found, records[np.maximum(index, 0)] if len(records) else -1, -1)
        found &= calls.thread[np.maximum(record, 0)] == calls.thread[position]
        record = np.where(found, record, -1)
        if not found.any():
            return
        yield record, calls.lane_at(np.where(found, calls.before[np.maximum(record, 0)], -1))


def in_order(epoch: Array, position: Array, others: Array, other_epoch: Array) -> tuple[Array, bool]:
    """Return for the m-th wait of each epoch the m-th of some other calls, and whether they are equally many in each.

    -1 where there is none, or where it comes only after the wait. Positions of both ascend.
    """
    number = np.unique(np.concatenate([epoch, other_epoch]), return_inverse=True)[1].ravel()
    key, other_key = number[: len(epoch)], number[len(epoch) :]
    most = int(max(key.max(initial=0), other_key.max(initial=0))) + 1
    count, other_count = np.bincount(key, minlength=most), np.bincount(other_key, minlength=most)
    order, other_order = np.argsort(key, kind="stable"), np.argsort(other_key, kind="stable")
    first, other_first = np.cumsum(count) - count, np.cumsum(other_count) - other_count
    nth = np.empty(len(epoch), np.int64)
    nth[order] = np.arange(len(epoch)) - first[key[order]]
    has = nth < other_count[key]
    at = np.where(has, other_first[key] + nth, 0)
    match = np.where(has, others[other_order[at]] if len(others) else -1, -1)
    match = np.where(match < position, match, -1)
    waits = count > 0
    return match, bool((count[waits] == other_count[waits]).mean() >= _MIN_FEASIBLE and (match >= 0).all())


@dataclass(frozen=True)
class Returns:
    """How soon blocking calls of a rank return, by its clocks, which may disagree: host and device have one each."""

    tolerance: int = TOLERANCE_NS
    """At most so long before the end of what they await, ns."""
    window: int = _USUAL_RETURN_NS
    """At most so long after it, ns."""
    soonest: int = -TOLERANCE_NS
    """So long after it, as a rule, at the soonest, ns; far over 0 where the device's clock is late."""


def returns(calls: Calls, rank: int) -> Returns:
    """Return how soon blocking calls of a rank return: of its stream syncs and its copies to pageable memory."""
    job, acts = calls.job, calls.job.activities
    syncs = calls.of_kind(ActivityKind.SYNC)
    syncs = syncs[calls.rank[syncs] == rank]
    name = acts.name[calls.row[syncs]]
    of_event = names_like(job.naming.event_sync, job.names, name)
    streams = syncs[~of_event & ~names_like(job.naming.device_sync, job.names, name)]
    copies = np.flatnonzero((acts.kind == ActivityKind.MEMORY) & (acts.rank == rank) & (acts.cause >= 0))
    for pattern in (job.naming.pageable, job.naming.to_host):
        copies = copies[names_like(pattern, job.names, acts.name[copies])]
    source = calls.enqueued.last_before(calls.lane_at(calls.before[streams]), streams)
    call = np.concatenate([calls.row[streams[source >= 0]], acts.cause[copies]])
    source = np.concatenate([source[source >= 0], copies])
    # a sync right behind a blocking copy has nothing to wait for, and returns that much later than what it awaits ended
    waited = acts.end[source] > acts.start[call]
    late = (acts.end[call] - acts.end[source])[waited]
    late = late[np.abs(late) <= _MAX_RETURN_NS]
    soonest, tolerance = -TOLERANCE_NS, TOLERANCE_NS
    if len(late) >= _MIN_RETURNS:
        soonest = int(np.percentile(late, 5)) - TOLERANCE_NS
        tolerance = int(np.clip(-soonest, TOLERANCE_NS, TWO_CLOCKS_NS))
    events = syncs[of_event]
    for record, lane in records_back(calls, events):
        source = calls.enqueued.last_before(lane, record)
        after = (acts.end[calls.row[events]] - acts.end[np.maximum(source, 0)])[source >= 0]
        late = np.concatenate([late, after[(after >= 0) & (after <= _MAX_RETURN_NS)]])
        break
    window = _USUAL_RETURN_NS
    if len(late) >= _MIN_RETURNS:
        window = int(np.clip(1.5 * np.median(late), _USUAL_RETURN_NS, _MAX_RETURN_NS))
    return Returns(tolerance, window, max(soonest, -tolerance))


def unresolved_waits(job: Job, counts: Mapping[int, int], what: str) -> tuple[Issue, ...]:
    """Return an issue for each rank some of whose waits have no edge.

    Args:
        job: the job.
        counts: how many waits, by rank.
        what: which waits, and why.
    """
    return tuple(
        Issue(str(job.traces[rank].path), "waits_unresolved", f"{what}; left out", count, rank)
        for rank, count in sorted(counts.items())
        if count
    )
