"""Selection: some activities of a graph, so that every number can be drilled down to the events behind it."""

from __future__ import annotations

import html
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import texts_of
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind
from htagraph.graph.activities import BETWEEN
from htagraph.graph.criteria import Criteria, Mask, mask_of
from htagraph.graph.positions import Place, placed

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from typing_extensions import Unpack

    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Selection"]

_SHOWN_ROWS = 5
"""Rows of the table in a notebook. Chosen: enough to recognize what was selected. Doubled, the table has 10 rows."""


@dataclass(frozen=True, eq=False)
class Selection:
    """Activities of a graph, in ascending order.

    Selections of one graph are sets: ``a & b``, ``a | b`` and ``a - b`` are selections. So are ``a[2]``, of the third
    activity alone (-1: the last), and ``a[1:5]``.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> forward = graph.select(step_index=0).under("DistributedDataParallel.forward")
        >>> forward
        Selection(456 of 9,526 activities)
        >>> forward.select(regex="^aten::") - graph.select(rank=[1, 2, 3])
        Selection(67 of 9,526 activities)
    """

    graph: DependencyGraph
    activities: npt.NDArray[np.int64]
    """The activity numbers."""

    @staticmethod
    def of(graph: DependencyGraph, criteria: Criteria) -> Selection:
        """Return the activities that meet every criterion given; see `DependencyGraph.select`."""
        return Selection(graph, np.flatnonzero(mask_of(graph, criteria)))

    def __repr__(self) -> str:
        return f"Selection({len(self):,} of {len(self.graph.activities):,} activities)"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the count and the longest activities."""
        rows = self.activities[np.argsort(-self.graph.activities.duration[self.activities], kind="stable")]
        longest = Selection(self.graph, rows[:_SHOWN_ROWS]).to_frame()[["rank", "kind", "name", "lane", "duration_us"]]
        return f"<p>{html.escape(repr(self))}; the longest:</p>{longest.to_html(max_cols=None)}"

    def __len__(self) -> int:
        return len(self.activities)

    def __iter__(self) -> Iterator[int]:
        return iter(self.activities.tolist())

    def __getitem__(self, position: int | slice) -> Selection:
        if isinstance(position, slice):
            return Selection(self.graph, np.sort(self.activities[position]))
        at = operator.index(position)
        if not -len(self) <= at < len(self):
            msg = f"position {at}: the selection has {len(self):,} activities"  # also what ends a loop over positions
            raise IndexError(msg)
        return Selection(self.graph, self.activities[[at]])

    def __and__(self, other: Selection) -> Selection:
        return self._of_mask(self._mask() & self._same_graph(other)._mask())

    def __or__(self, other: Selection) -> Selection:
        return self._of_mask(self._mask() | self._same_graph(other)._mask())

    def __sub__(self, other: Selection) -> Selection:
        return self._of_mask(self._mask() & ~self._same_graph(other)._mask())

    def select(self, **criteria: Unpack[Criteria]) -> Selection:
        """Return those of these activities that meet every criterion given, as in `DependencyGraph.select`."""
        return self & Selection.of(self.graph, criteria)

    def under(self, op: str, position: int = 0, *, device: bool = True) -> Selection:
        """Return those of these activities that run while an operator runs, the operator included.

        For an operator on a host thread: what starts and ends during it on any host thread of its rank, and the device
        work launched by that. For device work: what starts and ends during it on its stream.

        Args:
            op: name, or glob, of any activity.
            position: which occurrence of that name among these activities, on each rank, by start: 0 for the first, -1
                for the last.
            device: whether to include the device work launched during the operator.

        Raises:
            SelectionError: no rank has an occurrence at that position among these activities.
        """
        return self._placed(op, position, Place.UNDER, device=device)

    def before(self, op: str, position: int = 0, *, device: bool = True) -> Selection:
        """Return those of these activities that end before an operator starts; the arguments are those of `under`."""
        return self._placed(op, position, Place.BEFORE, device=device)

    def after(self, op: str, position: int = 0, *, device: bool = True) -> Selection:
        """Return those of these activities that start after an operator ends; the arguments are those of `under`."""
        return self._placed(op, position, Place.AFTER, device=device)

    def descendants(self) -> Selection:
        """Return what is inside these activities in `DependencyGraph.tree`: called by them or launched by them.

        An activity is not inside itself: ``s | s.descendants()`` has both. ``graph.select(op=x)`` is
        ``graph.select(name=x).descendants()``.
        """
        return self._of_mask(self.graph.tree.inside(self._mask()))

    def ancestors(self) -> Selection:
        """Return the activities that enclose these; `htagraph.call_stack` lists those of one activity in order."""
        return self._of_mask(self.graph.tree.around(self._mask()))

    def leaves(self) -> Selection:
        """Return those of these activities and their descendants that enclose nothing."""
        tree = self.graph.tree
        return self._of_mask(self._whole() & (tree.stop == tree.first + 1))

    def device_work(self) -> Selection:
        """Return the kernels, copies and memsets among these activities or launched inside them."""
        return self._of_mask(self._whole() & self.graph.activities.on_device)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per activity.

        Returns:
            DataFrame indexed by ``activity`` (int64) with ``rank`` (int32), ``kind``, ``name``, ``lane`` (str),
            ``stream`` (int64, -1 on host threads), ``step`` (int32, -1 outside steps), ``start_us`` (float64, since the
            job's first activity), ``duration_us`` (float64), ``parent`` and ``cause`` (int32 activity numbers, -1 for
            none: the activity around it, the launch behind it) and ``correlation`` (int64, -1 for none).

        Example:
            >>> import htagraph as hg
            >>> hg.load("data/demo").select(kind="step", rank=0).to_frame()["name"].iloc[0]
            'ProfilerStep#5'
        """
        import pandas as pd

        graph, rows = self.graph, self.activities
        acts = graph.activities
        lane = acts.lane[rows]
        labels = [*(each.label for each in graph.lanes), BETWEEN.label]
        streams = np.array([*(each.stream for each in graph.lanes), BETWEEN.stream], np.int64)
        return pd.DataFrame(
            {
                "rank": acts.rank[rows],
                "kind": texts_of([kind.label for kind in ActivityKind], acts.kind[rows]),
                "name": texts_of(graph.names, acts.name[rows]),
                "lane": texts_of(labels, np.where(lane >= 0, lane, len(graph.lanes))),
                "stream": streams[lane],
                "step": acts.step[rows],
                "start_us": (graph.time[2 * rows] - graph.origin_ns) / 1000,
                "duration_us": acts.duration[rows] / 1000,
                "parent": acts.parent[rows],
                "cause": acts.cause[rows],
                "correlation": acts.arg("correlation")[rows],
            },
            index=pd.Index(rows, name="activity"),
        )

    def _mask(self) -> Mask:
        mask = np.zeros(len(self.graph.activities), np.bool_)
        mask[self.activities] = True
        return mask

    def _of_mask(self, mask: Mask) -> Selection:
        return Selection(self.graph, np.flatnonzero(mask))

    def _same_graph(self, other: Selection) -> Selection:
        if not isinstance(other, Selection):
            msg = f"{other!r} is no selection: select from the same graph, such as graph.select(activity=[…])"
            raise TypeError(msg)
        if other.graph is not self.graph:
            msg = "selections of two graphs have no activity in common: select both from one graph"
            raise SelectionError(msg)
        return other

    def _whole(self) -> Mask:
        """Return which activities are among these or inside them."""
        mask = self._mask()
        return mask | self.graph.tree.inside(mask)

    def _placed(self, op: str, position: int, place: Place, *, device: bool) -> Selection:
        return self._of_mask(self._mask() & placed(self.graph, self.activities, (op, position), place, device=device))
