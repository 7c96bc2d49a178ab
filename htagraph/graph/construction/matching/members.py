"""Communication activities as possible members of collectives: what each is, of which group, in which sequence.

Sends and receives that were started at once run as one kernel without arguments; the only peer of such a batch is known
by the calls before its launch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from htagraph.core.arrays import Array, Ints, Mask, coded, looked_up, marked
from htagraph.core.kinds import COMMUNICATION, ActivityKind, of_kinds
from htagraph.core.naming import DEFAULT_NAMING, Naming, collective_kernel, collective_op, transfer_direction
from htagraph.core.parents import ancestors, nearest
from htagraph.graph.activities import Activities
from htagraph.graph.construction.matching.host_parts import HostParts, host_parts
from htagraph.graph.tolerances import LIMITS
from htagraph.trace.columns import Trace, parse_ranks

__all__ = ["Members", "describing", "members_of", "only_peer", "values"]

_BARRIERS: Final = frozenset({"all_reduce", "all_gather", "reduce_scatter", "barrier", "send_recv"})
"""Collectives in which no member can end before all members have arrived."""

_UNEVEN: Final = ("all_to_all", "gather", "scatter")
"""Collectives whose sizes normally differ between ranks."""
_BATCH_NAME = -2
"""Stands for the process group's name of a batch with one peer, unlike any name (0 and up) and unlike none (-1)."""
_ELEMENT_BYTES = {
    "Float": 4, "Half": 2, "BFloat16": 2, "Double": 8, "Byte": 1, "Char": 1, "Short": 2, "Int": 4, "Long": 8, "Bool": 1,
    "ComplexFloat": 8, "ComplexDouble": 16, "Float8_e4m3fn": 1, "Float8_e5m2": 1, "Float8_e4m3fnuz": 1,
    "Float8_e5m2fnuz": 1, "UInt16": 2, "UInt32": 4, "UInt64": 8,
}  # fmt: skip
"""Bytes of an element by the name that c10::toString(ScalarType) writes."""


@dataclass(frozen=True, eq=False)
class Members:
    """One row per communication activity, ordered by rank and start; columns of one length."""

    activity: Ints
    rank: Ints
    start: Ints
    """The earliest moment of its arrival, ns on the rank's own clock: its start, or, of a send or receive on the host,
    the start of the operator that asked for it."""
    end: Ints
    asked: Ints
    """When it was asked for, which is the order of a sequence, ns on the rank's own clock: the start of its operator on
    the host, where threads may take what was asked for in another order; else its own start."""
    op: Ints
    """Index into `ops`."""
    label: Ints
    """Equal for activities that can be members of one collective: of one operation, kernel, type, and size (unless the
    sizes of an operation differ between the ranks)."""
    sequence: Ints
    """The sequence in which the activity has its place: of its rank and group, or of its rank and stream."""
    group: Ints
    """Index into `groups`; -1 if no argument names the group."""
    seq: Ints
    comms_id: npt.NDArray[np.uint64]
    bytes: Ints
    on_host: Mask
    step: npt.NDArray[np.int32]
    """The number of the ProfilerStep that it was launched in, -1 outside of steps."""
    way: Ints
    """1 for a send, -1 for a receive, 0 for anything else and where it is unknown."""
    ops: tuple[str, ...]
    groups: tuple[str, ...]
    """A label of each group."""
    group_size: Ints
    """Members of each group; 0 where unknown."""
    root: Ints
    """The rank that the call names as the root of a rooted collective; -1 where none does."""

    def __len__(self) -> int:
        return len(self.activity)

    @property
    def barrier(self) -> Mask:
        """Which rows are of operations in which no member can end before all have arrived, and all end together.

        Not those on the host: a send ends when its data has left, a receive when it has come.
        """
        return np.isin(self.op, [code for code, op in enumerate(self.ops) if op in _BARRIERS]) & ~self.host_transfer

    @property
    def host_transfer(self) -> Mask:
        """Which rows are sends and receives on the host."""
        return self._transfer & self.on_host

    @property
    def partnerless(self) -> Mask:
        """Which rows are sends and receives on a device whose partner is not named."""
        size = np.append(self.group_size, 0)  # the last is that of no group
        return self._transfer & ~self.on_host & (size[self.group] != 2)

    @property
    def _transfer(self) -> Mask:
        return np.isin(self.op, [code for code, op in enumerate(self.ops) if op == "send_recv"])


def members_of(
    acts: Activities, names: tuple[str, ...], naming: Naming = DEFAULT_NAMING, traces: Mapping[int, Trace] | None = None
) -> Members:
    """Return the communication activities of all ranks as possible members of collectives.

    Arguments are those of the activity itself, else of the operator whose launch enqueued it or, on the host, of the
    operator that asked for it.
    """
    rows = np.flatnonzero(of_kinds(acts.kind, COMMUNICATION))
    rows = rows[np.lexsort((acts.start[rows], acts.rank[rows]))]
    described_by = describing(acts, rows)
    host = host_parts(acts, names, naming, rows, traces or {})
    ops, op, way = _operations(acts, names, naming, rows, described_by, host.call)
    nameless = (described_by < 0) & np.array([word in ("", "send_recv") for word in ops], np.bool_)[op]
    peer = only_peer(acts, rows, described_by, nameless)
    if (peer >= 0).any():
        ops = (*ops, "send_recv")
        op[peer >= 0] = ops.index("send_recv")
    is_pairwise = op == (ops.index("send_recv") if "send_recv" in ops else -1)
    pairs = _pairs_of(acts, rows, described_by, is_pairwise, peer, host)
    groups, group, group_size = _groups(acts, names, rows, described_by, pairs, host)
    elements = np.maximum(values(acts, "in_msg_nelems", described_by), values(acts, "out_msg_nelems", described_by))
    elements = np.where(elements < 0, host.own_elements, elements)  # the same on every rank, unless splits are uneven
    dtype = values(acts, "dtype", described_by)
    on_host = acts.kind[rows] == ActivityKind.HOST_COMMUNICATION
    short = _short_names(acts.name[rows], names)
    has_size = (group >= 0) & (elements >= 0)
    uneven = np.array([word in _UNEVEN for word in ops], np.bool_)[op]
    even = has_size & _even(acts.rank[rows], group, op, elements, uneven)
    of_kind = (*(np.where(has_size, full, -1) for full in (op, dtype)), np.where(even, elements, -1))
    label = coded(*of_kind, np.where(has_size & ~on_host, -1, short))
    lane = np.where((group >= 0) & (peer < 0), -1, np.where(on_host, -2, acts.lane[rows]))
    asked = np.where(host.call >= 0, host.call, rows)
    posted = np.where(way != 0, asked, rows)
    return Members(
        activity=rows, rank=acts.rank[rows].astype(np.int64), start=acts.start[posted], end=acts.end[rows],
        asked=acts.start[asked], op=op, label=label, sequence=coded(acts.rank[rows], group, lane), group=group,
        seq=values(acts, "seq", described_by),
        comms_id=values(acts, "comms_id", described_by, missing=0).astype(np.uint64),
        bytes=np.where(on_host, _size(host.elements, host.width), _bytes(names, elements, dtype)), on_host=on_host,
        way=way, ops=ops, groups=groups, group_size=group_size, root=host.root, step=acts.step[asked],
    )  # fmt: skip


def describing(acts: Activities, rows: Array) -> Ints:
    """Return the activity that has the arguments of each: itself, or the nearest around its launch; -1 for none."""
    has = np.zeros(len(acts), np.bool_)
    for column in ("pg_name", "pg_ranks", "collective_name", "seq", "comms_id"):
        if column in acts.args:
            has[acts.args[column].rows] = True
    return nearest(acts.parent, has, np.where(has[rows], rows, acts.cause[rows]))


def _operations(
    acts: Activities, names: tuple[str, ...], naming: Naming, rows: Array, described_by: Array, host_call: Array
) -> tuple[tuple[str, ...], Ints, Ints]:
    """Return (words, word of each row, way of each row): of the argument, else of the kernel's name, else of the calls.

    A kernel of sends and receives also is an all-to-all, a gather or a scatter: there only the calls can say. On the
    host it is the other way round: a backend may do one operation by another (gloo's reduce-scatter is an all-reduce),
    and names its sends and receives.
    """
    on_host = acts.kind[rows] == ActivityKind.HOST_COMMUNICATION
    arguments = values(acts, "collective_name", described_by)
    word_of = {
        int(name): collective_op(names[name], naming)
        for name in np.unique(np.concatenate((arguments, acts.name[rows])))
        if name >= 0
    }
    number: dict[str, int] = {}
    op, way = np.empty(len(rows), np.int64), np.zeros(len(rows), np.int64)
    around = _around(acts, names, naming, np.where(on_host, host_call, acts.cause[rows]))
    sources = zip(arguments.tolist(), acts.name[rows].tolist(), around, on_host.tolist(), strict=True)
    for i, (argument, kernel, (by_calls, way_by_calls), is_host) in enumerate(sources):
        by_argument, by_kernel = word_of.get(argument), word_of[kernel]
        if is_host:
            word = by_argument or by_calls or by_kernel
        else:
            word = by_argument or (by_calls if by_kernel in ("send_recv", "") else by_kernel)
        op[i] = number.setdefault(word, len(number))
        if word == "send_recv":
            named = names[argument] if by_argument else names[kernel] if is_host else ""
            way[i] = transfer_direction(named) if named else way_by_calls
    return tuple(number), op, way


def _around(acts: Activities, names: tuple[str, ...], naming: Naming, calls: Array) -> list[tuple[str, int]]:
    """Return which collective each call or an operator around it names, ``""`` for none, and the way it goes."""
    calls = calls.astype(np.int64)
    asked = ancestors(acts.parent, calls[calls >= 0])
    asked[calls[calls >= 0]] = True
    words = {name: collective_op(names[name], naming, host=True) for name in np.unique(acts.name[asked]).tolist()}
    ways = {name: transfer_direction(names[name]) if word == "send_recv" else 0 for name, word in words.items()}
    is_word = marked([name for name, word in words.items() if word], len(names))
    at = nearest(acts.parent, is_word[acts.name], calls)
    return [
        (words[name], ways[name]) if name >= 0 else ("", 0) for name in np.where(at >= 0, acts.name[at], -1).tolist()
    ]


def _pairs_of(
    acts: Activities, rows: Array, described_by: Array, is_pairwise: Array, peer: Array, host: HostParts
) -> tuple[Ints, Ints, Ints, Mask]:
    """Return the source, target and tag of sends and receives, and whether they are of a batch with one peer.

    Source and target are of the arguments, of a batch (whose source and target may be exchanged), or of a call on the
    host. The tag is that of a send or receive on the host, if it is not the usual 0. -1 where unknown.
    """
    rank, in_batch, on_host = acts.rank[rows], peer >= 0, host.partner >= 0
    source = np.where(is_pairwise, values(acts, "src_rank", described_by), -1)
    target = np.where(is_pairwise, values(acts, "dst_rank", described_by), -1)
    source = np.where(in_batch, np.minimum(rank, peer), source)
    target = np.where(in_batch, np.maximum(rank, peer), target)
    source = np.where(on_host, np.where(host.way > 0, rank, host.partner), source)
    target = np.where(on_host, np.where(host.way > 0, host.partner, rank), target)
    return source, target, np.where(on_host & (host.tag > 0), host.tag, -1), in_batch


def _groups(
    acts: Activities, names: tuple[str, ...], rows: Array, described_by: Array,
    pairs: tuple[Ints, Ints, Ints, Mask], host: HostParts,
) -> tuple[tuple[str, ...], Ints, Ints]:  # fmt: skip
    """Return (label of each group, group of each row or -1, members of each group).

    Groups differ in name or ranks. Of sends and receives every directed pair of ranks is a group: a send from rank 0 to
    rank 1 is never paired with a receive of rank 0. Of a batch with one peer the pair is not directed. On the host,
    pairs also differ in their tags, and other communication is of the job's group if there is but one.
    """
    source, target, tag, in_batch = pairs
    pg_name, pg_ranks = values(acts, "pg_name", described_by), values(acts, "pg_ranks", described_by)
    pg_name = np.where(
        in_batch, _BATCH_NAME, _only_name(pg_name, np.where(pg_ranks >= 0, coded(pg_ranks, source, target), -1))
    )
    only = np.where((pg_name < 0) & (pg_ranks < 0), host.group, -1)
    on_host = host.partner >= 0
    known = np.flatnonzero((pg_name >= 0) | (pg_ranks >= 0) | in_batch | on_host | (only >= 0))
    group = np.full(len(rows), -1, np.int64)
    of_group = (pg_name, pg_ranks, source, target, tag, only)
    group[known] = coded(*(column[known] for column in of_group))
    first = known[np.unique(group[known], return_index=True)[1]]
    described = (values(acts, "group_size", described_by), values(acts, "pg_desc", described_by))
    labels, sizes = [], np.zeros(len(first), np.int64)
    for number, row in enumerate(first.tolist()):
        if only[row] >= 0:
            label, sizes[number] = host.groups[only[row]]
            labels.append(label)
            continue
        group_size, pg_desc = (int(column[row]) for column in described)
        listed = names[pg_ranks[row]] if pg_ranks[row] >= 0 else ""
        where = listed
        members = len(parse_ranks(listed, size=group_size) or ()) if pg_ranks[row] >= 0 else 0
        if source[row] >= 0 and target[row] >= 0:
            where = f"{source[row]}{'↔' if in_batch[row] else '→'}{target[row]}"
            where += f" tag {tag[row]}" if tag[row] > 0 else ""
            members = 2
        sizes[number] = members or max(0, group_size)
        words = [names[code] for code in (int(pg_name[row]), pg_desc) if code >= 0 and names[code]]
        labels.append(" ".join([*dict.fromkeys(words), where]).strip())
    return tuple(labels), group, sizes


def _only_name(name: Array, ranks: Array) -> Array:
    """Return the names of groups, and for rows without one the only name that others of the same ranks have."""
    both = np.unique(np.stack((ranks, name))[:, (name >= 0) & (ranks >= 0)], axis=1)
    of_ranks, first, count = np.unique(both[0], return_index=True, return_counts=True)
    only = looked_up(of_ranks[count == 1], both[1, first][count == 1], ranks, -1)
    return np.where(name >= 0, name, only)


def _even(rank: Array, group: Array, op: Array, elements: Array, uneven: Array) -> Mask:
    """Return the rows whose sizes distinguish collectives: every rank of the group has the same ones for the operation.

    Splits may be uneven (all_gather_v), and then only the order is left. Rows marked `uneven` never count.
    """
    kind = coded(group, op)
    size, rank = coded(kind, elements), coded(rank)
    everywhere = _holders(size, rank)[size] == _holders(kind, rank)[kind]
    shared = np.bincount(kind, everywhere) >= LIMITS.most * np.bincount(kind)
    return np.asarray(shared[kind] & ~uneven)


def _holders(what: Array, rank: Array) -> Ints:
    """Return how many ranks have each number."""
    count = int(rank.max(initial=0)) + 1
    return np.bincount(np.unique(what * count + rank) // count)


def _short_names(name: Array, names: tuple[str, ...]) -> Ints:
    """Return a number per activity name, equal where the names differ in their signatures only."""
    distinct, inverse = np.unique(name, return_inverse=True)
    number: dict[str, int] = {}
    codes = [number.setdefault(collective_kernel(names[each]), len(number)) for each in distinct.tolist()]
    return np.array(codes, np.int64)[inverse.ravel()]


def _bytes(names: tuple[str, ...], elements: Array, dtype: Array) -> Ints:
    size = {int(each): _ELEMENT_BYTES.get(names[each], -1) for each in np.unique(dtype) if each >= 0}
    return _size(elements, np.array([size.get(each, -1) for each in dtype.tolist()], np.int64))


def _size(elements: Array, width: Array) -> Ints:
    return np.where((elements >= 0) & (width > 0), elements * width, -1).astype(np.int64)


def only_peer(acts: Activities, rows: Array, described_by: Array, nameless: Array) -> Ints:
    """Return the rank that each of some kernels exchanged data with, by the calls that named it; -1 where none did.

    Sends and receives that are started at once (batch_isend_irecv) are recorded one by one without a kernel, and run as
    one kernel without arguments, which the end of the batch launches. Only batches with one peer count. `nameless` rows
    have no arguments, and no name that is a collective's.
    """
    out = np.full(len(rows), -1, np.int64)
    argument = acts.args.get("src_rank")
    kernels = np.flatnonzero(nameless & (acts.cause[rows] >= 0))
    if argument is None or not len(kernels):
        return out
    transfers = np.setdiff1d(argument.rows, np.concatenate((described_by, rows))).astype(np.int64)  # without a kernel
    launches = np.unique(acts.cause[rows[kernels]]).astype(np.int64)
    low, high = _peers_before(acts, transfers, launches)
    at = np.searchsorted(launches, acts.cause[rows[kernels]])
    out[kernels] = np.where(low[at] == high[at], high[at], -1)
    return out


def _peers_before(acts: Activities, transfers: Array, launches: Array) -> tuple[Array, Array]:
    """Return the lowest and the highest peer of the transfers recorded on a thread since the launch before each launch.

    A batch is those transfers and the launch that ends it; without any, the lowest is above the highest.
    """
    source, target = values(acts, "src_rank", transfers), values(acts, "dst_rank", transfers)
    rank = acts.rank[transfers]
    peer = np.where(source == rank, target, np.where(target == rank, source, -1))
    calls = np.concatenate((transfers, launches))
    is_launch = np.arange(len(calls)) >= len(transfers)
    order = np.lexsort((is_launch, acts.start[calls], acts.lane[calls]))
    begins_batch = np.concatenate(([False], is_launch[order][:-1] | (np.diff(acts.lane[calls][order]) != 0)))
    batch = np.empty(len(calls), np.int64)
    batch[order] = np.cumsum(begins_batch)
    low, high = np.full(len(calls), np.iinfo(np.int64).max), np.full(len(calls), -1, np.int64)
    np.minimum.at(low, batch[~is_launch], peer)
    np.maximum.at(high, batch[~is_launch], peer)
    return low[batch[is_launch]], high[batch[is_launch]]


def values(acts: Activities, column: str, rows: Array, missing: int = -1) -> Array:
    """Return an argument of some activities, `missing` where they lack it or `rows` is -1."""
    argument = acts.args.get(column)
    if argument is None or not len(argument.rows):
        return np.full(len(rows), missing, np.int64)
    order = np.argsort(argument.rows, kind="stable")
    return looked_up(argument.rows[order], argument.values[order], rows, missing)
