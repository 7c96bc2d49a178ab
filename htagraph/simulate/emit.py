"""Trace files, written as Kineto writes them: one per rank, whole or step by step."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal, Protocol

import numpy as np

from htagraph.simulate.engine import Executed
from htagraph.simulate.groups import Group
from htagraph.simulate.header import head, metadata, tail
from htagraph.simulate.layout import Counts, Ints, Layout, Section, fill, lay_out
from htagraph.simulate.style import Writer
from htagraph.simulate.template import Template

_GZIP_WBITS = zlib.MAX_WBITS | 16  # zlib's code for a gzip header

Suffix = Literal[".json.gz", ".json"]


class Compressor(Protocol):
    """What zlib and isal have in common."""

    def compress(self, data: bytes, /) -> bytes:
        """Return compressed bytes that are ready."""

    def flush(self) -> bytes:
        """Return the rest."""


@dataclass
class RankFile:
    """The text of one rank's trace, piece by piece."""

    writer: Writer
    groups: list[Group]
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
        for pick in (_host, _device):
            for one in executed:
                section = pick(self._layout(one.template))
                lines = np.flatnonzero(section.events >= 0)
                placed[one.step][section.events[lines]] = position + lines
                position += len(section.texts)
        return placed

    def steps(self, executed: list[Executed]) -> Iterator[str]:
        """Return the text of some consecutive steps: their host events first, then calls and device work."""
        counted = []
        for one in executed:
            counted.append(self._counts.copy())
            self._counts.advance(self._layout(one.template))
            self.end_ns = max(self.end_ns, *one.end)
        for pick in (_host, _device):
            for one, counts in zip(executed, counted, strict=True):
                layout = self._layout(one.template)
                section = pick(layout)
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


def _host(layout: Layout) -> Section:
    return layout.host


def _device(layout: Layout) -> Section:
    return layout.device


@dataclass
class Sink:
    """A file under construction, gzipped if its name ends in .gz; the same text gives the same bytes."""

    path: Path
    level: int = 6  # of compression: 1 is fast (isal's if installed), 9 small; 6 is zlib's default
    _file: IO[bytes] | None = None
    _deflate: Compressor | None = None

    def __enter__(self) -> "Sink":
        self._file = self.path.open("wb")
        self._deflate = compressor(self.level) if self.path.suffix == ".gz" else None
        return self

    def write(self, data: bytes) -> None:
        """Append bytes."""
        assert self._file is not None
        self._file.write(self._deflate.compress(data) if self._deflate else data)

    def __exit__(self, *error: object) -> None:
        assert self._file is not None
        if self._deflate:
            self._file.write(self._deflate.flush())
        self._file.close()


def compressor(level: int) -> Compressor:
    """Return a gzip compressor that writes no time."""
    if level == 1:
        try:
            from isal import isal_zlib
        except ImportError:
            pass
        else:
            fast: Compressor = isal_zlib.compressobj(1, wbits=_GZIP_WBITS)
            return fast
    return zlib.compressobj(level, wbits=_GZIP_WBITS)


def trace_name(rank: int, suffix: Suffix) -> str:
    """Return a rank's file name."""
    return f"rank-{rank}{suffix}"
