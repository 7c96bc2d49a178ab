"""The dependencies between the slices of a timeline, their slack and their gain, as columns of the page."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from htagraph.analyses.slack import slack
from htagraph.core.arrays import Array, Mask, inverse_of, stable_order
from htagraph.core.errors import printable
from htagraph.core.kinds import ADDED, EdgeKind, GapKind, of_kinds
from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["MOST_DEPENDENCIES", "NOTHING_BEFORE", "NOT_DRAWN", "OWN_WORK", "Walks", "walks_of"]

MOST_DEPENDENCIES: Final = 1_000_000
"""Dependencies of one page. Chosen: at about 4 bytes each, pages grow by at most 4 MB."""
NOTHING_BEFORE: Final = 0
"""Code of a moment before which nothing has to happen."""
OWN_WORK: Final = 1
"""Code of an end that the activity's own work decides."""
NOT_DRAWN: Final = 2
"""Code of a moment that a dependency decides which is not on the page."""
_FIRST_LISTED: Final = 3
"""Code of a moment that the first of its listed dependencies decides; the second one has the next code."""


class Walks(NamedTuple):
    """The dependencies of the slices, as the page needs them.

    A place is a slice, or behind the slices an activity that the graph added, where other activities meet. The moments
    of place i are 2i, its start, and 2i + 1, its end.
    """

    header: dict[str, Any]
    """The words of edges and gaps, and the names and moments (ns since the job's first activity) of added places."""
    columns: dict[str, Array]
    """``waits`` (dependencies listed by moment), ``waitFrom`` (the moment a dependency comes from, less its moment),
    ``waitKind``, ``waitLag`` (ns; 0 for a binding dependency, whose lag follows from the moments and ``late``),
    ``decided`` (by moment: `NOTHING_BEFORE`, `OWN_WORK`, `NOT_DRAWN`, or 3 plus the
    position of the binding dependency in the list), ``late`` (ns that a moment comes later than its dependencies
    allow), ``lateWhy`` (a `GapKind`), ``slack`` and ``gain`` (ns plus 1 by slice, 0 where unknown), ``gainLeast`` (by
    slice, 1 where the gain is a lower bound)."""
    left_out: list[str]
    """Sentences on dependencies that are not on the page."""


def walks_of(
    graph: DependencyGraph,
    slices: Array,
    *,
    on_path: Array,
    most: int = MOST_DEPENDENCIES,
) -> Walks:
    """Return the dependencies between the activities of slices, with slack and gain.

    Args:
        graph: the job.
        slices: the activity of each slice.
        on_path: activities of the critical path, whose dependencies are kept first.
        most: dependencies that are kept.

    Example:
        >>> import numpy as np, htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> walks = walks_of(graph, np.array([1204, 1205]), on_path=np.array([1205]))
        >>> len(walks.columns["decided"]) // 2 - len(walks.header["addedNames"])
        2
    """
    places = _places(graph, slices)
    place_of = inverse_of(places, len(graph.activities) + 1)
    listed = _listed(graph, place_of)
    kept = _kept(graph, listed, on_path, most)
    sentences = []
    if len(kept) < len(listed):
        sentences.append(
            f"{len(listed) - len(kept):,} dependencies, first of activities away from the critical path, are not on "
            "this page. They count in every number; htagraph serve lists the dependencies of any activity."
        )
    header = {
        "edgeKinds": [kind.label for kind in EdgeKind],
        "gapKinds": [kind.label for kind in GapKind],
        "addedNames": _names_of(graph, places[len(slices) :]),
        "addedMoments": _moments_of(graph, places[len(slices) :]),
    }
    columns = _dependencies(graph, places, place_of, kept) | _prospects(graph, slices)
    return Walks(header, columns, sentences)


def _places(graph: DependencyGraph, slices: Array) -> Array:
    """Return the activity of each place: of each slice, then each added activity."""
    added = np.flatnonzero(of_kinds(graph.activities.kind, ADDED))
    return np.concatenate((slices, added))


def _names_of(graph: DependencyGraph, activities: Array) -> list[str]:
    """Return the names of activities."""
    return [printable(graph.names[name]) for name in graph.activities.name[activities].tolist()]


def _moments_of(graph: DependencyGraph, activities: Array) -> list[int]:
    """Return the start and the end of activities, ns since the job's first activity, in turn."""
    moments = np.stack((2 * activities, 2 * activities + 1), axis=1).ravel()
    times = graph.time[moments] - graph.origin_ns
    return [int(time) for time in times]


def _listed(graph: DependencyGraph, place_of: Array) -> Array:
    """Return the edges between two places; an activity's work counts where its end waits for other activities, too."""
    edges = graph.edges
    source = edges.source >> 1
    target = edges.target >> 1
    is_shown = (place_of[source] >= 0) & (place_of[target] >= 0)
    is_own = source == target
    incoming = np.diff(graph.in_offsets)[edges.target]
    return np.flatnonzero(is_shown & (~is_own | (incoming > 1)))


def _kept(graph: DependencyGraph, listed: Array, on_path: Array, most: int) -> Array:
    """Return the edges that are kept: of the critical path, then edges that decided a moment, then the first edges."""
    if len(listed) <= most:
        return listed
    is_on_path = np.zeros(len(graph.activities), bool)
    is_on_path[on_path] = True
    edges = graph.edges
    touches = is_on_path[edges.source[listed] >> 1] | is_on_path[edges.target[listed] >> 1]
    binds = graph.binding[edges.target[listed]] == listed
    order = np.lexsort((~binds, ~touches))
    return np.sort(listed[order[:most]])


def _dependencies(
    graph: DependencyGraph,
    places: Array,
    place_of: Array,
    kept: Array,
) -> dict[str, Array]:
    """Return the columns of dependencies, and the columns of the moments of places."""
    edges = graph.edges
    moments = np.stack((2 * places, 2 * places + 1), axis=1).ravel()
    target = _moment(place_of, edges.target[kept])
    order = stable_order(target)
    kept = kept[order]
    target = target[order]
    source = _moment(place_of, edges.source[kept])
    counts = np.bincount(target, minlength=len(moments))
    position = np.arange(len(kept)) - (np.cumsum(counts) - counts)[target]
    binding = graph.binding[moments]
    binder = edges.source[np.maximum(binding, 0)] >> 1
    decided = np.where(binder == moments >> 1, OWN_WORK, NOT_DRAWN)
    decided[binding < 0] = NOTHING_BEFORE
    binds = binding[target] == kept
    decided[target[binds]] = _FIRST_LISTED + position[binds]
    return {
        "waits": counts,
        "waitFrom": source - target,
        "waitKind": edges.kind[kept].astype(np.int64),
        "waitLag": np.where(binds, 0, edges.lag[kept]),
        "decided": decided,
        "late": graph.gap[moments],
        "lateWhy": graph.gap_kind[moments].astype(np.int64),
    }


def _moment(place_of: Array, vertices: Array) -> Array:
    """Return the moments of vertices."""
    place = place_of[vertices >> 1].astype(np.int64)
    return 2 * place + (vertices & 1)


def _prospects(graph: DependencyGraph, slices: Array) -> dict[str, Array]:
    """Return the columns of slack and gain."""
    table = slack(graph)
    of_activity = np.full(len(graph.activities) + 1, -1, np.int64)
    of_activity[table.index.to_numpy()] = np.arange(len(table))
    row = of_activity[slices]
    has_row: Mask = row >= 0
    later = _whole_ns(table["slack_us"].to_numpy())
    gain = _whole_ns(table["drag_us"].to_numpy())
    is_least = ~table["drag_exact"].to_numpy()
    return {
        "slack": _or_unknown(later, row, has_row),
        "gain": _or_unknown(gain, row, has_row),
        "gainLeast": np.where(has_row, np.append(is_least, False)[row], 0).astype(np.int64),
    }


def _or_unknown(values: Array, row: Array, has_row: Mask) -> Array:
    """Return the values of rows plus 1, and 0 where there is no row."""
    return np.where(has_row, np.append(values, 0)[row] + 1, 0)


def _whole_ns(times_us: Array) -> Array:
    """Return times, µs, in ns."""
    return np.rint(1000 * times_us).astype(np.int64)
