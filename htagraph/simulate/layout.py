"""The lines of one rank's step, in file order, and how to fill them in."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.simulate import formats
from htagraph.simulate.codes import Op
from htagraph.simulate.draws import mix
from htagraph.simulate.engine import Executed
from htagraph.simulate.formats import Slot
from htagraph.simulate.style import Writer
from htagraph.simulate.template import BACKWARD, MAIN, NONE, Template

Ints = npt.NDArray[np.int64]
_SYNC_INSET = 5
"""A cuda_sync row begins and ends a fifth of its call inside the call. Chosen: any part keeps it inside."""
_WAITS = (Op.WAIT, Op.EVENT_SYNC, Op.STREAM_SYNC, Op.DEVICE_SYNC)
_HOLE = re.compile(r"@([A-Z]+)(?::(\w+))?(?::(\d+))?@")


@dataclass(frozen=True)
class LineColumns:
    """Consecutive lines, as columns."""

    texts: list[str]
    rows: Ints
    counters: npt.NDArray[np.int8]  # (lines, 4)
    offsets: Ints  # (lines, 4)
    dynamic: list[int]
    events: Ints  # the event each line is, or -1


@dataclass(frozen=True)
class Layout:
    """The lines of one template for one rank: host events first, then calls and device work."""

    template: Template
    sections: tuple[LineColumns, LineColumns]
    waits: Ints  # calls with a cuda_sync row
    spans: Ints  # (annotation, first work, last work) with a gpu_user_annotation
    used: tuple[int, ...]  # what one step adds to each Counter


class Counts(NamedTuple):
    """The ids and numbers that the steps written so far have used."""

    bases: tuple[int, ...] = (0, 0, 1000, 1, 1, 1, 0)
    collectives: Mapping[str, int] = MappingProxyType({})
    step: int = 0

    def after(self, layout: Layout) -> "Counts":
        """Count one more step."""
        bases = tuple(base + more for base, more in zip(self.bases, layout.used, strict=True))
        return Counts(bases, Counter(self.collectives) + Counter(layout.template.collectives), self.step + 1)


def lay_out(writer: Writer, template: Template) -> Layout:
    """Return the lines of a template."""
    host, device = _host(writer, template), []
    job = writer.job
    synced = job.cuda_sync and job.device == "cuda" and writer.style.sync
    waits = [i.call for i in template.instructions if i.op in _WAITS] if synced else []
    spans = template.annotated
    row = len(template.events)
    sync_rows = {call: row + i for i, call in enumerate(waits)}
    for index, event in enumerate(template.events):
        if event.category.is_call:
            device.append(formats.call_slot(writer, template, index))
        elif event.category.on_device:
            device.append(formats.work_slot(writer, template, index))
        else:
            continue
        if job.flows:
            device.append(formats.launch_flow(writer, event, index))
        if index in sync_rows:
            device.append(formats.sync_slot(writer, template, index, sync_rows[index]))
    row += len(waits)
    for i, (annotation, first, _) in enumerate(spans):
        device.append(formats.annotation_slot(writer, template, annotation, template.events[first].lane, row + i))
    flows = sum(event.flow != NONE and event.forward == NONE for event in template.events)
    index = sum(not event.category.on_device and not event.category.is_call for event in template.events)
    return Layout(
        template,
        (_section(host), _section(device)),
        np.array(waits, np.int64),
        np.array(spans, np.int64).reshape(-1, 3),
        (0, template.externals, template.correlations, template.sequences, flows, template.frames, index),
    )


def _host(writer: Writer, template: Template) -> list[Slot]:
    """Return the lines of ops, annotations and frames, thread by thread, each after its flow."""
    lines: list[Slot] = []
    index = 0
    for thread in (BACKWARD, MAIN):
        for row, event in enumerate(template.events):
            if event.category.on_device or event.category.is_call or event.lane != thread:
                continue
            lines.append(formats.host_slot(writer, event, row, index))
            index += 1
            if event.flow != NONE and writer.job.flows:
                lines.append(formats.forward_backward(writer, event, row))
    return lines


def _section(slots: list[Slot]) -> LineColumns:
    return LineColumns(
        [slot.text for slot in slots],
        np.array([slot.time for slot in slots], np.int64),
        np.array([[number[0] for number in slot.numbers] for slot in slots], np.int8).reshape(-1, 4),
        np.array([[number[1] for number in slot.numbers] for slot in slots], np.int64).reshape(-1, 4),
        [i for i, slot in enumerate(slots) if slot.dynamic],
        np.array([slot.event for slot in slots], np.int64),
    )


def recorded(writer: Writer, layout: Layout, executed: Executed) -> tuple[Ints, Ints]:
    """Return start and end, ns of the file, of every row: events, cuda_sync rows, device annotations."""
    start, end = np.array(executed.start, np.int64), np.array(executed.end, np.int64)
    starts, ends = [start], [end]
    if len(layout.waits):
        called, returned = start[layout.waits], end[layout.waits]
        starts.append(called + (returned - called) // _SYNC_INSET)
        ends.append(returned - (returned - called) // _SYNC_INSET)
    if len(layout.spans):
        early = writer.style.annotation_ns
        starts.append(start[layout.spans[:, 1]] - early)
        ends.append(end[layout.spans[:, 2]] + early)
    return shifted(writer, np.concatenate(starts)), shifted(writer, np.concatenate(ends))


def shifted(writer: Writer, moments: Ints) -> Ints:
    """Turn true moments, ns, into the rank's own clock, ns as the file counts them."""
    rank = writer.place.rank
    drift = np.rint(moments * writer.job.drift(rank)).astype(np.int64) if writer.job.drift(rank) else 0
    return moments + drift + (writer.style.start_ns + writer.job.offset_ns(rank))


def fill(writer: Writer, layout: Layout, section: LineColumns, counts: Counts, executed: Executed) -> str:
    """Return the text of a section for one executed step."""
    start, end = recorded(writer, layout, executed)
    start, duration = start[section.rows], (end - start)[section.rows]
    bases = np.array(counts.bases, np.int64)
    numbers = section.offsets + bases[section.counters]
    columns = (
        numbers[:, 0].tolist(),
        (start // 1000).tolist(),
        (start % 1000).tolist(),
        (duration // 1000).tolist(),
        (duration % 1000).tolist(),
        *(numbers[:, i].tolist() for i in (1, 2, 3)),
    )
    texts = section.texts
    if section.dynamic:
        texts = list(texts)
        for line in section.dynamic:
            texts[line] = _complete(writer, counts, executed, texts[line])
    return "".join([text % row for text, row in zip(texts, zip(*columns, strict=True), strict=True)])


def _complete(writer: Writer, counts: Counts, executed: Executed, text: str) -> str:
    """Fill in what depends on the step: its number, and each collective's sequence number and id."""

    def value(match: re.Match[str]) -> str:
        what, subject, order = match.groups()
        if what == "STEP":
            return str(writer.job.first_step + counts.step)
        if what == "BANDWIDTH":
            row = int(subject)
            duration = executed.end[row] - executed.start[row]
            return str(executed.template.events[row].size / duration) if duration else "0"
        number = counts.collectives.get(subject, 0) + int(order) + 1
        if what == "SEQ":
            return str(number)
        group = writer.place.roles[subject]
        return str(mix(group.index, number, *group.ranks))

    return _HOLE.sub(value, text)
