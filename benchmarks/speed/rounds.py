"""Fresh processes in rounds: every side of every comparison once per round, so that all meet the same machine."""

from __future__ import annotations

import json
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
_PATIENCE_S = 300
"""Seconds after which a process is stopped. Chosen: HTA reads 10^6 events in 30. Doubled, what hangs takes longer."""
_LONG_S = 15
"""Seconds from which on a process runs in the first two rounds only. Chosen: in that time others run several times, and
vary more. Doubled, there are fewer rounds in the same time."""
_LONG_ROUNDS = 2
"""Rounds in which long processes run. Chosen: the least that has a spread. Doubled, a run of all sizes is longer than
its time."""
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
    """Run all commands in rounds, as many as the time allows, but at least one; long ones in the first two only.

    Args:
        commands: by trace and side.
        rounds: how many at most.
        seconds: no round begins that would probably end later.
        say: takes a line about each trace as it is measured.

    Returns:
        What each printed. A side that failed once, or was not over in time, has no runs.
    """
    runs: Runs = {trace: {side: [] for side in of_trace} for trace, of_trace in commands.items()}
    start, last, long = time.monotonic(), 0.0, dict.fromkeys(commands, frozenset[str]())
    for number in range(rounds):
        begin = time.monotonic()
        if number and begin - start + last > seconds:
            say(f"{number} of {rounds} rounds: the next one would end after {seconds / 60:.1f} minutes")
            break
        for trace, of_trace in commands.items():
            left_out = long[trace] if number >= _LONG_ROUNDS else frozenset()
            todo = {side: command for side, command in of_trace.items() if side in runs[trace].keys() - left_out}
            took = _round(todo, runs[trace], say)
            long[trace] |= {side for side, duration in took.items() if duration >= _LONG_S}
            times = ", ".join(f"{side} {duration:.1f} s" for side, duration in took.items())
            say(f"round {number + 1}, {trace.label}: {times}; {time.monotonic() - start:.0f} s in all")
        last = time.monotonic() - begin
    return runs


def _round(
    commands: Mapping[str, Command], results: dict[str, list[dict[str, Any]]], say: Callable[[str], None]
) -> dict[str, float]:
    """Run each command once, and return how many seconds each took; one that fails loses its results."""
    took = {}
    for side, command in commands.items():
        begin = time.monotonic()
        if not _run(command, results[side], say):
            del results[side]
        took[side] = time.monotonic() - begin
    return took


def _run(command: Sequence[str], results: list[dict[str, Any]], say: Callable[[str], None]) -> bool:
    """Run a process, append what it printed, and return whether it did."""
    own = command[0] == sys.executable  # HTA's Python must not find our packages
    environment = {name: value for name, value in os.environ.items() if own or name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_PATIENCE_S, env=environment
        )
    except subprocess.TimeoutExpired:
        say(f"not over in {_PATIENCE_S} s: {' '.join(command)}")
        return False
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        say(f"left out: {' '.join(command[1:4])}: {reason}")
        return False
    results.append(json.loads(done.stdout.strip().splitlines()[-1]))
    return True
