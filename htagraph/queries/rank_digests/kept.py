"""What a digest keeps of a rank: activities with their columns, texts, lanes, the file's header, and sums of work."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array
from htagraph.core.kinds import COMMUNICATION, ActivityKind, EdgeKind
from htagraph.core.naming import Naming, collective_op, is_collective_call, names_that
from htagraph.core.parents import nearest
from htagraph.graph.activities import Activities, Lane
from htagraph.graph.construction.matching.members import describing
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.measures.own_time import work_times
from htagraph.queries.peers import program_of
from htagraph.queries.rank_speed import ALL_NAMES, MIN_SHARE_OF_NAME
from htagraph.trace.columns import TEXTS, Facts, Flows, SparseColumn, Table, Trace

__all__ = ["KeptRows", "WorkSums", "header_of", "kept_activities", "kept_rows", "own_tables", "work_sums"]

_OF_COLLECTIVES: Final = (
    "pg_name", "pg_ranks", "pg_desc", "group_size", "collective_name", "seq", "comms_id", "src_rank", "dst_rank",
    "in_msg_nelems", "out_msg_nelems", "dtype",
)  # fmt: skip
"""Arguments of an operator that count for the communication that it launches."""
_OF_CALLS: Final = ("concrete_inputs", "input_dims", "input_type")
"""Arguments of communication on hosts and of the operators that ask for it."""
_NAMELESS: Final = ("send_recv", "")
"""What the names of kernels of batched sends and receives say: only the calls around their launch say more."""


class KeptRows(NamedTuple):
    """Rows of a rank's activities, ascending."""

    linked: npt.NDArray[np.int64]
    """Activities whose start and end are moments of the joined job: communication, steps, and what is around them."""
    matching: npt.NDArray[np.int64]
    """Other activities, which only the matching of collectives reads."""
    bodies: npt.NDArray[np.int64]
    """The edges inside communication, whose lag depends on what it is matched with."""


def kept_rows(graph: DependencyGraph, naming: Naming) -> KeptRows:
    """Return which activities of a rank the joined job needs."""
    acts, edges = graph.activities, graph.edges
    talks = np.isin(acts.kind, COMMUNICATION)
    bodies = np.flatnonzero((edges.kind == EdgeKind.BODY) & talks[edges.activity] & (edges.activity >= 0))
    linked = talks | np.isin(acts.kind, (ActivityKind.STEP, ActivityKind.BOUNDARY))
    linked[edges.source[bodies] >> 1] = True
    linked[edges.target[bodies] >> 1] = True
    on_host = np.flatnonzero(acts.kind == ActivityKind.HOST_COMMUNICATION)
    if len(on_host):
        linked[_around_host_communication(graph, on_host)] = True
    matching = np.zeros(len(acts), np.bool_)
    matching[_calls_of_nameless(graph, np.flatnonzero(talks), naming)] = True
    return KeptRows(np.flatnonzero(linked), np.flatnonzero(matching & ~linked), bodies)


def _around_host_communication(graph: DependencyGraph, on_host: Array) -> Array:
    """Return what shows which operator asked for communication on a host, and how long its thread worked beside it.

    These are all calls of c10d and what encloses them, what runs inside the communication, and of the operators that
    its thread began meanwhile the one that ended last.
    """
    acts = graph.activities
    ops = np.flatnonzero(acts.kind == ActivityKind.OP)
    calls = ops[names_that(is_collective_call, graph.names)[acts.name[ops]]]
    inside = np.flatnonzero(np.isin(acts.parent, on_host))
    rows: list[Array] = [calls, acts.parent[calls], inside]
    order = ops[np.lexsort((acts.start[ops], acts.lane[ops]))]
    for lane in np.unique(acts.lane[on_host]).tolist():
        own, works = order[acts.lane[order] == lane], on_host[acts.lane[on_host] == lane]
        first = np.searchsorted(acts.start[own], acts.start[works], side="right").tolist()
        last = np.searchsorted(acts.start[own], acts.end[works]).tolist()
        rows.append(own[[a + int(acts.end[own[a:b]].argmax()) for a, b in zip(first, last, strict=True) if b > a]])
    every = np.concatenate(rows).astype(np.int64)
    return every[every >= 0]


def _calls_of_nameless(graph: DependencyGraph, talks: Array, naming: Naming) -> Array:
    """Return the calls that say what kernels of batched sends and receives are: their launches, and names around them.

    Also every activity with a partner as argument: a batch names its partners in calls that launch nothing.
    """
    acts, names = graph.activities, graph.names
    partner = acts.args.get("src_rank")
    nameless = np.zeros(len(names), np.bool_)
    nameless[[code for code in np.unique(acts.name[talks]) if collective_op(names[code], naming) in _NAMELESS]] = True
    launches = acts.cause[talks[nameless[acts.name[talks]]]].astype(np.int64)
    launches = launches[launches >= 0]
    if not len(launches):
        return launches
    tells = names_that(lambda name: bool(collective_op(name, naming, host=True)), names)[acts.name]
    above = nearest(acts.parent, tells, launches)
    told = np.unique(describing(acts, talks))
    batched = np.zeros(0, np.int64) if partner is None else np.setdiff1d(partner.rows.astype(np.int64), told)
    return np.concatenate([launches, above[above >= 0], batched])


def kept_activities(graph: DependencyGraph, rows: Array) -> Activities:
    """Return some activities of a rank: names and lanes are those of the graph, and the nearest kept one encloses.

    What an operator says about the communication that it launches becomes an argument of that.
    """
    acts = graph.activities
    kept = np.zeros(len(acts), np.bool_)
    kept[rows] = True
    number = np.cumsum(kept) - 1
    parent, cause = nearest(acts.parent, kept, acts.parent[rows]), acts.cause[rows].astype(np.int64)
    cause = np.where((cause >= 0) & kept[cause], cause, -1)
    above = [np.where(each >= 0, number[each], -1).astype(np.int32) for each in (parent, cause)]
    dense = {
        name: getattr(acts, name)[rows]
        for name in ("rank", "kind", "name", "category", "lane", "start", "duration", "step")
    }
    talks = np.flatnonzero(np.isin(acts.kind[rows], COMMUNICATION))
    described = rows.copy()
    told = describing(acts, rows[talks])
    described[np.isin(rows, told[told != rows[talks]])] = -1  # what they say is said by now
    described[talks] = told
    args = {name: column for name in _OF_COLLECTIVES if (column := _argument(acts, name, described)) is not None}
    args |= {name: column for name in _OF_CALLS if (column := _argument(acts, name, rows)) is not None}
    return Activities(**dense, parent=above[0], cause=above[1], event=np.full(len(rows), -1, np.int32), args=args)


def _argument(acts: Activities, name: str, rows: Array) -> SparseColumn | None:
    """Return an argument of some activities as that of the rows of a new table; None where none of them has it."""
    column = acts.args.get(name)
    if column is None:
        return None
    place = np.full(len(acts) + 1, -1, np.int64)  # the last is that of no activity
    place[column.rows] = np.arange(len(column.rows))
    at = place[rows]
    has = np.flatnonzero(at >= 0)
    return SparseColumn(has.astype(np.int32), column.values[at[has]], column.missing) if len(has) else None


def own_tables(
    acts: Activities, names: tuple[str, ...], lanes: tuple[Lane, ...]
) -> tuple[tuple[str, ...], tuple[Lane, ...], Activities]:
    """Return only the names and lanes that some activities use, and the activities numbered accordingly."""
    texts = [acts.name, acts.category, *(column.values for name, column in acts.args.items() if name in TEXTS)]
    codes = np.unique(np.concatenate(texts))
    codes = codes[codes >= 0]
    used = np.unique(acts.lane)

    def renamed(values: Array) -> Array:
        return np.where(values >= 0, np.searchsorted(codes, values), values).astype(values.dtype)

    args = {
        name: SparseColumn(column.rows, renamed(column.values), column.missing) if name in TEXTS else column
        for name, column in acts.args.items()
    }
    acts = replace(
        acts, name=renamed(acts.name), category=renamed(acts.category),
        lane=np.searchsorted(used, acts.lane).astype(np.int32), args=args,
    )  # fmt: skip
    return tuple(names[code] for code in codes.tolist()), tuple(lanes[lane] for lane in used.tolist()), acts


def header_of(graph: DependencyGraph) -> Trace:
    """Return what the file of a rank says about its host, devices and process groups, without any events."""
    rank = graph.ranks[0]
    read = graph.traces.get(rank)
    none = np.zeros(0, np.int32)
    times = none.astype(np.int64)
    events = Table(none, none, none, none, times, times, {})
    flows = Flows(times, none.astype(np.bool_), none, times)
    path = Path() if read is None else read.path
    facts = Facts() if read is None else _about_the_job(read.facts, whole=_communicates_on_hosts(graph))
    pids = sorted({pid for pid, _ in read.lanes if isinstance(pid, int)}) if read is not None else []
    return Trace(
        rank, path, facts, (), (), tuple((pid, 0) for pid in pids), {}, events, events, flows,
        {}, (), (0, 0), {},
    )  # fmt: skip


def _communicates_on_hosts(graph: DependencyGraph) -> bool:
    return bool((graph.activities.kind == ActivityKind.HOST_COMMUNICATION).any())


def _about_the_job(facts: Facts, *, whole: bool) -> Facts:
    """Return the facts about hosts, devices and groups; who is in which group only if the whole is asked for.

    Every rank lists the members of each of its groups. With thousands of ranks that is most of what a digest would
    hold, and only communication on hosts needs it: on devices, arguments name the members.
    """
    return Facts(
        rank=facts.rank,
        world_size=facts.world_size,
        groups=facts.groups if whole or not facts.world_size else (),
        devices=facts.devices,
        host=facts.host,
        job=facts.job,
    )


class WorkSums(NamedTuple):
    """The work of one rank by name. Names are numbers: CRC-32 of their text, so that those of all ranks compare."""

    program: npt.NDArray[np.int64]
    """Names of the operators, or of the kernels of a job without operators."""
    instances: npt.NDArray[np.int64]
    """How often each of them occurs, in steps if there are any."""
    steps: int
    """In how many steps; 1 without steps."""
    device: npt.NDArray[np.int64]
    """A row per name, step and side: 1 for kernels, 0 for operators."""
    name: npt.NDArray[np.int64]
    """`ALL_NAMES`, or one that takes a good part of the rank's work."""
    step: npt.NDArray[np.int64]
    calls: npt.NDArray[np.int64]
    """How many of them."""
    total: npt.NDArray[np.int64]
    """Their durations, or self times, together, ns."""


def work_sums(graph: DependencyGraph) -> WorkSums:
    """Return how much work of each name a rank does, and how long that takes."""
    names, count, steps = program_of(graph, 0)
    sides = [_side(graph, device=device) for device in (True, False)] if graph.ranks else []
    rows = np.concatenate(sides, axis=1) if sides else np.zeros((5, 0), np.int64)
    return WorkSums(_numbers(graph, names), count, steps, *rows)


def _numbers(graph: DependencyGraph, names: Array) -> npt.NDArray[np.int64]:
    return np.array([zlib.crc32(graph.names[name].encode("utf-8", "replace")) for name in names.tolist()], np.int64)


def _side(graph: DependencyGraph, *, device: bool) -> npt.NDArray[np.int64]:
    """Return (device, name, step, calls, total) of the names that take most time, a column per name and step."""
    acts = graph.activities
    rows, _, time = work_times(graph, np.array([0]), device=device)
    some = acts.step[rows] >= 0
    rows, time = rows[some], time[some].astype(np.int64)
    names, name = np.unique(acts.name[rows], return_inverse=True)
    steps, step = np.unique(acts.step[rows], return_inverse=True)
    shape = (len(names), len(steps))
    cell = name.ravel() * max(len(steps), 1) + step.ravel()
    total, calls = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    np.add.at(total.reshape(-1), cell, time)
    np.add.at(calls.reshape(-1), cell, 1)
    large = total.sum(axis=1) >= MIN_SHARE_OF_NAME * max(int(total.sum()), 1)  # no others are compared
    numbers = np.append(_numbers(graph, names[large]), ALL_NAMES)
    total, calls = (np.concatenate([each[large], each.sum(axis=0)[None]]) for each in (total, calls))
    at, when = np.nonzero(calls)
    return np.stack([np.full(len(at), int(device)), numbers[at], steps[when], calls[at, when], total[at, when]])
