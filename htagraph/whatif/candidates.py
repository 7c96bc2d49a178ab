"""What could be improved: kernels, calls, operators, functions, ranks, process groups and phases; time and gain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.arrays import Array, Ints, Mask, distinct, marked, stable_order, sums_by
from htagraph.core.errors import SelectionError
from htagraph.core.kinds import (
    BETWEEN,
    BLOCKING,
    COMMUNICATION,
    HOST_GAPS,
    LAUNCHES,
    TRANSFERS,
    ActivityKind,
    EdgeKind,
    GapKind,
    of_kinds,
)
from htagraph.core.naming import BETWEEN_OPERATORS, exact_glob
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import only_waiting
from htagraph.graph.measures.steps import gain_steps, last_end, usual_step_ns
from htagraph.queries.change_scope import UNTRACED, asked_at
from htagraph.queries.interruptions import interruption_time
from htagraph.queries.replay import predict
from htagraph.queries.weights import OwnTime, State, end_spread, of_kind, own_time, taken_away, with_factor
from htagraph.whatif.links import assumed, time_from_sharing
from htagraph.whatif.time_taken import most_per_usual_steps

if TYPE_CHECKING:
    from htagraph.core.runs import Runs

__all__ = ["CLASSES", "INTERRUPTIONS", "Baseline", "Candidate", "What", "candidates", "target_of", "time_of"]

_RUNTIME = (ActivityKind.RECORD, ActivityKind.WAIT, ActivityKind.RUNTIME)
_HOST = {"kind": "host"}
CLASSES = ("all host work", "all transfers between ranks", "other runtime calls")
"""Names of candidates that stand for a whole class of work: they say how much there is to gain, not what to change."""
INTERRUPTIONS = "interruptions of host code"
"""Name of the candidate that stands for what something outside of the code took."""
_NOTES = {
    "kernel": "",
    "call": "the calls' own time",
    "operator": "all inside it, and all that it launches",
    "function": "the function's own code, not what it calls",
    "rank": "its own work, and its data loader's where it waits for the workers; others then wait less for it",
    "group": "transfers only; waiting for a late rank counts for what makes it late",
    "host": "operators, calls and the Python between them; waits and transfers between ranks are replayed",
    BETWEEN_OPERATORS: "host time that no event covers",
    INTERRUPTIONS: "what host code took beyond its usual time; to predict it: --no-interruptions",
    "launching": "the calls and the latency until their work starts; to predict it: --no-launch-overhead",
}


What: TypeAlias = Literal["kernel", "call", "operator", "function", "rank", "group", "phase", "straggler"]
"""The kind of thing that could be improved, and that has a name."""


@dataclass(frozen=True)
class Candidate:
    """Something that could be improved."""

    what: What
    """The kind of thing that has its name."""
    name: str
    bound: int
    """Its time on the critical path, ns. No gain is larger, but for `Baseline.shared`."""
    criteria: Mapping[str, Any] | None
    """What selects it for `Scenario.scale`; None where nothing selects exactly this."""
    note: str
    """What its time includes; empty where the name says it."""
    special: Callable[[State], OwnTime] | None = None
    """Returns its lags and gaps where criteria may not select them."""


def candidates(baseline: Baseline) -> Iterator[Candidate]:
    """Yield everything with time on the critical path; nothing else can gain."""
    graph, shares = baseline.state.graph, baseline.shares
    acts = graph.activities
    owned = shares[shares["owner"] >= 0]
    kind = acts.kind[owned["owner"]]
    yield from _by_name(graph, owned[of_kinds(kind, (ActivityKind.COMPUTATION, ActivityKind.MEMORY))], "kernel")
    yield from _by_name(graph, owned[kind == ActivityKind.RUNTIME], "call")
    yield from _by_name(graph, owned[kind == ActivityKind.PYTHON], "function")
    yield from _operators(graph, owned)
    yield from _groups(graph, owned[of_kinds(kind, COMMUNICATION)])
    rows = shares[(shares["owner"] < 0) | (acts.kind[shares["owner"]] != ActivityKind.COMMUNICATION)]
    several = len(graph.ranks) > 1  # a single rank has all the time
    for rank, ns in _positive_sums(rows["rank"], rows["ns"]) if several else ():
        own = {"rank": int(rank), "kind": ["host", "computation", "memory"]}
        yield Candidate("rank", f"rank {rank}", ns, own, _NOTES["rank"], partial(_rank_time, criteria=own))
    yield from _phases(graph, shares)
    for name, criteria, time in _SPECIAL:
        bound = baseline.on_path(time(baseline.state))
        if bound > 0:
            yield Candidate("phase", name, bound, criteria, _NOTES[name], time)


def _positive_sums(key: Array, ns: npt.ArrayLike) -> list[tuple[int, int]]:
    """Return (key, sum of its ns) in the order of the keys, for sums above 0."""
    keys, sums = sums_by(np.asarray(key), np.asarray(ns))
    return list(zip(keys[sums > 0].tolist(), sums[sums > 0].tolist(), strict=True))


def _by_name(graph: DependencyGraph, owned: pd.DataFrame, what: What) -> Iterator[Candidate]:
    acts, names = graph.activities, len(graph.names)
    owner = owned["owner"].to_numpy()
    for code, ns in _positive_sums(acts.kind[owner].astype(np.int64) * names + acts.name[owner], owned["ns"]):
        kind, name = divmod(code, names)
        criteria = {"kind": ActivityKind(kind).label, "name": exact_glob(graph.names[name])}
        special = partial(_self_time, name=int(name)) if what == "function" else None
        yield Candidate(what, graph.names[name], ns, criteria, _NOTES[what], special)


def _operators(graph: DependencyGraph, owned: pd.DataFrame) -> Iterator[Candidate]:
    """Yield operators and annotations by what lies inside them or was launched there."""
    names = len(graph.names)
    loaders = set(distinct(graph.activities.name[graph.edges.activity[of_kind(graph, EdgeKind.DATALOADER)]], names))
    for code, ns in _positive_sums(*_time_inside(graph, owned)):
        is_op, name = divmod(code, names)
        text = graph.names[name]
        criteria = {"op": exact_glob(text)}
        if name in loaders:
            yield Candidate("phase", "data loading", ns, criteria, f"all inside {text}")
        else:
            yield Candidate("operator" if is_op else "phase", text, ns, criteria, _NOTES["operator"])


def _time_inside(graph: DependencyGraph, owned: pd.DataFrame) -> tuple[Array, Array]:
    """Return (name, plus the number of names for operators; the time inside, ns) of operators and annotations.

    A recursive operator contains what is inside it once: only what lies in no other of its name counts.
    """
    acts, tree = graph.activities, graph.tree
    time = np.zeros(len(acts) + 1, np.int64)
    owner = owned["owner"].to_numpy()
    asked = asked_at(graph, owner)  # communication on host threads counts for the operator that asked for it
    owner = np.where(asked >= 0, graph.edges.source[asked] >> 1, owner)
    np.add.at(time[1:], tree.first[owner], owned["ns"])
    until = np.cumsum(time)
    inside = until[tree.stop] - until[tree.first]
    is_op = acts.kind == ActivityKind.OP
    rows = np.flatnonzero((is_op | (acts.kind == ActivityKind.ANNOTATION)) & (inside > 0))
    code = is_op[rows] * np.int64(len(graph.names)) + acts.name[rows]
    order = np.lexsort((tree.first[rows], code))
    apart = code[order] * np.int64(len(acts) + 1)  # the activities of each name lie behind those of the one before
    first, stop = tree.first[rows[order]] + apart, tree.stop[rows[order]] + apart
    outermost = np.ones(len(rows), np.bool_)
    outermost[1:] = np.maximum.accumulate(stop)[:-1] <= first[1:]
    return code[order][outermost], inside[rows[order]][outermost]


def _groups(graph: DependencyGraph, owned: pd.DataFrame) -> Iterator[Candidate]:
    """Yield process groups; communication of unknown groups by its kernels' names; and all transfers."""
    acts, matches = graph.activities, graph.matches
    label = np.full(len(acts), -1, np.int64)
    known: dict[str, int] = {}
    if matches is not None and matches.count:
        numbers = np.array([known.setdefault(group, len(known)) for group in matches.group], np.int64)
        label[matches.activity] = numbers[matches.collective]
    group_of = label[owned["owner"]]
    texts = list(known)
    by_group = stable_order(label + 1)
    first_of = np.searchsorted(label[by_group], np.arange(len(known) + 1))
    roles = _CommunicationRoles.of(graph)
    for number, ns in _positive_sums(group_of[group_of >= 0], owned["ns"][group_of >= 0]):
        members = by_group[first_of[number] : first_of[number + 1]]
        criteria = _exact_criteria(graph, roles, members)
        note = _NOTES["group"] if criteria else f"{_NOTES['group']}; no criteria select exactly this group"
        away = partial(_away, criteria=criteria) if criteria else partial(_transfers, members=members)
        yield Candidate("group", texts[number], ns, criteria, note, away)
    alone = owned[group_of < 0]
    for name, ns in _positive_sums(acts.name[alone["owner"]], alone["ns"]):
        criteria = {"kind": [kind.label for kind in COMMUNICATION], "name": exact_glob(graph.names[name])}
        note = "partners unknown: time beyond the shortest of its size counts as waiting"
        yield Candidate("group", graph.names[name], ns, criteria, note)
    if owned["ns"].sum() > 0:
        kinds = [ActivityKind(kind).label for kind in np.unique(acts.kind[owned["owner"]])]
        away = partial(_away, criteria={"kind": kinds})
        yield Candidate("phase", CLASSES[1], int(owned["ns"].sum()), {"kind": kinds}, _NOTES["group"], away)


@dataclass(frozen=True, eq=False)
class _CommunicationRoles:
    """The distinct (kind, stream, name) of all communication, and how many activities have each."""

    kind: Array
    stream: Array
    name: Array
    count: Array

    @staticmethod
    def of(graph: DependencyGraph) -> _CommunicationRoles:
        """Return the roles of all activities of a job that communicate."""
        acts = graph.activities
        talks = np.flatnonzero(of_kinds(acts.kind, COMMUNICATION))
        stream = np.array([lane.stream for lane in graph.lanes] or [-1], np.int64)[acts.lane[talks]]
        columns = np.column_stack([acts.kind[talks], stream, acts.name[talks]])
        roles, count = np.unique(columns, axis=0, return_counts=True)
        return _CommunicationRoles(roles[:, 0], roles[:, 1], roles[:, 2], count)

    def selected(self, kinds: Array, streams: list[int], names: Array) -> int:
        """Return how many activities criteria select; no streams, or no names, stand for all of these."""
        chosen = np.isin(self.kind, kinds)
        if streams:
            chosen &= np.isin(self.stream, streams)
        if len(names):
            chosen &= np.isin(self.name, names)
        return int(self.count[chosen].sum())


def _exact_criteria(graph: DependencyGraph, roles: _CommunicationRoles, members: Array) -> dict[str, Any] | None:
    """Return criteria that select these communications and no other, if there are any as simple as that.

    The criteria hold for all members, so they select nothing else if they select as many activities as there are
    members: counts of roles tell, without a selection among all activities for each group.
    """
    acts = graph.activities
    kinds = np.unique(acts.kind[members])
    streams = sorted({graph.lanes[lane].stream for lane in np.unique(acts.lane[members]).tolist()})
    streams = streams if streams[0] >= 0 else []
    names = np.unique(acts.name[members])
    names = names if len(names) == 1 else names[:0]
    for chosen_streams, chosen_names in (([], names[:0]), (streams, names[:0]), ([], names), (streams, names)):
        if roles.selected(kinds, chosen_streams, chosen_names) == len(members):
            criteria: dict[str, Any] = {"kind": [ActivityKind(kind).label for kind in kinds]}
            if chosen_streams:
                criteria["stream"] = chosen_streams
            if len(chosen_names):
                criteria["name"] = exact_glob(graph.names[chosen_names[0]])
            return criteria
    return None


def _phases(graph: DependencyGraph, shares: pd.DataFrame) -> Iterator[Candidate]:
    acts = graph.activities
    kind = np.where(shares["owner"] >= 0, acts.kind[shares["owner"]], -1)
    gap, ns = shares["gap"].to_numpy(), shares["ns"].to_numpy()
    host = gap | ((kind >= 0) & (kind < ActivityKind.COMPUTATION) & (kind != ActivityKind.HOST_COMMUNICATION))
    if ns[host].sum() > 0:
        talks = bool((acts.kind == ActivityKind.HOST_COMMUNICATION).any())
        yield Candidate("phase", CLASSES[0], int(ns[host].sum()), None if talks else _HOST, _NOTES["host"], _host_time)
    for name, chosen, criteria, note in (
        ("launch calls", kind == ActivityKind.LAUNCH, {"kind": "launch"}, "the calls themselves, not the operators"),
        ("synchronizing calls", kind == ActivityKind.SYNC, {"kind": "sync"}, "their own cost, not what they wait for"),
        (CLASSES[2], of_kinds(kind, _RUNTIME), {"kind": [each.label for each in _RUNTIME]}, ""),
    ):  # fmt: skip
        if ns[chosen].sum() > 0:
            yield Candidate("phase", name, int(ns[chosen].sum()), criteria, note)


def _lags(rows: Array) -> OwnTime:
    return OwnTime(rows, np.zeros(len(rows), np.int64), np.zeros(0, np.int64))


def _untraced_time(state: State) -> OwnTime:
    try:
        return own_time(state, {"kind": UNTRACED})
    except SelectionError:  # there is none
        return _lags(np.zeros(0, np.int64))


def _launch_time(state: State) -> OwnTime:
    graph, edges = state.graph, state.graph.edges
    calls = np.append(graph.activities.kind == ActivityKind.LAUNCH, [False])
    own = of_kind(graph, EdgeKind.BODY) & calls[edges.activity]
    return _lags(np.flatnonzero(own | (of_kind(graph, *LAUNCHES) & calls[edges.source >> 1])))


_SPECIAL: tuple[tuple[str, dict[str, str] | None, Callable[[State], OwnTime]], ...] = (
    ("launching", None, _launch_time),
    (BETWEEN_OPERATORS, {"kind": UNTRACED}, _untraced_time),
    (INTERRUPTIONS, None, lambda state: interruption_time(state.graph)),
)
"""Phases that are no selection of activities: name, what nearly selects them, and their time."""


def _rank_time(state: State, criteria: dict[str, Any]) -> OwnTime:
    """Return the own time of a rank: its work, and the time of its waits for something outside of the recording."""
    graph = state.graph
    waits = of_kind(graph, EdgeKind.OUTSIDE)
    limits = bool((graph.activities.rank[graph.edges.target[waits] >> 1] == criteria["rank"]).any())
    return own_time(state, criteria, loader=limits)


def _self_time(state: State, name: int) -> OwnTime:
    acts, edges = state.graph.activities, state.graph.edges
    chosen = np.append((acts.kind == ActivityKind.PYTHON) & (acts.name == name), [False])
    return _lags(np.flatnonzero(chosen[edges.activity] & of_kind(state.graph, EdgeKind.BODY)))


def _host_time(state: State) -> OwnTime:
    """Return the time of the host without communication on its threads, and what streams waited for interrupted calls.

    So no part of it gains more than all of it.
    """
    time = own_time(state, _HOST)
    kind = np.append(state.graph.activities.kind, [-1])
    own = kind[state.graph.edges.activity[time.edges]] != ActivityKind.HOST_COMMUNICATION
    held = interruption_time(state.graph)
    more = ~np.isin(held.edges, time.edges[own])
    return OwnTime(
        np.concatenate((time.edges[own], held.edges[more])), np.concatenate((time.fixed[own], held.fixed[more])),
        distinct(np.concatenate((time.gaps, held.gaps)), state.graph.vertex_count),
    )  # fmt: skip


def _away(state: State, criteria: dict[str, Any]) -> OwnTime:
    """Return all of some communication but waiting for late ranks."""
    return taken_away(state, own_time(state, criteria))


def _transfers(state: State, members: Array) -> OwnTime:
    is_member, edges = marked(members, len(state.graph.activities) + 1), state.graph.edges
    rows = np.flatnonzero(of_kinds(edges.kind, TRANSFERS) & is_member[edges.activity])
    return OwnTime(rows, end_spread(state, rows), np.zeros(0, np.int64))


def time_of(state: State, candidate: Candidate) -> OwnTime:
    """Return the lags and gaps that are a candidate's time."""
    if candidate.special:
        return candidate.special(state)
    return own_time(state, dict(candidate.criteria or {}))


def target_of(state: State, candidate: Candidate, time: OwnTime) -> dict[str, Any]:
    """Return the criteria that select a candidate's time and nothing else, empty where there are none."""
    criteria = dict(candidate.criteria or {})
    if not criteria or not candidate.special:
        return criteria
    try:
        same = own_time(state, criteria)
    except SelectionError:  # such as annotations, of which the job has none
        return {}
    gaps, wanted = (each.gaps[state.gap[each.gaps] > 0] for each in (same, time))
    pairs = ((same.edges, time.edges), (same.fixed, time.fixed), (gaps, wanted))
    return criteria if all(np.array_equal(*pair) for pair in pairs) else {}


class Baseline:
    """A job as recorded, and its gains when the time of something changes."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.links = assumed(state)
        self.last = self._end(state.graph.time)
        self.makespan = self.last - state.graph.origin_ns
        self._lock = Lock()

    def _end(self, time: Array) -> int:
        """Return the last moment of any thread or stream that takes part in the job, ns."""
        last = last_end(self.state.graph, time)
        return self.state.graph.origin_ns if last is None else last

    def gain(self, time: OwnTime, factor: float) -> int:
        """Return how much shorter the job is if some time is multiplied, ns."""
        with self._lock:  # the first replay finds what all share
            runs = self._runs
        if runs is None:
            return self.gained(with_factor(self.state, time, factor))
        return self.last - int(runs.multiplied(time.edges, time.fixed, time.gaps, factor)[runs.last].max())

    def gained(self, state: State) -> int:
        """Return how much shorter the job is with other weights, ns."""
        return self.last - self._end(self._time(state))

    def gained_per_step(self, changed: OwnTime | State) -> float:
        """Return how much shorter a usual step is with other weights, or if some time were none, ns."""
        graph, runs = self.state.graph, self._runs
        if isinstance(changed, State):
            after = self._time(changed)
        elif runs is None:
            after = self._time(with_factor(self.state, changed, 0.0))
        else:
            joins = runs.multiplied(changed.edges, changed.fixed, changed.gaps, 0.0)
            after = runs.at(np.append(graph.step_spans.start, graph.step_spans.end), joins)
        gained = usual_step_ns(graph, graph.time) - usual_step_ns(graph, after)
        state = changed if isinstance(changed, State) else with_factor(self.state, changed, 0.0)
        taken = most_per_usual_steps(graph, state) / max(gain_steps(graph), 1)
        return min(gained, taken)

    def _time(self, state: State) -> Array:
        state = replace(self.links, state=state).shared
        return predict(state.graph, state.lag, state.gap, state.head)

    @cached_property
    def _runs(self) -> Runs | None:
        """The job in runs; None where nothing takes part in it, or where transfers may share links."""
        from htagraph.whatif.readings import runs_of_state  # numba takes a moment to load

        return None if not self.state.graph.awake.any() or self.links.may_share else runs_of_state(self.state)

    def counted(self, time: OwnTime) -> tuple[Ints, Ints]:
        """Return how much time each of some edges and each of some gaps is, ns.

        What a thread of a data loader waits for, the loader's own time has, and the time of a call until its kernel
        starts, or after its wait, the call's. Frames that wait for other threads are no work unless the job waits, too.
        """
        once, gap = self._counted
        return (self.state.lag[time.edges] - time.fixed) * once[time.edges], gap[time.gaps]

    @cached_property
    def _counted(self) -> tuple[Mask, Ints]:
        """Which edges count in the time of what has them, and how much of each gap does, ns."""
        graph = self.state.graph
        twice = of_kind(graph, *LAUNCHES, *BLOCKING) & (graph.edges.activity >= 0)
        waits = np.append(only_waiting(graph), [False])[graph.edges.activity] & of_kind(graph, EdgeKind.BODY)
        twice |= waits & ~self._is_on_path[1]
        return ~twice, np.where(graph.gap_kind == GapKind.DATA_WAIT, 0, self.state.gap)

    def on_path(self, time: OwnTime) -> int:
        """Return how much of it lies on the critical path, ns."""
        at, edges = self._is_on_path
        lags = (self.state.lag[time.edges] - time.fixed)[edges[time.edges]]
        return int(lags.sum() + self.state.gap[time.gaps[at[time.gaps]]].sum())

    @cached_property
    def _is_on_path(self) -> tuple[Mask, Mask]:
        """Which vertices and which edges are on the critical path."""
        (vertices, edges), graph = self.path, self.state.graph
        return marked(vertices, graph.vertex_count), marked(edges, len(graph.edges))

    @cached_property
    def shared(self) -> int:
        """How much of the critical path is there because transfers share links, ns.

        Without other transfers, these would be so much shorter: by so much may a gain exceed its time on the path.
        """
        if self.links.others:  # not known: then no transfer becomes faster
            return 0
        return int(time_from_sharing(self.state.graph, self.links.sharing)[self.path[1]].sum())

    @cached_property
    def path(self) -> tuple[Array, Array]:
        """The vertices of the critical path and the edges between them."""
        from htagraph.core import traverse  # numba takes a moment to load

        graph = self.state.graph
        ends = 2 * np.flatnonzero(graph.awake) + 1
        if not len(ends):
            nothing = np.zeros(0, np.int64)
            return nothing, nothing
        start, last = np.iinfo(np.int64).min, int(ends[np.argmax(graph.time[ends])])
        path = traverse.walk_back(graph.binding, graph.edges.source, graph.time, last, start)
        return path, graph.binding[path[1:]].astype(np.int64)

    @cached_property
    def shares(self) -> pd.DataFrame:
        """The time on the critical path by owner: ``owner`` (-1 for none), ``rank``, ``gap``, ``ns``.

        One row per (owner, rank, whether it is a gap). A gap that several threads lead to counts for each owner.
        """
        graph = self.state.graph
        vertices, edges = self.path
        owner = graph.edges.activity[edges]
        timed = (owner >= 0) & (graph.edges.kind[edges] != EdgeKind.HOST_ORDER)
        gaps, around = self._gaps(vertices)
        rank = graph.activities.rank
        owners = np.concatenate([owner[timed].astype(np.int64), around]) + 1
        ranks = np.concatenate([rank[owner[timed]], rank[gaps // 2]]).astype(np.int64)
        is_gap = np.repeat([0, 1], [int(timed.sum()), len(gaps)])
        least, many = (int(ranks.min()), int(ranks.max()) - int(ranks.min()) + 1) if len(ranks) else (0, 1)
        ns = np.concatenate([graph.edges.lag[edges][timed], graph.gap[gaps]])
        key, ns = sums_by((owners * many + ranks - least) * 2 + is_gap, ns)
        return pd.DataFrame({
            "owner": key // (2 * many) - 1, "rank": key // 2 % many + least, "gap": (key % 2).astype(np.bool_),
            "ns": np.maximum(ns, 0),
        })  # fmt: skip

    def _gaps(self, vertices: Array) -> tuple[Array, Array]:
        """Return the vertices with a gap of the host's time, and the activity around each of these gaps, else -1."""
        graph = self.state.graph
        wanted = marked(vertices[of_kinds(graph.gap_kind[vertices], HOST_GAPS)], graph.vertex_count)
        into = np.flatnonzero(of_kind(graph, *BETWEEN) & wanted[graph.edges.target])
        at, owner = graph.edges.target[into].astype(np.int64), graph.edges.activity[into].astype(np.int64)
        around = np.where(owner >= 0, owner, graph.tree.parent[at >> 1])
        count = len(graph.activities) + 1
        pairs, _ = sums_by(at * count + around + 1, at)
        return pairs // count, pairs % count - 1
