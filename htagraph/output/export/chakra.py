"""Execution traces of MLCommons' Chakra: a file per rank of nodes and dependencies, for simulators such as ASTRA-sim.

The numbers of fields and enumerations are those of Chakra's ``et_def.proto``, schema 0.0.4. A file is a
``GlobalMetadata`` and then ``Node`` after ``Node``, each behind its length as a varint.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import numpy as np

from htagraph.core.arrays import Array, Ints, spread
from htagraph.core.compiled import njit
from htagraph.core.errors import HtagraphError, check_type
from htagraph.core.kinds import COMMUNICATION, ActivityKind, of_kinds
from htagraph.core.naming import transfer_direction
from htagraph.graph.construction.matching.members import describing, values
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.export.chakra_nodes import Nodes, nodes_of
from htagraph.output.export.packet_writer import field, message, put_varint, varint, varint_bytes
from htagraph.output.export.trace_writer import put_text
from htagraph.output.whole_files import write_whole

__all__ = ["ChakraFiles", "to_chakra"]

_VERSION = "0.0.4"
_GROUPS = "comm_group.json"
_METADATA, _COMP, _SEND, _RECV, _COLLECTIVE = 1, 4, 5, 6, 7  # NodeType
_COMM_TYPES: Final = {
    "all_reduce": 0, "reduce": 1, "all_gather": 2, "gather": 3, "scatter": 4, "broadcast": 5, "all_to_all": 6,
    "reduce_scatter": 7, "barrier": 9, "send_recv": 6,
}  # fmt: skip
"""CollectiveCommType by operation; a pair whose direction no record tells exchanges: an all-to-all of two."""
_INT32, _INT64, _BOOL, _STRING = 7, 9, 27, 29  # values of AttributeProto
_VARINT_BYTES: Final = 9
"""Bytes of a varint of 63 bits."""
_NODE_BYTES: Final = 7 * (_VARINT_BYTES + 1)
"""Bytes that a node's length, numbers and the lengths of its lists take at most, with their tags."""


@dataclass(frozen=True)
class ChakraFiles:
    """What `to_chakra` wrote."""

    traces: tuple[Path, ...]
    """A file per rank, ascending: ``rank.<rank>.et``."""
    groups: Path
    """``comm_group.json``: the ranks of each process group, by the number that nodes have as ``pg_name``."""
    nodes: int
    dependencies: int
    moved: int
    """Dependencies that the recorded clocks contradict, and that lead from an earlier moment of the same thread."""
    unmatched: int
    """Communication of which no other rank's part was recorded or matched: computation that lasts as recorded."""
    unsized: int
    """Nodes of communication without ``comm_size``, because the recording does not tell the size."""

    @property
    def sentences(self) -> list[str]:
        """What was written, and what the files lack."""
        count = len(self.traces)
        lines = [
            f"{self.groups.parent}{os.sep}: {count} execution trace{'' if count == 1 else 's'} of Chakra, "
            f"{self.nodes:,} nodes, {self.dependencies:,} dependencies; {self.groups.name} has the process groups."
        ]
        if self.unmatched:
            lines.append(
                f"Communication without a matched partner: {self.unmatched:,}, written as computation that lasts as "
                "recorded, waits included. Give the traces of all ranks."
            )
        if self.unsized:
            lines.append(
                f"Nodes of communication without a size: {self.unsized:,}. A replay needs none, a simulated network "
                "does (PyTorch records sizes since 2.4; exports of Nsight Systems have them with --include-json=true)."
            )
        return lines


def to_chakra(graph: DependencyGraph, folder: str | os.PathLike[str]) -> ChakraFiles:
    """Write a job as Chakra execution traces (MLCommons, schema 0.0.4): a file per rank with our dependencies.

    A feeder that starts each node when the nodes of its dependencies are over, starts collectives when all members are
    ready, and lets each node last ``duration_micros``, gives back the recorded times to the µs. Each file is there
    whole or not at all.

    Args:
        graph: any graph of recorded traces.
        folder: where to write; it is made if it is not there, and files of these names in it are replaced.

    Returns:
        `ChakraFiles`. Nodes are numbered in order of time, ``data_deps`` has all dependencies, and ``ctrl_deps`` those
        that are the order of a program (of a thread or stream, from a launch to its work). Nodes are

        ``COMP_NODE``: time of a thread (``is_cpu_op``, ``tid``), named by the innermost event; a kernel, copy or
        memset (``stream``); or time before one that no dependency explains (``before <name>``).

        ``COMM_COLL_NODE``: a member of a collective, as long as the transfer, without the wait for others:
        ``comm_type``, ``comm_size`` (bytes of the whole message, where known), ``pg_name``, ``comm_tag`` (its number in
        the group). ``COMM_SEND_NODE`` and ``COMM_RECV_NODE`` also have ``comm_src`` and ``comm_dst``, and wait for each
        other. What a member takes longer than the quickest one is a node of computation behind it.

        ``METADATA_NODE``: the end of a step, without duration.

    Raises:
        HtagraphError: the folder holds the traces themselves, or execution traces of other ranks.
        GraphError: ranks depend on each other outside of matched communication.
        OSError: a file cannot be written.

    Example:
        >>> import tempfile
        >>> import htagraph as hg
        >>> files = hg.to_chakra(hg.load("data/demo"), tempfile.mkdtemp())
        >>> [path.name for path in files.traces], files.unmatched
        (['rank.0.et', 'rank.1.et', 'rank.2.et', 'rank.3.et'], 0)

    Source: ``schema/protobuf/et_def.proto`` of github.com/mlcommons/chakra.
    """
    check_type(graph, DependencyGraph, "htagraph.to_chakra takes a graph (of a job on workers: job.load([0, 1]))")
    target = Path(folder)
    files = {rank: target / f"rank.{rank}.et" for rank in graph.ranks}
    _check_folder(graph, target, set(files.values()))
    nodes = nodes_of(graph)
    rows = _rows(graph, nodes)
    target.mkdir(parents=True, exist_ok=True)
    for rank, path in files.items():
        write_whole(path, _trace(graph, nodes, rows, rank))
    write_whole(target / _GROUPS, msgspec.json.format(msgspec.json.encode(rows.groups), indent=1))
    kinds = of_kinds(graph.activities.kind, COMMUNICATION)
    return ChakraFiles(
        tuple(files.values()), target / _GROUPS, len(nodes.rank), len(nodes.source), nodes.moved,
        int(kinds.sum()) - len(nodes.meetings.activity), rows.unsized,
    )  # fmt: skip


def _check_folder(graph: DependencyGraph, folder: Path, files: set[Path]) -> None:
    """Refuse a folder of traces, which would hold a file more that is none, and one that would mix two jobs."""
    if not folder.is_dir():
        if folder.exists():
            msg = f"{folder}: is a file, not a folder; name another folder"
            raise HtagraphError(msg)
        return
    place = folder.resolve()
    if any(isinstance(trace.path, Path) and trace.path.parent.resolve() == place for trace in graph.traces.values()):
        msg = f"{folder}: holds the traces themselves; name another folder for execution traces"
        raise HtagraphError(msg)
    others = sorted(set(folder.glob("rank.*.et")) - files)
    if others:
        msg = f"{others[0]}: is of another job, which would be mixed with this one; name another folder, or remove it"
        raise HtagraphError(msg)


class _Fields(NamedTuple):
    """What is written of each node besides its times and dependencies."""

    order: Ints
    """Nodes by rank, those of each rank in order."""
    number: Ints
    """The id of each node: its place among those of its rank."""
    kind: Ints
    """NodeType."""
    name: Ints
    """Index into the graph's names, and from their number on the same as a time before that."""
    attributes: Ints
    """Index into `texts`."""
    texts: list[bytes]
    """Encoded attributes."""
    groups: dict[str, list[int]]
    unsized: int


def _rows(graph: DependencyGraph, nodes: Nodes) -> _Fields:
    acts = graph.activities
    order = np.argsort(nodes.rank, kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order)) - np.searchsorted(nodes.rank[order], nodes.rank[order])
    kind = np.full(len(order), _COMP)
    owner = nodes.activity
    name = acts.name[owner] + len(graph.names) * nodes.before
    attributes = acts.lane[owner].astype(np.int64)
    texts = [
        _attribute("is_cpu_op", _BOOL, int(lane.stream < 0))
        + (_attribute("stream", _INT64, lane.stream) if lane.stream >= 0 else _thread(lane.tid))
        for lane in graph.lanes
    ]
    is_end = acts.kind[owner] == ActivityKind.BOUNDARY
    kind[is_end], attributes[is_end] = _METADATA, len(texts)
    texts.append(_attribute("is_cpu_op", _BOOL, 1))
    groups, types, parts, unsized = _communication(graph, nodes)
    at = np.flatnonzero(nodes.member >= 0)
    kind[at], attributes[at] = types[nodes.member[at]], len(texts) + nodes.member[at]
    texts += parts
    return _Fields(order, number, kind, name, attributes, texts, groups, unsized)


def _communication(graph: DependencyGraph, nodes: Nodes) -> tuple[dict[str, list[int]], Array, list[bytes], int]:
    """Return (ranks of each group, type of each member's node, its attributes, how many have no size)."""
    matches, acts, members = graph.matches, graph.activities, nodes.meetings
    if matches is None or not len(members.activity):
        return {}, np.zeros(0, np.int64), [], 0
    ranks = acts.rank[members.activity]
    size = np.full(len(acts), -1, np.int64)
    size[matches.activity] = matches.bytes
    way = _ways(graph, members.activity)
    groups: dict[tuple[str, tuple[int, ...]], int] = {}
    kinds, texts = np.full(len(ranks), _COLLECTIVE), list[bytes]()
    first = np.searchsorted(members.collective, np.arange(matches.count + 1)).tolist()
    for collective in np.unique(members.collective).tolist():
        rows = range(first[collective], first[collective + 1])
        present = tuple(sorted(ranks[rows.start : rows.stop].tolist()))
        number = groups.setdefault((matches.group[collective], present), len(groups) + 1)
        op = matches.op[collective]
        kind = [_attribute("comm_type", _INT64, _COMM_TYPES[op])] if op in _COMM_TYPES else []
        group = [_attribute("pg_name", _STRING, str(number))]
        sender = _sender(op, ranks[rows.start : rows.stop].tolist(), way[rows.start : rows.stop].tolist())
        for row in rows:
            known = int(size[members.activity[row]])
            if sender is not None:
                kinds[row] = _SEND if ranks[row] == sender[0] else _RECV
                ends = {"comm_src": sender[0], "comm_dst": sender[1], "comm_tag": collective}
                parts = (_attribute(name, _INT32, value) for name, value in ends.items())
                texts.append(b"".join((*group, _sized(known), *parts)))
            else:
                texts.append(b"".join((*group, *kind, _sized(known), _attribute("comm_tag", _INT32, collective))))
    listed = {str(number): list(present) for (_, present), number in groups.items()}
    return listed, kinds, texts, int((size[members.activity] < 0).sum())


def _ways(graph: DependencyGraph, rows: Array) -> Ints:
    """Return 1 for a send, -1 for a receive, 0 for anything else, by arguments or names."""
    acts = graph.activities
    asked = values(acts, "collective_name", describing(acts, rows))
    code = np.where(asked >= 0, asked, acts.name[rows])
    codes, at = np.unique(code, return_inverse=True)
    return np.array([transfer_direction(graph.names[each]) for each in codes.tolist()], np.int64)[at]


def _sender(op: str, ranks: list[int], ways: list[int]) -> tuple[int, int] | None:
    """Return the ranks of a pair that sends and that receives; None where it is no pair, or no record tells."""
    if op != "send_recv" or len(ranks) != 2 or not any(ways):
        return None
    sends = ways[0] > 0 or (not ways[0] and ways[1] < 0)
    return (ranks[0], ranks[1]) if sends else (ranks[1], ranks[0])


def _sized(size: int) -> bytes:
    return _attribute("is_cpu_op", _BOOL, 0) + (_attribute("comm_size", _INT64, size) if size >= 0 else b"")


def _thread(tid: int | str) -> bytes:
    return _attribute("tid", _INT64, tid & (1 << 64) - 1) if isinstance(tid, int) else _attribute("tid", _STRING, tid)


def _attribute(name: str, kind: int, value: int | str) -> bytes:
    """Return an attribute of a node: field 10, with its name (1) and a value of a kind."""
    return field(10, message((1, name), (kind, value)))


def _trace(graph: DependencyGraph, nodes: Nodes, rows: _Fields, rank: int) -> bytes:
    ranks = nodes.rank[rows.order]
    own = rows.order[np.searchsorted(ranks, rank) : np.searchsorted(ranks, rank, side="right")]
    used, name = np.unique(rows.name[own], return_inverse=True)
    names = [*graph.names, *(f"before {name}" for name in graph.names)]
    texts = [field(2, names[code]) for code in used.tolist()]
    some, attributes = np.unique(rows.attributes[own], return_inverse=True)
    texts += [rows.texts[code] for code in some.tolist()]
    owner, at = spread(nodes.first[own], nodes.first[own + 1])
    first = np.searchsorted(owner, np.arange(len(own) + 1))
    columns = np.stack((
        rows.number[own], rows.kind[own], nodes.start[own], nodes.duration[own], name, len(used) + attributes
    ), axis=1)  # fmt: skip
    bounds = np.concatenate(([0], np.cumsum([len(text) for text in texts], dtype=np.int64)))
    length = np.diff(bounds)
    size = int(length[columns[:, 4:]].sum()) + _NODE_BYTES * len(own) + 2 * _VARINT_BYTES * len(at)
    out, whole = np.empty(size, np.uint8), np.frombuffer(b"".join(texts), np.uint8)
    end = _fill(columns, (first, rows.number[nodes.source[at]], nodes.control[at]), (whole, bounds), out)
    about = {"producer": f"htagraph {version('htagraph')}", "rank": str(rank)}
    head = message((1, _VERSION), *((2, message((1, name), (_STRING, text))) for name, text in about.items()))
    return b"".join((varint(len(head)), head, out[:end].data))


@njit(cache=True, nogil=True)
def _fill(columns: Array, needs: tuple[Array, Array, Array], texts: tuple[Array, Array], out: Array) -> int:
    """Write the nodes: id (1), name (2), type (3), ctrl_deps (4), data_deps (5), start (6), duration (7), attr (10)."""
    (first, source, control), (text, bounds) = needs, texts
    at, known, length = 0, text.ctypes.data, np.diff(bounds)
    for row in range(len(columns)):
        number, kind, start, lasts, name, attributes = columns[row]
        every = ordered = 0
        for place in range(first[row], first[row + 1]):
            size = varint_bytes(source[place])
            every += size
            ordered += size if control[place] else 0
        size = length[name] + length[attributes]
        size += 4 + varint_bytes(number) + varint_bytes(kind) + varint_bytes(start) + varint_bytes(lasts)
        size += 1 + varint_bytes(ordered) + ordered if ordered else 0
        size += 1 + varint_bytes(every) + every if every else 0
        at = put_varint(out, at, size)
        out[at] = 0x08
        at = put_varint(out, at + 1, number)
        at = put_text(out, at, known + bounds[name], length[name])
        out[at] = 0x18
        at = put_varint(out, at + 1, kind)
        for tag, list_bytes in ((0x22, ordered), (0x2A, every)):
            if list_bytes:
                out[at] = tag
                at = put_varint(out, at + 1, list_bytes)
                for place in range(first[row], first[row + 1]):
                    if control[place] or tag == 0x2A:
                        at = put_varint(out, at, source[place])
        out[at] = 0x30
        at = put_varint(out, at + 1, start)
        out[at] = 0x38
        at = put_varint(out, at + 1, lasts)
        at = put_text(out, at, known + bounds[attributes], length[attributes])
    return at
