"""The JSON of PyTorch's CUPTI backend (2.14): a Kineto trace in, the same recording in the other dialect out.

The differences, as in `torch/profiler/_cupti/monitor_trace.py`: copies and memsets have bare names, with the direction
as arguments; nodes of CUDA graphs may be shown on logical lanes; dependencies between nodes are flows from kernel to
kernel; samples of the device are counters.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = ["Dialect", "awaited_nodes", "in_next_dialect", "nodes_by_launch"]

Event = dict[str, Any]
_COPY: Final = re.compile(r"Memcpy (\w+) \(([\w ]+) -> ([\w ]+)\)")
_FILL: Final = re.compile(r"Memset \(([\w ]+)\)")
_MEMORY: Final = (
    "unknown",
    "pageable",
    "pinned",
    "device",
    "array",
    "managed",
    "device_static",
    "managed_static",
)
"""Words for kinds of memory, by CUPTI's numbers."""
_FIRST_NODE_FLOW: Final = 1 << 40
"""The least id of flows between nodes; launches have ids of 32 bits."""
_FIRST_LANE: Final = 900
"""The first logical lane. Chosen: no stream has this number."""


@dataclass(frozen=True)
class Dialect:
    """The settings of the backend."""

    dependencies: bool = True
    """Whether dependencies between nodes of CUDA graphs are drawn."""
    lanes: int = 0
    """Number of logical lanes on which nodes of CUDA graphs are shown in turn; 0 leaves them on their streams."""
    samples: Sequence[tuple[str, int, float, float]] = field(default_factory=tuple)
    """(name, device, moment in µs as in the file, value) of samples of devices."""


def in_next_dialect(
    trace: Mapping[str, Any],
    dialect: Dialect | None = None,
) -> dict[str, Any]:
    """Return a Kineto trace as PyTorch's CUPTI backend writes the same recording.

    Nodes of one launch of a CUDA graph depend on the node before them on their stream.

    Args:
        trace: the root object of a trace; it is not changed.
        dialect: the settings of the backend.

    Example:
        >>> copy = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pinned -> Device)", "args": {"bytes": 4}}
        >>> in_next_dialect({"traceEvents": [copy]})["traceEvents"][0]["args"]
        {'bytes': 4, 'copy kind': 'HtoD', 'src kind': 'pinned', 'dst kind': 'device'}
    """
    dialect = dialect or Dialect()
    events = [_with_arguments(event) for event in trace["traceEvents"]]
    launches = nodes_by_launch(events)
    flows: list[Event] = []
    if dialect.lanes:
        for nodes in launches:
            _show_on_lanes(nodes, dialect.lanes)
    if dialect.dependencies:
        for nodes in launches:
            flows += _dependency_flows(nodes, _FIRST_NODE_FLOW + len(flows) // 2)
    samples = [_sample(*sample) for sample in dialect.samples]
    return {
        **trace,
        "traceEvents": [*events, *flows, *samples],
    }


def _with_arguments(event: Event) -> Event:
    """Return a copy or memset with a bare name and the direction as arguments; return other events unchanged."""
    if event.get("ph") != "X":
        return event
    name = str(event.get("name"))
    args = dict(event.get("args", {}))
    if copied := _COPY.fullmatch(name):
        source, target = (word.lower().replace(" ", "_") for word in copied.group(2, 3))
        moved = {
            "copy kind": copied[1],
            "src kind": source,
            "dst kind": target,
        }
        return {
            **event,
            "name": "Memcpy",
            "args": {**args, **moved},
        }
    if filled := _FILL.fullmatch(name):
        memory = _MEMORY.index(filled[1].lower().replace(" ", "_"))
        return {
            **event,
            "name": "Memset",
            "args": {**args, "memory kind": memory},
        }
    return {**event, "args": args} if "graph node id" in args else event


def nodes_by_launch(
    events: Iterable[Event],
) -> list[list[Event]]:
    """Return the nodes of each launch of a CUDA graph in the order of their starts."""
    launches: defaultdict[int, list[Event]] = defaultdict(list)
    for event in events:
        args = event.get("args", {})
        if event.get("ph") == "X" and args.get("graph node id"):
            launches[args["correlation"]].append(event)
    return [sorted(nodes, key=lambda node: float(node["ts"])) for nodes in launches.values()]


def _show_on_lanes(nodes: list[Event], lanes: int) -> None:
    """Move the nodes of a launch to logical lanes in turn; their stream becomes an argument."""
    for number, node in enumerate(nodes):
        lane = _FIRST_LANE + number % lanes
        args = node["args"]
        args["original_stream"] = args["stream"]
        args["stream"] = lane
        node["tid"] = lane


def awaited_nodes(
    nodes: Iterable[Event],
) -> list[tuple[Event, Event]]:
    """Return (node, the node before it on its stream) of the nodes of a launch that have one."""
    pairs: list[tuple[Event, Event]] = []
    before: dict[int, Event] = {}
    for node in nodes:
        args = node["args"]
        stream = args.get("original_stream", args["stream"])
        if stream in before:
            pairs.append((node, before[stream]))
        before[stream] = node
    return pairs


def _dependency_flows(nodes: list[Event], first_id: int) -> list[Event]:
    """Return the two ends of a flow to each node from the node before it on its stream."""
    flows: list[Event] = []
    for number, (node, awaited) in enumerate(awaited_nodes(nodes)):
        common = {
            "id": first_id + number,
            "cat": "ac2g",
            "name": "ac2g",
        }
        ended = float(awaited["ts"]) + float(awaited["dur"])
        flows.append(
            {
                "ph": "s",
                "pid": awaited["pid"],
                "tid": awaited["tid"],
                "ts": ended,
                **common,
            }
        )
        begun = {
            "ph": "f",
            "pid": node["pid"],
            "tid": node["tid"],
            "ts": node["ts"],
            **common,
        }
        flows.append({**begun, "bp": "e"})
    return flows


def _sample(name: str, device: int, moment_us: float, value: float) -> Event:
    """Return a sample of a device as a counter, whose only series has no name."""
    return {
        "ph": "C",
        "name": name,
        "pid": f"GPU {device} Counters",
        "ts": moment_us,
        "args": {"": value},
    }
