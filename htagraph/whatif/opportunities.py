"""What to improve first: kernels, operators, ranks, process groups and host phases ranked by simulated gain."""

from __future__ import annotations

import glob
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from htagraph.core.errors import SelectionError
from htagraph.core.kinds import ANNOTATIONS, COMMUNICATION, HOST_GAPS, TRANSFERS, ActivityKind, EdgeKind
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.queries.replay import predict
from htagraph.queries.weights import OwnTime, State, checked, end_spread, initial, own_time, with_factor
from htagraph.whatif.change_options import criteria_text

__all__ = ["opportunities"]

Array: TypeAlias = npt.NDArray[Any]
_P = ParamSpec("_P")
_MAX_LEVELS = 200
"""How many levels of operators and annotations above an activity are candidates.

Chosen: deeper stacks are runaway recursion, and each level costs a pass over the activities on the critical path.
Doubled, operators more than 200 levels above a kernel count too."""
_MAX_CANDIDATES = 12
"""How many candidates of each kind are tried: those with the most time on the critical path.

Chosen for time, as each costs a replay; more than the ten rows shown by default. Doubled, rows beyond the twelfth of
a kind can appear; those before stay."""
_SAME_GAIN = 0.97
"""A candidate is left out if one inside it gains at least this share of its gain.

Chosen: smaller differences are within the error of a prediction. Nearer to 1, wrappers
appear beside what they wrap; halved, an operator gives way to a kernel with half of its gain. The gains themselves do
not depend on it."""
_KERNELS = (ActivityKind.COMPUTATION, ActivityKind.MEMORY)
_CALLS = (ActivityKind.RUNTIME,)
_RUNTIME = (ActivityKind.RECORD, ActivityKind.WAIT, ActivityKind.RUNTIME)
_OWN_WORK = ["host", "computation", "memory"]
_NOTES = {
    "kernel": "",
    "call": "the calls' own time",
    "operator": "all inside it, and all device work launched there",
    "rank": "its own work; the gain is that others no longer wait for it",
    "group": "transfers only; waiting for a late rank counts for what makes it late",
    "phase": "",
}
_COLUMNS = {
    "what": "str", "name": "str", "target": "str", "time_us": "float64", "critical_us": "float64",
    "gain_us": "float64", "gain_percent": "float64",
}  # fmt: skip


def _named_options(function: Callable[_P, pd.DataFrame]) -> Callable[_P, pd.DataFrame]:
    """Let a function whose options are keyword-only take them by position too, as the last release did, with a warning.

    Type checkers see only the keywords.
    """
    names = [name for name, one in signature(function).parameters.items() if one.kind is Parameter.KEYWORD_ONLY]

    @wraps(function)
    def call(*args: _P.args, **options: _P.kwargs) -> pd.DataFrame:
        if not 1 < len(args) <= 1 + len(names):
            return function(*args, **options)
        given = dict(zip(names, args[1:], strict=False))
        twice = sorted(given.keys() & options.keys())
        if twice:
            msg = f"{function.__name__}() got multiple values for argument {twice[0]!r}"
            raise TypeError(msg)
        texts = ", ".join(f"{name}={value!r}" for name, value in given.items())
        what = f"options of {function.__name__}() by position are deprecated: write {texts}"
        warnings.warn(what, DeprecationWarning, stacklevel=2)
        return function(args[0], **given, **options)  # type: ignore[arg-type]

    return call


@_named_options
def opportunities(
    graph: DependencyGraph, *, top: int = 10, curve: Sequence[float] = (0.75, 0.5, 0.25, 0.0)
) -> pd.DataFrame:
    """Rank what could be improved by how much shorter the job would be, by simulation.

    Each candidate is replayed as if it took no time, with all waits derived: its gain is the ceiling for any
    improvement of it, and less than its time where something else is critical then. Candidates overlap (an operator
    contains its kernels), so gains do not add up. A candidate that gains at most 3 % more than another one inside it is
    left out: the smaller one is the one to change.

    Args:
        graph: the job.
        top: how many rows at most.
        curve: factors for which the gain is given as well, 0.5 for twice as fast.

    Returns:
        One row per candidate that gains anything, best first: ``what`` (``"kernel"``, ``"call"``: a runtime call,
        ``"operator"``, ``"rank"``, ``"group"`` or ``"phase"``), ``name``, ``target`` (str: the criteria for ``htagraph
        what-if --scale``; empty where none select exactly this), ``time_us`` (its own time, summed over ranks and
        steps), ``critical_us`` (the part on the critical path: no gain is larger), ``gain_us`` and ``gain_percent`` (of
        the makespan; if it took no time), for each factor of the curve a column such as ``gain_at_75_us``,
        ``gain_at_50_us``, ``gain_at_25_us`` and ``gain_at_0_us`` (if it took that percentage of its time; all float64)
        and ``note`` (str: what the time includes).

    Raises:
        SelectionError: `top` or a factor is negative.

    Example:
        >>> import htagraph as hg
        >>> table = hg.opportunities(hg.load("data/demo"), top=3)
        >>> bool(table["gain_us"].is_monotonic_decreasing)
        True
    """
    checked(top, "top")
    factors = {f"gain_at_{100 * checked(factor, 'curve'):g}_us": float(factor) for factor in curve}
    kinds = _COLUMNS | dict.fromkeys(factors, "float64") | {"note": "str"}
    trial = _Trial(initial(graph))
    rows = []
    for gain, candidate, time in _best(trial, top):
        gains = {
            column: float(gain if factor == 0 else trial.gain(time, factor)) / 1000
            for column, factor in factors.items()
        }
        rows.append({
            "what": candidate.what, "name": candidate.name,
            "target": criteria_text(candidate.criteria) if candidate.criteria else "",
            "time_us": trial.total(time) / 1000, "critical_us": trial.on_path(time) / 1000, "gain_us": gain / 1000,
            "gain_percent": 100 * gain / trial.makespan, **gains, "note": candidate.note,
        })  # fmt: skip
    return pd.DataFrame(rows, columns=list(kinds)).astype(kinds)


@dataclass(frozen=True)
class _Candidate:
    what: str
    name: str
    bound: int
    """Upper bound of its gain, ns: its time on the critical path."""
    criteria: dict[str, Any] | None
    note: str
    members: tuple[int, ...] = ()
    """The activities of a process group that no criteria select."""


def _best(trial: _Trial, top: int) -> list[tuple[int, _Candidate, OwnTime]]:
    """Return the candidates that gain most, best first: (gain in ns, candidate, its time).

    They are tried in the order of their bounds, until no candidate that is left can be among the best.
    """
    tried: list[tuple[int, _Candidate, OwnTime]] = []
    best: list[tuple[int, _Candidate, OwnTime]] = []
    for candidate in sorted(_candidates(trial), key=lambda each: -each.bound):
        if len(best) >= top and candidate.bound < (_SAME_GAIN * best[top - 1][0] if top else 1):
            break
        time = _time_of(trial.state, candidate)
        gain = trial.gain(time, 0.0)
        if gain > 0:
            tried.append((gain, candidate, time))
            best = _smallest(tried)
    return best[:top]


def _smallest(tried: list[tuple[int, _Candidate, OwnTime]]) -> list[tuple[int, _Candidate, OwnTime]]:
    """Return the candidates that gain clearly more than any other inside them, best first."""
    best: list[tuple[int, _Candidate, OwnTime]] = []
    for gain, candidate, time in sorted(tried, key=lambda each: (each[0], len(each[2].edges) + len(each[2].gaps))):
        if not any(less >= _SAME_GAIN * gain and _within(part, time) for less, _, part in best):
            best.append((gain, candidate, time))
    return sorted(best, key=lambda each: -each[0])


def _within(some: OwnTime, other: OwnTime) -> bool:
    """Return True if some time is part of other time."""
    fewer = len(some.edges) <= len(other.edges) and len(some.gaps) <= len(other.gaps)
    return fewer and bool(np.isin(some.edges, other.edges).all()) and bool(np.isin(some.gaps, other.gaps).all())


class _Trial:
    """A job as recorded, and its gains when the time of something changes."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.last = int(state.graph.time.max(initial=0))
        self.makespan = self.last - state.graph.origin_ns

    def gain(self, time: OwnTime, factor: float) -> int:
        """Return how much shorter the job is if some time is multiplied, ns."""
        state = with_factor(self.state, time, factor)
        return self.last - int(predict(state.graph, state.lag, state.gap, state.head).max(initial=0))

    def total(self, time: OwnTime) -> int:
        """Return how much time it is, ns."""
        return int((self.state.lag[time.edges] - time.fixed).sum() + self.state.gap[time.gaps].sum())

    def on_path(self, time: OwnTime) -> int:
        """Return how much of it lies on the critical path, ns."""
        on_edges = np.isin(time.edges, self.path[1])
        on_gaps = np.isin(time.gaps, self.path[0])
        lags = (self.state.lag[time.edges] - time.fixed)[on_edges]
        return int(lags.sum() + self.state.gap[time.gaps[on_gaps]].sum())

    @cached_property
    def path(self) -> tuple[Array, Array]:
        """The vertices of the critical path and the edges between them."""
        from htagraph.core import traverse  # numba takes a moment to load

        graph = self.state.graph
        if not graph.vertex_count:
            nothing = np.zeros(0, np.int64)
            return nothing, nothing
        start = np.iinfo(np.int64).min
        path = traverse.walk_back(graph.binding, graph.edges.source, graph.time, int(np.argmax(graph.time)), start)
        return path, graph.binding[path[1:]].astype(np.int64)

    @cached_property
    def shares(self) -> pd.DataFrame:
        """The time on the critical path by owner: ``owner`` (-1 for none), ``rank``, ``gap``, ``ns``.

        One row per (owner, rank, whether it is a gap).
        """
        graph = self.state.graph
        vertices, edges = self.path
        owner = graph.edges.activity[edges]
        timed = (owner >= 0) & (graph.edges.kind[edges] != EdgeKind.HOST_ORDER)
        region = np.full(graph.vertex_count, -2, np.int64)
        ordering = graph.edges.kind == EdgeKind.HOST_ORDER
        region[graph.edges.target[ordering]] = graph.edges.activity[ordering]
        gaps = vertices[np.isin(graph.gap_kind[vertices], HOST_GAPS) & (region[vertices] >= -1)]
        rank = graph.activities.rank
        table = pd.DataFrame({
            "owner": np.concatenate([owner[timed].astype(np.int64), region[gaps]]),
            "rank": np.concatenate([rank[owner[timed]], rank[gaps // 2]]),
            "gap": np.repeat([False, True], [int(timed.sum()), len(gaps)]),
            "ns": np.concatenate([graph.edges.lag[edges][timed], graph.gap[gaps]]),
        })  # fmt: skip
        return table.groupby(["owner", "rank", "gap"])["ns"].sum().clip(lower=0).reset_index()


def _candidates(trial: _Trial) -> Iterator[_Candidate]:
    graph, shares = trial.state.graph, trial.shares
    acts = graph.activities
    owned = shares[shares["owner"] >= 0]
    kind = acts.kind[owned["owner"]]
    yield from _by_name(graph, owned[np.isin(kind, _KERNELS)], "kernel")
    yield from _by_name(graph, owned[np.isin(kind, _CALLS)], "call")
    yield from _operators(graph, owned)
    yield from _groups(graph, owned[np.isin(kind, COMMUNICATION)])
    rows = shares[(shares["owner"] < 0) | ~np.isin(acts.kind[shares["owner"]], (ActivityKind.COMMUNICATION,))]
    ranks = rows.groupby("rank")["ns"].sum()
    for rank, ns in _largest(ranks) if len(graph.ranks) > 1 else ():  # a single rank has all the time
        yield _Candidate("rank", f"rank {rank}", ns, {"rank": int(rank), "kind": _OWN_WORK}, _NOTES["rank"])
    yield from _phases(graph, shares)


def _largest(totals: pd.Series[Any]) -> list[tuple[Any, int]]:
    """Return the (key, ns) of the largest totals."""
    top = totals[totals > 0].sort_values(ascending=False, kind="stable").head(_MAX_CANDIDATES)
    return [(key, int(ns)) for key, ns in top.items()]


def _by_name(graph: DependencyGraph, owned: pd.DataFrame, what: str) -> Iterator[_Candidate]:
    acts = graph.activities
    by_name = owned.groupby([acts.kind[owned["owner"]], acts.name[owned["owner"]]])["ns"].sum()
    for (kind, name), ns in _largest(by_name):
        criteria = {"kind": ActivityKind(kind).label, "name": glob.escape(graph.names[name])}
        yield _Candidate(what, graph.names[name], ns, criteria, _NOTES[what])


def _operators(graph: DependencyGraph, owned: pd.DataFrame) -> Iterator[_Candidate]:
    """Yield operators and annotations by what lies inside them or was launched there."""
    acts = graph.activities
    above = graph.tree.parent
    at, item = owned["owner"].to_numpy(), np.arange(len(owned))
    levels = []
    for _ in range(_MAX_LEVELS):  # each round one level up
        if not len(at):
            break
        named = np.isin(acts.kind[at], (ActivityKind.OP, ActivityKind.ANNOTATION))
        levels.append(np.stack([item[named], acts.kind[at[named]], acts.name[at[named]]]))
        at = above[at]
        item, at = item[at >= 0], at[at >= 0]
    # a recursive operator contains what is inside it once
    pairs = np.unique(np.concatenate(levels, axis=1), axis=1) if levels else np.zeros((3, 0), np.int64)
    table = pd.DataFrame({"kind": pairs[1], "name": pairs[2], "ns": owned["ns"].to_numpy()[pairs[0]]})
    loaders = acts.name[graph.edges.activity[graph.edges.kind == EdgeKind.DATALOADER]]
    for kind, what in ((ActivityKind.OP, "operator"), (ActivityKind.ANNOTATION, "phase")):
        of_kind = table[table["kind"] == kind]
        for name, ns in _largest(of_kind.groupby("name")["ns"].sum()):
            text, note = graph.names[name], _NOTES["operator"]
            if name in loaders:
                yield _Candidate("phase", "data loading", ns, {"op": glob.escape(text)}, f"all inside {text}")
            else:
                yield _Candidate(what, text, ns, {"op": glob.escape(text)}, note)


def _groups(graph: DependencyGraph, owned: pd.DataFrame) -> Iterator[_Candidate]:
    """Yield process groups; communication of unknown groups by its kernels' names."""
    acts, matches = graph.activities, graph.matches
    label = np.full(len(acts), -1, np.int64)
    known: dict[str, int] = {}
    if matches is not None and matches.count:
        numbers = np.array([known.setdefault(group, len(known)) for group in matches.group], np.int64)
        label[matches.activity] = numbers[matches.collective]
    group_of = label[owned["owner"]]
    texts = list(known)
    for number, ns in _largest(owned[group_of >= 0].groupby(group_of[group_of >= 0])["ns"].sum()):
        members = np.flatnonzero(label == number)
        criteria = _exact_criteria(graph, members)
        note = _NOTES["group"] if criteria else f"{_NOTES['group']}; no criteria select exactly this group"
        yield _Candidate("group", texts[number], ns, criteria, note, tuple(members.tolist()))
    alone = owned[group_of < 0]
    for name, ns in _largest(alone.groupby(acts.name[alone["owner"]])["ns"].sum()):
        criteria = {"kind": [kind.label for kind in COMMUNICATION], "name": glob.escape(graph.names[name])}
        note = "partners unknown: time beyond the shortest of its size counts as waiting"
        yield _Candidate("group", graph.names[name], ns, criteria, note)


def _exact_criteria(graph: DependencyGraph, members: Array) -> dict[str, Any] | None:
    """Return criteria that select these communications and no other, if there are any as simple as that."""
    acts = graph.activities
    talks = np.flatnonzero(np.isin(acts.kind, COMMUNICATION))
    kinds = {"kind": [ActivityKind(kind).label for kind in np.unique(acts.kind[members])]}
    streams = sorted({graph.lanes[lane].stream for lane in np.unique(acts.lane[members]).tolist()})
    stream = {"stream": streams} if streams and streams[0] >= 0 else {}
    names = np.unique(acts.name[members])
    name = {"name": glob.escape(graph.names[names[0]])} if len(names) == 1 else {}
    for criteria in (kinds, kinds | stream, kinds | name, kinds | stream | name):
        if np.array_equal(np.intersect1d(graph.select(**criteria).activities, talks), members):
            return criteria
    return None


def _phases(graph: DependencyGraph, shares: pd.DataFrame) -> Iterator[_Candidate]:
    """Yield the phases of host time."""
    acts = graph.activities
    kind = np.where(shares["owner"] >= 0, acts.kind[shares["owner"]], -1)
    gap, ns = shares["gap"].to_numpy(), shares["ns"].to_numpy()
    host = gap | ((kind >= 0) & (kind < ActivityKind.COMPUTATION))
    for name, chosen, criteria, note in (
        ("all host work", host, {"kind": "host"}, "operators, calls and the Python between them; waits are replayed"),
        ("Python between operators", gap & (kind >= 0), {"kind": [each.label for each in ANNOTATIONS]},
         "host time inside steps and annotations that no event covers"),
        ("launch calls", kind == ActivityKind.LAUNCH, {"kind": "launch"}, "the calls themselves, not the operators"),
        ("synchronizing calls", kind == ActivityKind.SYNC, {"kind": "sync"}, "their own cost, not what they wait for"),
        ("other runtime calls", np.isin(kind, _RUNTIME), {"kind": [each.label for each in _RUNTIME]}, ""),
    ):  # fmt: skip
        if ns[chosen].sum() > 0:
            yield _Candidate("phase", name, int(ns[chosen].sum()), criteria, note)


def _time_of(state: State, candidate: _Candidate) -> OwnTime:
    """Return the lags and gaps that are a candidate's time."""
    if candidate.criteria is not None:
        return own_time(state, candidate.criteria)
    is_member = np.zeros(len(state.graph.activities) + 1, np.bool_)
    is_member[list(candidate.members)] = True
    edges = state.graph.edges
    rows = np.flatnonzero(np.isin(edges.kind, TRANSFERS) & is_member[edges.activity])
    if not len(rows):
        msg = f"group {candidate.name!r}: none of its members has a transfer"
        raise SelectionError(msg)
    return OwnTime(rows, end_spread(state, rows), np.zeros(0, np.int64))
