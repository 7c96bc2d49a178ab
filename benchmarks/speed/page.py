"""docs/BENCHMARKS.md: tables of one run, and the history of its ratios."""

from __future__ import annotations

import itertools
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from benchmarks.speed.figures import by_kind, figure, growth, ratios, values_of
from benchmarks.speed.history import series
from benchmarks.speed.rounds import Runs
from benchmarks.speed.traces import BenchTrace

__all__ = ["page", "sparkline", "table"]

_BARS = "▁▂▃▄▅▆▇█"
_SHOWN = 12
"""Runs that a line of the history shows. Chosen: a line of text. Doubled, tables are wider than a screen."""
_DECODERS = {"json": "json.loads", "orjson": "orjson", "msgspec": "msgspec", "hta": "HTA's load"}
_HEAD = """# Benchmarks

Written by `python -m benchmarks.run`; do not edit. Each figure is a median over fresh processes, which run in rounds,
so that all sides meet the same machine; in brackets the smallest and the largest. Imports and loading of compiled code
are not counted. *Simulated* traces are those of `htagraph simulate --events`; the *real* one is a recorded training
job, repeated in time. The machine: {machine}.
"""
_CHART = """
![CPU time by events](benchmarks.svg)
"""
_READING = """
## Reading

CPU time of `hg.load`, which decodes events and builds the graph over activities, beside decoders that make Python
objects of the same bytes, already unpacked, and HTA's load, which makes a DataFrame. A ratio says how many times as
long the other one takes. Memory is the peak above what was there before. Opening a saved graph verifies all checksums.
"""
_QUESTIONS = """
## Questions

CPU time of each question to an opened graph, in ms, in a process that has computed nothing else. *HTA ÷ ours* says how
many times as long HTA's own method takes, once it has loaded; HTA's critical path is of one step, ours of the job.
"""
_HISTORY = """
## History

Ratios of CPU times, which hardly depend on the machine, from `benchmarks/history.jsonl`: the last run's median, and
bars for the last {shown} runs, from the lowest to the highest. Higher is better for htagraph; `load / …` compares a
question with loading the same trace.
"""


def page(runs: Runs, history: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of a run, and of all runs before.

    Args:
        runs: what the processes of this run printed.
        history: all entries, this run's the last.
    """
    parts = [_HEAD.format(machine=_machine()), _CHART, _READING]
    for kind, traces in by_kind(runs).items():
        parts += [f"\n### {kind.capitalize()} traces\n", _reading(runs, traces)]
    parts.append(_QUESTIONS)
    for kind, traces in by_kind(runs).items():
        parts += [f"\n### {kind.capitalize()} traces\n", _questions(runs, traces)]
    parts += [_HISTORY.format(shown=_SHOWN), _history(history)]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown; the first column holds names, all others numbers.

    Example:
        >>> print(table(["what", "ms"], [["load", 3]]))
        | what | ms |
        |---|---:|
        | load | 3 |
    """
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    text = ["| " + " | ".join(map(str, line)) + " |" for line in lines]
    text[1] = text[1].replace(" ", "")
    return "\n".join(text)


def sparkline(values: Sequence[float | None]) -> str:
    """Return bars as high as the values are between the least and the largest; a dot where there is none.

    Example:
        >>> sparkline([1, 2, None, 3])
        '▁▅·█'
    """
    there = [value for value in values if value is not None]
    least, most = min(there, default=0), max(there, default=0)
    reach = (most - least) or 1
    return "".join(
        "·" if v is None else _BARS[min(int((v - least) / reach * len(_BARS)), len(_BARS) - 1)] for v in values
    )


def _reading(runs: Runs, traces: Sequence[BenchTrace]) -> str:
    columns = [_column(runs[trace], trace) for trace in traces]
    for column, exponent in zip(columns, _exponents(runs, traces), strict=True):
        column["exponent of time, from the size before"] = exponent
    rows = [[name, *(column[name] for column in columns)] for name in columns[0]]
    return table(["", *(f"{trace.size:,} events" for trace in traces)], [row for row in rows if any(row[1:])])


def _column(runs: Mapping[str, Sequence[Mapping[str, Any]]], trace: BenchTrace) -> dict[str, str]:
    cpu = values_of(runs, "load", "cpu_seconds")
    events = values_of(runs, "load", "events")
    column = {
        "complete events": f"{events[0]:,.0f}" if events else "", "MB of JSON": f"{trace.json_bytes / 1e6:,.1f}",
        "load: CPU s": _shown(cpu), "load: wall s": _shown(values_of(runs, "load", "seconds")),
        "load: thousand events per CPU s": _shown([n / s / 1e3 for n, s in zip(events, cpu, strict=True)]),
        "load: bytes per event": _shown([n / events[0] for n in _above(runs, "load")]),
    }  # fmt: skip
    for side, name in _DECODERS.items():
        theirs = values_of(runs, side, "cpu_seconds")
        column[f"{name} ÷ load"] = str(ratios(theirs, cpu)) if theirs and cpu else ""
        column[f"{name}: bytes per event"] = _shown([n / events[0] for n in _above(runs, side)] if events else [])
    opened = values_of(runs, "questions", "cpu_seconds")
    column["save: wall s"] = _shown(values_of(runs, "load", "save", "seconds"))
    column["saved: bytes per event"] = _shown([n / events[0] for n in values_of(runs, "load", "saved_bytes")[:1]])
    column["open: CPU ms"] = _shown([1000 * seconds for seconds in opened])
    column["load ÷ open"] = str(ratios(cpu, opened)) if opened and cpu else ""
    return column


def _above(runs: Mapping[str, Sequence[Mapping[str, Any]]], side: str) -> list[float]:
    """Return the peak memory of each run of a side above what was there before, bytes."""
    peak, before = ("peak_rss_mb", "rss_after_import_mb") if side == "hta" else ("peak_mb", "rss_before_mb")
    both = zip(values_of(runs, side, peak), values_of(runs, side, before), strict=True)
    return [(most - first) * 2**20 for most, first in both]


def _exponents(runs: Runs, traces: Sequence[BenchTrace]) -> list[str]:
    points = [(values_of(runs[t], "load", "events"), values_of(runs[t], "load", "cpu_seconds")) for t in traces]
    medians = [(figure(n).median, figure(s).median) if n and s else None for n, s in points]
    pairs = itertools.pairwise(medians)
    return ["", *(f"{growth(few, many):.2f}" if few and many else "" for few, many in pairs)]


def _questions(runs: Runs, traces: Sequence[BenchTrace]) -> str:
    names = dict.fromkeys(n for t in traces for run in runs[t].get("questions", [])[:1] for n in run["questions"])
    rows = []
    for name in names:
        row = [name]
        for trace in traces:
            ours = values_of(runs[trace], "questions", "questions", name, "cpu_seconds")
            theirs = values_of(runs[trace], "hta", "questions", name, "cpu_seconds")
            row += [_shown([1000 * each for each in ours]), str(ratios(theirs, ours)) if theirs and ours else "–"]
            row.append(_shown(values_of(runs[trace], "questions", "questions", name, "above_mb")))
        rows.append(row)
    head = [word for trace in traces for word in (f"{trace.size:,} events: ms", "HTA ÷ ours", "MB above the graph")]
    return table(["question", *head], rows)


def _history(history: Sequence[Mapping[str, Any]]) -> str:
    cells: dict[str, dict[str, str]] = {}
    for name, values in series(history).items():
        trace, what = name.split(": ", 1)
        last = next(value for value in reversed(values) if value is not None)
        cells.setdefault(what, {})[trace] = f"{last:.3g} {sparkline(values[-_SHOWN:])}"
    traces = list(dict.fromkeys(trace for row in cells.values() for trace in row))
    rows = [[what, *(row.get(trace, "") for trace in traces)] for what, row in cells.items()]
    runs = [[f"{each['date']}, {each['version']}, {each['commit']}", each["python"]] for each in history[-_SHOWN:]]
    return table(["ratio", *traces], rows) + "\n\n" + table(["run: date, version, commit", "Python"], runs)


def _shown(values: Sequence[float]) -> str:
    return str(figure(values)) if values else ""


def _machine() -> str:
    return f"{platform.system()} on {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
