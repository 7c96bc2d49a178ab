"""The `.pftrace` of PyTorch's CUPTI backend (2.14): a Kineto trace in, the same recording in Perfetto's format out.

As in `torch/profiler/_cupti/monitor_trace.py`: work of the host is slices of tracks, all begins of a group and
then their ends in the same order; work of a device is stages, with arguments as texts; names are interned; nodes
of CUDA graphs name the stages that they waited for; samples are counters of a device. The format has no place for
ranks, groups, devices, directions of copies and allocations.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from htagraph.simulate.next_json import Dialect, awaited_nodes, in_next_dialect, nodes_by_launch

__all__ = ["as_pftrace", "message", "packet"]

Event = dict[str, Any]
_STAGES: Final = {
    "kernel": (1, "Kernel"),
    "gpu_memcpy": (2, "Memcpy"),
    "gpu_memset": (3, "Memset"),
    "gpu_user_annotation": (4, "Annotation"),
    "graph_event_node": (5, "EventRecord"),
    "graph_host_node": (6, "HostNode"),
}
"""Number and name of the stage of each category."""
_NAMED: Final = ("kernel", "gpu_user_annotation")
"""Categories whose stages have names of their own."""
_RUNTIME: Final = ("cuda_runtime", "cuda_driver")
_FIRST_QUEUE: Final = 100
"""Number of the first hardware queue: behind the numbers of stages, as PyTorch has it."""
_SEQUENCE: Final = 1
"""The sequence of all packets, as PyTorch has it."""
_STAGE_KEYS: Final = {
    "device": "device id",
    "context": "context id",
    "stream": "stream id",
}
"""Keys of stages' arguments, where they differ from JSON's."""
_NOT_WRITTEN: Final = frozenset(
    {
        "External id",
        "block",
        "blocks per SM",
        "copy kind",
        "dst kind",
        "est. achieved occupancy %",
        "grid",
        "memory bandwidth (GB/s)",
        "original_stream",
        "registers per thread",
        "shared memory",
        "src kind",
        "warps per SM",
    }
)
"""Arguments of device work that this format does not have, or has elsewhere."""


def _varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def message(
    *fields: tuple[int, int | float | str | bytes],
) -> bytes:
    """Return a message of fields, each (number, value): an integer, a float64, a text, or the bytes of a message.

    Example:
        >>> message((1, 150), (2, "a")).hex()
        '089601120161'
    """
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += _varint(number << 3) + _varint(value)
        elif isinstance(value, float):
            out += _varint(number << 3 | 1) + struct.pack("<d", value)
        else:
            content = value.encode() if isinstance(value, str) else value
            out += _varint(number << 3 | 2) + _varint(len(content)) + content
    return bytes(out)


def packet(
    *fields: tuple[int, int | float | str | bytes],
) -> bytes:
    """Return a packet of a trace."""
    return message((1, message(*fields)))


def as_pftrace(
    trace: Mapping[str, Any],
    dialect: Dialect | None = None,
) -> bytes:
    """Return a Kineto trace as PyTorch's CUPTI backend writes the same recording to a `.pftrace`, not packed.

    Args:
        trace: the root object of a trace; it is not changed.
        dialect: the settings of the backend.

    Example:
        >>> step = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 2}
        >>> as_pftrace({"traceEvents": [step]}).count(b"aten::mm")
        1
    """
    dialect = dialect or Dialect()
    written = in_next_dialect(
        trace,
        Dialect(
            lanes=dialect.lanes,
            samples=dialect.samples,
        ),
    )
    writer = _Writer(int(written.get("baseTimeNanoseconds", 0)))
    timed = [event for event in written["traceEvents"] if event.get("ph") == "X"]
    writer.name_threads(event for event in written["traceEvents"] if event.get("ph") == "M")
    on_device = [event for event in timed if event.get("cat") in _STAGES]
    on_host = [
        event
        for event in timed
        if event.get("cat")
        not in (
            *_STAGES,
            *_RUNTIME,
            "cuda_sync",
            "Trace",
        )
    ]
    writer.add_slices(on_host)
    for category in _RUNTIME:
        writer.add_slices(event for event in timed if event.get("cat") == category)
    writer.add_slices(_as_slice(event) for event in timed if event.get("cat") == "cuda_sync")
    writer.add_stages(
        on_device,
        _awaited(on_device) if dialect.dependencies else {},
    )
    writer.add_samples(event for event in written["traceEvents"] if event.get("ph") == "C")
    return writer.written()


def _awaited(
    on_device: Sequence[Event],
) -> dict[int, int]:
    """Return the place of the stage that each stage waited for, by the place of the latter."""
    place = {id(event): number for number, event in enumerate(on_device)}
    pairs = [pair for nodes in nodes_by_launch(on_device) for pair in awaited_nodes(nodes)]
    return {place[id(node)]: place[id(awaited)] for node, awaited in pairs}


def _as_slice(event: Event) -> Event:
    """Return a synchronization as a slice: on the track of a stream, without a category."""
    args = event.get("args", {})
    lane = {
        "pid": args.get("device", 0),
        "tid": args.get("stream", 0),
    }
    return {
        **event,
        **lane,
        "cat": "",
        "args": {
            **args,
            "cuda_sync_kind": event["name"],
        },
    }


class _Writer:
    """Collects packets, and the names that they refer to."""

    def __init__(self, base_ns: int) -> None:
        self._base_ns = base_ns
        self._tracks: dict[tuple[Any, ...], int] = {}
        self._titles: dict[tuple[Any, ...], str] = {}
        self._described: list[bytes] = []
        self._names: dict[str, int] = {}
        self._categories: dict[str, int] = {}
        self._kernels: dict[str, int] = {}
        self._queues: dict[int, int] = {}
        self._packets: list[bytes] = []

    def name_threads(self, events: Iterable[Event]) -> None:
        """Note the names that metadata events give to processes and threads."""
        for event in events:
            title = str(event.get("args", {}).get("name", ""))
            if event.get("name") == "process_name":
                self._titles[event.get("pid"),] = title
            elif event.get("name") == "thread_name":
                self._titles[
                    event.get("pid"),
                    event.get("tid"),
                ] = title

    def add_slices(self, events: Iterable[Event]) -> None:
        """Add the begins of a group of events, and then their ends."""
        ends = []
        for event in events:
            start = self._ns(event["ts"])
            is_overhead = event.get("cat") == "overhead"
            track = self._track(
                -1 if is_overhead else event["pid"],
                0 if is_overhead else event["tid"],
                is_overhead=is_overhead,
            )
            category = "" if is_overhead else event.get("cat") or ""
            fields: list[tuple[int, int | bytes]] = []
            if category:
                fields.append(
                    (
                        3,
                        _number(
                            self._categories,
                            category,
                        ),
                    )
                )
            fields += [(4, _annotation(key, value)) for key, value in event.get("args", {}).items()]
            fields += [
                (9, 1),
                (
                    10,
                    _number(self._names, event["name"]),
                ),
                (11, track),
            ]
            self._add(
                start,
                (11, message(*fields)),
                (13, 2),
            )
            ends.append(
                (
                    start + _duration_ns(event),
                    message((9, 2), (11, track)),
                )
            )
        for time, end in ends:
            self._add(time, (11, end))

    def add_stages(
        self,
        events: Sequence[Event],
        awaited: Mapping[int, int],
    ) -> None:
        """Add the work of a device; `awaited` is the place of the stage that each one waited for."""
        for place, event in enumerate(events):
            args = event.get("args", {})
            lane = int(args.get("stream", event["tid"]))
            stage, _ = _STAGES[event["cat"]]
            fields: list[tuple[int, int | bytes]] = [
                (1, place + 1),
                (2, _duration_ns(event)),
                (5, 1),
            ]
            fields += [(6, message((1, key), (2, text))) for key, text in _extra(args)]
            queue = _FIRST_QUEUE + self._queues.setdefault(lane, len(self._queues))
            fields += [
                (
                    11,
                    int(args.get("device", event["pid"])),
                ),
                (13, queue),
                (14, stage),
            ]
            if place in awaited:
                fields.append((18, awaited[place] + 1))
            if event["cat"] in _NAMED:
                fields += [
                    (
                        19,
                        _number(
                            self._kernels,
                            event["name"],
                        ),
                    ),
                    (
                        20,
                        _number(
                            self._names,
                            event["name"],
                        ),
                    ),
                ]
            if "grid" in args:
                fields.append((21, _launch(args)))
            self._add(
                self._ns(event["ts"]),
                (53, message(*fields)),
                (13, 2),
            )

    def add_samples(
        self,
        events: Iterable[Event],
    ) -> None:
        """Add samples of devices, given as counters of JSON."""
        samples = list(events)
        counters: dict[str, int] = {}
        for event in samples:
            counters.setdefault(event["name"], len(counters))
        specs = [(1, message((1, number), (2, name))) for name, number in counters.items()]
        for place, event in enumerate(samples):
            (value,) = event["args"].values()
            device = int(str(event["pid"]).split()[1])
            sample = message(
                (1, counters[event["name"]]),
                (3, float(value)),
            )
            fields: list[tuple[int, int | bytes]] = [(2, sample), (3, device)]
            if place == 0:
                fields.append((1, message(*specs)))
            self._add(
                self._ns(event["ts"]),
                (52, message(*fields)),
            )

    def written(self) -> bytes:
        """Return all packets: clocks, tracks, names, and then events."""
        clocks = [
            (
                1,
                message((1, clock), (2, self._base_ns)),
            )
            for clock in (6, 1)
        ]
        snapshot = packet(
            (6, message(*clocks)),
            (8, self._base_ns),
            (10, _SEQUENCE),
        )
        interned = [(1, message((1, number), (2, text))) for text, number in self._categories.items()]
        interned += [(2, message((1, number), (2, text))) for text, number in self._names.items()]
        interned += [(24, message((1, number), (2, text))) for number, text in _STAGES.values()]
        for lane, number in self._queues.items():
            interned.append(
                (
                    24,
                    message(
                        (1, _FIRST_QUEUE + number),
                        (
                            2,
                            f"[{lane}] stream {lane}",
                        ),
                    ),
                )
            )
        interned += [(1000, message((1, number), (3, text))) for text, number in self._kernels.items()]
        interned += [(1001, message((1, number), (2, text))) for number, text in _LAUNCH_NAMES.items()]
        names = packet(
            (10, _SEQUENCE),
            (12, message(*interned)),
            (13, 1),
        )
        return b"".join(
            [
                snapshot,
                *self._described,
                names,
                *self._packets,
            ]
        )

    def _add(
        self,
        time: int,
        *fields: tuple[int, int | bytes],
    ) -> None:
        self._packets.append(packet((8, time), (10, _SEQUENCE), *fields))

    def _ns(self, moment_us: Any) -> int:  # noqa: ANN401 - a number, maybe as text
        return self._base_ns + round(float(moment_us) * 1000)

    def _track(
        self,
        pid: int | str,
        tid: int | str,
        *,
        is_overhead: bool,
    ) -> int:
        process = ("Overhead",) if is_overhead else (pid,)
        thread = (*process, tid)
        if process not in self._tracks:
            uuid = _number(self._tracks, process)
            title = "Overhead" if is_overhead else self._titles.get(process, str(pid))
            described = message(
                (1, uuid),
                (
                    3,
                    message((1, _id(pid)), (6, title)),
                ),
            )
            self._described.append(packet((60, described)))
        if thread not in self._tracks:
            uuid = _number(self._tracks, thread)
            named = message(
                (1, _id(pid)),
                (2, _id(tid)),
                (
                    5,
                    self._titles.get(thread, str(tid)),
                ),
            )
            described = message(
                (1, uuid),
                (4, named),
                (5, self._tracks[process]),
            )
            self._described.append(packet((60, described)))
        return self._tracks[thread]


_LAUNCH_NAMES: Final = {
    1: "registers_per_thread",
    2: "shared_mem_dynamic",
}


def _number(interned: dict[Any, int], key: Any) -> int:  # noqa: ANN401 - a text or a tuple
    return interned.setdefault(key, len(interned) + 1)


def _id(value: Any) -> int:  # noqa: ANN401 - a number or a text
    """Return the number of a process or thread: 31 bits of it."""
    return value & 0x7FFF_FFFF if isinstance(value, int) else 1


def _duration_ns(event: Event) -> int:
    return round(float(event["dur"]) * 1000)


def _annotation(key: str, value: object) -> bytes:
    """Return an argument of a slice."""
    return message(*_value(value), (10, key))


def _value(value: object) -> list[tuple[int, Any]]:
    """Return the fields that hold a value."""
    if isinstance(value, bool):
        return [(4, int(value))]
    if isinstance(value, int):
        return [(4 if value < 2**63 else 3, value)]
    if isinstance(value, float):
        return [(5, value)]
    if isinstance(value, list):
        return [(12, message(*_value(item))) for item in value]
    return [(6, str(value))]


def _extra(
    args: Mapping[str, Any],
) -> Iterable[tuple[str, str]]:
    """Yield (key, text) of the arguments of a stage; zeros stand for none."""
    args = {**args, "stream": args["original_stream"]} if "original_stream" in args else args
    for key, value in args.items():
        if key not in _NOT_WRITTEN and (value != 0 or key in _STAGE_KEYS):
            yield (
                _STAGE_KEYS.get(key, key),
                str(value),
            )


def _launch(args: Mapping[str, Any]) -> bytes:
    """Return the launch of a kernel: grid, block, registers and shared memory."""
    sizes = [
        (
            number,
            message(*enumerate(map(int, args[key]), 1)),
        )
        for number, key in (
            (1, "grid"),
            (2, "block"),
        )
        if key in args
    ]
    numbers = (
        args.get("registers per thread", 0),
        args.get("shared memory", 0),
    )
    given = [(3, message((1, iid), (4, int(value)))) for iid, value in enumerate(numbers, 1) if value]
    return message(*sizes, *given)
