"""A feeder of Chakra's execution traces that knows their public schema only: it reads, checks and replays them.

The schema is declared anew for protobuf's own library (``et_def.proto``, 0.0.4). A node begins when the nodes of its
dependencies are over; a collective, or a send and its receive, when all its members are ready; all last as they say.
"""

from __future__ import annotations

import heapq
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

METADATA, COMP, SEND, RECV, COLLECTIVE = 1, 4, 5, 6, 7
_TYPES = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7, "bool": 8, "string": 9,
    "bytes": 12, "uint32": 13, "sfixed32": 15, "sfixed64": 16, "sint32": 17, "sint64": 18,
}  # fmt: skip
_VALUES = ("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64",
           "sfixed32", "sfixed64", "bool", "string", "bytes")  # fmt: skip
_FIELDS: dict[str, list[tuple[str, int, str, bool]]] = {
    "AttributeProto": [("name", 1, "string", False), ("doc_string", 2, "string", False)],
    "GlobalMetadata": [("version", 1, "string", False), ("attr", 2, "AttributeProto", True)],
    "IOInfo": [("values", 1, "string", False), ("shapes", 2, "string", False), ("types", 3, "string", False)],
    "Node": [
        ("id", 1, "uint64", False), ("name", 2, "string", False), ("type", 3, "int32", False),
        ("ctrl_deps", 4, "uint64", True), ("data_deps", 5, "uint64", True), ("start_time_micros", 6, "uint64", False),
        ("duration_micros", 7, "uint64", False), ("inputs", 8, "IOInfo", False), ("outputs", 9, "IOInfo", False),
        ("attr", 10, "AttributeProto", True),
    ],
}  # fmt: skip


def _messages() -> dict[str, Any]:
    """Return the classes of the schema's messages."""
    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package="ChakraProtoMsg", syntax="proto3")
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for label, number, kind, repeated in fields:
            one = message.field.add(name=label, number=number, label=3 if repeated else 1)
            if kind in _TYPES:
                one.type = _TYPES[kind]
            else:
                one.type, one.type_name = 11, f".ChakraProtoMsg.{kind}"
        if name == "AttributeProto":
            message.oneof_decl.add(name="value")
            for at, kind in enumerate(_VALUES):  # between them are the lists, of even numbers
                message.field.add(name=f"{kind}_val", number=3 + 2 * at, label=1, type=_TYPES[kind], oneof_index=0)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"ChakraProtoMsg.{name}")) for name in _FIELDS
    }


_CLASSES = _messages()


@dataclass
class Node:
    """A node as read."""

    rank: int
    id: int
    name: str
    type: int
    deps: set[int]
    ctrl: set[int]
    start: int
    lasts: int
    attr: dict[str, Any]


@dataclass
class Job:
    """The files of a folder."""

    nodes: dict[int, dict[int, Node]] = field(default_factory=dict)
    groups: dict[str, list[int]] = field(default_factory=dict)
    versions: set[str] = field(default_factory=set)


def _messages_in(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        size = shift = 0
        while True:
            byte = data[at]
            at += 1
            size |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        assert at + size <= len(data)
        yield data[at : at + size]
        at += size


def read(folder: Path) -> Job:
    """Return what the files of a folder hold; no field or value is unknown to the schema."""
    job = Job(groups=json.loads((folder / "comm_group.json").read_text(encoding="utf-8")))
    for path in sorted(folder.glob("rank.*.et")):
        rank, nodes = int(path.name.split(".")[1]), {}
        head, *others = _messages_in(path.read_bytes())
        job.versions.add(_CLASSES["GlobalMetadata"].FromString(head).version)
        for text in others:
            raw = _CLASSES["Node"].FromString(text)
            assert raw.ByteSize() == len(text) or not raw.id * raw.duration_micros * raw.start_time_micros
            attr = {each.name: getattr(each, each.WhichOneof("value")) for each in raw.attr}
            assert len(attr) == len(raw.attr)
            assert raw.id not in nodes
            nodes[raw.id] = Node(
                rank, raw.id, raw.name, raw.type, set(raw.data_deps) | set(raw.ctrl_deps), set(raw.ctrl_deps),
                raw.start_time_micros, raw.duration_micros, attr,
            )  # fmt: skip
        assert all(dep in nodes for node in nodes.values() for dep in node.deps)
        job.nodes[rank] = nodes
    return job


def _meetings(job: Job) -> dict[tuple[int, int], tuple[Any, ...]]:
    """Return what each communicating node is of: its group and place there, or sender, receiver and tag."""
    found: dict[tuple[int, int], tuple[Any, ...]] = {}
    for rank, nodes in job.nodes.items():
        counts: dict[str, int] = defaultdict(int)
        for node in sorted(nodes.values(), key=lambda node: node.id):
            if node.type == COLLECTIVE:
                group = node.attr["pg_name"]
                assert rank in job.groups[group]
                found[rank, node.id] = (group, counts[group])
                counts[group] += 1
            elif node.type in {SEND, RECV}:
                assert rank == node.attr["comm_src" if node.type == SEND else "comm_dst"]
                found[rank, node.id] = tuple(node.attr[name] for name in ("comm_src", "comm_dst", "comm_tag"))
    return found


def _resource(node: Node) -> str:
    """Return which resource of a rank a node occupies; ASTRA-sim runs one node of each at a time, but any receive."""
    if node.type == RECV:
        return "receive"
    return "cpu" if node.attr["is_cpu_op"] else "gpu" if node.type == COMP else "network"


class _Replay:
    def __init__(self, job: Job, *, limited: bool) -> None:
        self.job, self.limited = job, limited
        self.meetings = _meetings(job)
        self.members: dict[tuple[Any, ...], int] = defaultdict(int)
        for meeting in self.meetings.values():
            self.members[meeting] += 1
        self.arrived: dict[tuple[Any, ...], list[Node]] = defaultdict(list)
        self.waits = {(rank, node.id): len(node.deps) for rank, nodes in job.nodes.items() for node in nodes.values()}
        self.followers: dict[tuple[int, int], list[Node]] = defaultdict(list)
        for rank, nodes in job.nodes.items():
            for node in nodes.values():
                for dep in node.deps:
                    self.followers[rank, dep].append(node)
        self.ends: dict[tuple[int, int], int] = {}
        self.events: list[tuple[int, int, int]] = []
        self.ready: dict[tuple[int, str], list[int]] = defaultdict(list)
        self.busy: set[tuple[int, str]] = set()

    def run(self) -> dict[tuple[int, int], int]:
        for rank, nodes in self.job.nodes.items():
            for node in nodes.values():
                if not node.deps:
                    heapq.heappush(self.ready[rank, _resource(node)], node.id)
            self._issue(rank, 0)
        while self.events:
            time = self.events[0][0]
            freed = set()
            while self.events and self.events[0][0] == time:
                _, rank, number = heapq.heappop(self.events)
                node = self.job.nodes[rank][number]
                self.ends[rank, number] = time
                self.busy.discard((rank, _resource(node)))
                freed.add(rank)
                for follower in self.followers[rank, number]:
                    self.waits[rank, follower.id] -= 1
                    if not self.waits[rank, follower.id]:
                        heapq.heappush(self.ready[rank, _resource(follower)], follower.id)
            for rank in sorted(freed):
                self._issue(rank, time)
        return self.ends

    def _issue(self, rank: int, time: int) -> None:
        for kind in ("cpu", "gpu", "network", "receive"):
            ready = self.ready[rank, kind]
            while ready and not (self.limited and kind != "receive" and (rank, kind) in self.busy):
                node = self.job.nodes[rank][heapq.heappop(ready)]
                self.busy.add((rank, kind))
                meeting = self.meetings.get((rank, node.id))
                if meeting is None:
                    heapq.heappush(self.events, (time + node.lasts, rank, node.id))
                    continue
                self.arrived[meeting].append(node)
                if len(self.arrived[meeting]) == self.members[meeting]:
                    lasts = max(each.lasts for each in self.arrived[meeting])
                    for each in self.arrived[meeting]:
                        heapq.heappush(self.events, (time + lasts, each.rank, each.id))


def replay(job: Job, *, limited: bool = False) -> dict[tuple[int, int], int]:
    """Return when each node ends, µs, by rank and id; `limited`: each rank runs one node of each resource at a time."""
    ends = _Replay(job, limited=limited).run()
    assert len(ends) == sum(map(len, job.nodes.values())), "some nodes never begin"
    return ends
