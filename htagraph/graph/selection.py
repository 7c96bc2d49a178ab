"""Selection: some activities of a graph, so that every number can be drilled down to the events behind it.

`mask_of` has the criteria of `DependencyGraph.select`, one function each; `placed` finds what runs during, before or
after the n-th occurrence of an operator.
"""

from __future__ import annotations

import fnmatch
import html
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict

import numpy as np

from htagraph.core.arrays import Array, Ints, Mask, marked, texts_of
from htagraph.core.errors import NothingMeetsError, SelectionError, nearest_words, shown
from htagraph.core.kinds import ADDED, DEVICE, HOST, KERNELS, ActivityKind, EdgeKind, of_kinds
from htagraph.core.names import is_mangled, is_readable_as, readable_name
from htagraph.core.naming import is_backward, is_gradient_ready, literal_glob, names_that
from htagraph.graph.activities import BETWEEN
from htagraph.graph.measures.beside import runs_beside
from htagraph.graph.tree import inside

if TYPE_CHECKING:
    import pandas as pd
    from pandas.api.extensions import ExtensionArray
    from typing_extensions import Unpack

    from htagraph.graph.dependency_graph import DependencyGraph

__all__ = [
    "Criteria", "IntSelector", "Mask", "Selection", "backward_of", "columns_of", "mask_of", "named", "named_activities",
    "numbers_text", "one_activity", "placed",
]  # fmt: skip

_SHOWN_NUMBERS = 32
"""How many ranks or steps an error message lists. Chosen: four lines of a terminal. Doubled, eight lines hide what is
wrong."""


@dataclass(frozen=True, eq=False)
class Selection:
    """Activities of a graph, in ascending order.

    Selections of one graph are sets: ``a & b``, ``a | b`` and ``a - b`` are selections. ``a[2]`` is the selection of
    the third activity alone (-1: the last), and ``a[1:5]`` a selection of four.

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
    activities: Ints
    """The activity numbers."""

    @staticmethod
    def of(graph: DependencyGraph, criteria: Criteria) -> Selection:
        """Return the activities that meet every criterion given; see `DependencyGraph.select`."""
        return Selection(graph, np.flatnonzero(mask_of(graph, criteria)))

    def __repr__(self) -> str:
        return f"Selection({len(self):,} of {len(self.graph.activities):,} activities)"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the count and the five longest activities."""
        rows = self.activities[np.argsort(-self.graph.activities.duration[self.activities], kind="stable")]
        longest = Selection(self.graph, rows[:5]).to_frame()[["rank", "kind", "name", "lane", "duration_us"]]
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

        For an operator on a host thread: the activities that start and end during the operator on any host thread of
        its rank, and the device work that these activities launched. For device work: the activities that start and end
        during it on its stream.

        Args:
            op: name, or glob, of any activity.
            position: which occurrence of that name to take among these activities, on each rank, in the order of
                starts: 0 for the first, -1 for the last.
            device: whether to include the device work launched during the operator.

        Raises:
            SelectionError: no rank has an occurrence at that position among these activities.
        """
        return self._placed(op, position, "under", device=device)

    def before(self, op: str, position: int = 0, *, device: bool = True) -> Selection:
        """Return those of these activities that end before an operator starts; the arguments are those of `under`."""
        return self._placed(op, position, "before", device=device)

    def after(self, op: str, position: int = 0, *, device: bool = True) -> Selection:
        """Return those of these activities that start after an operator ends; the arguments are those of `under`."""
        return self._placed(op, position, "after", device=device)

    def descendants(self) -> Selection:
        """Return what is inside these activities in `DependencyGraph.tree`: called by them or launched by them.

        An activity is not inside itself: ``s | s.descendants()`` has both. ``graph.select(op=s)`` has besides the
        operators that a region of ``s`` encloses after the end of its step, and the communication on threads of its own
        that ``s`` asked for.
        """
        return self._of_mask(self.graph.tree.inside(self._mask()))

    def ancestors(self) -> Selection:
        """Return the activities that enclose these; for one activity, `htagraph.call_stack` lists them in order."""
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

        words = ("rank", "kind", "name", "lane", "stream", "step", "start_us", "duration_us", "parent", "cause")
        columns = columns_of(self.graph, self.activities, *words, "correlation")
        return pd.DataFrame(columns, index=pd.Index(self.activities, name="activity"))

    def _mask(self) -> Mask:
        return marked(self.activities, len(self.graph.activities))

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

    def _placed(self, op: str, position: int, place: Position, *, device: bool) -> Selection:
        return self._of_mask(self._mask() & placed(self.graph, self.activities, (op, position), place, device=device))


IntSelector: TypeAlias = int | Sequence[int] | None
"""One number or several; None for all."""
Position: TypeAlias = Literal["under", "before", "after"]
"""When an activity runs, relative to an operator."""
_KIND_GROUPS: Final = {"kernel": KERNELS, "device": DEVICE, "host": HOST}


class Criteria(TypedDict, total=False):
    """The keywords of `DependencyGraph.select`, of selections and of changes."""

    kind: str | Sequence[str] | None
    """A word of `ActivityKind` such as ``"computation"``, ``"communication"``, ``"memory"``, ``"op"``, ``"launch"``, or
    a group: ``"kernel"``, ``"device"``, ``"host"``. Several are alternatives."""
    category: str | None
    """Glob of the category in the file, such as ``"gpu_memcpy"``."""
    name: str | Selection | None
    """Glob (``*``, ``?``, ``[seq]``), case-sensitive, of the activity's own name, as written or readable; or just this
    name; or a selection."""
    regex: str | None
    """Regular expression, case-sensitive, anywhere in the activity's own name."""
    op: str | Selection | None
    """Glob of the name of anything that encloses the activity in `DependencyGraph.tree`: operators, annotations, steps,
    Python frames, its launch; or a selection of what encloses it. Communication of host threads is inside the operator
    that asked for it. The operator is not inside itself; `name` selects it."""
    beside: str | Selection | None
    """Glob of the name of device work, or a selection: what runs, for at least half of its time, while this work runs
    on another stream of its device; of a collective, on a device of any of its ranks, after the last arrival."""
    backward_of: str | Selection | None
    """Glob of the name of operators or annotations, or a selection of these: what autograd ran backward for them and
    for all inside them."""
    rank: IntSelector
    """One or several ranks."""
    stream: IntSelector
    """One or several stream ids; only device work has one."""
    step: IntSelector
    """One or several N of ProfilerStep#N."""
    step_index: IntSelector
    """One or several positions among the steps of the graph: 0 for the first, -1 for the last."""
    time: tuple[float, float] | None
    """(start, end), µs since the job's first activity: what starts and ends between them."""
    min_us: float | None
    """The shortest duration, µs; 0.001 leaves out what takes no time."""
    max_us: float | None
    """The longest duration, µs."""
    depth: IntSelector
    """One or several depths in the tree: how many activities enclose it, as `htagraph.call_tree` counts them."""
    activity: IntSelector | Selection
    """One or several activity numbers, or a selection: exactly its activities."""


def mask_of(graph: DependencyGraph, criteria: Criteria) -> Mask:
    """Return which activities meet every criterion given."""
    mask = np.ones(len(graph.activities), np.bool_)
    for criterion, value in criteria.items():
        if criterion not in _CRITERIA:
            near = nearest_words(criterion, _CRITERIA)
            msg = f"{criterion!r} is no criterion: choose from {', '.join(_CRITERIA)}{near}"
            raise SelectionError(msg)
        if value is not None:
            mask &= _CRITERIA[criterion](graph, value)
    return mask


def one_activity(graph: DependencyGraph, activity: int | Selection) -> int:
    """Return the number of an activity, which is given as this number or as a selection of the activity alone.

    Raises:
        SelectionError: there is no such activity, or the selection has another count, or is of another graph.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> one_activity(graph, 7), one_activity(graph, graph.select(kind="step")[0])
        (7, 162)
    """
    if isinstance(activity, Selection):
        _of_graph(graph, activity)
        if len(activity) != 1:
            msg = f"{activity!r}: give one activity, such as selection[0]"
            raise SelectionError(msg)
        return int(activity.activities[0])
    is_number = isinstance(activity, int | np.integer) and not isinstance(activity, bool)
    if not is_number or not 0 <= activity < len(graph.activities):
        count = len(graph.activities)
        msg = f"activity {shown(activity)}: {numbers_text(count)}; or give graph.select(…)[0]"
        raise SelectionError(msg)
    return int(activity)


def numbers_text(count: int) -> str:
    """Return which numbers activities of a graph have.

    Example:
        >>> numbers_text(3), numbers_text(0)
        ('this graph has activities 0 to 2', 'this graph has no activities: nothing was recorded')
    """
    return (
        f"this graph has activities 0 to {count - 1}" if count else "this graph has no activities: nothing was recorded"
    )


def named(names: Sequence[str], text: str) -> Mask:
    """Return which names equal a text or match it as a glob, as written or in their readable form.

    Example:
        >>> named(("aten::mm", "[memory]"), "aten::*").tolist(), named(("aten::mm", "[memory]"), "[memory]").tolist()
        ([True, False], [False, True])
    """
    if not isinstance(text, str):
        msg = f"{text!r}: give a name or a glob such as '*gemm*', or a selection"
        raise SelectionError(msg)
    exact = re.sub(r"\[([*?[])\]", r"\1", text)
    if literal_glob(exact) == text:  # patterns of thousands of long names, one each, would take minutes
        wanted = {text, exact}
        return names_that(lambda name: name in wanted or is_readable_as(name, wanted, exact), names)
    pattern = re.compile(fnmatch.translate(text))
    return _in_either_form(lambda name: name == text or pattern.match(name), names)


def _in_either_form(fits: Callable[[str], object], names: Sequence[str]) -> Mask:
    """Return a mask of the names for which a predicate is true, as written or in their readable form."""
    return names_that(lambda name: fits(name) or (is_mangled(name) and fits(readable_name(name))), names)


def _kind(graph: DependencyGraph, kind: str | Sequence[str]) -> Mask:
    words = {each.label: (each,) for each in ActivityKind} | _KIND_GROUPS
    wanted = list(kind) if isinstance(kind, Iterable) and not isinstance(kind, str) else [kind]
    unknown = [word for word in wanted if not isinstance(word, str) or word not in words]
    if unknown:
        near = nearest_words(str(unknown[0]), words)
        msg = f"kind {unknown[0]!r}: choose from {', '.join(sorted(words))}{near}"
        raise SelectionError(msg)
    return of_kinds(graph.activities.kind, [each for word in wanted for each in words[word]])


def named_activities(graph: DependencyGraph, which: str | Selection) -> Mask:
    """Return which activities have a name, match a glob of names, or are in a selection.

    Raises:
        SelectionError: the value is none of these, or the selection is of another graph.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo")
        >>> steps = graph.select(kind="step")
        >>> int(named_activities(graph, steps).sum()) == len(steps)
        True
    """
    if isinstance(which, Selection):
        return marked(_of_graph(graph, which).activities, len(graph.activities))
    return named(graph.names, which)[graph.activities.name]


def _of_graph(graph: DependencyGraph, selection: Selection) -> Selection:
    if selection.graph is not graph:
        msg = f"{selection!r} is of another graph: select from this one, such as graph.select(name=…)"
        raise SelectionError(msg)
    return selection


def _regex(graph: DependencyGraph, pattern: str) -> Mask:
    try:
        compiled = re.compile(pattern)
    except (re.error, TypeError) as error:
        msg = f"regex {pattern!r} is no regular expression ({error})"
        raise SelectionError(msg) from None
    return _in_either_form(compiled.search, graph.names)[graph.activities.name]


def _backward_of(graph: DependencyGraph, glob: str | Selection) -> Mask:
    forward = named_activities(graph, glob)
    return backward_of(graph, forward | graph.tree.inside(forward))


def _step_index(graph: DependencyGraph, position: IntSelector) -> Mask:
    steps, wanted = graph.steps, _several(position)
    absent = [number for number in wanted if not -len(steps) <= number < len(steps)]
    if absent:
        msg = f"step_index {absent[0]}: this graph has {len(steps)} steps; the first is 0, the last -1"
        raise NothingMeetsError(msg)
    return np.isin(graph.activities.step, [steps[number] for number in wanted])


def _stream(graph: DependencyGraph, stream: IntSelector) -> Mask:
    wanted = set(_several(stream))
    lanes = [i for i, lane in enumerate(graph.lanes) if lane.stream in wanted and lane.device >= 0]
    return np.isin(graph.activities.lane, lanes)


def _time(graph: DependencyGraph, window: tuple[float, float]) -> Mask:
    try:
        first, last = (float(moment) for moment in window)
    except (TypeError, ValueError):
        msg = f"time {window!r}: give (start_us, end_us), counted from the job's first activity"
        raise SelectionError(msg) from None
    if not first <= last:
        msg = f"time {window!r}: the start is after the end"
        raise SelectionError(msg)
    since = (graph.time - graph.origin_ns) / 1000
    return (since[0::2] >= first) & (since[1::2] <= last)


def _us(value: float, what: str) -> float:
    if not isinstance(value, int | float | np.number) or value != value:
        msg = f"{what} {value!r}: give a number of µs"
        raise SelectionError(msg)
    return float(value)


def _activity(graph: DependencyGraph, activity: IntSelector | Selection) -> Mask:
    if isinstance(activity, Selection):
        return named_activities(graph, activity)
    wanted, count = _several(activity), len(graph.activities)
    absent = [number for number in wanted if not 0 <= number < count]
    if absent:
        msg = f"activity {absent[0]}: {numbers_text(count)}"
        raise NothingMeetsError(msg)
    return marked(np.array(wanted, np.int64), count)


_CRITERIA: Final[dict[str, Callable[[DependencyGraph, Any], Mask]]] = {
    "kind": _kind,
    "category": lambda graph, glob: named(graph.names, glob)[graph.activities.category],
    "name": named_activities,
    "regex": _regex,
    "op": lambda graph, glob: inside(graph, named_activities(graph, glob)),
    "beside": lambda graph, glob: runs_beside(graph, named_activities(graph, glob)),
    "backward_of": _backward_of,
    "rank": lambda graph, rank: np.isin(graph.activities.rank, _known(rank, graph.ranks, "rank")),
    "stream": _stream,
    "step": lambda graph, step: np.isin(graph.activities.step, _known(step, graph.steps, "step")),
    "step_index": _step_index,
    "time": _time,
    "min_us": lambda graph, least: graph.activities.duration / 1000 >= _us(least, "min_us"),
    "max_us": lambda graph, most: graph.activities.duration / 1000 <= _us(most, "max_us"),
    "depth": lambda graph, depth: np.isin(graph.tree.depth, _several(depth)),
    "activity": _activity,
}
"""Keyword of `DependencyGraph.select` → which activities meet it."""


def _several(value: IntSelector | Selection) -> list[int]:
    if isinstance(value, Selection):
        msg = f"{value!r}: ranks, streams and steps are whole numbers; a selection is given as activity=, name= or op="
        raise SelectionError(msg)
    numbers = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    wrong = [number for number in numbers if not isinstance(number, int | np.integer)]
    if wrong:
        msg = f"{wrong[0]!r}: ranks, streams and steps are whole numbers"
        raise SelectionError(msg)
    return [int(number) for number in numbers if number is not None]


def _known(value: IntSelector, known: tuple[int, ...], what: str) -> list[int]:
    wanted = _several(value)
    absent = [number for number in wanted if number not in known]
    if absent:
        shown = ", ".join(map(str, known[:_SHOWN_NUMBERS])) or "none"
        more = f" and {len(known) - _SHOWN_NUMBERS} more" if len(known) > _SHOWN_NUMBERS else ""
        msg = f"{what} {absent[0]} is not in this graph; its {what}s: {shown}{more}"
        raise NothingMeetsError(msg)
    return wanted


def backward_of(graph: DependencyGraph, forward: Mask) -> Mask:
    """Return which activities belong to the backward pass of some forward activities.

    Those are the backward operators that autograd recorded for them, the engine's operator around each, and all that is
    inside. The sums of parameters' gradients (``AccumulateGrad``) belong to the backward operator before them: the
    engine runs these sums before anything else, so as soon as a backward operator has made their gradients.

    Example:
        >>> import htagraph as hg
        >>> graph = hg.load("data/demo", ranks=[0])
        >>> forward = np.isin(graph.activities.name, graph.names.index("aten::addmm"))
        >>> rows = np.flatnonzero(backward_of(graph, forward))
        >>> "AddmmBackward0" in {graph.names[name] for name in graph.activities.name[rows]}
        True
    """
    edges, parent = graph.edges, graph.tree.parent
    rows = np.flatnonzero((edges.kind == EdgeKind.AUTOGRAD) & forward[edges.source >> 1])
    first = edges.target[rows] >> 1
    engine = np.append(names_that(is_backward, graph.names)[graph.activities.name], False)
    roots = marked(first, len(parent))
    around = parent[first]
    roots[around[engine[around]]] = True
    sums = names_that(is_gradient_ready, graph.names)[graph.activities.name] & engine[:-1]
    if sums.any():
        nodes = np.flatnonzero(engine[:-1] & ~graph.tree.inside(engine[:-1]))
        nodes = nodes[np.lexsort((graph.activities.start[nodes], graph.activities.lane[nodes]))]
        of_lane = np.diff(graph.activities.lane[nodes], prepend=-1) != 0
        maker = np.maximum.accumulate(np.where(of_lane | ~sums[nodes], np.arange(len(nodes)), 0))
        roots[nodes] |= sums[nodes] & roots[nodes[maker]]
    return roots | graph.tree.inside(roots)


def placed(graph: DependencyGraph, among: Array, occurrence: tuple[str, int], place: Position, *, device: bool) -> Mask:
    """Return which activities run at a place relative to an occurrence of an operator; see `Selection.under`.

    The occurrence is a name or glob, and a position on each rank, by start, in those of `among`. With `device`, device
    work counts as its launch does; else it counts only if the operator is device work.

    Raises:
        SelectionError: no rank has an occurrence at that position.
    """
    acts = graph.activities
    mask = np.zeros(len(acts), np.bool_)
    for row in _occurrences(graph, among, *occurrence):
        of_rank = acts.of_rank(int(acts.rank[row]))
        if place == "under":
            fits = (acts.start[of_rank] >= acts.start[row]) & (acts.end[of_rank] <= acts.end[row])
        elif place == "before":
            fits = acts.end[of_rank] <= acts.start[row]
        else:
            fits = acts.start[of_rank] >= acts.end[row]
        same = acts.lane[of_rank] == acts.lane[row] if acts.on_device[row] else ~acts.on_device[of_rank]
        mask[of_rank] |= fits & same
    if device:
        launched = np.flatnonzero(acts.on_device & (acts.cause >= 0))
        mask[launched] |= mask[acts.cause[launched]]
    return mask


def _occurrences(graph: DependencyGraph, among: Array, op: str, position: int) -> list[int]:
    """Return the activity of a name at a position on each rank that has so many."""
    if not isinstance(position, int | np.integer) or isinstance(position, bool):
        msg = f"position {position!r}: give a whole number, 0 for the first, -1 for the last"
        raise SelectionError(msg)
    acts = graph.activities
    matches = np.array([name == op for name in graph.names], np.bool_)
    if not matches.any():
        matches = named(graph.names, op)
    added = np.isin(acts.kind[among], ADDED)  # named after what they belong to
    rows = among[matches[acts.name[among]] & ~added]
    rows = rows[np.lexsort((acts.start[rows], acts.rank[rows]))]
    by_rank = np.split(rows, np.flatnonzero(np.diff(acts.rank[rows])) + 1) if len(rows) else []
    occurrences = [int(of_rank[position]) for of_rank in by_rank if -len(of_rank) <= position < len(of_rank)]
    if not occurrences:
        most = max(map(len, by_rank), default=0)
        near = "" if most else nearest_words(op, {graph.names[name] for name in acts.name[among]})
        msg = f"{op!r} at position {position}: no rank has so many here; the most is {most}{near}"
        raise SelectionError(msg)
    return occurrences


def columns_of(graph: DependencyGraph, rows: Array, *names: str) -> dict[str, Any]:
    """Return columns of activities by name: those of `Selection.to_frame`, and ``device`` (-1 on host threads)."""
    return {name: _COLUMNS[name](graph, rows) for name in names}


def _of_lane(graph: DependencyGraph, rows: Array, what: str) -> Ints:
    numbers = np.array([getattr(each, what) for each in (*graph.lanes, BETWEEN)], np.int64)
    return numbers[graph.activities.lane[rows]]


def _lane_labels(graph: DependencyGraph, rows: Array) -> ExtensionArray:
    labels, lane = [each.label for each in (*graph.lanes, BETWEEN)], graph.activities.lane[rows]
    return texts_of(labels, np.where(lane >= 0, lane, len(graph.lanes)))


_COLUMNS: dict[str, Callable[[DependencyGraph, Array], Any]] = {
    "rank": lambda graph, rows: graph.activities.rank[rows],
    "kind": lambda graph, rows: texts_of([kind.label for kind in ActivityKind], graph.activities.kind[rows]),
    "name": lambda graph, rows: texts_of(graph.names, graph.activities.name[rows]),
    "lane": _lane_labels,
    "device": lambda graph, rows: _of_lane(graph, rows, "device"),
    "stream": lambda graph, rows: _of_lane(graph, rows, "stream"),
    "step": lambda graph, rows: graph.activities.step[rows],
    "start_us": lambda graph, rows: (graph.time[2 * rows] - graph.origin_ns) / 1000,
    "duration_us": lambda graph, rows: graph.activities.duration[rows] / 1000,
    "parent": lambda graph, rows: graph.activities.parent[rows],
    "cause": lambda graph, rows: graph.activities.cause[rows],
    "correlation": lambda graph, rows: graph.activities.arg("correlation")[rows],
}
"""What each column says of the activities of some rows, by its name."""
