"""Snapshots of torch's caching allocator: memory reserved, memory in use, and the stack that allocated it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from htagraph.core.errors import NotATraceError, shown
from htagraph.core.naming import operator_of_frame
from htagraph.trace.profiler_files.files import MAX_SIZE
from htagraph.trace.profiler_files.pickles import read_plain_pickle

__all__ = ["MemorySnapshot", "lifetimes", "read_memory_snapshot"]

_SEGMENTS: Final = {
    "device": "int64", "address": "uint64", "stream": "int64", "kind": "str", "expandable": "bool",
    "total_bytes": "int64", "allocated_bytes": "int64", "active_bytes": "int64", "requested_bytes": "int64",
}  # fmt: skip
_BLOCKS: Final = {
    "device": "int64", "segment": "int64", "address": "uint64", "state": "str", "bytes": "int64",
    "requested_bytes": "int64", "stack": "int64",
}  # fmt: skip
_EVENTS: Final = {
    "device": "int64", "time_us": "float64", "action": "str", "address": "uint64", "bytes": "int64",
    "stream": "int64", "stack": "int64", "allocated_bytes": "int64",
}  # fmt: skip
_IN_USE, _FREE = "active_allocated", "inactive"
_MAX_WORD = 100
"""Characters of the name of a kind, state or action. Chosen: torch's have 30. Doubled, hostile files take more."""
_MAX_STACK_CHARS = 1 << 30
"""Characters of all different stacks. Chosen: far beyond those of jobs, but within memory. Doubled, a hostile file of a
megabyte may take 4 GB."""
_GROWS, _SHRINKS = ("alloc",), ("free_requested", "free")
_RESERVES = ("segment_alloc", "segment_map")
_GIVES_BACK = ("segment_free", "segment_unmap")
_USE: Final = (
    "device", "segments", "blocks", "reserved_bytes", "allocated_bytes", "requested_bytes", "inactive_bytes",
    "largest_free_bytes", "events", "peak_bytes", "peak_reserved_bytes", "peak_us",
)  # fmt: skip
_UNKNOWN_FILES = ("", "??")  # file names of frames without debug information
_INSTALLED = ("site-packages/", "dist-packages/", "/torch/", "<frozen ")  # in paths that are not the user's code


@dataclass(frozen=True, eq=False)
class MemorySnapshot:
    """A memory snapshot (``torch.cuda.memory._dump_snapshot``) as tables; `htagraph.memory.read_snapshot` reads it."""

    path: Path
    segments: pd.DataFrame
    """One row per segment of device memory that the allocator holds: ``device``, ``address``, ``stream``, ``kind``
    (``small`` or ``large``), ``expandable``, ``total_bytes``, ``allocated_bytes``, ``active_bytes``,
    ``requested_bytes``."""
    blocks: pd.DataFrame
    """One row per block of a segment: ``device``, ``segment`` (row), ``address``, ``state``, ``bytes``,
    ``requested_bytes``, ``stack`` (index into `stacks`, -1 where it was not recorded)."""
    events: pd.DataFrame
    """The recorded history by device, in order: ``device``, ``time_us`` (since the first event), ``action``,
    ``address``, ``bytes``, ``stream``, ``stack``, ``allocated_bytes`` (bytes requested and in use after it)."""
    stacks: tuple[str, ...]
    """Stacks as text, one frame per line, innermost first."""
    frames: tuple[tuple[tuple[str, int, str], ...], ...] = field(repr=False)
    """The frames of each of `stacks`: file, line, function."""

    def __repr__(self) -> str:
        devices = ", ".join(map(str, self.devices)) or "none"
        used = int(self.segments["allocated_bytes"].sum()) / 1e9
        return (
            f"MemorySnapshot({self.path.name}: devices {devices}, {len(self.segments):,} segments, "
            f"{len(self.blocks):,} blocks, {len(self.events):,} events, {used:.2f} GB in use)"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the use of each device's memory, now and at its peak.

        Returns:
            One row per device: ``device`` (int64), ``segments`` (int64), ``blocks`` (int64: blocks in use),
            ``reserved_bytes`` (int64: held by the allocator), ``allocated_bytes`` (int64: in use, rounded up as the
            allocator does), ``requested_bytes`` (int64: in use, as requested), ``inactive_bytes`` (int64: held but not
            in use), ``largest_free_bytes`` (int64: largest block not in use), ``events`` (int64: length of the
            history), ``peak_bytes`` (float64: most in use during the history, by the measure of ``allocated_bytes``:
            ``allocated_bytes``, and by how much more was requested at the peak than now), ``peak_reserved_bytes``
            (float64: held by the allocator at that peak), ``peak_us`` (float64: time of that peak). The last three are
            NaN without a history.
        """
        rows = [self._use_of(device) for device in self.devices]
        integers = [name for name in _USE if not name.startswith("peak_")]
        return pd.DataFrame(rows, columns=list(_USE)).astype(
            dict.fromkeys(_USE, "float64") | dict.fromkeys(integers, "int64")
        )

    def _use_of(self, device: int) -> dict[str, float]:
        """Return the use of one device's memory, as `to_frame` has it."""
        held = self.segments[self.segments["device"] == device]
        blocks = self.blocks[self.blocks["device"] == device]
        events = self.events[self.events["device"] == device]
        free = blocks.loc[blocks["state"] == _FREE, "bytes"]  # neither in use nor waiting for another stream
        used = blocks["state"] == _IN_USE
        use: dict[str, float] = {
            "device": device,
            "segments": len(held),
            "blocks": int(used.sum()),
            "reserved_bytes": int(held["total_bytes"].sum()),
            "allocated_bytes": int(held["allocated_bytes"].sum()),
            "requested_bytes": int(blocks.loc[used, "requested_bytes"].sum()),
            "inactive_bytes": int(held["total_bytes"].sum() - held["active_bytes"].sum()),
            "largest_free_bytes": int(free.max()) if len(free) else 0,
            "events": len(events),
        }
        if len(events):
            at_peak = int(np.argmax(events["allocated_bytes"]))
            later = events.iloc[at_peak + 1 :]
            less_requested_now = int(events["allocated_bytes"].iloc[at_peak]) - int(events["allocated_bytes"].iloc[-1])
            use["peak_bytes"] = use["allocated_bytes"] + less_requested_now
            use["peak_reserved_bytes"] = use["reserved_bytes"] - _change_of(later, _RESERVES, _GIVES_BACK)
            use["peak_us"] = float(events["time_us"].iloc[at_peak])
        return use

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """The devices that hold memory or have a history, ascending."""
        return tuple(sorted(set(self.segments["device"]) | set(self.events["device"])))

    @cached_property
    def allocations(self) -> pd.DataFrame:
        """One row per allocation in the history or among the blocks.

        ``device``, ``address``, ``bytes``, ``stack`` (of the allocation; -1 if it was made before the history began and
        freed since), ``born`` and ``died`` (int64: rows of `events`; -1 if before the history began, the number of
        events if never).
        """
        return lifetimes(self.events, self.blocks[self.blocks["state"] == _IN_USE], _GROWS, _SHRINKS)

    def at_peak(self, device: int | None = None) -> pd.DataFrame:
        """Return the stacks that had allocated the memory in use at the peak; columns as in `in_use`.

        Without a history the peak is unknown, and no row is returned.

        Args:
            device: the device; by default the one with the highest peak.
        """
        with_history = self.to_frame().dropna(subset="peak_bytes")
        if device is None and len(with_history):
            device = int(with_history["device"].iloc[int(np.argmax(with_history["peak_bytes"]))])
        rows = np.flatnonzero(self.events["device"] == device)
        if not len(rows):
            return self.in_use(device).iloc[:0]
        return self.in_use(device, int(rows[int(np.argmax(self.events["allocated_bytes"].to_numpy()[rows]))]))

    def in_use(self, device: int | None = None, event: int | None = None) -> pd.DataFrame:
        """Return the stacks that had allocated the memory in use after an event, most bytes first.

        Args:
            device: the device; all devices if not given.
            event: a row of `events`; by default the last, when the snapshot was taken.

        Returns:
            One row per stack: ``bytes`` (int64: requested), ``allocations`` (int64), ``share_percent`` (float64),
            ``operator`` (str: the innermost operator in the stack), ``where`` (str: the innermost Python frame outside
            installed packages, else the innermost Python frame, else the caller of the operator), ``stack`` (int64:
            index into `stacks`, -1 if unknown).
        """
        after = len(self.events) - 1 if event is None else event
        allocations = self.allocations
        alive = (allocations["born"] <= after) & (allocations["died"] > after)
        if device is not None:
            alive &= allocations["device"] == device
        table = (
            allocations[alive]
            .groupby("stack", as_index=False)
            .agg(bytes=("bytes", "sum"), allocations=("bytes", "count"))
        ).sort_values(["bytes", "stack"], ascending=[False, True], ignore_index=True)
        frames_by_row = [self.frames[stack] if stack >= 0 else () for stack in table["stack"]]
        return pd.DataFrame(
            {
                "bytes": table["bytes"].astype("int64"),
                "allocations": table["allocations"].astype("int64"),
                "share_percent": 100 * table["bytes"] / max(1, table["bytes"].sum()),
                "operator": pd.Series([_operator(frames) for frames in frames_by_row], dtype="str"),
                "where": pd.Series([_where(frames) for frames in frames_by_row], dtype="str"),
                "stack": table["stack"].astype("int64"),
            }
        )


def read_memory_snapshot(path: str | Path) -> MemorySnapshot:
    """Return a snapshot of torch's caching allocator as tables.

    The file is a pickle. It is loaded without running code: a pickle that names a class or a function is refused.

    Args:
        path: what ``torch.cuda.memory._dump_snapshot(path)`` wrote, gzipped or not.

    Returns:
        The segments, blocks and history; ``to_frame()`` sums bytes by device, ``at_peak()`` lists the stacks that had
        allocated the memory in use at the peak.

    Raises:
        TraceError: the file cannot be read.
        NotATraceError: the file is not a memory snapshot, or a pickle that holds more than plain values.

    Example:
        >>> import pathlib, pickle, tempfile
        >>> block = {"address": 0, "size": 512, "requested_size": 400, "state": "active_allocated", "frames": []}
        >>> segment = {"device": 0, "address": 0, "total_size": 2097152, "allocated_size": 512, "active_size": 512,
        ...            "stream": 0, "segment_type": "small", "blocks": [block]}
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "snapshot.pickle"
        >>> _ = path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [[]]}))
        >>> read_memory_snapshot(path).to_frame()[["reserved_bytes", "allocated_bytes", "requested_bytes"]]
           reserved_bytes  allocated_bytes  requested_bytes
        0         2097152              512              400

    Source: torch's memory_viz.
    """
    root = read_plain_pickle(path)
    if isinstance(root, list):  # torch 1.13 and before: the segments alone
        root = {"segments": root}
    if not isinstance(root, dict) or "segments" not in root:
        msg = f"{path}: a pickle, but not a memory snapshot: it has no 'segments'"
        raise NotATraceError(msg)
    stacks = _Stacks()
    try:
        segments, blocks = _segments_and_blocks(root["segments"], stacks)
        events = _events(root.get("device_traces") or [], blocks, stacks)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        msg = f"{path}: a memory snapshot of an unknown format ({type(error).__name__}: {str(error)[:100]})"
        raise NotATraceError(msg) from None
    frames = tuple(stacks.known)
    texts = tuple("\n".join(f"{file}:{line} {name}" for file, line, name in stack) for stack in frames)
    return MemorySnapshot(Path(path), segments, blocks, events, texts, frames)


class _Stacks:
    """Numbers stacks; equal stacks have the same number."""

    def __init__(self) -> None:
        self.known: dict[tuple[tuple[str, int, str], ...], int] = {}
        self._chars = 0
        self._of_lists: dict[int, int] = {}  # the same list is looked at once
        self._of_ids: dict[tuple[int, ...], int] = {}  # a pickle holds each frame once, so ids are enough

    def number(self, frames: Iterable[Mapping[str, Any]] | None) -> int:
        """Return the number of a stack, -1 for none."""
        if not frames:
            return -1
        if id(frames) not in self._of_lists:
            self._of_lists[id(frames)] = self._number(list(frames))
        return self._of_lists[id(frames)]

    def _number(self, frames: list[Mapping[str, Any]]) -> int:
        key = tuple(map(id, frames))
        if key not in self._of_ids:
            stack = tuple((_text(each["filename"]), int(each["line"]), _text(each["name"])) for each in frames)
            self._chars += sum(len(file) + len(name) for file, _, name in stack)
            if self._chars > _MAX_STACK_CHARS:
                msg = f"stacks of more than {_MAX_STACK_CHARS >> 20} MiB of text"
                raise ValueError(msg)
            self._of_ids[key] = self.known.setdefault(stack, len(self.known))
        return self._of_ids[key]


def _text(value: object) -> str:
    """Return text that can be encoded: file names may hold lone surrogates."""
    if not isinstance(value, str):  # text of nested lists may be far longer than the lists
        msg = f"{shown(value) if isinstance(value, int | float) else type(value).__name__} is not text"
        raise TypeError(msg)
    return value.encode("utf-8", "replace").decode()


def _word(value: object) -> str:
    return _text(value)[:_MAX_WORD]


def _refuse_shared(lists: Iterable[object]) -> None:
    """Raise an error if one list is there several times: a small file could then hold billions of rows."""
    ids = [id(each) for each in lists if each]
    if len(set(ids)) < len(ids):
        msg = "several devices or segments share one list"
        raise ValueError(msg)


def _size(value: object) -> int:
    if not isinstance(value, int) or not 0 <= value <= MAX_SIZE:
        msg = f"{value!r} is not a number of bytes"
        raise ValueError(msg)
    return value


def _segments_and_blocks(raw: list[dict[str, Any]], stacks: _Stacks) -> tuple[pd.DataFrame, pd.DataFrame]:
    segments, blocks = [], []
    _refuse_shared(segment["blocks"] for segment in raw)
    for number, segment in enumerate(raw):
        device, address = segment.get("device", 0), segment.get("address", 0)
        used = [block for block in segment["blocks"] if block["state"] == _IN_USE]
        requested = sum(_size(block.get("requested_size", block["size"])) for block in used)
        segments.append((
            device, address, segment.get("stream", 0), _word(segment.get("segment_type", "")),
            bool(segment.get("is_expandable", False)), _size(segment["total_size"]), _size(segment["allocated_size"]),
            _size(segment["active_size"]), requested,
        ))  # fmt: skip
        for block in segment["blocks"]:
            history = block.get("history") or [{}]  # where torch 2.0 and before have the stack
            frames = block.get("frames") or history[0].get("frames")
            at = block.get("address", address)
            size, requested = _size(block["size"]), _size(block.get("requested_size", block["size"]))
            blocks.append((device, number, at, _word(block["state"]), size, requested, stacks.number(frames)))
            address = at + size
    return (
        pd.DataFrame(segments, columns=list(_SEGMENTS)).astype(_SEGMENTS),
        pd.DataFrame(blocks, columns=list(_BLOCKS)).astype(_BLOCKS),
    )


def _events(history: list[list[dict[str, Any]]], blocks: pd.DataFrame, stacks: _Stacks) -> pd.DataFrame:
    _refuse_shared(history)
    rows = [
        (
            device, event.get("time_us", number), _word(event["action"]), event.get("addr", 0),
            _size(event.get("size", 0)), event.get("stream", 0), stacks.number(event.get("frames")),
        )
        for device, events in enumerate(history)
        for number, event in enumerate(events)
    ]  # fmt: skip
    kinds = dict(list(_EVENTS.items())[:-1])
    first = min((row[1] for row in rows), default=0)
    frame = pd.DataFrame([(row[0], row[1] - first, *row[2:]) for row in rows], columns=list(kinds)).astype(kinds)
    sign = frame["action"].isin(_GROWS).astype("int64") - frame["action"].isin(_SHRINKS).astype("int64")
    change = (sign * frame["bytes"]).groupby(frame["device"])
    in_use = blocks[blocks["state"] == _IN_USE].groupby("device")["requested_bytes"].sum()
    before = frame["device"].map(in_use).fillna(0) - change.transform("sum")  # allocated before the history began
    return frame.assign(allocated_bytes=(before + change.cumsum()).astype("int64"))


def _change_of(events: pd.DataFrame, grows: Sequence[str], shrinks: Sequence[str]) -> int:
    """Return the bytes that `grows` of some events add, less the bytes that `shrinks` take away."""
    grown = events.loc[events["action"].isin(grows), "bytes"].sum()
    return int(grown - events.loc[events["action"].isin(shrinks), "bytes"].sum())


def _operator(frames: tuple[tuple[str, int, str], ...]) -> str:
    return next((word for _, _, name in frames if (word := operator_of_frame(name))), "")


def _where(frames: tuple[tuple[str, int, str], ...]) -> str:
    """Return the innermost Python frame outside installed packages, else any, else the caller of the operator."""
    python = [frame for frame in frames if frame[0].endswith(".py")]
    own = [frame for frame in python if not any(part in frame[0] for part in _INSTALLED)]
    operator = next((i for i, frame in enumerate(frames) if operator_of_frame(frame[2])), len(frames))
    known = [frame for frame in frames[operator:] if frame[0] not in _UNKNOWN_FILES]
    callers = [frame for frame in known if not operator_of_frame(frame[2])]
    chosen = next(iter([*own, *python, *callers]), None)
    return f"{chosen[0]}:{chosen[1]} {chosen[2]}" if chosen else ""


_COLUMNS = {
    "device": "int64", "address": "uint64", "bytes": "int64", "stack": "int64", "born": "int64", "died": "int64",
}  # fmt: skip


def lifetimes(events: pd.DataFrame, in_use: pd.DataFrame, grows: Sequence[str], shrinks: Sequence[str]) -> pd.DataFrame:
    """Return one row per allocation, with the columns that `MemorySnapshot.allocations` documents.

    An allocation lives until the next free of its address. A free without an allocation ends one that was made before
    the history began. A block in use without an allocation was also made before, and is still alive.
    """
    count = len(events)
    frees = events["action"].isin(shrinks).to_numpy()
    rows = np.flatnonzero(frees | events["action"].isin(grows).to_numpy())
    device, address = events["device"].to_numpy()[rows], events["address"].to_numpy()[rows]
    order = np.lexsort((rows, address, device))
    rows, device, address = rows[order], device[order], address[order]
    is_free = frees[rows]
    follows = np.zeros(len(rows), np.bool_)  # True if an event has the address of the event before it
    follows[1:] = (device[1:] == device[:-1]) & (address[1:] == address[:-1])
    ends = np.flatnonzero(follows[1:] & is_free[1:])
    died = np.full(len(rows), count, np.int64)
    died[ends] = rows[ends + 1]
    begun = follows.copy()  # True for a free whose allocation is in the history
    begun[1:] &= ~is_free[:-1]
    born, freed_only = rows[~is_free], rows[is_free & ~begun]
    made = pd.MultiIndex.from_frame(events.iloc[born[died[~is_free] == count]][["device", "address"]])
    older = in_use[~pd.MultiIndex.from_frame(in_use[["device", "address"]]).isin(made)].drop(columns="bytes")
    parts = [
        _part(events.iloc[born], born, died[~is_free]),
        _part(events.iloc[freed_only].assign(stack=-1), -1, freed_only),
        _part(older.rename(columns={"requested_bytes": "bytes"}), -1, count),
    ]
    return pd.concat(parts, ignore_index=True).astype(_COLUMNS)


def _part(allocated: pd.DataFrame, born: np.ndarray | int, died: np.ndarray | int) -> pd.DataFrame:
    return allocated[["device", "address", "bytes", "stack"]].assign(born=born, died=died)
