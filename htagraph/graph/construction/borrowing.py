"""Kernels of replayed CUDA graphs get the operators, modules and annotations that a capture's recording has for them.

A launch of a CUDA graph is one call: what it starts has no operators of its own. The frames around the same kernel in a
capture are added to the rank as activities that take no time: the outermost ones are inside the launch, and a kernel's
`parent` is the innermost one. So `graph.tree` has them, and with it everything that asks what encloses a kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from htagraph.core.alignment import partners
from htagraph.core.arrays import Array, Ints, joined, run_starts
from htagraph.core.errors import Issue
from htagraph.core.kinds import ActivityKind
from htagraph.core.naming import BORROWED_CATEGORIES, NODE_ANNOTATIONS, is_module_frame
from htagraph.graph.activities import Activities, replayed
from htagraph.graph.construction.activities import RankPart
from htagraph.graph.construction.captured import Capture, Frame, Label, Look, looks_of, shared, work_kinds
from htagraph.graph.tolerances import Confidence
from htagraph.trace.columns import SparseColumn
from htagraph.trace.readers import reader_of

__all__ = ["borrow"]


class _Replays(NamedTuple):
    """The launches of one CUDA graph: those whose kernels look alike, stream by stream."""

    work: Ints
    """Activities: a row per launch, a column per kernel or copy in the order of capture, as far as it is known."""
    lane: Ints
    """The stream of each column."""
    looks: list[Look]
    in_order: bool
    """Whether ids of nodes tell the order of capture."""


class _Matched(NamedTuple):
    """What is known of the kernels of one CUDA graph."""

    capture: Capture | None
    labels: list[Label]
    """Per kernel; empty where it is not known."""
    percent: int
    """How sure the labels are."""


@dataclass
class _Loan:
    """Columns of the frames that are added to a rank, and of the kernels inside them."""

    names: dict[str, int]
    columns: dict[str, list[Array]] = field(default_factory=dict)
    owner: list[tuple[Array, Array, Array]] = field(default_factory=list)
    """(kernels, the frame around each, percent)."""
    count: int = 0

    def add(self, **columns: Array) -> None:
        """Add rows."""
        for name, column in columns.items():
            self.columns.setdefault(name, []).append(column)


def borrow(part: RankPart, captures: Sequence[Capture]) -> RankPart:
    """Return a rank whose replayed kernels are inside the frames that captures have for them.

    What looks like nothing in any capture, or like kernels of which the captures say different things, stays as it is;
    an issue counts it.
    """
    noted = _has_annotations(part)
    graphs = _graphs(part) if captures or noted else []
    if not graphs:
        return part
    loan = _Loan({name: number for number, name in enumerate(part.names)})
    codes = _codes([each.looks for each in graphs] + [capture.looks for capture in captures])
    texts = [np.array(text, np.int64) for text in codes[len(graphs) :]]
    for graph, code in zip(graphs, codes, strict=False):
        named = _named(part, graph, np.array(code, np.int64), list(zip(captures, texts, strict=True)))
        named = named or _by_calls(graph, graphs, captures)
        named = _annotated(part, graph, named) if noted else named
        if named is not None and any(named.labels):
            _lend(part, graph, named, loan)
    part = _with(part, loan) if loan.count else part
    return replace(part, issues=part.issues + tuple(_unnamed(part, graphs, captures))) if captures else part


def _graphs(part: RankPart) -> list[_Replays]:
    """Return the launches of each CUDA graph of a rank."""
    acts = part.activities
    rows = np.flatnonzero(replayed(acts, part.names))
    node = acts.arg("graph_node_id")[rows]
    known = bool((node > 0).all())
    lane = np.zeros(len(rows), np.int64) if known else acts.lane[rows].astype(np.int64)
    order = np.lexsort((node if known else acts.start[rows], lane, acts.cause[rows]))
    rows, lane = rows[order], lane[order]
    looks = looks_of(acts, part.names, part.rest, rows)
    code = np.array(_codes([looks])[0], np.int64)
    alike: dict[bytes, list[Array]] = {}
    for at in np.split(np.arange(len(rows)), run_starts(acts.cause[rows])[1:]) if len(rows) else ():
        alike.setdefault(code[at].tobytes() + lane[at].tobytes(), []).append(at)
    graphs = []
    for launches in alike.values():
        at = np.stack(launches)
        if not known:  # of several streams: in the order of the first launch
            at = at[:, np.argsort(acts.start[rows[at[0]]], kind="stable")]
        graphs.append(_Replays(rows[at], lane[at[0]], [looks[i] for i in at[0].tolist()], known))
    return graphs


def _codes(sequences: Sequence[Sequence[Look]]) -> list[list[int]]:
    """Return numbers for looks; where a sequence lacks grids or sizes altogether, they count in none."""
    kernels = [[look for look in looks if look[1] != b""] for looks in sequences]
    grid, size = (not any(looks and all(look[at] is None for look in looks) for looks in kernels) for at in (1, 2))
    numbers: dict[Look, int] = {}

    def code(look: Look) -> int:
        text, of_grid, of_size = look
        known = text, of_grid if grid else None, of_size if size or of_grid == b"" else None
        return numbers.setdefault(known, len(numbers))

    return [[code(look) for look in looks] for looks in sequences]


def _named(part: RankPart, graph: _Replays, code: Array, texts: Sequence[tuple[Capture, Array]]) -> _Matched | None:
    """Return what captures say of a CUDA graph's kernels: those of the same rank, else those of others."""
    for own in (True, False):
        found = [
            (capture, partners(code, graph.lane, text, capture.lanes * (not graph.in_order)))
            for capture, text in texts
            if (capture.rank == part.rest.rank) == own
        ]
        best = max((each.share for _, each in found), default=0.0)
        good = [(capture, each) for capture, each in found if len(each.item) and each.share == best]
        if good:
            options = [_options(capture, each.item, each.partner, len(code)) for capture, each in good]
            labels = [_agreed([*chain(*each)]) if all(each) else () for each in zip(*options, strict=True)]
            around = _around(part, int(part.activities.cause[graph.work[0, 0]]))
            percent = Confidence.SURE if best == 1.0 else Confidence.SEEN
            return _Matched(good[0][0], _without_surroundings(labels, around), int(percent))
    return None


def _by_calls(graph: _Replays, graphs: Sequence[_Replays], captures: Sequence[Capture]) -> _Matched | None:
    """Return what the calls of a capture say, which name no kernels: their number, kinds and order must agree.

    Two graphs with such kernels could both be the captured one; then neither is.
    """
    kinds = work_kinds(look[0] for look in graph.looks)
    alike = sum(kinds == work_kinds(look[0] for look in each.looks) for each in graphs)
    if alike > 1 or len(set(graph.lane.tolist())) > 1:
        return None
    good = [
        (capture, [capture.label(row) for row in calls.tolist()])
        for capture in captures
        for calls in capture.calls
        if work_kinds(capture.graph.names[name] for name in capture.graph.activities.name[calls].tolist()) == kinds
    ]
    if not good:
        return None
    labels = [_agreed(each) for each in zip(*(each for _, each in good), strict=True)]
    return _Matched(good[0][0], labels, Confidence.LIKELY)


def _has_annotations(part: RankPart) -> bool:
    """Return whether nodes of CUDA graphs have annotations, as far as the first launch shows, which is soon read."""
    acts = part.activities
    rows = np.flatnonzero((acts.arg("graph_node_id") > 0) & (acts.cause >= 0))
    if not len(rows):
        return False
    return any(_notes(part, rows[acts.cause[rows] == acts.cause[rows[0]]]))


def _notes(part: RankPart, rows: Array) -> list[str]:
    """Return what the file says of each node of a CUDA graph; empty where it says nothing."""
    events = part.activities.event[rows]
    found = reader_of(part.rest).arguments(part.rest.unchanged_path(), NODE_ANNOTATIONS, events, as_text=False)
    return [next((str(text) for text in each if text), "") for each in zip(*found.values(), strict=True)]


def _annotated(part: RankPart, graph: _Replays, named: _Matched | None) -> _Matched | None:
    """Return what is known, with what the file says of the nodes of the graph around it."""
    texts = _notes(part, graph.work[0])
    labels = named.labels if named else [()] * len(texts)
    notes = [(Frame(-1, ActivityKind.ANNOTATION, text),) if text else () for text in texts]
    both = [note + label for note, label in zip(notes, labels, strict=True)]
    return _Matched(named.capture if named else None, both, named.percent if named else Confidence.PROVEN)


def _options(capture: Capture, item: Array, partner: Array, count: int) -> list[list[Label]]:
    """Return the labels that each kernel may have; the first one's kernels follow each other as in the capture."""
    first, last = np.searchsorted(item, [np.arange(count), np.arange(1, count + 1)])
    out, latest = list[list[Label]](), -1
    for begin, end in zip(first.tolist(), last.tolist(), strict=True):
        may_be = partner[begin:end]
        at = int(np.searchsorted(may_be, latest, side="right")) if len(may_be) else 0
        latest = int(may_be[at % len(may_be)]) if len(may_be) else latest
        rows = capture.work[np.append(latest, may_be)].tolist() if len(may_be) else ()
        out.append([capture.label(row) for row in rows])
    return out


def _agreed(labels: Sequence[Label]) -> Label:
    """Return what all of some labels say."""
    return shared({id(label): label for label in labels}.values())


def _around(part: RankPart, launch: int) -> frozenset[tuple[int, str]]:
    """Return what is around a launch on its thread."""
    acts, found = part.activities, []
    while launch >= 0:
        found.append((int(acts.kind[launch]), part.names[acts.name[launch]]))
        launch = int(acts.parent[launch])
    return frozenset(found)


def _without_surroundings(labels: list[Label], around: frozenset[tuple[int, str]]) -> list[Label]:
    """Return the labels without what was around the whole graph in the capture, and says no more of the kernels.

    That is what is around the launch of the replay as well; and annotations and Python functions other than modules,
    which say when the capture ran, as those around the launch say when the replay does.
    """
    known = [label for label in labels if label]
    count = Counter(frame.row for label in known for frame in label)

    def stays(frame: Frame) -> bool:
        region = not frame.is_operator and not is_module_frame(frame.name)
        return count[frame.row] < len(known) or not (region or frame.alike in around)

    return [tuple(frame for frame in label if stays(frame)) for label in labels]


def _lend(part: RankPart, graph: _Replays, named: _Matched, loan: _Loan) -> None:
    """Add the frames of one CUDA graph, for each of its launches."""
    nodes: dict[tuple[Frame, int], int] = {}
    frames: list[tuple[Frame, int, int]] = []  # (frame, the one around it or -1, how far back its module is or 0)

    def inside(label: Label, above: int = -1) -> int:
        for frame in label:
            if (frame, above) not in nodes:
                module = inside(frame.modules) if frame.modules else len(frames)
                nodes[frame, above] = len(frames)
                frames.append((frame, above, len(frames) - module))
            above = nodes[frame, above]
        return above

    owner = np.array([inside(label) for label in named.labels], np.int64)
    acts, capture = part.activities, named.capture
    launch = acts.cause[graph.work[:, 0]]
    size, base = len(frames), len(acts) + loan.count
    begin = base + size * np.arange(len(launch))
    rows = np.array([frame.row for frame, _, _ in frames], np.int64)
    above = np.array([each for _, each, _ in frames], np.int64)
    event = np.full(size, -1, np.int64)
    if capture is not None:
        known = [frame.row >= 0 and not (frame.is_operator and frame.shapes is None) for frame, _, _ in frames]
        event[known] = capture.graph.activities.event[rows[known]] | np.int64(capture.number) << 32
    texts = [loan.names.setdefault(text, len(loan.names)) for frame, _, _ in frames for text in (
        frame.name, BORROWED_CATEGORIES[frame.sort]
    )]  # fmt: skip

    once = {
        "kind": [frame.kind for frame, _, _ in frames], "event": event, "name": texts[::2], "category": texts[1::2],
        "forward": [back for _, _, back in frames],
    }  # fmt: skip
    each_time = {name: np.tile(np.array(column, np.int64), len(launch)) for name, column in once.items()}
    parent = np.where(above >= 0, begin[:, None] + above, launch[:, None]).ravel()
    loan.add(**each_time, launch=np.repeat(launch, size), parent=parent)
    some = owner >= 0
    work = graph.work[:, some].ravel()
    percent = np.full(len(work), named.percent, np.int64)
    loan.owner.append((work, (begin[:, None] + owner[some]).ravel(), percent))
    loan.count += size * len(launch)


def _with(part: RankPart, loan: _Loan) -> RankPart:
    """Return the rank with the frames that were lent, and its kernels inside them."""
    acts, columns = part.activities, {name: np.concatenate(parts) for name, parts in loan.columns.items()}
    launch = columns["launch"]
    rows = np.arange(len(acts), len(acts) + loan.count, dtype=np.int32)
    longer = acts.followed_by(
        rank=acts.rank[launch], kind=columns["kind"], name=columns["name"], category=columns["category"],
        lane=acts.lane[launch], start=acts.start[launch], step=acts.step[launch], parent=columns["parent"],
    )  # fmt: skip
    work, owner, percent = joined(loan.owner, 3)
    parent = longer.parent.copy()
    parent[work] = owner
    args = dict(longer.args) | {
        "captured_event": SparseColumn(rows, columns["event"], -1),
        "borrowed_forward": SparseColumn(rows, columns["forward"], -1),
        "borrowed_percent": SparseColumn(work.astype(np.int32), percent, -1),
    }
    activities: Activities = replace(longer, parent=parent, args=args)
    return replace(part, activities=activities, names=tuple(loan.names))


def _unnamed(part: RankPart, graphs: Sequence[_Replays], captures: Sequence[Capture]) -> Iterator[Issue]:
    """Yield an issue if kernels of CUDA graphs have no operator."""
    acts = part.activities
    work = np.concatenate([graph.work.ravel() for graph in graphs])
    without = work[acts.parent[work] < 0]
    if len(without):
        took, lacks = int(acts.duration[work].sum()), int(acts.duration[without].sum())
        share = 100 * lacks / max(took, 1)
        files = ", ".join(dict.fromkeys(capture.trace.path.name for capture in captures)) or "none"
        detail = (
            f"of {len(work):,} kernels and copies of replayed CUDA graphs, {len(without):,} ({share:.1f} % of their "
            f"time) have no operator: nothing in the captures ({files}) looks like them, or their order does not tell "
            "which; record the warm-up of these graphs too, with the same shapes"
        )
        yield Issue(str(part.rest.path), "replay_unnamed", detail, len(without), part.rest.rank)
