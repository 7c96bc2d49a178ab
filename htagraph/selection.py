"""Selection: some activities of a graph, so that every number can be drilled down to the events behind it."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from htagraph.errors import SelectionError
from htagraph.kinds import ActivityKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from htagraph.graph import DependencyGraph

__all__ = ["Selection"]

Mask: TypeAlias = npt.NDArray[np.bool_]
Some: TypeAlias = int | Sequence[int] | None
_GROUPS = {
    "kernel": (ActivityKind.COMPUTATION, ActivityKind.COMMUNICATION),
    "device": tuple(kind for kind in ActivityKind if kind.on_device),
    "host": tuple(kind for kind in ActivityKind if not kind.on_device),
}
_ENCLOSING = (ActivityKind.OP, ActivityKind.ANNOTATION, ActivityKind.STEP, ActivityKind.PYTHON)


@dataclass(frozen=True, eq=False)
class Selection:
    """Activities of a graph, in ascending order."""

    graph: DependencyGraph
    activities: npt.NDArray[np.int64]
    """Their numbers."""

    @staticmethod
    def of(  # noqa: PLR0913 - one keyword per criterion
        graph: DependencyGraph,
        *,
        kind: str | Sequence[str] | None = None,
        name: str | None = None,
        op: str | None = None,
        rank: Some = None,
        stream: Some = None,
        step: Some = None,
    ) -> Selection:
        """Return the activities that meet every criterion given.

        Args:
            graph: where to look.
            kind: a word of `ActivityKind` such as ``"computation"``, ``"communication"``, ``"memory"``, ``"op"``,
                ``"launch"``, or a group: ``"kernel"``, ``"device"``, ``"host"``. Several are alternatives.
            name: glob (``*``, ``?``, ``[seq]``), case-sensitive, of the activity's own name.
            op: glob of the name of any operator, annotation or Python frame that encloses the activity, or, for
                device work, encloses its launch.
            rank: one or several ranks.
            stream: one or several stream ids; only device work has one.
            step: one or several N of ProfilerStep#N.

        Raises:
            SelectionError: a kind, rank or step that the graph does not have; names those that it has.
        """
        acts = graph.activities
        mask = np.ones(len(acts), np.bool_)
        if kind is not None:
            mask &= np.isin(acts.kind, _kinds(kind))
        if rank is not None:
            mask &= np.isin(acts.rank, _known(rank, graph.ranks, "rank"))
        if step is not None:
            mask &= np.isin(acts.step, _known(step, graph.steps, "step"))
        if stream is not None:
            wanted = set(_several(stream))
            lanes = [i for i, lane in enumerate(graph.lanes) if lane.stream in wanted and lane.device >= 0]
            mask &= np.isin(acts.lane, lanes)
        if name is not None:
            mask &= _matching(graph.names, name)[acts.name]
        if op is not None:
            mask &= _inside(graph, _matching(graph.names, op)[acts.name])
        return Selection(graph, np.flatnonzero(mask))

    def __repr__(self) -> str:
        return f"Selection({len(self):,} of {len(self.graph.activities):,} activities)"

    def __len__(self) -> int:
        return len(self.activities)

    def __iter__(self) -> Iterator[int]:
        return iter(self.activities.tolist())

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


def _kinds(kind: str | Sequence[str]) -> list[int]:
    words = {each.label: (each,) for each in ActivityKind} | _GROUPS
    wanted = list(kind) if isinstance(kind, Iterable) and not isinstance(kind, str) else [kind]
    unknown = [word for word in wanted if not isinstance(word, str) or word not in words]
    if unknown:
        msg = f"kind {unknown[0]!r}: choose from {', '.join(sorted(words))}"
        raise SelectionError(msg)
    return [int(each) for word in wanted for each in words[word]]


def _several(value: int | Iterable[int]) -> list[int]:
    numbers = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    wrong = [number for number in numbers if not isinstance(number, int | np.integer)]
    if wrong:
        msg = f"{wrong[0]!r}: ranks, streams and steps are whole numbers"
        raise SelectionError(msg)
    return numbers


def _known(value: int | Sequence[int], known: tuple[int, ...], what: str) -> list[int]:
    wanted = _several(value)
    absent = [number for number in wanted if number not in known]
    if absent:
        has = ", ".join(map(str, known[:32])) or "none"
        msg = f"{what} {absent[0]} is not in this graph; its {what}s: {has}"
        raise SelectionError(msg)
    return wanted


def _matching(names: tuple[str, ...], glob: str) -> Mask:
    if not isinstance(glob, str):
        msg = f"{glob!r}: a name is chosen by a text such as '*gemm*'"
        raise SelectionError(msg)
    pattern = re.compile(fnmatch.translate(glob))
    return np.fromiter((pattern.match(name) is not None for name in names), np.bool_, len(names))


def _inside(graph: DependencyGraph, matches: Mask) -> Mask:
    """Return which activities are, or lie under, or were launched under, an enclosing activity that matches."""
    acts: Any = graph.activities
    inside = matches & np.isin(acts.kind, _ENCLOSING)
    above = acts.parent.copy()
    while (above >= 0).any():  # each round one level up: as many rounds as the deepest stack has levels
        known = above >= 0
        hit = known.copy()
        hit[known] = inside[above[known]]
        inside |= hit
        above[known] = acts.parent[above[known]]
        above[inside] = -1
    caused = acts.cause >= 0
    inside[caused] |= inside[acts.cause[caused]]
    return inside
