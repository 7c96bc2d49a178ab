"""Names, categories and lanes of events: written in the event, or interned under a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from htagraph.core.arrays import Array, Ints, coded
from htagraph.core.errors import IssueLog
from htagraph.core.naming import DEVICE_ANNOTATION
from htagraph.trace.columns import Interner
from htagraph.trace.kineto.collecting import Columns
from htagraph.trace.pftrace import scan
from htagraph.trace.pftrace.events import PacketEvents
from htagraph.trace.pftrace.packets import CATEGORY_NAMES, EVENT_NAMES, KERNELS, STAGES, Packets

__all__ = ["STAGE_CATEGORIES", "UNNAMED", "Labels"]

UNNAMED: Final = "(no name)"
STAGE_CATEGORIES: Final[Mapping[str, str]] = {
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "Annotation": DEVICE_ANNOTATION,
    "EventRecord": "graph_event_node",
    "HostNode": "graph_host_node",
}
"""Categories of stages of a device by their names.

Source: `torch/profiler/_cupti/monitor_trace.py` of PyTorch 2.14.1."""
_OVERHEAD_PROCESS: Final = "Overhead"
"""Name of the process on whose track PyTorch shows the profiler's own work, without a category."""
_MISSING: Final = -1
"""Stands for a text that is not in the file."""


@dataclass(frozen=True, eq=False)
class Labels:
    """Finds the labels of some events."""

    packets: Packets
    events: PacketEvents
    into: Columns
    log: IssueLog

    def names(self, rows: Ints) -> Ints:
        """Return the name of each event as an index into the names of the columns."""
        columns = self.events.columns[:, rows]
        interner = self.into.names
        name = self._of_texts(interner, columns[scan.NAME])
        name = self._filled(
            name,
            interner,
            rows,
            EVENT_NAMES,
            scan.NAME_IID,
        )
        name = self._filled(
            name,
            interner,
            rows,
            KERNELS,
            scan.KERNEL,
        )
        name = self._filled(name, interner, rows, STAGES, scan.STAGE)
        nameless = name == _MISSING
        detail = f"events whose name is not in the file; read as {UNNAMED}"
        self.log.add(
            "name_missing",
            detail,
            int(np.count_nonzero(nameless)),
        )
        if nameless.any():
            name[nameless] = interner[UNNAMED]
        return name

    def categories(self, rows: Ints, is_sync: Array) -> Ints:
        """Return the category of each event as an index into the categories of the columns.

        Args:
            rows: rows of events.
            is_sync: whether an event says which kind of synchronization it is.
        """
        columns = self.events.columns[:, rows]
        written = Interner[str]()
        category = self._of_texts(written, columns[scan.CATEGORY])
        category = self._filled(
            category,
            written,
            rows,
            CATEGORY_NAMES,
            scan.CATEGORY_IID,
        )
        lost = (category == _MISSING) & (columns[scan.CATEGORY_IID] != 0)
        self.log.add(
            "category_missing",
            "events whose category is not in the file",
            int(np.count_nonzero(lost)),
        )
        stage = Interner[str]()
        of_stage = self._filled(
            np.full(len(rows), _MISSING),
            stage,
            rows,
            STAGES,
            scan.STAGE,
        )
        is_plain = (category == _MISSING) & (of_stage == _MISSING)
        overhead = is_plain & self._is_overhead(columns[scan.TRACK])
        names = [
            *written,
            *(STAGE_CATEGORIES.get(name, name) for name in stage),
            "cuda_sync",
            "overhead",
            "",
        ]
        place = np.where(
            of_stage == _MISSING,
            category,
            of_stage + len(written),
        )
        place[is_plain] = len(names) - 1
        place[is_plain & is_sync] = len(names) - 3
        place[overhead] = len(names) - 2
        numbers = dict[int, int]()
        for number in dict.fromkeys(place.tolist()):
            numbers[number] = self.into.category(names[number], None)
        code = np.full(len(names), _MISSING, np.int64)
        code[list(numbers)] = list(numbers.values())
        return code[place]

    def lanes(self, rows: Ints) -> Ints:
        """Return the lane of each track event as an index into the lanes of the columns."""
        track = self._tracks(rows)
        numbers, member = np.unique(track, return_inverse=True)
        lanes = np.array(
            [self._lane(uuid) for uuid in numbers.tolist()],
            np.int64,
        )
        unknown = np.array(
            [uuid not in self.packets.tracks for uuid in numbers.tolist()],
            np.bool_,
        )
        detail = "events on tracks that the file does not describe; read as events of threads without a number"
        self.log.add(
            "track_unknown",
            detail,
            int(np.count_nonzero(unknown[member.ravel()])),
        )
        return lanes[member.ravel()]

    def device_lanes(self, device: Ints, stream: Ints) -> Ints:
        """Return the lanes of events on streams of devices."""
        _, first, member = np.unique(
            coded(device, stream),
            return_index=True,
            return_inverse=True,
        )
        pairs = zip(
            device[first].tolist(),
            stream[first].tolist(),
            strict=True,
        )
        lanes = np.array(
            [self.into.lanes[pair] for pair in pairs],
            np.int64,
        )
        return lanes[member.ravel()]

    def _lane(self, uuid: int) -> int:
        track = self.packets.tracks.get(uuid)
        if track is None:
            return self.into.lanes["", uuid]
        return self.into.lanes[track.pid, track.tid]

    def _tracks(self, rows: Ints) -> Ints:
        """Return the track of each event."""
        track = self.events.columns[scan.TRACK, rows]
        if self.packets.default_track:
            unnamed = np.flatnonzero(track == scan.NO_TRACK)
            state = self.packets.state[self.events.body[rows[unnamed]]]
            track[unnamed] = [self.packets.default_track.get(number, 0) for number in state.tolist()]
        return track

    def _is_overhead(self, track: Ints) -> Array:
        tracks = self.packets.tracks
        overhead = [uuid for uuid in tracks if tracks[uuid].process == _OVERHEAD_PROCESS]
        return np.isin(track, overhead)

    def _of_texts(self, interner: Interner[str], index: Ints) -> Ints:
        """Return the numbers of texts in events, `_MISSING` for none."""
        numbers = np.full(
            len(self.events.texts),
            _MISSING,
            np.int64,
        )
        for text in np.unique(index[index > 0]).tolist():
            numbers[text] = interner[self.events.texts[text]]
        return numbers[index]

    def _filled(
        self,
        before: Ints,
        interner: Interner[str],
        rows: Ints,
        kind: int,
        column: int,
    ) -> Ints:
        """Return the numbers of texts; texts that were missing are found by their ids."""
        iid = self.events.columns[column, rows]
        asked = np.flatnonzero((before == _MISSING) & (iid != 0))
        if not len(asked):
            return before
        state = self.packets.state[self.events.body[rows[asked]]]
        _, first, member = np.unique(
            coded(state, iid[asked]),
            return_index=True,
            return_inverse=True,
        )
        pairs = zip(
            state[first].tolist(),
            iid[asked[first]].tolist(),
            strict=True,
        )
        texts = [self.packets.interned.get((number, kind), {}).get(name) for number, name in pairs]
        numbers = np.array(
            [_MISSING if text is None else interner[text] for text in texts],
            np.int64,
        )
        filled = before.copy()
        filled[asked] = numbers[member.ravel()]
        return filled
