"""What must hold whatever a file holds: it is read and every report can be made, or it is refused by name."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import typer
from typer.testing import CliRunner

import htagraph as hg
from benchmarks.growth import commands
from htagraph import DependencyGraph
from htagraph.cli.main import app
from htagraph.core.errors import HtagraphError
from htagraph.output.render import FORMATS, render_summary
from htagraph.queries.replay import replay
from htagraph.queries.skeleton_bytes import from_bytes, to_bytes
from htagraph.trace.profiler_files.files import read_execution_trace, read_memory_timeline
from htagraph.trace.profiler_files.memory_snapshot import read_memory_snapshot

__all__ = ["TARGETS", "Refused", "try_file"]

LONGEST_ERROR = 1500
"""Characters; chosen: paths and several files may be listed. Doubled, longer errors pass."""


_SUMMARY_EVERY = 4
"""One file in so many is summarized, by its size. Chosen: half of the time goes there. Doubled, more are tried."""


_LINES = [*commands()[1:], "compare {job} {job} --steps 1", "diff {job} {job} --fail-on step_time>+5%"]
"""What the command line is asked, one of these for each file, in one of the forms where it prints a table."""


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
    _summary(graph)
    _commands(path)
    with tempfile.TemporaryDirectory() as folder:
        again = hg.open(hg.save(graph, folder))
        assert again.edges.lag.tolist() == graph.edges.lag.tolist(), "what was saved differs"
        skeleton = hg.contract(again)
        assert from_bytes(to_bytes(skeleton)).makespan_ns() == skeleton.makespan_ns(), "what was packed differs"


def _summary(graph: DependencyGraph) -> None:
    summary = hg.summarize(graph)
    for form in FORMATS:
        shown = render_summary(summary, form)
        odd = {letter for letter in shown if not (letter.isprintable() or letter == "\n")}
        assert not odd, f"{form} has {odd}"


def _commands(path: Path) -> None:
    size = path.stat().st_size // _SUMMARY_EVERY
    line, form = _LINES[size % len(_LINES)], FORMATS[size // len(_LINES) % len(FORMATS)]
    with tempfile.TemporaryDirectory() as folder:
        words = line.format(job=path, out=folder).split()
        if not {"-f", "-o"} & {*words} and words[0] not in ("report", "export"):
            words += ["-f", form]
        done = CliRunner().invoke(app, words)
    if done.exception is not None and not isinstance(done.exception, SystemExit | HtagraphError | OSError):
        raise done.exception
    assert done.exit_code != typer.BadParameter.exit_code, f"{words} is no command: {done.output[-300:]}"


def _saved(path: Path) -> None:
    graph = hg.open(path)
    with suppress(HtagraphError):  # a graph that no writer would have saved
        replay(graph)
        _summary(graph)


def _skeleton(path: Path) -> None:
    try:
        skeleton = from_bytes(path.read_bytes())
    except HtagraphError as error:
        raise Refused(str(error)) from error
    skeleton.makespan_ns()
    skeleton.step_times()
    skeleton.waits()
    skeleton.slack_ns()
    skeleton.critical_edges()


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
    "pftrace": _trace,
    "pickle": _snapshot,
    "timeline.json": _timeline,
    "et.json": _execution_trace,
    "htagraph": _saved,
    "skeleton": _skeleton,
}
"""What is tried by the suffix of a file."""
