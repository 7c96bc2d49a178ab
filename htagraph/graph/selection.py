"""Selection: some activities of a graph, so that every number can be drilled down to the events behind it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ActivityKind
from htagraph.graph.criteria import CRITERIA, Mask, Some
from htagraph.graph.positions import Place, placed
from htagraph.graph.tree import ancestors, descendants, tree_parents

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = ["Selection"]


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
    """Their numbers."""

    @staticmethod
    def of(  # noqa: PLR0913 - one keyword per criterion
        graph: DependencyGraph,
        *,
        kind: str | Sequence[str] | None = None,
        category: str | None = None,
        name: str | None = None,
        regex: str | None = None,
        op: str | None = None,
        rank: Some = None,
        stream: Some = None,
        step: Some = None,
        step_index: Some = None,
        time: tuple[float, float] | None = None,
        min_us: float | None = None,
        max_us: float | None = None,
        depth: Some = None,
        activity: Some = None,
        **unknown: Any,  # noqa: ANN401 - refused, whatever it is
    ) -> Selection:
        """Return the activities that meet every criterion given.

        Args:
            graph: where to look.
            kind: a word of `ActivityKind` such as ``"computation"``, ``"communication"``, ``"memory"``, ``"op"``,
                ``"launch"``, or a group: ``"kernel"``, ``"device"``, ``"host"``. Several are alternatives.
            category: glob of the category in the file, such as ``"gpu_memcpy"``.
            name: glob (``*``, ``?``, ``[seq]``), case-sensitive, of the activity's own name; or just this name.
            regex: regular expression, case-sensitive, found anywhere in the activity's own name.
            op: glob of the name of any operator, annotation or Python frame that encloses the activity, or, for
                device work, encloses its launch.
            rank: one or several ranks.
            stream: one or several stream ids; only device work has one.
            step: one or several N of ProfilerStep#N.
            step_index: one or several positions among the steps of the graph: 0 for the first, -1 for the last.
            time: (start, end): what begins and ends between them, µs since the job's first activity.
            min_us: what takes at least so long, µs; 0.001 leaves out what takes no time.
            max_us: what takes at most so long, µs.
            depth: one or several numbers of activities above it, as `htagraph.call_tree` counts them.
            activity: one or several activity numbers.
            **unknown: nothing: another keyword is refused.

        Raises:
            SelectionError: a kind, rank, step or activity that the graph does not have; names those that it has. Or a
                value that is none of its criterion, or a criterion that there is not; names those that there are.
        """
        if unknown:
            msg = f"{next(iter(unknown))!r} is no criterion: choose from {', '.join(CRITERIA)}"
            raise SelectionError(msg)
        values: dict[str, Any] = {
            "kind": kind, "category": category, "name": name, "regex": regex, "op": op, "rank": rank,
            "stream": stream, "step": step, "step_index": step_index, "time": time, "min_us": min_us,
            "max_us": max_us, "depth": depth, "activity": activity,
        }  # fmt: skip
        mask = np.ones(len(graph.activities), np.bool_)
        for criterion, value in values.items():
            if value is not None:
                mask &= CRITERIA[criterion](graph, value)
        return Selection(graph, np.flatnonzero(mask))

    def __repr__(self) -> str:
        return f"Selection({len(self):,} of {len(self.graph.activities):,} activities)"

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

    def select(self, **criteria: Any) -> Selection:  # noqa: ANN401 - documented in Selection.of
        """Return those of these activities that meet every criterion given, as `DependencyGraph.select` has them."""
        return self & Selection.of(self.graph, **criteria)

    def under(self, op: str, position: int = 0, *, device: bool = True) -> Selection:
        """Return those of these activities that run while an operator does, itself included.

        Of an operator on a host thread: what any host thread of its rank begins and ends within it, and the device work
        launched by what does. Of device work: what its stream begins and ends within it.

        Args:
            op: name, or glob, of any activity.
            position: which of the activities of that name on each rank among these, by start: 0 for the first, -1 for
                the last.
            device: whether the device work launched there belongs to it.

        Raises:
            SelectionError: no rank has so many activities of that name among these.
        """
        return self._placed(op, position, Place.UNDER, device=device)

    def before(self, op: str, position: int = 0, *, device: bool = True) -> Selection:
        """Return those of these activities that end before an operator starts; the arguments are those of `under`."""
        return self._placed(op, position, Place.BEFORE, device=device)

    def after(self, op: str, position: int = 0, *, device: bool = True) -> Selection:
        """Return those of these activities that start after an operator ends; the arguments are those of `under`."""
        return self._placed(op, position, Place.AFTER, device=device)

    def descendants(self) -> Selection:
        """Return these activities and all that lies below them: enclosed, launched, or called as backward."""
        return self._of_mask(descendants(self._parents(), self._mask()))

    def ancestors(self) -> Selection:
        """Return these activities and all that lies above them; `htagraph.call_stack` gives them in order."""
        return self._of_mask(ancestors(self._parents(), self._mask()))

    def leaves(self) -> Selection:
        """Return those of these activities and their descendants under which there is nothing."""
        below = self.descendants()
        parents = self._parents()
        inner = np.zeros(len(parents), np.bool_)
        inner[parents[parents >= 0]] = True
        return self._of_mask(below._mask() & ~inner)

    def device_work(self) -> Selection:
        """Return the kernels, copies and sets that these activities, or what lies below them, launched."""
        return self._of_mask(self.descendants()._mask() & self.graph.activities.on_device)

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
        lanes = [graph.lane_of(row) for row in rows]
        return pd.DataFrame(
            {
                "rank": acts.rank[rows],
                "kind": pd.array([ActivityKind(kind).label for kind in acts.kind[rows]], dtype="str"),
                "name": pd.array([graph.names[name] for name in acts.name[rows]], dtype="str"),
                "lane": pd.array([lane.label for lane in lanes], dtype="str"),
                "stream": np.array([lane.stream for lane in lanes], np.int64),
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

    def _parents(self) -> npt.NDArray[np.int64]:
        return tree_parents(self.graph.activities, self.graph.names)

    def _placed(self, op: str, position: int, place: Place, *, device: bool) -> Selection:
        return self._of_mask(self._mask() & placed(self.graph, self.activities, (op, position), place, device=device))
