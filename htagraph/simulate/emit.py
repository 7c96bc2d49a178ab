"""Trace files, written as Kineto writes them: one per rank, whole or step by step.

First the lines of one rank's step, in file order, and how to fill them in; then whole files.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from htagraph.simulate import formats
from htagraph.simulate.codes import Category, Op
from htagraph.simulate.costs import mix
from htagraph.simulate.engine import Executed
from htagraph.simulate.formats import A100, MI300X, Slot, Writer, clock
from htagraph.simulate.job import JobGroup
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

    def after(self, layout: Layout) -> Counts:
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
        numbers[:, 0].tolist(), (start // 1000).tolist(), (start % 1000).tolist(), (duration // 1000).tolist(),
        (duration % 1000).tolist(), *(numbers[:, i].tolist() for i in (1, 2, 3)),
    )  # fmt: skip
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


_GZIP_WBITS = zlib.MAX_WBITS | 16  # zlib's code for a gzip header

Suffix = Literal[".json.gz", ".json"]


@dataclass
class RankFile:
    """The text of one rank's trace, piece by piece."""

    writer: Writer
    groups: list[JobGroup]
    position: int = 0  # in traceEvents
    end_ns: int = 0  # true end of the last event
    _layouts: dict[int, Layout] = field(default_factory=dict)
    _counts: Counts = field(default_factory=Counts)

    def begin(self, templates: list[Template]) -> str:
        """Return the text before the first step."""
        first = metadata(self.writer, templates) if self.writer.style.metadata_first else []
        self.position = len(first)
        return head(self.writer, self.groups) + "".join(first)

    def place(self, executed: list[Executed]) -> dict[int, Ints]:
        """Return, by step, the position in `traceEvents` that `begin` and `steps` give each event."""
        position = self.position
        placed = {one.step: np.full(len(one.template.events), -1, np.int64) for one in executed}
        for part in (0, 1):
            for one in executed:
                section = self._layout(one.template).sections[part]
                lines = np.flatnonzero(section.events >= 0)
                placed[one.step][section.events[lines]] = position + lines
                position += len(section.texts)
        return placed

    def steps(self, executed: list[Executed]) -> Iterator[str]:
        """Return the text of some consecutive steps: their host events first, then calls and device work."""
        counted = []
        for one in executed:
            counted.append(self._counts)
            self._counts = self._counts.after(self._layout(one.template))
            self.end_ns = max(self.end_ns, *one.end)
        for part in (0, 1):
            for one, counts in zip(executed, counted, strict=True):
                layout = self._layout(one.template)
                section = layout.sections[part]
                self.position += len(section.texts)
                yield fill(self.writer, layout, section, counts, one)

    def end(self, templates: list[Template]) -> str:
        """Return the text after the last step."""
        last = [] if self.writer.style.metadata_first else metadata(self.writer, templates)
        lines, rest = tail(self.writer, self.end_ns)
        self.position += len(last) + len(lines)
        return "".join([*last, *lines, rest])

    def _layout(self, template: Template) -> Layout:
        if id(template) not in self._layouts:
            self._layouts[id(template)] = lay_out(self.writer, template)
        return self._layouts[id(template)]


@contextmanager
def sink(path: Path, level: int = 6) -> Iterator[Callable[[bytes], object]]:
    """Open a file to write, gzipped if its name ends in .gz, without a time: the same text gives the same bytes.

    `level` is that of compression: 1 is fast (isal's if installed), 9 small; 6 is zlib's default.
    """
    with path.open("wb") as file:
        if path.suffix != ".gz":
            yield file.write
            return
        library: Any = zlib
        if level == 1:
            with suppress(ImportError):
                from isal import isal_zlib as library
        deflate = library.compressobj(level, wbits=_GZIP_WBITS)
        yield lambda data: file.write(deflate.compress(data))
        file.write(deflate.flush())


def trace_name(rank: int, suffix: Suffix) -> str:
    """Return a rank's file name."""
    return f"rank-{rank}{suffix}"


_BEFORE_NS, _AFTER_NS = 2_000_000, 50_000
"""ns that the recorded window begins before the first event and ends after the last. Chosen; doubling them lengthens
the window, and moves no event."""

_AMD_VERSIONS = {"hip_runtime_version": 60_200_000, "hip_driver_version": 60_200_000, "roctracer_version": 4.1}
_CUDA_VERSIONS = {"cupti_version": 24, "cuda_runtime_version": 12040, "cuda_driver_version": 12040}


def head(writer: Writer, groups: list[JobGroup]) -> str:
    """Return the text up to the first event."""
    job = writer.job
    is_amd = job.device == "rocm"
    name, facts = ("AMD Instinct MI300X", MI300X) if is_amd else ("NVIDIA A100-SXM4-80GB", A100)
    devices = [{"id": i, "name": name, **facts} for i in range(job.gpus_per_node)]
    fields: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": devices}
    if job.era in ("2024", "2026"):
        fields |= _AMD_VERSIONS if is_amd else _CUDA_VERSIONS
    fields["distributedInfo"] = _distributed(writer, groups)
    fields |= {name: 1 for name in ("record_shapes", "with_stack") if getattr(job, name)}
    if writer.style.base_first:
        fields["host_name"] = f"node{writer.place.rank // job.gpus_per_node:03}"
        fields |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": writer.style.base_ns}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in fields.items())
    return f'{{\n{lines},\n  "traceEvents": [\n'


def _distributed(writer: Writer, groups: list[JobGroup]) -> dict[str, Any]:
    rank, job = writer.place.rank, writer.job
    info: dict[str, Any] = {"backend": "nccl", "rank": rank, "world_size": job.ranks}
    if job.era in ("2021", "2022") or not job.group_args:
        return info
    of_rank = [group for group in groups if rank in group.ranks]
    info["pg_count"] = len(of_rank)
    info["pg_config"] = [_group(writer, group) for group in of_rank]
    info["nccl_version"] = "2.21.5"
    return info


def _group(writer: Writer, group: JobGroup) -> dict[str, Any]:
    named = {"uid": group.index} if writer.style.groups == "id" else {"pg_desc": group.description}
    return {
        "pg_name": group.name,
        **named,
        "backend_config": "cuda:nccl",
        "pg_size": len(group.ranks),
        "ranks": list(group.ranks),
    }


def metadata(writer: Writer, templates: list[Template]) -> list[str]:
    """Return the metadata events, as lines."""
    time = moment(writer, 0)
    gpus = max(writer.job.gpus_per_node, 8)
    lines = []
    for pid, label, order in [(writer.pid, "CPU", writer.pid), *((i, f"GPU {i}", 5_000_000 + i) for i in range(gpus))]:
        lines.append(_metadata("process_name", time, (pid, 0), {"name": "python"}))
        lines.append(_metadata("process_labels", time, (pid, 0), {"labels": label}))
        lines.append(_metadata("process_sort_index", time, (pid, 0), {"sort_index": order}))
    for pid, tid, name in _lanes(writer, templates):
        lines.append(_metadata("thread_name", time, (pid, tid), {"name": name}))
        lines.append(_metadata("thread_sort_index", time, (pid, tid), {"sort_index": tid}))
    return lines


def _lanes(writer: Writer, templates: list[Template]) -> list[tuple[int, int, str]]:
    events = [event for template in templates for event in template.events]
    streams = sorted({writer.stream(event.lane) for event in events if event.category.on_device})
    threads = sorted({writer.thread(event.lane) for event in events if event.category is Category.CPU_OP})
    names = {writer.pid: "python"}
    return [(writer.device, stream, f"stream {stream} ") for stream in streams] + [
        (writer.pid, tid, f"thread {tid} ({names.get(tid, 'pt_autograd_0')})") for tid in threads
    ]


def _metadata(name: str, time: str, place: tuple[int | str, int], args: dict[str, Any]) -> str:
    pid = json.dumps(place[0])
    return (
        f'  {{\n    "name": "{name}", "ph": "M", "ts": {time}, "pid": {pid}, "tid": {place[1]},\n'
        f'    "args": {{\n      {json.dumps(args)[1:-1]}\n    }}\n  }},\n'
    )


def moment(writer: Writer, true_ns: int) -> str:
    """Return a true moment as the file writes it."""
    return time_text(writer, int(shifted(writer, np.array([true_ns], np.int64))[0]))


def time_text(writer: Writer, ns: int) -> str:
    """Return ns as the file writes them, in µs."""
    return clock(writer.style) % divmod(ns, 1000)


def tail(writer: Writer, end_ns: int) -> tuple[list[str], str]:
    """Return the last events, as lines, and the text after them; `end_ns` is the recording's true end."""
    begin = moment(writer, -_BEFORE_NS)
    duration = time_text(writer, end_ns + _BEFORE_NS)
    lines = [
        f'  {{\n    "ph": "X", "cat": "Trace", "ts": {begin}, "dur": {duration},\n    "pid": "Spans", '
        '"tid": "PyTorch Profiler",\n    "name": "PyTorch Profiler (0)",\n'
        '    "args": {\n      "Op count": 0\n    }\n  },\n',
        _metadata("process_sort_index", begin, ("Spans", 0), {"sort_index": 536_870_912}),
        '  {\n    "name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g",\n    "pid": "Traces", '
        f'"tid": "Trace PyTorch Profiler", "ts": {begin}\n  }},\n',
        '  {\n    "name": "Record Window End", "ph": "i", "s": "g",\n    "pid": "", "tid": "", '
        f'"ts": {moment(writer, end_ns + _AFTER_NS)}\n  }}\n',
    ]
    fields: dict[str, Any] = {"traceName": f"/tmp/rank-{writer.place.rank}.json"}
    if writer.style.nanoseconds and not writer.style.base_first:
        fields["displayTimeUnit"] = "ms"
    if writer.style.relative and not writer.style.base_first:
        fields["baseTimeNanoseconds"] = writer.style.base_ns
    rest = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in fields.items())
    return lines, f"  ],\n{rest}\n}}\n"
