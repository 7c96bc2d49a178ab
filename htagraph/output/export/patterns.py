"""Trace files in which the events of frequent kernel patterns are marked, to be found with Perfetto's search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from htagraph.core.arrays import Array
from htagraph.core.naming import LINEAR
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.output.export.trace_writer import FOR_VIEWING, RawEvent, edit_trace
from htagraph.queries.kernel_sequences import Sequences, containing, sequences_below

__all__ = ["export_patterns", "overlay_patterns"]

_PROFILER = "PyTorch Profiler"
_MAX_LETTERS = 1000
"""Letters of a pattern on its kernels; chosen: those of whole steps have megabytes, which only their own events carry.
Doubled, files with long patterns grow by up to as much."""


def export_patterns(
    graph: DependencyGraph, folder: str | Path, operator: str = LINEAR, *, min_length: int = 3, top: int = 5,
    compress: bool = True,
) -> list[Path]:  # fmt: skip
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
    """
    acts, table = sequences.graph.activities, sequences.to_frame()
    texts, counts = ({each: table[column][each] for each in patterns.tolist()} for column in ("pattern", "count"))
    whole = {each: {str(text): int(counts[each])} for each, text in texts.items()}
    short = {
        each: {f"{text[:_MAX_LETTERS]}… ({table['kernels'][each]} pieces of work)": int(counts[each])}
        for each, text in texts.items()
        if len(text) > _MAX_LETTERS
    }
    rank_rows = np.arange(len(acts))[acts.of_rank(rank)]
    member = sequences.members()[rank_rows]
    keep = np.isin(member, patterns) & (acts.event[rank_rows] >= 0)
    number = dict(zip(acts.event[rank_rows][keep].tolist(), member[keep].tolist(), strict=True))
    roots = frozenset(acts.event[sequences.root[acts.rank[sequences.root] == rank]].tolist())
    marks = {event: (whole if event in roots else whole | short)[each] for event, each in number.items()}
    used = np.unique(acts.name[rank_rows]).tolist() if compress else []
    names = {sequences.graph.names[each]: str(each) for each in used}
    edit = _Edit(marks, names, compress=compress)
    edit_trace(sequences.graph.traces[rank].unchanged_path(), target, edit, edit.missing_names(), FOR_VIEWING)
    return target


class _Edit:
    """Marks the events of patterns one after the other and, if asked to, compresses the other complete events."""

    def __init__(self, marks: Mapping[int, dict[str, int]], names: dict[str, str], *, compress: bool) -> None:
        self._marks, self._names, self._compress = marks, names, compress
        self._position = -1
        self._named = False

    def __call__(self, event: RawEvent) -> RawEvent:
        """Return the next event as it is written."""
        self._position += 1
        mark, name = self._marks.get(self._position), event.get("name")
        if mark is not None:
            args = event.get("args")
            event["args"] = {**(args if isinstance(args, dict) else {}), "Patterns": mark}
        elif self._compress and event.get("ph") == "X":
            is_profiler = str(name) not in self._names and _PROFILER in str(name)
            event["args"] = self._texts() if is_profiler else {}
            event["name"] = self._names.get(name, name) if isinstance(name, str) else name
            self._named |= is_profiler
        return event

    def missing_names(self) -> Iterator[RawEvent]:
        """Yield an event that carries the names, for files that have no event of the profiler to carry them."""
        if self._compress and not self._named:
            where = {"ph": "i", "pid": "Spans", "tid": _PROFILER, "ts": 0, "s": "g"}
            yield {**where, "name": _PROFILER, "args": self._texts()}

    def _texts(self) -> dict[str, str]:
        return {number: name for name, number in self._names.items()}
