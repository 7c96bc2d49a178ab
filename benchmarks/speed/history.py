"""The history of ratios: a line of JSON per run, small enough to be committed."""

from __future__ import annotations

import datetime
import json
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import astuple
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.speed.figures import Figure

__all__ = ["append", "entry", "read", "series"]

_DIGITS = 4
"""Significant digits that are kept. Chosen: runs differ in the second. Doubled, lines are half as long again."""


def entry(ratios: Mapping[str, Figure], repository: Path) -> dict[str, Any]:
    """Return what is kept of a run: when and of which program it was, and each ratio as [median, low, high, runs]."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "version": version("htagraph"),
        "commit": commit(repository),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "ratios": {name: [_rounded(number) for number in astuple(ratio)] for name, ratio in ratios.items()},
    }


def commit(repository: Path) -> str:
    """Return the commit that is checked out, with + where files differ from it; nothing where git does not know."""
    command = ["git", "-C", str(repository), "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def append(path: Path, made: Mapping[str, Any]) -> None:
    """Append an entry to a history."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(made, separators=(",", ":")) + "\n")


def read(path: Path) -> list[dict[str, Any]]:
    """Return the entries of a history, the oldest first; none if there is no such file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def series(history: Sequence[Mapping[str, Any]]) -> dict[str, list[float | None]]:
    """Return the medians of each ratio over the history, None where a run had none; in the order of the last run."""
    names = {name: None for each in reversed(history) for name in each["ratios"]}
    return {name: [each["ratios"].get(name, [None])[0] for each in history] for name in names}


def _rounded(number: float) -> float:
    return number if isinstance(number, int) else float(f"{number:.{_DIGITS}g}")
