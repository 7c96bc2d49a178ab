"""Fresh processes in rounds: every side of every comparison once per round, so that all meet the same machine."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.speed.traces import BenchTrace

__all__ = ["Runs", "in_rounds", "sides"]

Command: TypeAlias = list[str]
Runs: TypeAlias = dict[BenchTrace, dict[str, list[dict[str, Any]]]]
"""What the processes of each side printed, by trace and side, in the order of the rounds."""

_FOLDER = Path(__file__).parents[1]
_PATIENCE_S = 150
"""Seconds after which a process is stopped; what it printed until then counts. Chosen: two that hang leave time for all
else. Doubled, a run with them takes five minutes longer."""
_LONG_S = 15
"""Seconds from which on a process is left out of rounds that would not be over in time with it. Chosen: in that time
others run several times, and vary more. Doubled, there are fewer rounds in the same time."""
_DECODERS = ("json", "orjson", "msgspec")


def sides(trace: BenchTrace, saved: Path, hta: str | None) -> dict[str, Command]:
    """Return the command of each side for a trace; `saved` is where the graph goes that later commands open."""
    measure = [sys.executable, str(_FOLDER / "measure.py")]
    commands = {"load": [*measure, "load", str(trace.path), "--save", str(saved)]}
    commands |= {decoder: [*measure, decoder, str(trace.path)] for decoder in _DECODERS}
    commands["questions"] = [*measure, "questions", str(saved)]
    if hta:
        commands["hta"] = [hta, str(_FOLDER / "hta_baseline.py"), str(trace.path), "--what", "all"]
    return commands


def in_rounds(
    commands: Mapping[BenchTrace, Mapping[str, Command]], rounds: int, seconds: float, say: Callable[[str], None]
) -> Runs:
    """Run all commands in rounds, as many as the time allows, but at least one; long ones only where they fit too.

    Args:
        commands: by trace and side.
        rounds: how many at most.
        seconds: no round begins that would probably end later.
        say: takes a line about each trace as it is measured.

    Returns:
        What each printed. A side that failed, or was not over in time, runs no more.
    """
    todo = [(trace, side) for trace, of_trace in commands.items() for side in of_trace]
    runs: Runs = {trace: {side: [] for side in of_trace} for trace, of_trace in commands.items()}
    start, took = time.monotonic(), dict.fromkeys(todo, 0.0)
    for number in range(rounds):
        if number:
            todo = _fitting({each: took[each] for each in todo}, seconds - (time.monotonic() - start))
        if not todo:
            say(f"{number} of {rounds} rounds: the next one would end after {seconds / 60:.1f} minutes")
            break
        failed = set()
        for trace, side in todo:
            begin = time.monotonic()
            if not _run(commands[trace][side], runs[trace][side], say):
                failed.add((trace, side))
            took[trace, side] = time.monotonic() - begin
            say(f"round {number + 1}, {trace.label}, {side}: {took[trace, side]:.1f} s")
        todo = [each for each in todo if each not in failed]
    return runs


def _fitting(took: Mapping[tuple[BenchTrace, str], float], left_s: float) -> list[tuple[BenchTrace, str]]:
    """Return what can run once more in the seconds left, by how long each took: all, all but the long ones, or none."""
    for most in (math.inf, _LONG_S):
        fitting = [each for each, seconds in took.items() if seconds < most]
        if sum(took[each] for each in fitting) <= left_s:
            return fitting
    return []


def _run(command: Sequence[str], results: list[dict[str, Any]], say: Callable[[str], None]) -> bool:
    """Run a process, append what it printed, and return whether it did."""
    own = command[0] == sys.executable  # HTA's Python must not find our packages
    environment = {name: value for name, value in os.environ.items() if own or name != "PYTHONPATH"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        try:
            out, errors = process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
            errors = f"not over in {_PATIENCE_S} s"
    printed = out.strip().splitlines()
    if printed and printed[-1].endswith("}"):
        results.append(json.loads(printed[-1]))  # also what was known when it was stopped
    if process.returncode:
        reason = (errors.strip().splitlines() or ["no reason given"])[-1]
        say(f"not measured any more: {' '.join(command[1:4])}: {reason}")
    return process.returncode == 0
