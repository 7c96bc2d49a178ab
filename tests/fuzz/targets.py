"""What must hold whatever a file holds: it is read and every report can be made, or it is refused by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import htagraph as hg
from htagraph.core.errors import HtagraphError
from htagraph.output.render import FORMATS, render_summary
from htagraph.queries.replay import replay
from htagraph.trace.profiler_files.execution_trace import read_execution_trace
from htagraph.trace.profiler_files.memory_snapshot import read_memory_snapshot
from htagraph.trace.profiler_files.memory_timeline import read_memory_timeline

__all__ = ["TARGETS", "Refused", "try_file"]

LONGEST_ERROR = 1500
"""Characters; chosen: paths and several files may be listed. Doubled, longer errors pass."""


_SUMMARY_EVERY = 4
"""One file in so many is summarized, by its size. Chosen: half of the time goes there. Doubled, more are tried."""


class Refused(Exception):
    """The file was refused, as it may be."""


def try_file(path: Path) -> None:
    """Read a file as what its suffix says and make every report of it.

    Raises:
        Refused: the file was refused in a sentence that names it.
        Exception: anything else is a failure of htagraph.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            TARGETS[path.name.split(".", 1)[1].removesuffix(".gz")](path)
    except HtagraphError as error:
        text = str(error)
        assert path.name in text or str(path.parent) in text, f"an error that names no file: {text[:200]}"
        assert len(text) < LONGEST_ERROR, f"an error of {len(text)} characters"
        raise Refused(text) from error


def _trace(path: Path) -> None:
    graph = hg.load(path)
    graph.check()
    assert replay(graph).max_error_ns == 0, "the replay differs from the recording"
    if path.stat().st_size % _SUMMARY_EVERY:  # takes ten times as long as all the rest
        return
    summary = hg.summarize(graph)
    for form in FORMATS:
        shown = render_summary(summary, form)
        odd = {letter for letter in shown if not (letter.isprintable() or letter == "\n")}
        assert not odd, f"{form} has {odd}"


def _snapshot(path: Path) -> None:
    snapshot = read_memory_snapshot(path)
    snapshot.to_frame()
    snapshot.at_peak()


def _timeline(path: Path) -> None:
    read_memory_timeline(path)


def _execution_trace(path: Path) -> None:
    read_execution_trace(path)


TARGETS: dict[str, Callable[[Path], None]] = {
    "json": _trace,
    "pickle": _snapshot,
    "timeline.json": _timeline,
    "et.json": _execution_trace,
}
"""What is tried by the suffix of a file."""
