"""Traces of several sizes: simulated jobs, and a real trace that is repeated until it is as large."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

__all__ = ["BenchTrace", "repeat", "repeated", "simulated"]

_STEP = re.compile(r"ProfilerStep#(\d+)")
_APART = 10_000_000
"""How much the ids of one repeat differ from those of the next. Chosen: no trace has as many ids. Doubled, nothing
changes."""
_PAUSE_US = 1000
"""µs between one repeat and the next. Chosen: about a pause between steps. Doubled, nothing changes."""
_ID_ARGUMENTS = ("correlation", "External id", "external id", "wait_on_cuda_event_id")


@dataclass(frozen=True)
class BenchTrace:
    """A trace to measure on."""

    kind: str
    """``simulated`` or ``real``."""
    size: int
    """About how many complete events it was meant to have."""
    path: Path
    json_bytes: int
    """Bytes of JSON, unpacked."""

    @property
    def label(self) -> str:
        """Return words for it."""
        return f"{self.kind}, {self.size:,} events"


def simulated(size: int, folder: Path) -> BenchTrace:
    """Return a simulated job of one rank and about so many events."""
    where = folder / f"simulated-{size}"
    if not where.exists():
        command = [sys.executable, "-m", "htagraph", "simulate", "--events", str(size), "-o", str(where)]
        subprocess.run(command, check=True, capture_output=True)
    (path,) = where.glob("*.json*")
    return BenchTrace("simulated", size, path, _json_bytes(path))


def repeated(source: Path, size: int, folder: Path) -> BenchTrace:
    """Return a real trace, repeated until it has about so many complete events."""
    path = folder / f"real-{size}" / "rank-0.json.gz"
    if not path.exists():
        path.parent.mkdir(parents=True)
        with ProcessPoolExecutor(1) as apart:  # Linux counts the memory of a process in those that it starts
            apart.submit(_write_repeated, source, size, path).result()
    return BenchTrace("real", size, path, _json_bytes(path))


def _write_repeated(source: Path, size: int, path: Path) -> None:
    document = json.loads(gzip.decompress(source.read_bytes()))
    complete = sum(event.get("ph") == "X" for event in document["traceEvents"])
    with gzip.open(path, "wt", compresslevel=3) as file:
        repeat(document, max(1, round(size / complete)), file)


def repeat(document: dict[str, Any], times: int, file: IO[str]) -> None:
    """Write a trace's events several times, one repeat after the other; ids and step numbers differ between them.

    Args:
        document: the trace; metadata events are written once, marks of the recording's end are left out.
        times: how often.
        file: where to.
    """
    events = [each for each in document["traceEvents"] if each.get("cat") != "Trace"]
    spans = [(each["ts"], each["ts"] + each["dur"]) for each in events if each.get("ph") == "X"]
    period = int(max(end for _, end in spans) - min(start for start, _ in spans)) + _PAUSE_US
    steps = [int(found[1]) for each in events if (found := _STEP.match(str(each.get("name"))))]
    head = {key: value for key, value in document.items() if key != "traceEvents"}
    file.write(json.dumps({**head, "traceEvents": []})[:-2] + "\n")
    file.write(",\n".join(json.dumps(each) for each in events if each.get("ph") == "M"))
    timed = [each for each in events if "ts" in each and each.get("ph") != "M" and "Window End" not in each["name"]]
    for number in range(times):
        steps_before = number * (max(steps) - min(steps) + 1) if steps else 0
        for event in timed:
            file.write(",\n" + json.dumps(_moved(event, number * period, number * _APART, steps_before)))
    file.write("\n]}\n")


def _moved(event: dict[str, Any], later_us: float, higher: int, steps: int) -> dict[str, Any]:
    """Return the event of a later repeat."""
    moved = {**event, "ts": round(event["ts"] + later_us, 3)}
    if isinstance(event.get("id"), int):
        moved["id"] = event["id"] + higher
    moved["name"] = _STEP.sub(lambda found: f"ProfilerStep#{int(found[1]) + steps}", str(event["name"]))
    if "args" in event:
        ids = {name: event["args"][name] for name in _ID_ARGUMENTS if name in event["args"]}
        more = {name: value + higher for name, value in ids.items() if isinstance(value, int) and value > 0}
        moved["args"] = {**event["args"], **more}
    return moved


def _json_bytes(path: Path) -> int:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return sum(len(piece) for piece in iter(lambda: file.read(1 << 20), b""))
