"""Trace files, written as Kineto writes them: one per rank, whole or step by step."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from htagraph.simulate.codes import Category
from htagraph.simulate.engine import Executed
from htagraph.simulate.formats import clock
from htagraph.simulate.job import JobGroup
from htagraph.simulate.layout import Counts, Ints, Layout, fill, lay_out, shifted
from htagraph.simulate.style import A100, MI300X, Writer
from htagraph.simulate.template import Template

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


def head(writer: Writer, groups: list[JobGroup]) -> str:
    """Return the text up to the first event."""
    job = writer.job
    fields: dict[str, Any] = {"schemaVersion": 1, "deviceProperties": _devices(job.gpus_per_node, job.device)}
    if job.era in ("2024", "2026"):
        fields |= _versions(job.device)
    fields["distributedInfo"] = _distributed(writer, groups)
    fields |= {name: 1 for name in ("record_shapes", "with_stack") if getattr(job, name)}
    if writer.style.base_first:
        fields["host_name"] = f"node{writer.place.rank // job.gpus_per_node:03}"
        fields |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": writer.style.base_ns}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in fields.items())
    return f'{{\n{lines},\n  "traceEvents": [\n'


def _devices(count: int, device: str) -> list[dict[str, Any]]:
    name, facts = ("AMD Instinct MI300X", MI300X) if device == "rocm" else ("NVIDIA A100-SXM4-80GB", A100)
    return [{"id": i, "name": name, **facts} for i in range(count)]


def _versions(device: str) -> dict[str, Any]:
    if device == "rocm":
        return {"hip_runtime_version": 60_200_000, "hip_driver_version": 60_200_000, "roctracer_version": 4.1}
    return {"cupti_version": 24, "cuda_runtime_version": 12040, "cuda_driver_version": 12040}


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
