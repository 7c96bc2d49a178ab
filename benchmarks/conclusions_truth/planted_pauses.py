"""Pauses of the host that are written into simulated recordings, and whether each is named."""

from __future__ import annotations

import fnmatch
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.conclusions_truth.findings import Finding
from benchmarks.conclusions_truth.host_pauses import Pause

__all__ = ["SLEEP", "add_pauses", "planted_finding"]

Json: TypeAlias = dict[str, Any]
SLEEP = "<built-in function sleep>"
"""The function that pauses, where the recording has Python functions."""
LEAST = 0.5
"""Share of a planted pause that must be stated. Chosen: the rest may hide behind other work; doubled, all must be."""
_WORK = ("cpu_op", "cuda_runtime", "cuda_driver")


def add_pauses(file: Path, draw: random.Random, *, every: int, us: float, named: bool) -> int:
    """Pause the host in each `every`-th step of the recording of a job of one rank, and return how many times.

    All that comes later is written so much later: what the host does, and device work by when it was launched.

    Args:
        file: the recording, JSON; it is written anew.
        draw: chooses behind which operator of a step.
        every: in which steps.
        us: how long each pause is, µs.
        named: whether a Python function covers it.
    """
    data = json.loads(file.read_text())
    events: list[Json] = [each for each in data["traceEvents"] if each.get("ph") == "X"]
    for each in events:
        each["ts"], each["dur"] = float(each["ts"]), float(each["dur"])
    pauses = _moments(events, draw, every)
    calls: dict[Any, float] = {
        each["args"]["correlation"]: each["ts"]
        for each in events if each["cat"] in _WORK and "correlation" in each.get("args", {})
    }  # fmt: skip
    main = _steps(events)[0]
    for each in events:
        begin: float = each["ts"]
        on_host = each["cat"] in (*_WORK, "user_annotation", "python_function")
        called: float = begin if on_host else calls.get(each.get("args", {}).get("correlation"), begin)
        each["ts"] = begin + us * sum(moment <= called for moment in pauses)
        if on_host:
            each["dur"] += us * sum(begin < moment < begin + each["dur"] for moment in pauses)
    for i, moment in enumerate(pauses if named else ()):
        for name, inset in (("train.py(42): refresh_cache", 0.0), (SLEEP, 0.01)):
            data["traceEvents"].append({
                "ph": "X", "cat": "python_function", "name": name, "pid": main["pid"], "tid": main["tid"],
                "ts": moment + us * i + inset, "dur": us - 2 * inset, "args": {},
            })  # fmt: skip
    file.write_text(json.dumps(data))
    return len(pauses)


def _moments(events: Sequence[Json], draw: random.Random, every: int) -> list[float]:
    """Return a moment in each `every`-th step at which nothing runs on any host thread, behind the same operator."""
    work = sorted((each for each in events if each["cat"] in _WORK), key=lambda each: each["ts"])
    place, moments = draw.uniform(0.1, 0.9), []
    for step in _steps(events)[every - 1 :: every]:
        latest, free = 0.0, []
        for each in work:
            if step["ts"] < latest < each["ts"] < step["ts"] + step["dur"]:
                free.append((latest + each["ts"]) / 2)
            latest = max(latest, each["ts"] + each["dur"])
        moments.append(free[int(place * len(free))])
    return moments


def _steps(events: Sequence[Json]) -> list[Json]:
    """Return the annotations of steps on the host, by start."""
    marks = [each for each in events if each["cat"] == "user_annotation" and each["name"].startswith("ProfilerStep")]
    return sorted(marks, key=lambda each: each["ts"])


def planted_finding(said: Sequence[Pause], *, names: str, total_us: float, rank: int = -1) -> Finding:
    """Return whether a pause that is known to be there is named.

    Args:
        said: the stated pauses.
        names: globs on the function that pauses, joined by ``|``; time that no event covers is right in any case.
        total_us: how long all of them are together.
        rank: the rank that pauses; -1 for any.
    """
    right = [
        each for each in said
        if rank in (-1, each.rank)
        and (not each.what or any(fnmatch.fnmatchcase(word, glob) for glob in names.split("|")
                                  for word in (each.what, each.inside)))
    ]  # fmt: skip
    expected = f"{names[:40]} {total_us / 1000:.1f} ms"
    text = "; ".join(f"{each.what[:30] or 'untraced'} {each.total_us / 1000:.1f} ms" for each in said)
    stated = sum(each.total_us for each in right)  # by what follows, one pause may be several
    return Finding("host pause", "", expected, stated >= LEAST * total_us, text or "no pause is named")
