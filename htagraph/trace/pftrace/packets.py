"""A file → its packets, and the facts that hold for all events: interned texts, tracks, clocks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from htagraph.core.arrays import Array, Ints, looked_up
from htagraph.core.errors import IssueLog, NotATraceError
from htagraph.trace.kineto.scan.grammar import Bytes, rows_address, text_address, with_padding
from htagraph.trace.kineto.source import iter_bytes
from htagraph.trace.pftrace import wire
from htagraph.trace.pftrace.messages import Message, UnreadableError, fields, named, signed, text_of
from htagraph.trace.pftrace.scan import STAGE_EVENT, TRACK_EVENT
from htagraph.trace.remote import TracePath

__all__ = [
    "ANNOTATION_NAMES",
    "ARGUMENT_NAMES",
    "CATEGORY_NAMES",
    "DEVICE_COUNTERS",
    "EVENT_NAMES",
    "KERNELS",
    "STAGES",
    "TEXT_VALUES",
    "Packets",
    "SliceTrack",
    "packets_of",
    "refuse_foreign",
    "text_of_file",
]

CATEGORY_NAMES, EVENT_NAMES, ANNOTATION_NAMES = range(1, 4)
STAGES: Final = 24
"""A kind of interned texts, as all here: the number of its field in the message. Stages and hardware queues."""
TEXT_VALUES: Final = 29
"""Values of arguments, as interned."""
KERNELS: Final = 1000
"""Names of kernels, as interned."""
ARGUMENT_NAMES: Final = 1001
"""Names of arguments of launches, as interned."""
_TEXT_FIELD: Final = {KERNELS: 3}
"""Number of the field that holds the text of an interned message, where it is not 2."""

_CLOCKS: Final = 6
"""A kind of bodies that are read one by one, as the next three: the number of its field in a packet."""
_INTERNED: Final = 12
"""Number of the field of interned texts."""
_DEFAULTS: Final = 59
"""Number of the field of defaults."""
_DESCRIPTION: Final = 60
"""Number of the field that describes a track."""
DEVICE_COUNTERS: Final = 52
"""Number of the field of samples of a device."""
_NOT_EVENTS: Final = frozenset(
    {
        0,
        _CLOCKS,
        _INTERNED,
        _DEFAULTS,
        _DESCRIPTION,
    }
)
_ABOUT_TRACE: Final = frozenset({33, 35, 36, 45, 69, 89})
"""Kinds of bodies about the recording as a whole: configuration, statistics, trigger, system, service, id."""
_MOST_BYTES: Final = int(np.iinfo(np.int32).max)
"""Bytes of a message, at most: positions in it are the upper half of an int64. It cannot be doubled."""
_REALTIME: Final = 1
"""Number of the clock that counts from 1970, by the format."""
_BOOTTIME: Final = 6
"""Number of the clock of packets that name none, by the format."""
_CLEARED: Final = 1
"""Flag of a packet from which on earlier interned texts are forgotten, by the format."""
_LISTED: Final = 5
"""Kinds of messages that an issue lists. Chosen: a line. Doubled, the line is longer."""

Texts: TypeAlias = dict[int, str]


class SliceTrack(NamedTuple):
    """A track of events."""

    pid: int
    tid: int | str
    """Number of a thread, or the name of a track that is none."""
    name: str
    process: str
    """Name of the process."""


@dataclass(frozen=True, eq=False)
class Packets:
    """The packets of a file."""

    text: Bytes
    bodies: Ints
    """The messages in packets, one row each, see `wire`."""
    state: Ints
    """By body: number of the names that are interned there; names of one state are looked up in `interned`."""
    interned: dict[tuple[int, int], Texts]
    """By state and kind: interned texts by id."""
    tracks: dict[int, SliceTrack]
    """By id."""
    default_track: dict[int, int]
    """By state: the track of events that name none."""
    default_clock: dict[int, int]
    """By state: the clock of packets that name none."""
    offsets: dict[int, int]
    """By clock: ns that are added to its times, to have times on the clock of most packets."""
    base_ns: int | None
    """When that clock began, ns since 1970; None if no packet says so."""

    @cached_property
    def event_bodies(self) -> Ints:
        """The bodies that hold an event, as indices."""
        return np.flatnonzero(
            np.isin(
                self.bodies[:, wire.KIND],
                (TRACK_EVENT, STAGE_EVENT),
            )
        )

    def count(self, kind: int) -> int:
        """Return the number of bodies of a kind."""
        return int(np.count_nonzero(self.bodies[:, wire.KIND] == kind))

    def interned_at(
        self,
        body: int,
        kind: int,
    ) -> Texts:
        """Return the interned texts of a kind that a body may refer to, by id."""
        state = int(self.state[body])
        return self.interned.get((state, kind), {})

    def interned_texts(self, kind: int) -> list[str]:
        """Return the interned texts of a kind."""
        return [
            text
            for (
                _,
                of,
            ), texts in self.interned.items()
            if of == kind
            for text in texts.values()
        ]

    def sequences(self, bodies: Array) -> Ints:
        """Return the sequence of packets that each body is in."""
        return self.bodies[bodies, wire.SEQUENCE]

    def message(self, body: int) -> bytes:
        """Return the bytes of a body."""
        start, stop = self.bodies[body, [wire.START, wire.STOP]].tolist()
        return self.text[start:stop].tobytes()

    def times(self, bodies: Array) -> tuple[Ints, Array]:
        """Return (the time of each body, ns, whether the clock is known)."""
        times = self.bodies[bodies, wire.TIME]
        clock = self.bodies[bodies, wire.CLOCK]
        if (clock == wire.NO_CLOCK).all() and not self.default_clock:
            return times, np.ones(len(bodies), np.bool_)
        unnamed = clock == wire.NO_CLOCK
        states = np.array(sorted(self.default_clock), np.int64)
        defaults = np.array(
            [self.default_clock[number] for number in states.tolist()],
            np.int64,
        )
        clock = np.where(
            unnamed,
            looked_up(
                states,
                defaults,
                self.state[bodies],
                _BOOTTIME,
            ),
            clock,
        )
        numbers = np.array(sorted(self.offsets), np.int64)
        offsets = np.array(
            [self.offsets[number] for number in numbers.tolist()],
            np.int64,
        )
        return times + looked_up(numbers, offsets, clock, 0), np.isin(clock, numbers)


def text_of_file(
    path: TracePath,
    log: IssueLog,
    progress: Callable[[int], None] | None = None,
) -> Bytes:
    """Return the bytes of a file, unpacked, as compiled code reads them."""
    pieces = iter_bytes(path, log, progress, check=refuse_foreign)
    return with_padding(b"".join(pieces))


_PADDING: Final = len(with_padding(b""))
"""Bytes behind the text of a file, which are not of the file."""
_TEXT_BEGINS: Final = (b"{", b"[")


def refuse_foreign(head: bytes, path: object) -> None:
    """Refuse a file that is JSON, whatever its name."""
    if head.lstrip().startswith(_TEXT_BEGINS):
        msg = f"{path}: JSON, not Perfetto's native format; give the file a name that ends in .json"
        raise NotATraceError(msg)


def packets_of(
    text: Bytes,
    log: IssueLog,
    *,
    whole: bool = True,
) -> Packets:
    """Return the packets of a text.

    Args:
        text: the bytes of a file, with padding.
        log: gets an issue for packets that cannot be read.
        whole: whether the text is all of the file.

    Raises:
        NotATraceError: the text holds no packet.
    """
    bodies = _bodies(text, log, whole=whole)
    state = _states(bodies)
    kinds = bodies[:, wire.KIND]
    described = _Described(text, bodies, state, log)
    for body in np.flatnonzero(
        np.isin(
            kinds,
            [
                _CLOCKS,
                _INTERNED,
                _DEFAULTS,
                _DESCRIPTION,
            ],
        )
    ).tolist():
        described.add(body)
    _report_unread(bodies, log)
    return described.packets()


def _bodies(text: Bytes, log: IssueLog, *, whole: bool) -> Ints:
    """Return the bodies of all packets, and report bytes that are none."""
    span = (
        text_address(text),
        len(text) - _PADDING,
    )
    nothing = np.zeros((0, wire.BODY_WIDTH), np.int64)
    count, *_ = wire.find_bodies(span, (rows_address(nothing), 0))
    bodies = np.empty((count, wire.BODY_WIDTH), np.int64)
    _, broken, stretches, lost = wire.find_bodies(span, (rows_address(bodies), count))
    if not count:
        msg = f"{log.file}: no packets in it; not a trace in Perfetto's native format"
        raise NotATraceError(msg)
    is_huge = bodies[:, wire.STOP] - bodies[:, wire.START] > _MOST_BYTES
    bodies = bodies[~is_huge]
    broken += int(np.count_nonzero(is_huge))
    if whole:
        log.add(
            "packet_unreadable",
            "packets that are damaged; left out",
            broken,
        )
        log.add(
            "truncated",
            "the file ends early; packets up to its end were read",
            int(lost > 0),
        )
        between = "stretches of bytes that are no packets; the packets behind them were read"
        log.add(
            "bytes_unreadable",
            between,
            stretches - int(lost > 0),
        )
    return bodies


def _states(bodies: Ints) -> Ints:
    """Return the number of each body's interned names: one per sequence, and per time at which they are forgotten."""
    sequence = bodies[:, wire.SEQUENCE]
    packet = bodies[:, wire.PACKET]
    is_first = np.ones(len(bodies), np.bool_)
    is_first[1:] = packet[1:] != packet[:-1]
    begins = is_first & (bodies[:, wire.FLAGS] & _CLEARED > 0)
    if (sequence == sequence[:1]).all():
        return np.cumsum(begins)
    order = np.argsort(sequence, kind="stable")
    begins = begins[order]
    begins[1:] |= sequence[order][1:] != sequence[order][:-1]
    state = np.empty(len(bodies), np.int64)
    state[order] = np.cumsum(begins)
    return state


def _report_unread(bodies: Ints, log: IssueLog) -> None:
    kinds, counts = np.unique(bodies[:, wire.KIND], return_counts=True)
    is_read = (
        _NOT_EVENTS
        | _ABOUT_TRACE
        | {
            TRACK_EVENT,
            STAGE_EVENT,
            DEVICE_COUNTERS,
        }
    )
    unread = [
        (kind, count)
        for kind, count in zip(
            kinds.tolist(),
            counts.tolist(),
            strict=True,
        )
        if kind not in is_read
    ]
    listed = ", ".join(str(kind) for kind, _ in unread[:_LISTED])
    more = ", …" if len(unread) > _LISTED else ""
    detail = f"messages of kinds that are not read (fields {listed}{more} of a packet); left out"
    log.add(
        "packet_not_read",
        detail,
        sum(count for _, count in unread),
    )


class _Described:
    """Collects the facts that hold for all events."""

    def __init__(
        self,
        text: Bytes,
        bodies: Ints,
        state: Ints,
        log: IssueLog,
    ) -> None:
        self._text = text
        self._bodies = bodies
        self._state = state
        self._log = log
        self._interned: dict[tuple[int, int], Texts] = defaultdict(dict)
        self._descriptions: dict[int, _Description] = {}
        self._default_track: dict[int, int] = {}
        self._default_clock: dict[int, int] = {}
        self._snapshots: list[dict[int, int]] = []

    def add(self, body: int) -> None:
        """Add the facts in a body; of a damaged body, the facts before the damage."""
        kind, start, stop = self._bodies[body, [wire.KIND, wire.START, wire.STOP]].tolist()
        message = self._text[start:stop].tobytes()
        read = {
            _CLOCKS: self._clocks,
            _INTERNED: self._names,
            _DEFAULTS: self._defaults,
            _DESCRIPTION: self._track,
        }
        try:
            read[kind](message, int(self._state[body]))
        except UnreadableError:
            self._log.add(
                "packet_unreadable",
                "packets that are damaged; left out",
            )

    def packets(self) -> Packets:
        """Return the packets with all facts that were added."""
        offsets, base = _offsets(self._snapshots)
        return Packets(
            text=self._text,
            bodies=self._bodies,
            state=self._state,
            interned=self._interned,
            tracks={uuid: self._as_track(uuid) for uuid in self._descriptions},
            default_track=self._default_track,
            default_clock=self._default_clock,
            offsets=offsets,
            base_ns=base,
        )

    def _names(self, message: Message, state: int) -> None:
        for field in fields(message):
            text_field = _TEXT_FIELD.get(field.number, 2)
            iid, text = named(field.content, number=1, name=text_field)
            self._interned[state, field.number].setdefault(iid, text)

    def _clocks(self, message: Message, state: int) -> None:
        clocks = dict[int, int]()
        for field in fields(message):
            if field.number == 1:
                clock = {inner.number: inner.value for inner in fields(field.content)}
                clocks.setdefault(
                    clock.get(1, 0),
                    signed(clock.get(2, 0)),
                )
        self._snapshots.append(clocks)

    def _defaults(self, message: Message, state: int) -> None:
        for field in fields(message):
            if field.number == 58:
                self._default_clock[state] = signed(field.value)
            elif field.number == 11:
                for inner in fields(field.content):
                    if inner.number == 11:
                        self._default_track[state] = signed(inner.value)

    def _track(self, message: Message, state: int) -> None:
        description = _Description()
        for field in fields(message):
            if field.number == 1:
                description.uuid = signed(field.value)
            elif field.number == 5:
                description.parent = signed(field.value)
            elif field.number in (2, 10, 13):
                description.name = text_of(field.content)
            elif field.number == 3:
                description.process = named(field.content, number=1, name=6)
            elif field.number == 4:
                description.thread = named(field.content, number=2, name=5)
                description.thread_process = named(field.content, number=1, name=5)[0]
        self._descriptions[description.uuid] = description

    def _as_track(self, uuid: int) -> SliceTrack:
        """Return a track with the process that it, or a track around it, belongs to."""
        itself = self._descriptions[uuid]
        process = next(
            (around for around in self._around(uuid) if around.process is not None),
            _Description(),
        )
        pid, process_name = process.process or (
            itself.thread_process,
            "",
        )
        if itself.thread is not None:
            return SliceTrack(
                itself.thread_process,
                itself.thread[0],
                itself.thread[1] or itself.name,
                process_name,
            )
        return SliceTrack(
            pid,
            itself.name or 0,
            itself.name,
            process_name,
        )

    def _around(self, uuid: int) -> Iterator[_Description]:
        """Yield the description of a track, and of the tracks around it."""
        seen = set[int]()
        while uuid in self._descriptions and uuid not in seen:
            seen.add(uuid)
            yield self._descriptions[uuid]
            uuid = self._descriptions[uuid].parent


@dataclass
class _Description:
    """The description of a track in a packet."""

    uuid: int = 0
    parent: int = 0
    name: str = ""
    process: tuple[int, str] | None = None
    """Number and name."""
    thread: tuple[int, str] | None = None
    thread_process: int = 0


def _offsets(
    snapshots: list[dict[int, int]],
) -> tuple[dict[int, int], int | None]:
    """Return the ns that are added to times of each clock, and when the clock of most packets began.

    The first snapshot of each clock counts.
    """
    offsets = {_BOOTTIME: 0}
    for clocks in snapshots:
        if _BOOTTIME in clocks:
            for clock, time in clocks.items():
                offsets.setdefault(clock, clocks[_BOOTTIME] - time)
    base = -offsets[_REALTIME] if _REALTIME in offsets else None
    return offsets, base
