"""Trace files in which the events of frequent kernel patterns are marked, to be found with Perfetto's search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.issues import IssueLog
from htagraph.core.naming import LINEAR
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.export.trace_writer import FOR_VIEWING, RawEvent, TraceWriter
from htagraph.queries.kernel_sequences import Sequences, containing, sequences_below
from htagraph.trace.kineto.decode import event_decoder
from htagraph.trace.kineto.source import iter_bytes
from htagraph.trace.kineto.split import split

__all__ = ["export_patterns", "overlay_patterns"]

_PROFILER = "PyTorch Profiler"
_MAX_LETTERS = 1000
"""Letters of a pattern on its kernels; chosen: those of whole steps have megabytes, which only their own events carry.
Doubled, files with long patterns grow by up to as much."""


def export_patterns(
    graph: DependencyGraph,
    folder: str | Path,
    operator: str = LINEAR,
    *,
    min_length: int = 3,
    top: int = 5,
    compress: bool = True,
) -> list[Path]:
    """Write a copy of each rank's trace in which the events of its most frequent kernel patterns are marked.

    Args:
        graph: the job.
        folder: where the files go, each named ``overlaid_`` and its trace's name, and of traces in several folders
            with one name ``overlaid_rank-N_``; it is made.
        operator: text in the name of the operator, annotation or Python frame, or a glob of it, as for
            `htagraph.kernel_patterns`.
        min_length: occurrences with less device work than this do not count.
        top: patterns per rank, the most frequent ones.
        compress: take arguments and names from the complete events that belong to no such pattern: a name becomes a
            number, and the numbers' names stand in the arguments of the event ``PyTorch Profiler``.

    Returns:
        The files, by rank. A rank without such a pattern has none.

    Raises:
        TraceError: a trace is gone or was changed since it was loaded, or a file cannot be written.

    Example:
        >>> import tempfile, htagraph as hg
        >>> graph = hg.load("data/demo", ranks=[0])
        >>> [path.name for path in export_patterns(graph, tempfile.mkdtemp(), "aten::addmm", min_length=1)]
        ['overlaid_rank-0.json.gz']
    """
    root = graph.tree.outermost(containing(graph, operator))
    sequences = sequences_below(graph, root, graph.tree.parent, min_length)
    frequent = sequences.to_frame().sort_values(["count", "pattern"], ascending=[False, True], kind="stable")
    files = []
    shared = Counter(trace.path.name for trace in graph.traces.values())
    for rank in graph.ranks:
        chosen = frequent[frequent["rank"] == rank].head(top)
        if len(chosen):
            name = graph.traces[rank].path.name
            target = Path(folder) / (f"overlaid_rank-{rank}_{name}" if shared[name] > 1 else f"overlaid_{name}")
            files.append(overlay_patterns(sequences, chosen.index.to_numpy(), rank, target, compress=compress))
    return files


def overlay_patterns(sequences: Sequences, patterns: Array, rank: int, target: Path, *, compress: bool) -> Path:
    """Write a copy of a rank's trace in which the events of some patterns have the argument ``Patterns``.

    It maps the pattern to its count. Patterns longer than 1,000 letters are whole on their operators only.

    Args:
        sequences: all sequences of kernels that occur, of `kernel_sequences`.
        patterns: numbers of the patterns to mark.
        rank: whose trace.
        target: the file to write.
        compress: as for `export_patterns`.
    """
    acts, table = sequences.graph.activities, sequences.to_frame()
    texts = {number: str(table["pattern"][number]) for number in patterns.tolist()}
    mark = {number: _mark(text, int(table["count"][number])) for number, text in texts.items()}
    short = {
        number: _mark(
            f"{text[:_MAX_LETTERS]}… ({table['kernels'][number]} pieces of work)", int(table["count"][number])
        )
        for number, text in texts.items()
        if len(text) > _MAX_LETTERS
    }
    rank_rows = np.arange(len(acts))[acts.of_rank(rank)]
    member = sequences.members()[rank_rows]
    keep = np.isin(member, patterns) & (acts.event[rank_rows] >= 0)
    number = np.full(int(acts.event[rank_rows].max(initial=-1)) + 1, -1, np.int64)
    number[acts.event[rank_rows][keep]] = member[keep]
    names = _numbers_of_names(sequences.graph, rank_rows) if compress else None
    source = sequences.graph.traces[rank].unchanged_path()
    log, header = IssueLog(str(source)), dict[str, Any]()
    whole = frozenset(acts.event[sequences.root[acts.rank[sequences.root] == rank]].tolist())
    edit = _Edit(mark, mark | short, number, whole, names)
    with TraceWriter(target, sources=[source]) as writer:
        for position, events in split(iter_bytes(source, log), _decoder(), header, log):
            writer.begin(header | FOR_VIEWING)
            if events:
                writer.add_texts([_encode(edit(position, events))[1:-1]])  # one text for the block
            del events  # see split: before the next block
        writer.add(edit.missing_names())
        writer.end(header | FOR_VIEWING)
    return target


class _Edit:
    """Marks members and, if asked to, compresses the other complete events."""

    def __init__(
        self,
        mark: dict[int, bytes],
        short: dict[int, bytes],
        number: Array,
        whole: frozenset[int],
        names: dict[str, str] | None,
    ) -> None:
        self._mark, self._short, self._number, self._whole, self._names = mark, short, number, whole, names
        self._named = False

    def __call__(self, position: int, events: list[Any]) -> list[Any]:
        numbers = self._number[position : position + len(events)]
        for i in np.flatnonzero(numbers >= 0).tolist():
            event = events[i]
            mark = self._mark if position + i in self._whole else self._short
            event.args = _with_patterns(event.args, mark[int(numbers[i])])
        if self._names is not None:
            member = np.zeros(len(events), np.bool_)
            member[: len(numbers)] = numbers >= 0
            self._compress(events, member.tolist(), self._names)
        return events

    def missing_names(self) -> Iterable[RawEvent]:
        """Return an event that carries the names, for files that have no event of the profiler to carry them."""
        if self._names is None or self._named:
            return []
        where = {"ph": "i", "pid": "Spans", "tid": _PROFILER, "ts": 0, "s": "g"}
        return [{**where, "name": _PROFILER, "args": self._texts()}]

    def _compress(self, events: list[Any], member: list[bool], names: dict[str, str]) -> None:
        none: dict[str, Any] = {}
        for event, is_member in zip(events, member, strict=True):
            if is_member or event.ph != "X":
                continue
            short = names.get(event.name)
            if short is not None:
                event.name, event.args = short, none
            elif _PROFILER in str(event.name):
                event.args, self._named = self._texts(), True
            else:
                event.args = none

    def _texts(self) -> dict[str, str]:
        return {short: name for name, short in (self._names or {}).items()}


def _mark(pattern: str, count: int) -> bytes:
    return msgspec.json.encode({pattern: count})


def _with_patterns(args: Any, mark: bytes) -> msgspec.Raw:  # noqa: ANN401 - text, a dict, or nothing
    text = bytes(args).strip() if isinstance(args, msgspec.Raw) else _encode(args) if isinstance(args, dict) else b"{}"
    inside = text[1:-1].strip() if text.startswith(b"{") else b""
    return msgspec.Raw(b"{" + inside + (b", " if inside else b"") + b'"Patterns": ' + mark + b"}")


def _as_dict(event: Any) -> RawEvent:  # noqa: ANN401 - _RawEvent, the only class here that msgspec does not know
    raw: RawEvent = event.event
    return raw


_encode = msgspec.json.Encoder(decimal_format="number", enc_hook=_as_dict).encode


def _numbers_of_names(graph: DependencyGraph, rows: Array) -> dict[str, str]:
    return {graph.names[number]: str(number) for number in np.unique(graph.activities.name[rows]).tolist()}


def _decoder() -> Callable[[bytes], list[Any]]:
    """Return a decoder of events that leaves most values as text.

    It refuses what bulk decoding refuses, so that both number the events alike.
    """
    fast, strict = msgspec.json.Decoder(list[_event_struct()]).decode, event_decoder()  # type: ignore[misc]

    def decode(text: bytes) -> list[Any]:
        try:
            return fast(text)
        except msgspec.ValidationError:  # keys that traces of today do not have, or a name that is no text
            return [_RawEvent(event) for event in strict(text)]

    return decode


def _event_struct() -> type[msgspec.Struct]:
    texts = ("cat", "pid", "tid", "ts", "dur", "id", "bp", "s", "args", "tts", "tdur", "cname")
    fields: list[Any] = [(key, str | msgspec.UnsetType, msgspec.UNSET) for key in ("ph", "name")]
    fields += [(key, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for key in texts]
    return msgspec.defstruct("TextEvent", fields, forbid_unknown_fields=True, gc=False)


class _RawEvent:
    """An event as a dict, with the attributes that the decoder's struct has."""

    def __init__(self, event: RawEvent) -> None:
        object.__setattr__(self, "event", event)

    def __getattr__(self, key: str) -> Any:  # noqa: ANN401
        return self.event.get(key)

    def __setattr__(self, key: str, value: object) -> None:
        self.event[key] = value
