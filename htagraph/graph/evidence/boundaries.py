"""Which stream waits for which work, where the trace has not even the calls: at the boundaries of collectives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.core.kinds import ActivityKind
from htagraph.graph.evidence.calls import Calls
from htagraph.graph.evidence.records import TOLERANCE_NS, Answer, Plausible, best
from htagraph.graph.evidence.sites import grouped, mixed
from htagraph.graph.evidence.stream_waits import WINDOW_NS, SharedByRank, StreamWaits, as_site

__all__ = ["boundary_waits"]

Array: TypeAlias = npt.NDArray[Any]
_LIKELY, _POSSIBLE = 70, 50
"""Percent: confidence of a wait inferred without any call, where it explains more waits of its site than it leaves
unexplained, and where not. Chosen: below those of `stream_waits`, which has calls to go by. Shown, and used by
`acyclic` to drop the least sure edge of a circle."""


def boundary_waits(calls: Calls, rank: int, counts: Counter[str]) -> Iterator[StreamWaits]:
    """Yield the waits of a rank whose trace has no calls that record or await events.

    Collectives await what compute had enqueued by their launch. Compute awaits a collective at once where that was
    seen to hold at its call site; else just the work awaits it that started right behind it for no other reason.
    """
    shared = SharedByRank.of(calls, rank)
    launches = np.flatnonzero((calls.rank == rank) & calls.communicates & (calls.launched != shared.main))
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
    """Yield the waits of a call site if they are feasible, and, where they are not plausible, explain something."""
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
    confidence = _LIKELY if answer.explained > answer.unexplained else _POSSIBLE
    waits = StreamWaits.inferred(lane, position, source, position, confidence)
    shared.learn(waits)
    counts["inferred without calls"] += len(position)
    yield waits


def _right_behind(shared: SharedByRank, launches: Array, counts: Counter[str]) -> StreamWaits:
    """Return the waits of compute that started for no other reason right behind a collective enqueued before it."""
    calls, acts = shared.calls, shared.calls.job.activities
    collective = np.flatnonzero((acts.kind == ActivityKind.COMMUNICATION) & (acts.cause >= 0))
    collective = collective[np.isin(calls.position[acts.cause[collective]], launches)]
    collective = collective[np.argsort(acts.end[collective], kind="stable")]
    position = np.flatnonzero(calls.launched == shared.main)
    lane = np.full(len(position), shared.main)
    target = calls.enqueued.first_from(lane, position)
    site = as_site(shared, position, lane, target)
    at = np.searchsorted(acts.end[collective], site.over, side="right") - 1
    source = collective[np.maximum(at, 0)] if len(collective) else np.zeros(len(at), np.int64)
    end, record = acts.end[source], calls.position[np.maximum(acts.cause[source], 0)] + 1
    found = (at >= 0) & (record <= position) & (end > site.free + TOLERANCE_NS) & (site.over - end <= WINDOW_NS)
    counts["inferred without calls"] += int(found.sum())
    return StreamWaits.inferred(
        lane[found], position[found], acts.lane[source[found]].astype(np.int64), record[found], _POSSIBLE
    )
