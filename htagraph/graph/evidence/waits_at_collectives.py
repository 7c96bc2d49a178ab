"""Which stream waits for which work, for traces without event calls: waits are assumed around collectives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.kinds import ActivityKind
from htagraph.graph.evidence.call_sites import grouped, mixed
from htagraph.graph.evidence.calls import Calls
from htagraph.graph.evidence.stream_waits import SharedByRank, StreamWaits, as_site
from htagraph.graph.evidence.wait_hypotheses import Answer, Plausible, best
from htagraph.graph.tolerances import LIMITS, Confidence

__all__ = ["boundary_waits"]


def boundary_waits(calls: Calls, rank: int, counts: Counter[str]) -> Iterator[StreamWaits]:
    """Yield the stream waits of a rank whose trace has no calls that record events or wait for them.

    A collective waits for what the compute stream had enqueued by its launch. The compute stream waits for a collective
    right after its launch if the times of its call site show that; otherwise only the kernels wait for it that started
    right after its end without another reason.
    """
    shared = SharedByRank.of(calls, rank)
    own = calls.of_rank(rank)
    launches = own.start + np.flatnonzero(calls.communicates[own] & (calls.launched[own] != shared.main))
    sides = [launches[rows] for rows in grouped(mixed(calls.site[launches], calls.launched[launches]))]
    for position in sides:
        source = calls.elsewhere(position, calls.launched[position])
        source = np.where(np.isin(source, shared.quiet) | (source < 0), shared.main, source)
        yield from _tested(shared, position, calls.launched[position], source, Plausible.YES, counts)
    for position in sides:
        main = np.full(len(position), shared.main)
        yield from _tested(shared, position + 1, main, calls.launched[position], Plausible.NO, counts)
    yield _right_behind(shared, launches, counts)


def _tested(
    shared: SharedByRank, position: Array, lane: Array, source: Array, plausible: Plausible, counts: Counter[str]
) -> Iterator[StreamWaits]:
    """Yield the waits of a call site if the times allow them and, unless they are plausible, they explain something."""
    target = shared.calls.enqueued.first_from(lane, position)
    keep = target >= 0
    position, lane, source, target = position[keep], lane[keep], source[keep], target[keep]
    if not len(position):
        return
    answer: Answer | None = best(
        shared.calls, as_site(shared, position, lane, target), iter([(source, position, plausible)])
    )
    if answer is None:
        return
    confidence = Confidence.NOT_RECORDED if answer.explained > answer.unexplained else Confidence.EVEN
    waits = StreamWaits.inferred(lane, position, source, position, confidence)
    shared.learn(waits)
    counts["inferred without calls"] += len(position)
    yield waits


def _right_behind(shared: SharedByRank, launches: Array, counts: Counter[str]) -> StreamWaits:
    """Return the waits of compute kernels that start right after an earlier collective ends, for no other reason."""
    calls, acts = shared.calls, shared.calls.job.activities
    of_rank, own = (each.of_rank(int(calls.job.lanes[shared.main].rank)) for each in (acts, calls))
    collective = of_rank.start + np.flatnonzero(
        (acts.kind[of_rank] == ActivityKind.COMMUNICATION) & (acts.cause[of_rank] >= 0)
    )
    collective = collective[np.isin(calls.position[acts.cause[collective]], launches)]
    collective = collective[np.argsort(acts.end[collective], kind="stable")]
    position = own.start + np.flatnonzero(calls.launched[own] == shared.main)
    lane = np.full(len(position), shared.main)
    target = calls.enqueued.first_from(lane, position)
    site = as_site(shared, position, lane, target)
    at = np.searchsorted(acts.end[collective], site.over, side="right") - 1
    source = collective[np.maximum(at, 0)] if len(collective) else np.zeros(len(at), np.int64)
    end, record = acts.end[source], calls.position[np.maximum(acts.cause[source], 0)] + 1
    waits = (at >= 0) & (record <= position) & (end > site.free + LIMITS.tick_ns) & (site.over - end <= site.window)
    counts["inferred without calls"] += int(waits.sum())
    return StreamWaits.inferred(
        lane[waits], position[waits], acts.lane[source[waits]].astype(np.int64), record[waits], Confidence.EVEN
    )
